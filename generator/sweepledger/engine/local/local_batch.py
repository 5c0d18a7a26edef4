"""A batch as this machine runs it: one Job, made from the lock, the launch file and the table, and its pods. Pure."""

from collections.abc import Mapping
from math import ceil
from operator import add, le
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct
from msgspec.structs import astuple

from sweepledger.engine.local.events import PodAttempt
from sweepledger.engine.termination import ExpectedRecord
from sweepledger.formats import json, launch_json
from sweepledger.formats.hyperparams_csv import parse_shard, row_digest
from sweepledger.formats.launch_json import LAUNCH_FILE, LAUNCHER_PATH, PACK_PATH
from sweepledger.structs.batch import BatchLock
from sweepledger.structs.kubernetes import (
    ARTIFACTS_VOLUME,
    CHECKPOINTS_FOLDER,
    CHECKPOINTS_VOLUME,
    CODE_PATH,
    CODE_VARIABLE,
    COMPLETION_INDEX_VARIABLE,
    DATA_PATH,
    DATA_VARIABLE,
    PARENT_ID_VARIABLE,
    PARENT_PATH,
    PARENT_VARIABLE,
    RESULTS_PATH,
    RESULTS_VOLUME,
    SCRATCH_PATH,
)
from sweepledger.structs.node_pool import END_SECONDS, gpu_memory_variables
from sweepledger.structs.quantities import whole_quantity
from sweepledger.structs.run_config import Pack, Resources, Shape
from sweepledger.structs.values import bytes_digest, digest

TABLE_PATH = "/sweep/table"
LAUNCHER_FOLDER, TABLE_FOLDER = "launcher", "table"
"""Folders of a Job's files, which nothing changes while it exists."""
TEMPORARY = "/tmp"  # noqa: S108 - a path in the container
SHARED_MEMORY_PATH = "/dev/shm"  # noqa: S108 - likewise
SCRATCH, SHARED_MEMORY = "scratch", "shared-memory"
"""Folders of a pod, which end with it."""
VOLUMES: Mapping[str, str] = MappingProxyType(
    {CHECKPOINTS_VOLUME: "SWEEP_CHECKPOINT_VOLUME", ARTIFACTS_VOLUME: "SWEEP_ARTIFACT_VOLUME"}
)
"""Variables of the volumes that a batch may have beside that of its results."""


