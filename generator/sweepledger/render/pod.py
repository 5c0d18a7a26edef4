"""The pods of a batch as partial pod templates: labels, resources, deadlines, volumes and environment.

Structure that an option adds in one form for all batches is a component below `base/`; the object around the
pods belongs to the module of its shape. Names of the platform's objects are in platform/objects.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from sweepledger import __version__
from sweepledger.formats.hyperparams_csv import Table
from sweepledger.formats.launch_json import LAUNCHER_PATH, PACK_PATH, secret_folder
from sweepledger.render import command
from sweepledger.render.base_files import Bases, component_patch, components_of
from sweepledger.render.command import escape_variables
from sweepledger.render.manifest import Manifest, merge
from sweepledger.render.scheduling import TOKENS_VOLUME, token_volumes, trial_fields
from sweepledger.structs import quantities
from sweepledger.structs.batch import Batch
from sweepledger.structs.kubernetes import (
    BATCH_LABEL,
    CODE_CONTAINER,
    DATA_PATH,
    DATA_VARIABLE,
    DATA_VOLUME,
    DOMAIN,
    EGRESS_LABEL,
    GENERATOR_LABELS,
    INDEX_LABEL,
    INDEX_VARIABLE,
    PARENT_FOLDER_VARIABLE,
    PARENT_ID_VARIABLE,
    PARENT_PATH,
    PARENT_VARIABLE,
    QUEUE_LABEL,
    RESULTS_VOLUME,
    STORE_CONTAINER,
    STORE_SEALS_KEY,
    SWEEP_LABEL,
    TRIAL_LABEL,
    data_volume,
    parent_mount,
    trial_folder,
)
from sweepledger.structs.node_pool import (
    GPU_RESOURCE,
    GRACE_SECONDS,
    PodSettings,
    Pool,
    gpu_memory_variables,
    grace_seconds,
)
from sweepledger.structs.pod_fields import decided
from sweepledger.structs.run_config import OTHER_DISK, POD_STARTUP_SECONDS, CodeMode, RunConfig
from sweepledger.structs.settings import (
    COLLECTOR_IMAGE,
    GIT_EGRESS,
    BucketSettings,
    Dataset,
    GitSettings,
    NetworkSettings,
    ResultsSettings,
    SeveralDatasets,
    TrialSettings,
)
from sweepledger.structs.settings.network import AUTHORITIES_VOLUME, Authorities

SOURCE_ANNOTATIONS = tuple(f"{DOMAIN}/{name}" for name in ("generator", "program", "spec", "spec-digest"))
"""On objects of a batch: the version that made it, the digest of its program, its spec, and the digest of that."""
MIN_PARALLELISM = "kueue.x-k8s.io/job-min-parallelism"
"""Annotation of a Job that Kueue may admit with fewer pods at once."""
PRIORITY_LABEL = "kueue.x-k8s.io/priority-class"
PARENT_VOLUME = "parent"
"""With the checkpoints of the parent trial that the sidecar of a bucket restores."""
STORE_CREDENTIALS, STORE_SEALS = "store-credentials", "store-seals"
"""Volumes with the credential of this sidecar and with its key of seals."""

CLONE_VOLUMES, CLONED = ("clone", "code"), 2
"""How much of the code's size each volume of a clone may take: its files, or git's objects and what git adds."""
MEBIBYTE = 1 << 20


def launcher_map(batch: str) -> str:
    """Return the name of a batch's ConfigMap with the launcher and its instructions."""
    return f"{batch}-launcher"


def table_map(batch: str, number: int) -> str:
    """Return the name of a batch's ConfigMap with a shard of the table."""
    return f"{batch}-table-{number:03d}"


