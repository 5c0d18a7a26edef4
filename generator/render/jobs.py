"""Shape `jobs`: one complete, readable Job a trial; what a reviewer reads is what runs."""

import copy
from collections.abc import Sequence

from generator.formats.table import Column, Row, Shard, columns, environment_text
from generator.render import pod
from generator.render.pod import Manifest
from generator.structs.batch import Batch
from generator.structs.names import environment_name
from generator.structs.settings import Settings
from generator.structs.trial import Trial

BASE = "jobs/v1"


def manifests(
    name: str, batch: Batch, settings: Settings, shards: tuple[Shard, ...], template: Manifest
) -> list[Manifest]:
    """Fill a copy of `base/jobs/v1/job.yaml` for every trial, in the order of the table."""
    shared = _shared(name, batch, settings, shards, template)
    kinds = columns(
        batch.columns, [Row(trial.id, trial.assignment, trial.replicate) for trial in batch.trials]
    )
    made = []
    for index, trial in enumerate(batch.trials):
        environment = [{"name": "SWEEP_INDEX", "value": str(index)}, *_values(trial, kinds)]
        made.append(_job(name, batch, index, shared, environment))
    return made


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


def _job(name: str, batch: Batch, index: int, shared: Manifest, environment: list[Manifest]) -> Manifest:
    job, trial = copy.deepcopy(shared), batch.trials[index]
    labels = pod.labels(name, batch) | {pod.TRIAL_LABEL: trial.id, pod.INDEX_LABEL: str(index)}
    job["metadata"] = {
        "name": f"{name}-{trial.id}",
        "namespace": job["metadata"]["namespace"],
        "labels": labels,
    }
    template = job["spec"]["template"]
    job["spec"]["template"] = {"metadata": {"labels": dict(labels)}, "spec": template["spec"]}
    container = template["spec"]["containers"][0]
    container["env"] += environment
    for mount in container["volumeMounts"]:
        if mount["name"] == "results":
            mount["subPath"] = f"{name}/{index}"
    return job


def _values(trial: Trial, columns: Sequence[Column]) -> list[Manifest]:
    """Show the trial's values where a reviewer looks; the launcher sets the same from the table."""
    return [
        {
            "name": environment_name(column.name),
            "value": environment_text(trial.assignment[column.name], column.type),
        }
        for column in columns
        if column.name in trial.assignment
    ]
