"""What a batch says of its pods, the same in every shape."""

from dataclasses import dataclass
from typing import Any

from generator.formats.table import Shard
from generator.structs.batch import Batch
from generator.structs.program import LOCAL_IMAGE
from generator.structs.settings import Settings

Manifest = dict[str, Any]

BASE_IMAGE = "sweepledger.invalid/local"
"""What the frozen bases name as image, and what stays there while a program has none."""

POD_STARTUP_SECONDS = 15 * 60
"""A pod's deadline counts from its start, image pull included; the launcher keeps the trial's own timeout."""
POD_GRACE_SECONDS = 30

SWEEP_LABEL = "sweepledger.dev/sweep"
BATCH_LABEL = "sweepledger.dev/batch"
TRIAL_LABEL = "sweepledger.dev/trial"
INDEX_LABEL = "sweepledger.dev/index"


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


def labels(name: str, batch: Batch) -> dict[str, str]:
    """Label every object and pod of a batch."""
    return {
        "app.kubernetes.io/name": "sweepledger",
        "app.kubernetes.io/managed-by": "sweepledger",
        SWEEP_LABEL: batch.sweep.name,
        BATCH_LABEL: name,
    }


def image(batch: Batch) -> str:
    """Name the image that the container asks for."""
    return BASE_IMAGE if batch.program.image == LOCAL_IMAGE else batch.program.image


def deadline(batch: Batch) -> int:
    """Seconds after which the node ends a pod whose launcher did not."""
    return batch.run.timeout_seconds + POD_GRACE_SECONDS + POD_STARTUP_SECONDS


def environment(batch: Batch) -> list[Manifest]:
    """List what every trial of the batch has in its environment beside what the base sets."""
    variables = {
        "OMP_NUM_THREADS": str(batch.run.resources.threads),
        "SWEEP_RAN": batch.program.image,
    }
    if batch.program.data is not None:
        variables["SWEEP_DATA"] = "/sweep/data"
    return [{"name": name, "value": value} for name, value in sorted(variables.items())]


def resources(batch: Batch) -> Manifest:
    """Ask for as much as is allowed: requests and limits are equal."""
    wanted = batch.run.resources
    amounts = {"cpu": wanted.cpu, "memory": wanted.memory, "ephemeral-storage": "4Gi"}
    if wanted.gpu:
        amounts["nvidia.com/gpu"] = str(wanted.gpu)
    return {"limits": dict(amounts), "requests": dict(amounts)}


def mounts(batch: Batch) -> list[Manifest]:
    """Mount the dataset, where there is one, beside what the base mounts."""
    if batch.program.data is None:
        return []
    return [{"name": "data", "mountPath": "/sweep/data", "readOnly": True}]


def volumes(name: str, batch: Batch, settings: Settings, shards: tuple[Shard, ...]) -> list[Manifest]:
    """Give every volume of the base its source, and add the dataset."""
    objects = Objects(name)
    sources = [{"configMap": {"name": objects.table(number)}} for number in range(len(shards))]
    made: list[Manifest] = [
        {"name": "launcher", "configMap": {"name": objects.launcher, "defaultMode": 0o444}},
        {"name": "table", "projected": {"defaultMode": 0o444, "sources": sources}},
        {"name": "results", "persistentVolumeClaim": {"claimName": settings.results.claim}},
    ]
    if batch.program.data is not None:
        claim = settings.datasets[batch.program.data.name].claim
        made.append({"name": "data", "persistentVolumeClaim": {"claimName": claim, "readOnly": True}})
    return made
