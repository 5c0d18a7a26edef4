"""What a batch says of its pods beyond base and components, as partial pod templates: values only.

A part that an option brings in one form for all batches is a component below `base/`, and what the object
around the pods says belongs to the module of its shape: neither is written here.
"""

from generator.formats.launch import LAUNCHER_PATH, secret_folder
from generator.formats.placement import placement
from generator.formats.table import Shard, Table
from generator.render import pod, values
from generator.render.merging import merge
from generator.render.pod import Manifest, Objects
from generator.render.values import escaped
from generator.structs.batch import Batch
from generator.structs.labels import (
    CHECKPOINTS,
    EGRESS_LABEL,
    INDEX_VARIABLE,
    PARENT_ID_VARIABLE,
    PARENT_PATH,
    PARENT_VARIABLE,
)
from generator.structs.settings import Settings
from generator.structs.sweep import CodeMode

GIT = "git"
"""The egress of the settings, if they have it, that leads to the git server."""


def template(name: str, batch: Batch, settings: Settings, shards: tuple[Shard, ...]) -> Manifest:
    """Say all of a batch's pods that no trial says for itself. Merge it over base and components."""
    pool = pod.pool_of(batch, settings)
    container = {
        "name": "trial",
        "image": batch.program.container_image,
        "command": [batch.run.interpreter, LAUNCHER_PATH],
        "env": _environment(batch),
        "resources": pod.resources(batch, settings, shards),
        "volumeMounts": _mounts(batch, settings),
    }
    spec: Manifest = {
        "activeDeadlineSeconds": pod.deadline(batch, settings),
        **({} if pool is None else placement(pool, has_gpus=batch.run.resources.gpu > 0)),
        "containers": [container],
        "volumes": _volumes(name, batch, settings, shards),
    }
    if batch.run.code_mode is CodeMode.CLONE:
        spec["initContainers"] = [_clone(batch, settings)]
    if settings.image_pull_secret is not None:
        spec["imagePullSecrets"] = [{"name": settings.image_pull_secret}]
    if settings.priority_class is not None:
        spec["priorityClassName"] = settings.priority_class
    egress = {f"{EGRESS_LABEL}{place}": "true" for place in _destinations(batch, settings)}
    return {"metadata": {"labels": pod.labels(name, batch, settings) | egress}, "spec": spec}


def of_trial(name: str, batch: Batch, settings: Settings, table: Table, index: int) -> Manifest:
    """Say what the pods of one trial have for themselves where each trial has its object."""
    trial = batch.trials[index]
    container = {
        "name": "trial",
        "args": ["--", *values.arguments(batch, trial)],
        "env": [
            {"name": INDEX_VARIABLE, "value": str(index)},
            *values.environment(trial, table.columns),
        ],
    }
    own: Manifest = {
        "metadata": {"labels": pod.trial_labels(batch, index)},
        "spec": {"containers": [container]},
    }
    own = merge(own, folders(settings, {"subPath": f"{name}/{index}"}))
    folder = batch.parent_folders.get(index)
    return own if folder is None else merge(own, _parent(folder, batch.parents[index], settings))


def _parent(folder: str, trial: str, settings: Settings) -> Manifest:
    """Show a trial the checkpoints that it goes on from: another trial's, to read and nothing else."""
    mount = {
        "name": "results" if settings.results.checkpoints is None else "checkpoints",
        "mountPath": PARENT_PATH,
        "readOnly": True,
        "subPath": f"{folder}/{CHECKPOINTS}",
    }
    environment = [
        {"name": PARENT_VARIABLE, "value": PARENT_PATH},
        {"name": PARENT_ID_VARIABLE, "value": trial},
    ]
    return {"spec": {"containers": [{"name": "trial", "env": environment, "volumeMounts": [mount]}]}}


def _destinations(batch: Batch, settings: Settings) -> list[str]:
    """Name the places that the pods may reach: all containers of a pod share one network."""
    clones = batch.run.code_mode is CodeMode.CLONE and GIT in settings.egress
    return sorted({*batch.run.egress, *((GIT,) if clones else ())})


