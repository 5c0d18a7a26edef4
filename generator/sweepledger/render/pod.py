"""The pods of a batch as partial pod templates: labels, resources, deadlines, volumes and environment.

Structure that an option adds in one form for all batches is a component below `base/`; the object around the
pods belongs to the module of its shape. Names of the platform's objects are in platform/objects.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from sweepledger import __version__
from sweepledger.formats.hyperparams_csv import Shard, Table
from sweepledger.formats.launch_json import LAUNCHER_PATH, secret_folder
from sweepledger.render import command
from sweepledger.render.command import escape_variables
from sweepledger.render.manifest import Manifest, merge
from sweepledger.structs import quantities
from sweepledger.structs.batch import Batch
from sweepledger.structs.kubernetes import (
    BATCH_LABEL,
    CODE_CONTAINER,
    EGRESS_LABEL,
    GENERATOR_LABELS,
    INDEX_LABEL,
    INDEX_VARIABLE,
    PARENT_FOLDER_VARIABLE,
    PARENT_ID_VARIABLE,
    PARENT_PATH,
    PARENT_VARIABLE,
    PARENT_VOLUME,
    PRIORITY_LABEL,
    QUEUE_LABEL,
    RESULTS_VOLUME,
    STORE_CONTAINER,
    STORE_CREDENTIALS,
    STORE_SEALS,
    STORE_SEALS_KEY,
    SWEEP_LABEL,
    TRIAL_LABEL,
    parent_mount,
    trial_folder,
)
from sweepledger.structs.node_pool import (
    BUCKET_GRACE_SECONDS,
    GPU_RESOURCE,
    GRACE_SECONDS,
    Pool,
    scheduling_fields,
)
from sweepledger.structs.program import Code
from sweepledger.structs.run_config import CodeMode
from sweepledger.structs.settings import COLLECTOR_IMAGE, GIT_EGRESS, BucketSettings, Cloud, Settings

POD_STARTUP_SECONDS = 15 * 60
"""The least that a pod's deadline allows for its start, including the image pull; the launcher times trials."""

OTHER_DISK = 2 << 30
"""Bytes that a pod may write in addition to its scratch: logs, the image's writable layer, cloned code."""
MEBIBYTE = 1 << 20

_TRIAL_CONTAINERS = ("code", "pytorch", "tensorflow", "trial")
IDENTITY_LABELS: Mapping[Cloud, Mapping[str, str]] = {Cloud.AZURE: {"azure.workload.identity/use": "true"}}
"""Labels by which a cloud adds an identity to a pod."""
IDENTITY_ANNOTATIONS: Mapping[Cloud, Mapping[str, str]] = {
    Cloud.AZURE: {"azure.workload.identity/skip-containers": ";".join(_TRIAL_CONTAINERS)},
    Cloud.S3: {"eks.amazonaws.com/skip-containers": ",".join(_TRIAL_CONTAINERS)},
}
"""Annotations by which it adds none to the containers that run a trial's code."""


@dataclass(frozen=True, slots=True)
class ConfigMapNames:
    """The names of a batch's ConfigMaps; each begins with the batch's name."""

    batch: str

    @property
    def launcher(self) -> str:
        """The ConfigMap with the launcher and its instructions."""
        return f"{self.batch}-launcher"

    def table(self, number: int) -> str:
        """The ConfigMap with a shard of the table."""
        return f"{self.batch}-table-{number:03d}"


def labels(name: str, batch: Batch, settings: Settings) -> dict[str, str]:
    """Return the labels of every object and pod of a batch; those of the settings never replace sweepledger's."""
    return {
        **dict(sorted(settings.labels.items())),
        **GENERATOR_LABELS,
        SWEEP_LABEL: batch.sweep.name,
        BATCH_LABEL: name,
    }


def trial_labels(batch: Batch, index: int) -> dict[str, str]:
    """Return the labels of objects and pods of one trial."""
    return {TRIAL_LABEL: batch.trials[index].id, INDEX_LABEL: str(index)}


