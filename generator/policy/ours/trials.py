"""The trials of one batch: what is known of them beforehand, and how their objects tell them apart."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from generator.policy.workloads import Object
from generator.structs.labels import INDEX_LABEL
from generator.structs.settings import Settings

SHARED = "TrainingRuntime"
"""The kind whose template the pods of all trials come of; what starts them says which trial it is."""

COMPLETION_INDEX = "JOB_COMPLETION_INDEX"
"""Kubernetes sets it, unless somebody has set it before."""


@dataclass(frozen=True, slots=True)
class Trials:
    """What a batch's objects are held against."""

    batch: str
    settings: Settings
    config_maps: frozenset[str]
    """Those that are rendered beside it."""
    image: str | None = None
    """What its container must run, by the batch's lock; None: nobody has said."""
    parent_folders: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))
    """By row, the folder of the trial whose checkpoints it may read."""


def is_indexed(thing: Object) -> bool:
    """Tell whether an object is the one Job of all trials, whose pods Kubernetes numbers."""
    return thing.kind == "Job" and (thing.data.get("spec") or {}).get("completionMode") == "Indexed"


def index(thing: Object) -> str | None:
    """Say which trial an object is, by its label."""
    found = (thing.metadata.get("labels") or {}).get(INDEX_LABEL)
    return None if found is None else str(found)