def folders(settings: Settings, place: Manifest) -> Manifest:
    """Give a trial its own folder on every volume it writes to; `place` has `subPath` or `subPathExpr`."""
    separate = {"checkpoints": settings.results.checkpoints, "artifacts": settings.results.artifacts}
    names = ["results", *(volume for volume, claim in separate.items() if claim is not None)]
    mounts = [{"name": volume, "mountPath": f"/sweep/{volume}", **place} for volume in names]
    return {"spec": {"containers": [{"name": "trial", "volumeMounts": mounts}]}}


def _environment(batch: Batch) -> list[Manifest]:
    variables = {
        "OMP_NUM_THREADS": str(batch.run.threads),
        **{variable: escaped(value) for variable, value in batch.run.environment.items()},
        "SWEEP_RAN": batch.program.image,
    }
    return [{"name": name, "value": value} for name, value in sorted(variables.items())]


def _mounts(batch: Batch, settings: Settings) -> list[Manifest]:
    mounts: list[Manifest] = [
        {"name": f"secret-{secret}", "mountPath": secret_folder(secret), "readOnly": True}
        for secret in sorted(batch.run.secrets)
    ]
    if batch.program.data is not None and settings.datasets[batch.program.data.name].path:
        path = settings.datasets[batch.program.data.name].path
        mounts.append({"name": "data", "mountPath": "/sweep/data", "readOnly": True, "subPath": path})
    return mounts


def _volumes(name: str, batch: Batch, settings: Settings, shards: tuple[Shard, ...]) -> list[Manifest]:
    objects, results = Objects(name), settings.results
    tables = [{"configMap": {"name": objects.table(number)}} for number in range(len(shards))]
    volumes: list[Manifest] = [
        {"name": "launcher", "configMap": {"name": objects.launcher, "defaultMode": 0o444}},
        {"name": "table", "projected": {"defaultMode": 0o444, "sources": tables}},
        {"name": "scratch", "emptyDir": {"sizeLimit": batch.run.resources.scratch}},
        _claim("results", results.claim),
    ]
    if results.checkpoints is not None:
        volumes.append(_claim("checkpoints", results.checkpoints))
    if results.artifacts is not None:
        volumes.append(_claim("artifacts", results.artifacts))
    if batch.program.data is not None:
        claim = settings.datasets[batch.program.data.name].claim
        volumes.append({"name": "data", "persistentVolumeClaim": {"claimName": claim, "readOnly": True}})
    if batch.run.resources.shared_memory is not None:
        limit = {"medium": "Memory", "sizeLimit": batch.run.resources.shared_memory}
        volumes.append({"name": "shared-memory", "emptyDir": limit})
    for asked in sorted(batch.run.secrets):
        secret = settings.secrets[asked]
        only = [{"key": secret.key, "path": secret.key}]
        source = {"secretName": secret.secret, "defaultMode": 0o440, "items": only}
        volumes.append({"name": f"secret-{asked}", "secret": source})
    if batch.run.code_mode is CodeMode.CLONE and settings.code is not None and settings.code.secret:
        source = {"secretName": settings.code.secret, "defaultMode": 0o440}
        volumes.append({"name": "clone-credentials", "secret": source})
    return volumes


def _claim(volume: str, claim: str) -> Manifest:
    return {"name": volume, "persistentVolumeClaim": {"claimName": claim}}


def _clone(batch: Batch, settings: Settings) -> Manifest:
    assert settings.code is not None, "the spec's checks refuse a clone without a place to clone from"
    code, wanted = batch.program.code, batch.run.resources
    # As much as the trial: a pod is placed by its largest container, so this one never costs a node.
    amounts = {"cpu": wanted.cpu, "memory": wanted.memory}
    variables = {
        "CODE_BRANCH": settings.branch,
        "CODE_PATH": code.path,
        "CODE_TREE": code.tree,
        "CODE_URL": settings.code.url,
    }
    return {
        "name": "code",
        "image": settings.image_of(settings.code.image),
        "env": [{"name": name, "value": escaped(value)} for name, value in variables.items()],
        "resources": {"limits": dict(amounts), "requests": dict(amounts)},
    }