def queue_labels(batch: Batch, settings: Settings) -> dict[str, str]:
    """Return the labels of objects that Kueue queues, if the pool is a queue; pods need none."""
    pool = pool_of(batch, settings)
    if pool is None or pool.queue is None:
        return {}
    priority = {} if batch.run.priority is None else {PRIORITY_LABEL: batch.run.priority}
    return {QUEUE_LABEL: pool.queue} | priority


def annotations(batch: Batch) -> dict[str, str]:
    """Return annotations that say where an object comes from, for people who only see the cluster."""
    return {
        "sweepledger.dev/generator": __version__,
        "sweepledger.dev/program": f"sha256:{batch.program.digest}",
        "sweepledger.dev/spec": batch.sweep.path,
        "sweepledger.dev/spec-digest": batch.sweep.digest,
    }


def pool_of(batch: Batch, settings: Settings) -> Pool | None:
    """Return the pool of a batch, if it has one."""
    return None if batch.run.pool is None else settings.pools[batch.run.pool]


def deadline(batch: Batch, settings: Settings) -> int:
    """Return the seconds after which the node ends a pod whose launcher has not ended."""
    pool = pool_of(batch, settings)
    startup = max(POD_STARTUP_SECONDS, 0 if pool is None else pool.startup_seconds)
    return batch.run.timeout_seconds + grace_seconds(batch, settings) + startup


def grace_seconds(batch: Batch, settings: Settings) -> int:
    """Return the termination grace period of pods, in seconds."""
    pool = pool_of(batch, settings)
    if pool is not None and pool.pod.grace_seconds is not None:
        return pool.pod.grace_seconds
    return GRACE_SECONDS if settings.results.bucket is None else BUCKET_GRACE_SECONDS


def gpu_resource(batch: Batch, settings: Settings) -> str:
    """Return the resource name of GPUs where the batch runs."""
    pool = pool_of(batch, settings)
    return GPU_RESOURCE if pool is None else pool.gpu_resource


def resources(batch: Batch, settings: Settings, shards: tuple[Shard, ...]) -> Manifest:
    """Return the resources of a trial; requests and limits are equal."""
    wanted = batch.run.resources
    volumes = 2 if settings.results.store.holds_pods else 1  # files of the trial are on the node, too
    volumes += _restores_parents(batch, settings)  # and those of its parent
    disk = volumes * quantities.whole_quantity(wanted.scratch) + OTHER_DISK
    amounts = {
        "cpu": wanted.cpu,
        "memory": _memory(wanted.memory, shards),
        "ephemeral-storage": quantities.format_bytes(disk),
    }
    if wanted.gpu:
        amounts[gpu_resource(batch, settings)] = str(wanted.gpu)
    if (pool := pool_of(batch, settings)) is not None:
        amounts.update((name, str(amount)) for name, amount in sorted(pool.pod.resources.items()))
    return {"limits": dict(amounts), "requests": dict(amounts)}


def _restores_parents(batch: Batch, settings: Settings) -> bool:
    """Return whether sidecars may have to restore checkpoints of parents: the same in all rounds of a search."""
    return settings.results.bucket is not None and (batch.keeps_checkpoints or bool(batch.parents))