@dataclass(frozen=True, slots=True)
class Pods:
    """The pods of a batch, and the metadata of the objects around them."""

    name: str
    """The name of the batch."""
    batch: Batch
    table: Table
    bases: Bases
    trials: TrialSettings
    network: NetworkSettings
    results: ResultsSettings
    git: GitSettings

    @property
    def run(self) -> RunConfig:
        """How the trials run."""
        return self.batch.run

    @property
    def pool(self) -> Pool | None:
        """The pool whose nodes the pods need, if the batch names one."""
        return self.trials.pool(self.run.pool)

    @property
    def pod_settings(self) -> PodSettings:
        """Further needs of the pods in this pool."""
        return PodSettings() if self.pool is None else self.pool.pod

    @property
    def data(self) -> Dataset | SeveralDatasets | None:
        """The data that the pods read."""
        return self.trials.dataset(self.batch.program.data)

    @property
    def components(self) -> tuple[str, ...]:
        """The components of `base/` that the pods use."""
        return components_of(self.batch, self.pool, self.data, self.results, self.git.code)

    @property
    def labels(self) -> dict[str, str]:
        """The labels of every object and pod of a batch; those of the settings never replace sweepledger's."""
        return {
            **dict(sorted(self.trials.labels.items())),
            **GENERATOR_LABELS,
            SWEEP_LABEL: self.batch.sweep.name,
            BATCH_LABEL: self.name,
        }

    def trial_labels(self, index: int) -> dict[str, str]:
        """Return the labels of objects and pods of one trial."""
        return {TRIAL_LABEL: self.batch.trials[index].id, INDEX_LABEL: str(index)}

    def trial_metadata(self, trial_object: str, index: int) -> Manifest:
        """Return the metadata of the object of one trial, with its own name."""
        return {
            "name": trial_object,
            "namespace": self.trials.namespace,
            "labels": {**self.labels, **self.queue_labels, **self.trial_labels(index)},
            "annotations": self.annotations | {TRIAL_LABEL: f"sha256:{self.batch.trials[index].digest}"},
        }

    @property
    def queue_labels(self) -> dict[str, str]:
        """The labels of objects that Kueue queues, if the pool is a queue; pods need none."""
        pool = self.pool
        if pool is None or pool.queue is None:
            return {}
        priority = {} if self.run.priority is None else {PRIORITY_LABEL: self.run.priority}
        return {QUEUE_LABEL: pool.queue} | priority

    @property
    def queue_annotations(self) -> dict[str, str]:
        """The annotation of an Indexed Job that lets its queue admit the trials separately."""
        pool = self.pool
        least = None if pool is None or pool.queue is None else pool.min_parallelism
        # Kueue refuses a Job that does not ask for more.
        is_none = least is None or least >= self.run.pods_at_once(len(self.batch.trials))
        return {} if is_none else {MIN_PARALLELISM: str(least)}

    @property
    def annotations(self) -> dict[str, str]:
        """Annotations with the origin of an object, for people who see only the cluster."""
        program = f"sha256:{self.batch.program.digest}"
        values = (__version__, program, self.batch.sweep.path, self.batch.sweep.digest)
        return dict(zip(SOURCE_ANNOTATIONS, values, strict=True))

    @property
    def startup_seconds(self) -> int:
        """How long a pod may take to start."""
        pool = self.pool
        return max(POD_STARTUP_SECONDS, 0 if pool is None else pool.startup_seconds)

    @property
    def grace_seconds(self) -> int:
        """The termination grace period of pods, in seconds."""
        return grace_seconds(self.pool, has_sidecar=self.results.bucket is not None)[0]

    def resources(self) -> Manifest:
        """Return the resources of a trial; requests and limits are equal."""
        wanted, memory, shards = self.run.pod_resources, self.run.pod_resources.memory, self.table.shards
        if len(shards) > 1:
            # A projected volume is in the pod's memory. One shard has half a MiB at most, by which two runs differ.
            size = -(-sum(len(shard.text.encode()) for shard in shards) // MEBIBYTE) * MEBIBYTE
            memory = quantities.format_bytes(quantities.whole_quantity(memory) + size)
        amounts = {
            "cpu": wanted.cpu,
            "memory": memory,
            "ephemeral-storage": quantities.format_bytes(disk(self.batch, self.data, self.results)),
        }
        if wanted.gpu:
            amounts[GPU_RESOURCE if self.pool is None else self.pool.gpu_resource] = str(wanted.gpu)
        amounts |= {name: str(amount) for name, amount in sorted(self.pod_settings.resources.items())}
        claims = [{"name": name} for name in sorted(self.pod_settings.claims)]
        return {"limits": dict(amounts), "requests": dict(amounts), **({"claims": claims} if claims else {})}

    def template(self) -> Manifest:
        """Return the part of the pod template that all trials share, to be merged over base and components."""
        pool, run = self.pool, self.run
        container = {
            "name": "trial",
            "image": self.batch.program.container_image,
            "command": [run.interpreter, LAUNCHER_PATH if run.pack is None else PACK_PATH],
            "env": self._environment(),
            "resources": self.resources(),
            "volumeMounts": self._mounts(),
        }
        spec: Manifest = {
            "activeDeadlineSeconds": run.pod_deadline(self.grace_seconds, self.startup_seconds),
            **({} if pool is None else trial_fields(pool, has_gpus=run.resources.gpu > 0)),
            "containers": [container],
            "volumes": self._volumes(),
        }
        clones = [self._clone()] if run.code_mode is CodeMode.CLONE else []
        bucket = self.results.bucket
        sidecars = [] if bucket is None else [self._sidecar(bucket)]
        if clones or sidecars:
            spec["initContainers"] = [*clones, *sidecars]
        spec |= decided(self.trials, self.pod_settings, run)
        if self.grace_seconds != GRACE_SECONDS:  # of the objects in `base/`
            spec["terminationGracePeriodSeconds"] = self.grace_seconds
        # Labels of a pool never replace those of sweepledger and of the settings.
        labels = dict(sorted(self.pod_settings.labels.items())) | self.labels
        labels |= {f"{EGRESS_LABEL}{place}": "true" for place in self._destinations}
        annotations = dict(sorted(self.pod_settings.annotations.items()))
        if bucket is not None:
            labels |= bucket.pod_labels
            annotations |= bucket.pod_annotations
        metadata = {"labels": labels, **({"annotations": annotations} if annotations else {})}
        return {"metadata": metadata, "spec": spec}

    def shared_template(self, base: Manifest) -> Manifest:
        """Return a pod template with the batch's components and the part that all its trials share merged over it."""
        components = [component_patch(self.bases, folder) for folder in self.components]
        return merge(base, *components, self.template())

    def trial_template(self, index: int) -> Manifest:
        """Return the part of the pod template of one trial, for shapes with one object per trial."""
        trial = self.batch.trials[index]
        container = {
            "name": "trial",
            "args": ["--", *command.trial_arguments(self.batch, trial)],
            "env": [
                {"name": INDEX_VARIABLE, "value": str(index)},
                *command.trial_environment(trial, self.table.columns),
            ],
        }
        own: Manifest = {
            "metadata": {"labels": self.trial_labels(index)},
            "spec": {"containers": [container]},
        }
        if self.results.bucket is not None:
            own["spec"]["initContainers"] = [
                {"name": STORE_CONTAINER, "env": [{"name": INDEX_VARIABLE, "value": str(index)}]}
            ]
        own = merge(own, self.output_mounts(trial_folder(self.name, index)))
        folder = self.batch.parent_folders.get(index)
        if folder is None:
            return own
        # The read-only mount of the checkpoints that the trial continues from, and its variables.
        variable = {"name": PARENT_VARIABLE, "value": PARENT_PATH}
        reader: Manifest = {
            "name": "trial",
            "env": [variable, {"name": PARENT_ID_VARIABLE, "value": self.batch.parents[index]}],
        }
        if self.results.bucket is None:
            reader["volumeMounts"] = [parent_mount(self.results.checkpoints_volume, folder)]
            return merge(own, {"spec": {"containers": [reader]}})
        source = [variable, {"name": PARENT_FOLDER_VARIABLE, "value": folder}]
        sidecar = {"name": STORE_CONTAINER, "env": source}
        return merge(own, {"spec": {"initContainers": [sidecar], "containers": [reader]}})

    @property
    def _destinations(self) -> list[str]:
        """The egress names of the pods: all containers of a pod share one network."""
        proxy = self.network.proxy
        cloning = {GIT_EGRESS, *((proxy.egress,) if proxy else ())} & self.network.egress.keys()
        clones = cloning if self.run.code_mode is CodeMode.CLONE else set[str]()
        bucket = self.results.bucket
        return sorted({*self.run.egress, *clones, *((bucket.egress,) if bucket else ())})

    def output_mounts(self, folder: Mapping[str, str]) -> Manifest:
        """Return a pod template that mounts a trial's own folder on every volume it writes to."""
        mounts = [
            {"name": volume, "mountPath": f"/sweep/{volume}", **folder} for volume in self.results.volumes
        ]
        made: Manifest = {"spec": {"containers": [{"name": "trial", "volumeMounts": mounts}]}}
        if self.results.bucket is not None:
            made["spec"]["initContainers"] = [{"name": STORE_CONTAINER, "volumeMounts": mounts}]
        return made

    def _environment(self) -> list[Manifest]:
        data, run = self.data, self.run
        variables = {
            **self.network.client_variables(self._destinations),
            # The components for one dataset have it, too.
            **({DATA_VARIABLE: DATA_PATH} if isinstance(data, SeveralDatasets) and data.claims else {}),
            "OMP_NUM_THREADS": str(run.threads),
            **gpu_memory_variables(run, self.pool),
            **{variable: escape_variables(value) for variable, value in run.environment.items()},
            "SWEEP_RAN": self.batch.program.image,
        }
        return [{"name": name, "value": value} for name, value in sorted(variables.items())]

    def _mounts(self) -> list[Manifest]:
        mounts: list[Manifest] = [
            {"name": f"secret-{secret}", "mountPath": secret_folder(secret), "readOnly": True}
            for secret in sorted(self.run.secrets)
        ]
        mounts += _data_mounts(self.data)
        if restores_parents(self.batch, self.results):
            mounts.append({"name": PARENT_VOLUME, "mountPath": PARENT_PATH, "readOnly": True})
        if self.pod_settings.tokens:
            mounts.append({"name": TOKENS_VOLUME, "mountPath": f"/sweep/{TOKENS_VOLUME}", "readOnly": True})
        return [*mounts, *authorities_mount(self.network.authorities)]

    def _volumes(self) -> list[Manifest]:
        run, code, shards = self.run, self.batch.program.code.disk, self.table.shards
        tables = [{"configMap": {"name": table_map(self.name, number)}} for number in range(len(shards))]
        scratch = run.scratch_bytes(code)
        volumes: list[Manifest] = [
            {"name": "launcher", "configMap": {"name": launcher_map(self.name), "defaultMode": 0o444}},
            {"name": "table", "projected": {"defaultMode": 0o444, "sources": tables}},
            {"name": "scratch", "emptyDir": {"sizeLimit": quantities.format_bytes(scratch)}},
            *(
                {"name": volume, "persistentVolumeClaim": {"claimName": claim}}
                for volume, claim in self.results.claims.items()
            ),
        ]
        if not self.results.claims:
            volumes.append({"name": RESULTS_VOLUME, "emptyDir": {"sizeLimit": run.pod_resources.scratch}})
        if self.results.bucket is not None:
            volumes += bucket_secrets(self.results.bucket)
        if restores_parents(self.batch, self.results):
            volumes.append({"name": PARENT_VOLUME, "emptyDir": {"sizeLimit": run.pod_resources.scratch}})
        volumes += _data_volumes(self.data)
        if run.resources.shared_memory is not None:
            limit = {"medium": "Memory", "sizeLimit": run.pod_resources.shared_memory}
            volumes.append({"name": "shared-memory", "emptyDir": limit})
        for secret_name in sorted(run.secrets):
            secret = self.trials.secrets[secret_name]
            volumes += _secret(f"secret-{secret_name}", secret.secret, secret.key)
        source = self.git.code
        if run.code_mode is CodeMode.CLONE and source is not None:
            size = {"sizeLimit": quantities.format_bytes(CLONED * code)}
            if code:
                volumes += [{"name": name, "emptyDir": size} for name in CLONE_VOLUMES]
            volumes += _secret("clone-credentials", source.secret)
        return [
            *volumes,
            *token_volumes(self.pod_settings.tokens),
            *authorities_volume(self.network.authorities),
        ]

    def _clone(self) -> Manifest:
        assert self.git.code is not None, "the spec's checks refuse a clone without a place to clone from"
        code, wanted = self.batch.program.code, self.run.pod_resources
        # As much as the trial: a pod is placed by its largest container, so this one never costs a node.
        amounts = {"cpu": wanted.cpu, "memory": wanted.memory}
        source = {
            "CODE_BRANCH": escape_variables(self.git.branch),
            "CODE_PATH": escape_variables(code.path),
            "CODE_TREE": escape_variables(code.tree),
            "CODE_URL": escape_variables(self.git.code.url),
        }
        clients = self.network.client_variables(self._destinations)
        variables = dict(sorted((source | clients).items()))
        mounts = authorities_mount(self.network.authorities)
        return {
            "name": CODE_CONTAINER,
            "image": self.trials.image_of(self.git.code.image),
            "env": [{"name": name, "value": value} for name, value in variables.items()],
            "resources": {"limits": dict(amounts), "requests": dict(amounts)},
            **({"volumeMounts": mounts} if mounts else {}),
        }

    def _sidecar(self, bucket: BucketSettings) -> Manifest:
        mounts = (
            [{"name": PARENT_VOLUME, "mountPath": PARENT_PATH}]
            if restores_parents(self.batch, self.results)
            else []
        )
        pack, data, copied = self.run.pack, self.data, dict[str, str]()
        if data is not None and data.size is not None:
            assert self.batch.program.data is not None
            copied = {
                "SWEEP_STORE_DATA": data.copied_from,
                "SWEEP_STORE_DATA_BYTES": str(quantities.whole_quantity(data.size)),
                "SWEEP_STORE_DATA_DIGEST": self.batch.program.data.digest,
            }
        own = {
            **copied,
            "SWEEP_STORE_GRACE": str(self.grace_seconds),
            "SWEEP_STORE_MOST_BYTES": str(quantities.whole_quantity(self.run.resources.scratch)),
            **(
                {"SWEEP_STORE_PACK": str(pack.trials), "SWEEP_STORE_TRIALS": str(len(self.batch.trials))}
                if pack
                else {}
            ),
            **({"SWEEP_STORE_KEEP_CHECKPOINTS": "true"} if self.batch.keeps_checkpoints else {}),
        }
        return _store_container(self.name, self.trials, self.network, bucket, own, mounts)


def disk(batch: Batch, data: Dataset | SeveralDatasets | None, results: ResultsSettings) -> int:
    """Return the bytes that a pod may write on its node."""
    others = 0 if results.claims else 1  # without a claim, files of the trial are on the node, too
    others += restores_parents(batch, results)  # and those of its parent
    copied = 0 if data is None or data.size is None else quantities.whole_quantity(data.size)
    cloned = CLONED * batch.program.code.disk if batch.run.code_mode is CodeMode.CLONE else 0
    kept = others * quantities.whole_quantity(batch.run.pod_resources.scratch)
    return batch.run.scratch_bytes(batch.program.code.disk) + kept + copied + cloned + OTHER_DISK


def restores_parents(batch: Batch, results: ResultsSettings) -> bool:
    """Return whether sidecars may have to restore checkpoints of parents: the same in all rounds of a search."""
    return results.bucket is not None and (batch.keeps_checkpoints or bool(batch.parent_folders))


def _data_mounts(data: Dataset | SeveralDatasets | None) -> list[Manifest]:
    """Return the mounts that no component has: a folder of a volume, or each of several datasets."""
    match data:
        case Dataset(path=path) if path:
            return [{"name": DATA_VOLUME, "mountPath": DATA_PATH, "readOnly": True, "subPath": path}]
        case SeveralDatasets(parts=parts) if data.claims:
            return [
                {
                    "name": data_volume(data.claims.index(part.claim)),
                    "mountPath": f"{DATA_PATH}/{part.name}",
                    "readOnly": True,
                    **({"subPath": part.path} if part.path else {}),
                }
                for part in parts
                if part.claim is not None
            ]
        case _:
            return []


def _data_volumes(data: Dataset | SeveralDatasets | None) -> list[Manifest]:
    match data:
        case None:
            return []
        case _ if data.copied_from:
            return [{"name": DATA_VOLUME, "emptyDir": {"sizeLimit": data.size}}]
        case Dataset(claim=claim):
            return [_read_claim(DATA_VOLUME, claim)]
        case SeveralDatasets(claims=claims):
            return [_read_claim(data_volume(number), claim) for number, claim in enumerate(claims)]


def _read_claim(volume: str, claim: str | None) -> Manifest:
    return {"name": volume, "persistentVolumeClaim": {"claimName": claim, "readOnly": True}}


def authorities_mount(authorities: Authorities | None) -> list[Manifest]:
    """Return the mount of the certificates that a container's clients trust, if the settings name them."""
    if authorities is None:
        return []
    return [{"name": AUTHORITIES_VOLUME, "mountPath": f"/sweep/{AUTHORITIES_VOLUME}", "readOnly": True}]


def authorities_volume(authorities: Authorities | None) -> list[Manifest]:
    """Return the volume of that mount."""
    if authorities is None:
        return []
    return [{"name": AUTHORITIES_VOLUME, "configMap": {"name": authorities.config_map, "defaultMode": 0o444}}]


def bucket_secrets(bucket: BucketSettings) -> list[Manifest]:
    """Return the volumes with the Secrets of a bucket's clients."""
    seals = _secret(STORE_SEALS, bucket.seals, STORE_SEALS_KEY)
    return [*_secret(STORE_CREDENTIALS, bucket.secret), *seals]


def _secret(volume: str, secret: str | None, *keys: str) -> list[Manifest]:
    """Return the volume with a Secret, or some of its keys, readable by the group only; nothing without a Secret."""
    items = {"items": [{"key": key, "path": key} for key in keys]} if keys else {}
    source = {"secretName": secret, "defaultMode": 0o440, **items}
    return [] if secret is None else [{"name": volume, "secret": source}]


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


def _store_container(
    name: str,
    trials: TrialSettings,
    network: NetworkSettings,
    bucket: BucketSettings,
    own_variables: Mapping[str, str],
    mounts: list[Manifest],
) -> Manifest:
    client = bucket_client(bucket)
    variables = {"SWEEP_BATCH": name, "SWEEP_STORE_URL": bucket.url, **own_variables}
    variables |= network.client_variables({bucket.egress})
    own = [{"name": variable, "value": value} for variable, value in sorted(variables.items())]
    return {
        "name": STORE_CONTAINER,
        "image": trials.image_of(COLLECTOR_IMAGE),
        "env": [*own, *client["env"]],
        "volumeMounts": [*client["volumeMounts"], *authorities_mount(network.authorities), *mounts],
    }


def store_proof(
    name: str, trials: TrialSettings, network: NetworkSettings, bucket: BucketSettings, component: Manifest
) -> Manifest:
    """Return a partial pod template, merged with its component, whose sidecar saves the files of the pod `name`."""
    own = {"SWEEP_STORE_GRACE": str(GRACE_SECONDS), INDEX_VARIABLE: "0"}
    mounts = [{"name": RESULTS_VOLUME, "mountPath": f"/sweep/{RESULTS_VOLUME}", **trial_folder(name, 0)}]
    egress = {f"{EGRESS_LABEL}{bucket.egress}": "true"}
    template: Manifest = {
        "metadata": {"labels": {**egress, **bucket.pod_labels}},
        "spec": {
            "initContainers": [_store_container(name, trials, network, bucket, own, mounts)],
            "volumes": [*bucket_secrets(bucket), *authorities_volume(network.authorities)],
            "terminationGracePeriodSeconds": GRACE_SECONDS,
        },
    }
    if bucket.pod_annotations:
        template["metadata"]["annotations"] = dict(bucket.pod_annotations)
    return merge(component, template)
