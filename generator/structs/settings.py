"""The repository's settings as a value: what the platform team decided for every sweep."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Dataset:
    """Data that trials may ask for by name."""

    name: str
    claim: str
    """The PersistentVolumeClaim that holds it."""
    digest: str
    """Of the folder's contents: `sha256:` over its sorted `<sha256>  <name>` lines."""
    prepare: tuple[str, ...] = ()
    """A command that fills the folder `$SWEEP_DATA` on a machine without the volume."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Defaults of a repository; every field has one, so an empty file will do."""

    namespace: str = "sweeps"
    image: str = "local"
    results_claim: str = "sweep-results"
    branch: str = "main"
    remote: str = "origin"
    datasets: Mapping[str, Dataset] = field(default_factory=lambda: MappingProxyType({}))
