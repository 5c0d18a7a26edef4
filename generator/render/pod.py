"""Names, labels and numbers of a batch's objects and pods, the same in every shape.

Single values only: which of them stand in a pod, and where, is said in options.py, and what the platform's
own objects are called in platform/names.py.
"""

from dataclasses import dataclass
from typing import Any

from generator import __version__
from generator.formats.table import Shard
from generator.structs import quantities
from generator.structs.batch import Batch
from generator.structs.labels import (
    BATCH_LABEL,
    INDEX_LABEL,
    PRIORITY_LABEL,
    QUEUE_LABEL,
    SWEEP_LABEL,
    TRIAL_LABEL,
)
from generator.structs.settings import GPU, Pool, Settings

Manifest = dict[str, Any]

POD_STARTUP_SECONDS = 15 * 60
"""Without a pool. A pod's deadline counts from its start, image pull included; the launcher times trials."""
POD_GRACE_SECONDS = 30

OTHER_DISK = 2 << 30
"""Bytes a pod may write beside its scratch: logs, the image's writable layer, cloned code."""
MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Objects:
    """The names of a batch's objects; each begins with the batch's."""

    batch: str

    @property
    def launcher(self) -> str:
        """The ConfigMap with the launcher and its instructions."""
        return f"{self.batch}-launcher"

    def table(self, number: int) -> str:
        """The ConfigMap with a shard of the table."""
        return f"{self.batch}-table-{number:03d}"


def labels(name: str, batch: Batch, settings: Settings) -> dict[str, str]:
    """Label every object and pod of a batch; the platform's own labels never hide ours."""
    return {
        **dict(sorted(settings.labels.items())),
        "app.kubernetes.io/name": "sweepledger",
        "app.kubernetes.io/managed-by": "sweepledger",
        SWEEP_LABEL: batch.sweep.name,
        BATCH_LABEL: name,
    }


def trial_labels(batch: Batch, index: int) -> dict[str, str]:
    """Label what belongs to one trial only."""
    return {TRIAL_LABEL: batch.trials[index].id, INDEX_LABEL: str(index)}


def queue_labels(batch: Batch, settings: Settings) -> dict[str, str]:
    """Label the object that Kueue holds back, where the pool is a queue; its pods need none."""
    pool = pool_of(batch, settings)
    if pool is None or pool.queue is None:
        return {}
    priority = {} if batch.run.priority is None else {PRIORITY_LABEL: batch.run.priority}
    return {QUEUE_LABEL: pool.queue} | priority


def annotations(batch: Batch) -> dict[str, str]:
    """Say on an object where it comes from, for whoever sees it in the cluster only."""
    return {
        "sweepledger.dev/generator": __version__,
        "sweepledger.dev/program": f"sha256:{batch.program.digest}",
        "sweepledger.dev/spec": batch.sweep.path,
        "sweepledger.dev/spec-digest": batch.sweep.digest,
    }


def pool_of(batch: Batch, settings: Settings) -> Pool | None:
    """Find the pool that a batch asks for."""
    return None if batch.run.pool is None else settings.pools[batch.run.pool]


def deadline(batch: Batch, settings: Settings) -> int:
    """Seconds after which the node ends a pod whose launcher did not."""
    pool = pool_of(batch, settings)
    startup = POD_STARTUP_SECONDS if pool is None else pool.startup_seconds
    return batch.run.timeout_seconds + POD_GRACE_SECONDS + startup


def gpu_resource(batch: Batch, settings: Settings) -> str:
    """Name what a GPU is called where the batch runs."""
    pool = pool_of(batch, settings)
    return GPU if pool is None else pool.gpu_resource


def resources(batch: Batch, settings: Settings, shards: tuple[Shard, ...]) -> Manifest:
    """Ask for as much as is allowed: requests and limits are equal."""
    wanted = batch.run.resources
    disk = quantities.whole(wanted.scratch) + OTHER_DISK
    amounts = {
        "cpu": wanted.cpu,
        "memory": _memory(wanted.memory, shards),
        "ephemeral-storage": quantities.binary(disk),
    }
    if wanted.gpu:
        amounts[gpu_resource(batch, settings)] = str(wanted.gpu)
    return {"limits": dict(amounts), "requests": dict(amounts)}


def _memory(wanted: str, shards: tuple[Shard, ...]) -> str:
    """Add what a table of several shards takes: a projected volume lives in the pod's memory."""
    if len(shards) == 1:
        return wanted  # half a MiB at most: less than what two runs differ by
    table = sum(len(shard.text.encode()) for shard in shards)
    return quantities.binary(quantities.whole(wanted) + -(-table // MEBIBYTE) * MEBIBYTE)
