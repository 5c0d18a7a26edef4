"""Shape `indexed`: the patch that makes the frozen Indexed Job this batch's own."""

from generator.formats.table import Shard
from generator.render import pod
from generator.render.pod import Manifest
from generator.structs.batch import Batch
from generator.structs.settings import Settings

BASE = "trial/v1"


def patch(name: str, batch: Batch, settings: Settings, shards: tuple[Shard, ...]) -> Manifest:
    """Say only what differs from `base/trial/v1/job.yaml`."""
    results = {
        "name": "results",
        "mountPath": "/sweep/results",
        "subPathExpr": f"{name}/$(JOB_COMPLETION_INDEX)",
    }
    container = {
        "name": "trial",
        "command": [batch.run.interpreter, "/sweep/launcher/launch.py"],
        "env": pod.environment(batch),
        "resources": pod.resources(batch),
        "volumeMounts": [results, *pod.mounts(batch)],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "completions": len(batch.trials),
            "parallelism": min(batch.run.parallelism, len(batch.trials)),
            "backoffLimitPerIndex": batch.run.retries,
            "maxFailedIndexes": len(batch.trials),
            "template": {
                "spec": {
                    "activeDeadlineSeconds": pod.deadline(batch),
                    "containers": [container],
                    "volumes": pod.volumes(name, batch, settings, shards),
                }
            },
        },
    }


def kustomization(name: str, batch: Batch, settings: Settings) -> Manifest:
    """List the base, the patch and what Kustomize's own operators change."""
    listed: Manifest = {
        "namespace": settings.namespace,
        "resources": [f"../../../base/{BASE}"],
        "labels": [{"pairs": pod.labels(name, batch), "includeTemplates": True}],
        "patches": [
            {
                "path": "job.yaml",
                "target": {"kind": "Job", "name": "trial"},
                "options": {"allowNameChange": True},
            }
        ],
    }
    image = pod.image(batch)
    if image != pod.BASE_IMAGE:
        reference, _, digest = image.partition("@")
        listed["images"] = [{"name": pod.BASE_IMAGE, "newName": reference, "digest": digest}]
    return listed