def _memory(wanted: str, shards: tuple[Shard, ...]) -> str:
    """Add the size of a table with several shards: a projected volume is in the pod's memory."""
    if len(shards) == 1:
        return wanted  # half a MiB at most: less than what two runs differ by
    table = sum(len(shard.text.encode()) for shard in shards)
    return quantities.format_bytes(quantities.whole_quantity(wanted) + -(-table // MEBIBYTE) * MEBIBYTE)


def template(name: str, batch: Batch, settings: Settings, shards: tuple[Shard, ...]) -> Manifest:
    """Return the part of the pod template that all trials share, to be merged over base and components."""
    pool = pool_of(batch, settings)
    container = {
        "name": "trial",
        "image": batch.program.container_image,
        "command": [batch.run.interpreter, LAUNCHER_PATH],
        "env": _environment(batch),
        "resources": resources(batch, settings, shards),
        "volumeMounts": _mounts(batch, settings),
    }
    spec: Manifest = {
        "activeDeadlineSeconds": deadline(batch, settings),
        **({} if pool is None else scheduling_fields(pool, has_gpus=batch.run.resources.gpu > 0)),
        "containers": [container],
        "volumes": _volumes(name, batch, settings, shards),
    }
    clones = [_clone(batch, settings)] if batch.run.code_mode is CodeMode.CLONE else []
    bucket = settings.results.bucket
    sidecars = [] if bucket is None else [_sidecar(name, batch, settings, bucket)]
    if clones or sidecars:
        spec["initContainers"] = [*clones, *sidecars]
    if bucket is not None:
        spec["terminationGracePeriodSeconds"] = grace_seconds(batch, settings)
    if settings.image_pull_secret is not None:
        spec["imagePullSecrets"] = [{"name": settings.image_pull_secret}]
    if settings.priority_class is not None:
        spec["priorityClassName"] = settings.priority_class
    metadata: Manifest = {"labels": labels(name, batch, settings)}
    if pool is not None:
        own, metadata = pool.pod, _pool_metadata(pool, metadata["labels"])
        named = {"priorityClassName": own.priority_class, "serviceAccountName": own.service_account}
        spec |= {key: value for key, value in named.items() if value is not None}
        if own.grace_seconds is not None:
            spec["terminationGracePeriodSeconds"] = own.grace_seconds
    egress = {f"{EGRESS_LABEL}{place}": "true" for place in _destinations(batch, settings)}
    metadata["labels"] |= egress
    if bucket is not None:
        metadata["labels"] |= _identity(bucket, IDENTITY_LABELS)
        if annotations := _identity(bucket, IDENTITY_ANNOTATIONS):
            metadata["annotations"] = metadata.get("annotations", {}) | annotations
    return {"metadata": metadata, "spec": spec}


def _pool_metadata(pool: Pool, labels: Mapping[str, str]) -> Manifest:
    """Return the metadata of a pool's pods; its labels never replace those of sweepledger and of the settings."""
    annotations = {"annotations": dict(sorted(pool.pod.annotations.items()))} if pool.pod.annotations else {}
    return {"labels": dict(sorted(pool.pod.labels.items())) | dict(labels), **annotations}


def trial_template(name: str, batch: Batch, settings: Settings, table: Table, index: int) -> Manifest:
    """Return the part of the pod template of one trial, for shapes with one object per trial."""
    trial = batch.trials[index]
    container = {
        "name": "trial",
        "args": ["--", *command.trial_arguments(batch, trial)],
        "env": [
            {"name": INDEX_VARIABLE, "value": str(index)},
            *command.trial_environment(trial, table.columns),
        ],
    }
    own: Manifest = {
        "metadata": {"labels": trial_labels(batch, index)},
        "spec": {"containers": [container]},
    }
    if settings.results.bucket is not None:
        own["spec"]["initContainers"] = [
            {"name": STORE_CONTAINER, "env": [{"name": INDEX_VARIABLE, "value": str(index)}]}
        ]
    own = merge(own, output_mounts(settings, trial_folder(name, index)))
    folder = batch.parent_folders.get(index)
    return own if folder is None else merge(own, _parent(folder, batch.parents[index], settings))


def _parent(folder: str, trial: str, settings: Settings) -> Manifest:
    """Return the read-only mount of the checkpoints that a trial continues from, and its variables."""
    mount = parent_mount(settings.results.checkpoints_volume, folder)
    environment: list[Manifest] = [
        {"name": PARENT_VARIABLE, "value": PARENT_PATH},
        {"name": PARENT_ID_VARIABLE, "value": trial},
    ]
    if settings.results.bucket is None:
        return {"spec": {"containers": [{"name": "trial", "env": environment, "volumeMounts": [mount]}]}}
    source = [
        {"name": PARENT_VARIABLE, "value": PARENT_PATH},
        {"name": PARENT_FOLDER_VARIABLE, "value": folder},
    ]
    sidecar = {"name": STORE_CONTAINER, "env": source}
    return {"spec": {"initContainers": [sidecar], "containers": [{"name": "trial", "env": environment}]}}


def _destinations(batch: Batch, settings: Settings) -> list[str]:
    """Return the egress names of the pods: all containers of a pod share one network."""
    clones = batch.run.code_mode is CodeMode.CLONE and GIT_EGRESS in settings.egress
    bucket = settings.results.bucket
    return sorted(
        {*batch.run.egress, *((GIT_EGRESS,) if clones else ()), *((bucket.egress,) if bucket else ())}
    )


def output_mounts(settings: Settings, folder: Mapping[str, str]) -> Manifest:
    """Return a pod template that mounts a trial's own folder on every volume it writes to."""
    mounts = [
        {"name": volume, "mountPath": f"/sweep/{volume}", **folder} for volume in settings.results.volumes
    ]
    made: Manifest = {"spec": {"containers": [{"name": "trial", "volumeMounts": mounts}]}}
    if settings.results.bucket is not None:
        made["spec"]["initContainers"] = [{"name": STORE_CONTAINER, "volumeMounts": mounts}]
    return made


def _environment(batch: Batch) -> list[Manifest]:
    variables = {
        "OMP_NUM_THREADS": str(batch.run.threads),
        **{variable: escape_variables(value) for variable, value in batch.run.environment.items()},
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
    if _restores_parents(batch, settings):
        mounts.append({"name": PARENT_VOLUME, "mountPath": PARENT_PATH, "readOnly": True})
    return mounts


def _volumes(name: str, batch: Batch, settings: Settings, shards: tuple[Shard, ...]) -> list[Manifest]:
    objects = ConfigMapNames(name)
    tables = [{"configMap": {"name": objects.table(number)}} for number in range(len(shards))]
    volumes: list[Manifest] = [
        {"name": "launcher", "configMap": {"name": objects.launcher, "defaultMode": 0o444}},
        {"name": "table", "projected": {"defaultMode": 0o444, "sources": tables}},
        {"name": "scratch", "emptyDir": {"sizeLimit": batch.run.resources.scratch}},
        *(_claim(volume, claim) for volume, claim in settings.results.claims.items()),
    ]
    if settings.results.store.holds_pods:
        volumes.append({"name": RESULTS_VOLUME, "emptyDir": {"sizeLimit": batch.run.resources.scratch}})
    if settings.results.bucket is not None:
        volumes += bucket_secrets(settings.results.bucket)
    if _restores_parents(batch, settings):
        volumes.append({"name": PARENT_VOLUME, "emptyDir": {"sizeLimit": batch.run.resources.scratch}})
    if batch.program.data is not None:
        claim = settings.datasets[batch.program.data.name].claim
        volumes.append({"name": "data", "persistentVolumeClaim": {"claimName": claim, "readOnly": True}})
    if batch.run.resources.shared_memory is not None:
        limit = {"medium": "Memory", "sizeLimit": batch.run.resources.shared_memory}
        volumes.append({"name": "shared-memory", "emptyDir": limit})
    for secret_name in sorted(batch.run.secrets):
        secret = settings.secrets[secret_name]
        only = [{"key": secret.key, "path": secret.key}]
        source = {"secretName": secret.secret, "defaultMode": 0o440, "items": only}
        volumes.append({"name": f"secret-{secret_name}", "secret": source})
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
    source = {
        "CODE_BRANCH": escape_variables(settings.branch),
        "CODE_URL": escape_variables(settings.code.url),
    }
    variables = dict(sorted((source | locked_code(code)).items()))
    return {
        "name": CODE_CONTAINER,
        "image": settings.image_of(settings.code.image),
        "env": [{"name": name, "value": value} for name, value in variables.items()],
        "resources": {"limits": dict(amounts), "requests": dict(amounts)},
    }


def bucket_secrets(bucket: BucketSettings) -> list[Manifest]:
    """Return the volumes with the Secrets of a bucket's clients."""
    volumes: list[Manifest] = []
    if bucket.secret is not None:
        source = {"secretName": bucket.secret, "defaultMode": 0o440}
        volumes.append({"name": STORE_CREDENTIALS, "secret": source})
    if bucket.seals is not None:
        items = [{"key": STORE_SEALS_KEY, "path": STORE_SEALS_KEY}]
        source = {"secretName": bucket.seals, "defaultMode": 0o440, "items": items}
        volumes.append({"name": STORE_SEALS, "secret": source})
    return volumes


def bucket_client(bucket: BucketSettings) -> Manifest:
    """Return the variables and mounts of a container that is a client of a bucket."""
    variables, mounts = dict(bucket.variables), list[Manifest]()
    if bucket.secret is not None:
        variables["SWEEP_STORE_SECRETS"] = f"/sweep/{STORE_CREDENTIALS}"
        mounts.append(
            {"name": STORE_CREDENTIALS, "mountPath": f"/sweep/{STORE_CREDENTIALS}", "readOnly": True}
        )
    if bucket.seals is not None:
        variables["SWEEP_STORE_KEY_FILE"] = f"/sweep/{STORE_SEALS}/{STORE_SEALS_KEY}"
        mounts.append({"name": STORE_SEALS, "mountPath": f"/sweep/{STORE_SEALS}", "readOnly": True})
    env = [{"name": name, "value": escape_variables(value)} for name, value in sorted(variables.items())]
    return {"env": env, "volumeMounts": mounts}


def _sidecar(name: str, batch: Batch, settings: Settings, bucket: BucketSettings) -> Manifest:
    mounts = [{"name": PARENT_VOLUME, "mountPath": PARENT_PATH}] if _restores_parents(batch, settings) else []
    own = {
        "SWEEP_STORE_GRACE": str(grace_seconds(batch, settings)),
        "SWEEP_STORE_MOST_BYTES": str(quantities.whole_quantity(batch.run.resources.scratch)),
        **({"SWEEP_STORE_KEEP_CHECKPOINTS": "true"} if batch.keeps_checkpoints else {}),
    }
    return _store_container(name, settings, bucket, own, mounts)


def _store_container(
    name: str,
    settings: Settings,
    bucket: BucketSettings,
    own_variables: Mapping[str, str],
    mounts: list[Manifest],
) -> Manifest:
    client = bucket_client(bucket)
    variables = {"SWEEP_BATCH": name, "SWEEP_STORE_URL": bucket.url, **own_variables}
    own = [{"name": variable, "value": value} for variable, value in sorted(variables.items())]
    return {
        "name": STORE_CONTAINER,
        "image": settings.image_of(COLLECTOR_IMAGE),
        "env": [*own, *client["env"]],
        "volumeMounts": [*client["volumeMounts"], *mounts],
    }


def store_proof(name: str, settings: Settings, bucket: BucketSettings, component: Manifest) -> Manifest:
    """Return a partial pod template whose sidecar saves what a pod named `name` leaves; merged with its component."""
    own = {"SWEEP_STORE_GRACE": str(GRACE_SECONDS), INDEX_VARIABLE: "0"}
    mounts = [{"name": RESULTS_VOLUME, "mountPath": f"/sweep/{RESULTS_VOLUME}", **trial_folder(name, 0)}]
    egress = {f"{EGRESS_LABEL}{bucket.egress}": "true"}
    template: Manifest = {
        "metadata": {"labels": {**egress, **_identity(bucket, IDENTITY_LABELS)}},
        "spec": {
            "initContainers": [_store_container(name, settings, bucket, own, mounts)],
            "volumes": bucket_secrets(bucket),
            "terminationGracePeriodSeconds": GRACE_SECONDS,
        },
    }
    if annotations := _identity(bucket, IDENTITY_ANNOTATIONS):
        template["metadata"]["annotations"] = annotations
    return merge(component, template)


def _identity(bucket: BucketSettings, by_cloud: Mapping[Cloud, Mapping[str, str]]) -> dict[str, str]:
    """Return the labels or annotations of pods to which a cloud gives an identity."""
    return {} if bucket.secret is not None else dict(by_cloud.get(bucket.cloud, {}))


def locked_code(code: Code) -> dict[str, str]:
    """Return the variables of the init container that say which code it fetches, as the manifest has them."""
    return {"CODE_PATH": escape_variables(code.path), "CODE_TREE": escape_variables(code.tree)}