class ResourceAmounts(Struct, frozen=True):
    """Resources that a pod requests, or a machine has."""

    milli_cpus: int = 0
    memory: int = 0
    """Bytes."""
    gpus: int = 0

    @classmethod
    def of(cls, resources: Resources) -> "ResourceAmounts":
        """Return the amounts that a spec writes as quantities."""
        milli_cpus = whole_quantity(resources.cpu, unit=1000)
        return cls(milli_cpus, whole_quantity(resources.memory), resources.gpu)

    def plus(self, other: "ResourceAmounts") -> "ResourceAmounts":
        """Return the sums of both."""
        return ResourceAmounts(*map(add, astuple(self), astuple(other)))

    def fits(self, capacity: "ResourceAmounts") -> bool:
        """Return whether a capacity is large enough."""
        return all(map(le, astuple(self), astuple(capacity)))

    def share(self, count: int, of: int) -> "ResourceAmounts":
        """Return the amounts that `count` of `of` equal parts need, rounded up; the parts share the GPUs."""
        cpus, memory = (-(-amount * count // of) for amount in (self.milli_cpus, self.memory))
        return ResourceAmounts(cpus, memory, self.gpus)

    @property
    def cpus(self) -> int:
        """Whole CPUs, rounded up; 0 if it requests none."""
        return ceil(self.milli_cpus / 1000)


class Parent(Struct, frozen=True):
    """A trial from whose checkpoints another trial continues."""

    trial: str
    folder: str
    """Its batch and its row there."""


class LocalBatch(Struct, frozen=True, kw_only=True):
    """One Job for all trials of a batch, whatever its shape in a cluster."""

    name: str
    digest: str
    """Of all that runs, because a Job is immutable."""
    files: Mapping[str, bytes]
    """Launcher, launch file and table, by their paths in the Job's folder."""
    data: str | None
    interpreter: str
    variables: Mapping[str, str]
    """Of every trial, beside those of the launcher."""
    trials: tuple[ExpectedRecord, ...]
    """What the records of each row must contain."""
    parents: Mapping[int, Parent] = MappingProxyType({})
    """By row."""
    volumes: tuple[str, ...] = ()
    """Volumes beside that of the results."""
    indexes: tuple[int, ...]
    """Rows that run, ascending."""
    parallelism: int
    retries: int
    """Of each row."""
    max_failed: int | None = None
    """Number of failed rows that the Job tolerates; None: no limit."""
    deadline: float | None = None
    """Seconds after which the Job ends."""
    pod_deadline: float | None = None
    """Seconds after which a pod is stopped."""
    grace: float
    requests: ResourceAmounts
    limits: ResourceAmounts
    scratch: int
    """Bytes of a pod's scratch folder."""
    shared_memory: int | None = None
    """Bytes of a pod's shared memory; None: that of the machine."""
    pack: Pack | None = None
    """How many rows a pod runs; None: one."""
    is_paused: bool = False
    """Whether no further pod starts; those that run go on."""

    @property
    def command(self) -> tuple[str, str]:
        """The interpreter, and the path of the launcher in the container."""
        return self.interpreter, LAUNCHER_PATH if self.pack is None else PACK_PATH

    def pod_number(self, row: int) -> int:
        """Return the number of the pod that runs a row."""
        return row if self.pack is None else self.pack.pod(row)

    def rows(self, pod: int) -> tuple[int, ...]:
        """Return the rows that a pod runs."""
        if self.pack is None:
            return (pod,)
        rows = self.pack.rows(pod, self.indexes[-1] + 1)
        return tuple(range(max(rows.start, self.indexes[0]), rows.stop))

    def attempt(self, uid: str, row: int) -> str:
        """Return the id of a pod's attempt at a row."""
        return uid if self.pack is None else f"{uid}-{row}"

    def declared_variables(self, number: int | str, parent: Parent | None) -> dict[str, str]:
        """Return the variables of a pod as its container would see them."""
        variables = {
            "HOME": SCRATCH_PATH,
            "SWEEP_LAUNCH": f"{LAUNCHER_PATH.rpartition('/')[0]}/{LAUNCH_FILE}",
            "SWEEP_TABLE": TABLE_PATH,
            CODE_VARIABLE: CODE_PATH,
            "SWEEP_RESULTS": RESULTS_PATH,
            "SWEEP_SCRATCH": SCRATCH_PATH,
            COMPLETION_INDEX_VARIABLE: str(number),
            **{VOLUMES[volume]: f"/sweep/{volume}" for volume in self.volumes},
            **({} if self.data is None else {DATA_VARIABLE: DATA_PATH}),
            **self.variables,
        }
        if parent is not None:
            variables |= {PARENT_VARIABLE: PARENT_PATH, PARENT_ID_VARIABLE: parent.trial}
        return variables

    def kept_folders(self, number: int | str, parent: Parent | None, state: Path) -> dict[str, Path]:
        """Return the folders of a pod that outlive it, by their paths in the container."""
        folders = {
            f"/sweep/{volume}": Path(state, volume, self.name, str(number))
            for volume in (RESULTS_VOLUME, *self.volumes)
        }
        if parent is not None:
            volume = CHECKPOINTS_VOLUME if CHECKPOINTS_VOLUME in self.volumes else RESULTS_VOLUME
            folders[PARENT_PATH] = state / volume / parent.folder / CHECKPOINTS_FOLDER
        return folders

    def temporary_folders(self, own: Path) -> dict[str, Path]:
        """Return the folders of a pod that are deleted with it, by their container paths; `own` contains them."""
        folders = {SCRATCH_PATH: own / SCRATCH}
        if self.pack is None:  # the trials of a pod share no writable folder
            folders[TEMPORARY] = folders[SCRATCH_PATH]
        if self.shared_memory is not None:
            folders[SHARED_MEMORY_PATH] = own / SHARED_MEMORY
        return folders

    def read_only_folders(self, state: Path, code: Path, data: Path | None) -> dict[str, Path]:
        """Return the folders that pods only read, by their paths in the container."""
        job = Path(state, "jobs", self.name)
        return {
            LAUNCHER_PATH.rpartition("/")[0]: job / LAUNCHER_FOLDER,
            TABLE_PATH: job / TABLE_FOLDER,
            CODE_PATH: code,
            # Several datasets are in one folder here, by their names.
            **({} if data is None else {DATA_PATH: data}),
        }


class DesiredBatch(Struct, frozen=True):
    """A desired batch, and the folders of its code and data."""

    batch: LocalBatch
    code: Path
    """Folder of the code tree, of which launchers make a copy for each trial."""
    data: Path | None = None
    """Folder of the dataset, or of folders of several by their names; None if the batch has none."""
    python_path: tuple[Path, ...] = ()
    """Folders of the code in which Python looks first."""
    thresholds: Path | None = None
    """The file of thresholds that its trials read while they run; None: none."""
    code_state: str = ""
    """What a write to the code changes: its launchers compare it before a trial. Empty: they do not."""
    data_state: str = ""
    """The same of the dataset, which they compare after a trial."""
    compares_data: bool = True
    """Whether they do; a launcher of another release may compute the state otherwise, so the engine compares it."""
    earlier: Mapping[int, Mapping[str, str]] = MappingProxyType({})
    """By row, record, output and artifacts of the attempt whose output is read again instead of a training."""
    failures: int = 0
    """Number of failed trials without one that is ok after which no further trial starts; 0: never."""

    @property
    def launcher_data_state(self) -> str:
        """The state of the dataset in the form that launchers receive."""
        return self.data_state if self.compares_data else ""


class LocalPod(Struct, frozen=True):
    """A pod that has not ended."""

    desired: DesiredBatch
    index: int
    """The row, or the number of a pod that runs several."""
    failures: int
    uid: str
    started: float
    stopping: str | None = None
    """Reason why it is being stopped; None if it is not."""
    cpus: tuple[int, ...] = ()
    """Empty: all."""
    gpus: tuple[int, ...] = ()

    @property
    def batch(self) -> LocalBatch:
        """The batch that it belongs to."""
        return self.desired.batch

    @property
    def rows(self) -> tuple[int, ...]:
        """The rows that the pod runs."""
        return self.batch.rows(self.index)

    def attempt(self, row: int, failures: int) -> PodAttempt:
        """Return the attempt at a row that the pod runs."""
        trial, uid = self.batch.trials[row].trial, self.batch.attempt(self.uid, row)
        return PodAttempt(self.batch.name, row, trial, uid, failures + 1)


def local_batch(
    lock: BatchLock,
    files: Mapping[str, bytes],
    launcher: Mapping[str, bytes],
    *,
    parents: Mapping[int, Parent] = MappingProxyType({}),
    proxy: Mapping[str, str] = MappingProxyType({}),
) -> LocalBatch:
    """Return a batch whose `files` are those of its folder, under the launcher that its lock names.

    Raises ValueError if they contain no launch file, or if the table has a different number of rows than the lock.
    """
    run, code = lock.run, lock.program.code
    try:
        layout = launch_json.read_table_layout(files[LAUNCH_FILE])
        shards = {name: files[name] for name in layout.files}
        grace = json.load(files[LAUNCH_FILE])["grace_seconds"] + END_SECONDS
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"must contain launch.json and the table that it names: {type(error).__name__} {error}"
        ) from error
    rows = (
        (row, row_digest(lock.program.digest, header, line))
        for text in map(bytes.decode, shards.values())
        for header, *lines in [text.split("\n")]
        for row, line in zip(parse_shard(text, layout.columns), lines, strict=False)
    )
    trials = tuple(
        ExpectedRecord.of(lock, index, row.trial, sha256, row.replicate)
        for index, (row, sha256) in enumerate(rows)
    )
    if len(trials) != lock.trials:
        raise ValueError(f"must have {lock.trials} trials by the lock, got {len(trials)}")
    amounts, shared = ResourceAmounts.of(run.pod_resources), run.pod_resources.shared_memory
    contents = {
        **{f"{LAUNCHER_FOLDER}/{name}": content for name, content in launcher.items()},
        f"{LAUNCHER_FOLDER}/{LAUNCH_FILE}": files[LAUNCH_FILE],
        **{f"{TABLE_FOLDER}/{name}": content for name, content in shards.items()},
    }
    is_indexed = lock.shape is Shape.INDEXED
    return LocalBatch(
        name=lock.name,
        digest=digest([lock.digest, {path: bytes_digest(content) for path, content in contents.items()}]),
        files=contents,
        data=None if lock.program.data is None else lock.program.data.digest,
        interpreter=run.interpreter,
        variables={
            **proxy,
            "OMP_NUM_THREADS": str(run.threads),
            **gpu_memory_variables(run, None),
            **run.environment,
        },
        trials=trials,
        parents=parents,
        volumes=tuple(
            name for name in VOLUMES if any(base.startswith(f"components/{name}/") for base in lock.bases)
        ),
        indexes=tuple(range(len(trials))),
        # Jobs of single trials do not wait for each other.
        parallelism=run.pods_at_once(len(trials)) if is_indexed else len(trials),
        retries=run.retries,
        max_failed=run.max_failed if is_indexed and run.pack is None else None,
        deadline=run.job_deadline(len(trials), grace),
        pod_deadline=run.pod_deadline(grace),
        grace=grace,
        requests=amounts,
        limits=amounts,
        scratch=run.scratch_bytes(code.disk),
        shared_memory=None if shared is None else whole_quantity(shared),
        pack=run.pack,
    )
