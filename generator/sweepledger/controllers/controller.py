"""The interface of a GitOps controller: its files, their placeholder values, its names, and its reports on a batch."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType
from typing import Any, ClassVar

from sweepledger.structs.kubernetes import Manifest
from sweepledger.structs.platform import GitSource, Names, RequiredSecret
from sweepledger.structs.settings import Controller, Egress, PlatformSettings

SYNC_WAVE = "argocd.argoproj.io/sync-wave"
"""The annotation of a batch's objects by which those of lower numbers are made first and deleted last."""


@dataclass(frozen=True, slots=True)
class Installed:
    """A controller for the trials of one cluster, as plain values."""

    words: Mapping[str, Any]
    """The placeholder values of its files."""
    namespace: str
    is_remote: bool
    """Whether the controller runs in another cluster."""
    secrets: tuple[RequiredSecret, ...]


class SyncState(Enum):
    """How far a controller has applied a batch."""

    WAITING = auto()
    REFUSED = auto()
    """The message names the objects that could not be applied."""
    APPLIED = auto()


@dataclass(frozen=True, slots=True)
class Sync:
    """What a controller's objects report about a batch."""

    state: SyncState
    text: str
    remedy: str
    message: str = ""
    """The message from the cluster."""


def missing(title: str) -> Sync:
    """Return the state of a batch for which an object of the platform is missing."""
    return Sync(
        SyncState.WAITING,
        f"the cluster has no {title}",
        "apply the files of the platform as clusters/README.md says; `sweep cluster doctor` lists what is missing",
    )


class GitOps(ABC):
    """A controller that follows the branch. Its files are in `base/platform/NAME/v1`; it fills their placeholders."""

    name: ClassVar[Controller]
    """Its name in the settings, and the name of its folders."""
    title: ClassVar[str]
    domain: ClassVar[str]
    """The domain at the end of its kinds and labels."""
    namespaces: ClassVar[frozenset[str]]
    """The namespaces where it is usually installed: no trials run there."""
    namespace_suffix: ClassVar[str | None] = None
    """The suffix of its own namespace on a platform, after the namespace of the trials; None: it has none."""
    files: ClassVar[Mapping[str, str]]
    """The files of its folder with their purposes, in the order in which they are applied. A file that is not in its
    base is the team's, or its admission policy."""
    monitoring_files: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """The files of `base/platform/monitoring` that only this controller needs, with their purposes."""
    conditions: ClassVar[Mapping[str, tuple[str | None, tuple[str, ...]]]]
    """Kind of its objects → the condition that must be True, and the conditions that must not be True."""
    template_signs: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Template syntax that it would replace in manifests, with the effect."""
    side_files: ClassVar[str]
    """A pattern of the names of files that it would interpret."""
    hooks: ClassVar[tuple[str, ...]] = ()
    """Annotations that would change how it applies an object."""
    options: ClassVar[str | None] = None
    """The annotation whose list of options does the same."""

    settings_key: ClassVar[str | None] = None
    """The key with its settings."""
    field_manager: ClassVar[str | None] = None
    """The field manager with which it keeps the platform applied; None: a person applies the platform."""
    apply_options: ClassVar[str] = ""
    """Options that a person adds to `kubectl apply` because the controller writes to its objects."""
    upkeep: ClassVar[str]
    """Who applies what when files change."""
    repair: ClassVar[str]
    """How missing objects of a batch are created again."""
    remote_remedy: ClassVar[str] = ""
    """How to find out why a `{batch}` is not applied, if the controller runs in another cluster."""
    reads_folders: ClassVar[bool] = True
    """Whether it reads `file://` URLs."""
    resets_parallelism: ClassVar[bool] = False
    """Whether it reverts a queue's changes of a running Job."""
    shares_notifications: ClassVar[bool] = False
    """Whether its messages are keys of an object that all repositories share, which therefore has no labels of one."""

    batch_kind: ClassVar[str | None] = None
    """The kind of the object that makes it apply a batch, a file of the repository; None: it finds
    the batches itself."""

    def batch_spec(self, batch: str) -> Manifest:
        """Return the `spec` of the object that applies a batch."""
        raise NotImplementedError(batch)

    def is_remote(self, _platform: PlatformSettings) -> bool:
        """Return whether trials run in another cluster than the controller."""
        return False

    def namespace(self, names: Names, _platform: PlatformSettings) -> str:
        """Return the namespace of the objects that the controller reads."""
        return f"{names.trials}{self.namespace_suffix}"

    def installed(
        self, names: Names, platform: PlatformSettings, egress: Iterable[Egress], source: GitSource
    ) -> Installed:
        """Return the controller for the trials of a cluster; a placeholder with its name stands for its namespace."""
        space = self.namespace(names, platform)
        words = {**self.words(names, platform, egress, source), "namespace": space, self.name: space}
        secrets = tuple(self.secrets(names, platform, source))
        return Installed(words, space, self.is_remote(platform), secrets)

    @abstractmethod
    def words(
        self, names: Names, platform: PlatformSettings, egress: Iterable[Egress], source: GitSource
    ) -> dict[str, Any]:
        """Return the placeholder values of its files, except its namespace."""

    @abstractmethod
    def notification_words(
        self, names: Names, platform: PlatformSettings, source: GitSource
    ) -> dict[str, Any] | None:
        """Return the placeholder values of its messages and commit statuses; None if the settings ask for neither."""

    @abstractmethod
    def secrets(
        self, names: Names, platform: PlatformSettings, source: GitSource
    ) -> Iterator[RequiredSecret]:
        """Yield the Secrets that the controller reads."""

    @abstractmethod
    def removal(self, names: Names, platform: PlatformSettings) -> str:
        """Return the command that makes the controller delete the remains of batches."""

    @abstractmethod
    def observed(self, names: Names, batch: str) -> Sequence[tuple[str, str]]:
        """Return the resources and names of the objects that show the controller's state for a batch."""

    @abstractmethod
    def sync(self, batch: str, *objects: Manifest | None) -> Sync:
        """Return what these objects report; None stands for an object that the cluster lacks."""
