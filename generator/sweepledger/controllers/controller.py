"""The interface of a GitOps controller: its files, their placeholder values, its names, and its reports on a batch."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType
from typing import Any, ClassVar

from sweepledger.structs.kubernetes import Manifest
from sweepledger.structs.platform.git_source import GitSource
from sweepledger.structs.platform.names import Names
from sweepledger.structs.platform.required_secret import RequiredSecret
from sweepledger.structs.settings import Controller, Egress, PlatformSettings

SYNC_WAVE = "argocd.argoproj.io/sync-wave"
"""The annotation of a batch's objects by which those of lower numbers are made first and deleted last."""


@dataclass(frozen=True, slots=True)
class Installed:
    """A controller for the trials of one cluster, as plain values."""

    words: Mapping[str, Any]
    """The words of its files."""
    namespace: str
    is_remote: bool
    """Whether it runs in another cluster."""
    secrets: tuple[RequiredSecret, ...]


class SyncState(Enum):
    """How far a controller has applied a batch."""

    WAITING = auto()
    REFUSED = auto()
    """Its message says what it could not apply."""
    APPLIED = auto()


@dataclass(frozen=True, slots=True)
class Sync:
    """What a controller's objects report about a batch."""

    state: SyncState
    text: str
    remedy: str
    message: str = ""
    """The words of the cluster."""


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
    """How the settings call it, and its folders."""
    title: ClassVar[str]
    domain: ClassVar[str]
    """The domain that its kinds and labels end in."""
    namespaces: ClassVar[frozenset[str]]
    """Where it is usually installed: no trials run there."""
    namespace_suffix: ClassVar[str | None] = None
    """What a namespace that a platform has only for it is called after that of the trials; None: there is none."""
    files: ClassVar[Mapping[str, str]]
    """The files of its folder with their purposes, in the order in which they are applied; one that `base/` does not
    have for it is the team's, or its admission policy."""
    monitoring_files: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """The same of `base/platform/monitoring` that only it needs."""
    conditions: ClassVar[Mapping[str, tuple[str | None, tuple[str, ...]]]]
    """Kind of its objects → the condition that must be True, and those that must not be True."""
    template_signs: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """Signs in texts that it would replace in manifests, with what it does."""
    side_files: ClassVar[str]
    """A pattern of the names of files that it would interpret."""
    hooks: ClassVar[tuple[str, ...]] = ()
    """Annotations by which objects would change how it applies them."""
    options: ClassVar[str | None] = None
    """The annotation with a list of options that does so, too."""

    settings_key: ClassVar[str | None] = None
    """The key of its settings."""
    field_manager: ClassVar[str | None] = None
    """In whose name it keeps the platform applied; None: it applies batches alone, and a person the platform."""
    apply_options: ClassVar[str] = ""
    """What a person adds to `kubectl apply` because it writes into its objects."""
    upkeep: ClassVar[str]
    """Who applies what when files change."""
    repair: ClassVar[str]
    """What makes the objects of a batch anew that are gone."""
    remote_remedy: ClassVar[str] = ""
    """What shows why a `{batch}` is not applied, if it runs in another cluster."""
    reads_folders: ClassVar[bool] = True
    """Whether it reads `file://` URLs."""
    resets_parallelism: ClassVar[bool] = False
    """Whether it writes back what a queue changes of a running Job."""
    shares_notifications: ClassVar[bool] = False
    """Whether its messages are keys of an object of all repositories, which labels of one do not belong to."""

    batch_kind: ClassVar[str | None] = None
    """The kind of the object by which it applies a batch, which is then a file of the repository; None: it finds
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
