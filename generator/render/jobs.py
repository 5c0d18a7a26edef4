"""Shape `jobs`: one complete, readable Job a trial; what a reviewer reads is what runs."""

import copy
from typing import Any

from generator.formats.table import Shard
from generator.render import pod
from generator.render.pod import Manifest
from generator.structs.batch import Batch
from generator.structs.names import environment_name
from generator.structs.settings import Settings
from generator.structs.trial import Trial
from generator.structs.values import canonical_json

BASE = "jobs/v1"


def manifests(
    name: str, batch: Batch, settings: Settings, shards: tuple[Shard, ...], template: Manifest
) -> list[Manifest]:
    """Fill a copy of `base/jobs/v1/job.yaml` for every trial, in the order of the table."""
    shared = _shared(name, batch, settings, shards, template)
    return [_job(name, batch, index, trial, shared) for index, trial in enumerate(batch.trials)]


def _shared(
    name: str, batch: Batch, settings: Settings, shards: tuple[Shard, ...], template: Manifest
) -> Manifest:
    """Write what all Jobs of the batch have in common into the template."""
    job = copy.deepcopy(template)
    job["metadata"] = {"name": name, "namespace": settings.namespace}
    job["spec"]["backoffLimit"] = batch.run.retries
    spec = job["spec"]["template"]["spec"]
    spec["activeDeadlineSeconds"] = pod.deadline(batch)
    named = {volume["name"]: volume for volume in pod.volumes(name, batch, settings, shards)}
    spec["volumes"] = [named.pop(volume["name"], volume) for volume in spec["volumes"]] + list(named.values())
    container = spec["containers"][0]
    container["image"] = pod.image(batch)
    container["command"] = [batch.run.interpreter, "/sweep/launcher/launch.py"]
    container["env"] += pod.environment(batch)
    container["resources"] = pod.resources(batch)
    container["volumeMounts"] += pod.mounts(batch)
    return job


def _job(name: str, batch: Batch, index: int, trial: Trial, shared: Manifest) -> Manifest:
    job = copy.deepcopy(shared)
    labels = pod.labels(name, batch) | {pod.TRIAL_LABEL: trial.id, pod.INDEX_LABEL: str(index)}
    job["metadata"] = {
        "name": f"{name}-{trial.id}",
        "namespace": job["metadata"]["namespace"],
        "labels": labels,
    }
    template = job["spec"]["template"]
    job["spec"]["template"] = {"metadata": {"labels": dict(labels)}, "spec": template["spec"]}
    container = template["spec"]["containers"][0]
    container["env"] += [{"name": "SWEEP_INDEX", "value": str(index)}, *_values(trial)]
    for mount in container["volumeMounts"]:
        if mount["name"] == "results":
            mount["subPath"] = f"{name}/{index}"
    return job


def _values(trial: Trial) -> list[Manifest]:
    """Show the trial's values where a reviewer looks; the launcher sets the same from the table."""
    return [
        {"name": environment_name(parameter), "value": _text(value)}
        for parameter, value in trial.assignment.items()
    ]


def _text(value: Any) -> str:
    return canonical_json(value) if isinstance(value, list | tuple) or value is None else str(value)
