"""Shape `indexed`: the patch that makes the frozen Indexed Job this batch's own."""

from generator.formats.table import Shard
from generator.render import components, options, pod
from generator.render.merging import merge
from generator.render.pod import Manifest
from generator.structs.batch import Batch
from generator.structs.settings import Settings

BASE = "trial/v1"

TO_BASE = "../../../base"
"""From an overlay, active or archived."""


def patch(name: str, batch: Batch, settings: Settings, shards: tuple[Shard, ...]) -> Manifest:
    """Say only what differs from `base/trial/v1/job.yaml` with the batch's components."""
    trials, run = len(batch.trials), batch.run
    own = options.folders(settings, {"subPathExpr": f"{name}/$(JOB_COMPLETION_INDEX)"})
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "labels": pod.labels(name, batch, settings) | pod.queue_labels(batch, settings),
            "annotations": pod.annotations(batch),
        },
        "spec": {
            "completions": trials,
            "parallelism": min(run.parallelism, trials),
            "backoffLimitPerIndex": run.retries,
            "maxFailedIndexes": trials if run.max_failed is None else min(run.max_failed, trials),
            "template": merge(options.template(name, batch, settings, shards), own),
        },
    }


def kustomization(batch: Batch, settings: Settings) -> Manifest:
    """List the base, the components and the patch, which has the last word."""
    chosen = components.chosen(batch, settings)
    return {
        "namespace": settings.namespace,
        "resources": [f"{TO_BASE}/{BASE}"],
        **({"components": [f"{TO_BASE}/{name}" for name in chosen]} if chosen else {}),
        "patches": [
            {
                "path": "job.yaml",
                "target": {"kind": "Job", "name": "trial"},
                "options": {"allowNameChange": True},
            }
        ],
    }
