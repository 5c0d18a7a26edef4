"""Which batch and trial an object belongs to: its name, namespace and labels.

NetworkPolicies, queues and bills follow the labels, so an object must not carry those of another batch.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from sweepledger.policy.objects import BATCH_MANIFEST, Finding, Object
from sweepledger.reader.document import DocumentPath
from sweepledger.reader.messages import safe_repr
from sweepledger.structs.kubernetes import (
    BATCH_LABEL,
    EGRESS_LABEL,
    GENERATOR_LABELS,
    INDEX_LABEL,
    SWEEP_LABEL,
    TRIAL_LABEL,
)
from sweepledger.structs.names import split_batch_name
from sweepledger.structs.settings import Settings

RUNTIME_KIND = "TrainingRuntime"
"""The kind with the pod template of all trials; the objects that start the trials set the index."""


@dataclass(frozen=True, slots=True)
class BatchContext:
    """The values that a batch's objects are compared with."""

    batch: str
    settings: Settings
    config_maps: frozenset[str]
    """Names of the ConfigMaps in the same batch."""
    image: str | None = None
    """Image in the batch's lock, which the containers must run; None: not known."""
    parent_folders: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))
    """Folders of parent trials, whose checkpoints a trial may read, by the index of the trial that continues them."""


def runs_all_trials(obj: Object) -> bool:
    """Return whether an object is an Indexed Job whose completion indexes are the rows of the table."""
    is_indexed = obj.kind == "Job" and (obj.data.get("spec") or {}).get("completionMode") == "Indexed"
    return is_indexed and trial_index(obj) is None


def trial_index(obj: Object) -> str | None:
    """Return the index of an object's trial, by its label."""
    index = (obj.metadata.get("labels") or {}).get(INDEX_LABEL)
    return None if index is None else str(index)


NUMBER = re.compile(r"0|[1-9][0-9]{0,5}", re.ASCII)


def check_labels(obj: Object, trials: BatchContext) -> Iterator[Finding]:
    """Yield labels whose values differ from those of the batch and the settings."""
    parts = split_batch_name(trials.batch)
    known = {
        **trials.settings.trials.labels,
        **GENERATOR_LABELS,
        BATCH_LABEL: trials.batch,
        **({} if parts is None else {SWEEP_LABEL: parts[0]}),
    }
    own = obj.metadata.get("labels") or {}
    yield from _values(own, known, ("metadata", "labels"))
    number = trial_index(obj)
    if number is not None and NUMBER.fullmatch(number) is None:
        message = f"must be the number of a trial, got {safe_repr(number)}"
        yield Finding(("metadata", "labels", INDEX_LABEL), message, BATCH_MANIFEST)
    same = known | {key: own.get(key) for key in (INDEX_LABEL, TRIAL_LABEL)}
    for pod in obj.pods:
        yield from _values(pod.metadata.get("labels") or {}, same, (*pod.path, "metadata", "labels"))


def _values(
    labels: Mapping[str, Any], known: Mapping[str, str | None], at: DocumentPath
) -> Iterator[Finding]:
    for key, value in labels.items():
        wanted = "true" if key.startswith(EGRESS_LABEL) else known.get(key, value)
        if value != wanted:
            yield Finding((*at, key), f"must be {safe_repr(wanted)}, got {safe_repr(value)}", BATCH_MANIFEST)


SHARED_KINDS = frozenset({"ConfigMap", "TrainingRuntime"})


def check_duplicates(objects: list[Object]) -> Iterator[tuple[Object, Finding]]:
    """Yield objects of the same trial, which would write into the same folder."""
    first: dict[str, str] = {}
    for obj in objects:
        number = None if obj.kind in SHARED_KINDS else trial_index(obj)
        if number is not None and first.setdefault(number, obj.name) != obj.name:
            message = f"must be a trial of its own, got {safe_repr(number)} as {first[number]} has it"
            yield obj, Finding(("metadata", "labels", INDEX_LABEL), message, BATCH_MANIFEST)


def check_metadata(obj: Object, trials: BatchContext) -> Iterator[Finding]:
    """Yield a finding for a name or namespace that is not that of the batch."""
    name, batch, namespace = obj.name, trials.batch, trials.settings.trials.namespace
    if name != batch and not name.startswith(f"{batch}-"):
        message = f"must begin with the batch's name {batch!r}, got {safe_repr(name)}"
        yield Finding(("metadata", "name"), message, BATCH_MANIFEST)
    actual = obj.metadata.get("namespace")
    if actual != namespace:
        message = f"must be {namespace!r}, got {safe_repr(actual)}"
        yield Finding(("metadata", "namespace"), message, BATCH_MANIFEST)
