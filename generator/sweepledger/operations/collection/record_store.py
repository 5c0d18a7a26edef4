"""The stores of the records and files of a cluster's trials, and the pod that reads a volume.

Whatever moves results between pods and the collector implements `RecordStore`, and has an entry in the table of
`structs/settings/stores.py`.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self, cast

from sweepledger.engine.cluster import helper_pods, workloads
from sweepledger.engine.cluster.kubectl import Kubectl
from sweepledger.errors import RepositoryError, UnreadableError, UsageError
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.problems import Problem
from sweepledger.process import ByteSource
from sweepledger.repo.batches import StoredBatch
from sweepledger.repo.git import Repository
from sweepledger.repo.results_volume import VolumeResults
from sweepledger.structs.batch import BatchLock
from sweepledger.structs.names import SETTINGS_FILE
from sweepledger.structs.program import LOCAL_IMAGE
from sweepledger.structs.settings import (
    DEFAULT_STORE,
    Controller,
    ResultsSettings,
    ResultsStore,
    TrialSettings,
)

if TYPE_CHECKING:
    from sweepledger.bucket.results import BucketResults
    from sweepledger.repo.results_volume import VolumeRoot

    Shelf = VolumeRoot | BucketResults
    """What has the folders of batches, which expire."""


class RecordStore(Protocol):
    """The results of all batches. Its content is untrusted; every method raises StorageError."""

    @property
    def counts_alone(self) -> bool:
        """Whether a record can count after its pod is gone."""

    @property
    def is_common(self) -> bool:
        """Whether a failure for one batch affects all batches, so that nothing is recorded."""

    def records(self, batch: str, index: int, place: str) -> Iterator[bytes | None]:
        """Yield the records of a trial, given the path of its folder, as `volume.attempt_records` does."""

    def thresholds(self, batch: str, place: str, digest: str) -> str | None:
        """Return the thresholds with a digest that a trial has kept; None if there are none."""

    def unconfirmed(self, batch: str) -> Mapping[tuple[int, str], str]:
        """Return the SHA-256 of each record read so far that counts only if the cluster confirms it.

        By trial and attempt.
        """

    def has_begun(self, batch: str) -> bool:
        """Return whether a trial of the batch has left anything."""

    def has_every_trial(self, lock: BatchLock) -> bool:
        """Return whether each trial of a batch may have a record."""

    def last_change(self, batch: str) -> float | None:
        """Return when something was last written for a batch, in seconds since 1970; None without anything."""


class RecordFiles(Protocol):
    """The files of attempts that sidecars have uploaded; every method raises StorageError."""

    def output(self, batch: str, index: int) -> dict[str, tuple[str, str]]:
        """Return standard output and standard error of each attempt, by pod uid."""

    def opened(self, batch: str, index: int, path: str, *, uid: str) -> AbstractContextManager[ByteSource]:
        """Open a file of an attempt."""


@dataclass(frozen=True)
class RecordStores:
    """The stores of a collection, each opened at its first use."""

    newest: ResultsStore
    """That of new batches."""
    open: Callable[[ResultsStore], RecordStore]
    """Opens a store, once. Raises UsageError for one that the settings do not name."""

    @classmethod
    def of_settings(cls, results: ResultsSettings, repository: Repository, volume: Path) -> Self:
        """Return the stores of some settings, with a volume that is mounted here."""
        return cls(results.store, cache(lambda store: open_store(store, results, repository, volume)))

    @classmethod
    def all_in(cls, store: RecordStore) -> Self:
        """Return one store for all batches, whatever their locks say."""
        return cls(DEFAULT_STORE, lambda _: store)

    @property
    def of_new(self) -> RecordStore:
        """The store of new batches. Raises UsageError, StorageError."""
        return self.open(self.newest)

    def of(self, batch: StoredBatch) -> RecordStore:
        """Return the store of a batch. Raises UnreadableError, StorageError."""
        store = batch.vetted().lock.store
        try:
            return self.open(store)
        except UsageError as error:
            problem = Problem(batch.folder, 0, 0, "store", str(error), "batch-unreadable", error.hint)
            raise UnreadableError(problem) from error


def open_store(
    store: ResultsStore, results: ResultsSettings, repository: Repository, volume: Path
) -> RecordStore:
    """Open a store by its module. Raises ToolError, UsageError, StorageError, RepositoryError."""
    opened = import_module(store.facts.module).open_store(results, repository, volume)
    return cast("RecordStore", opened)


def open_files(workspace: Workspace, batch: StoredBatch) -> RecordFiles | None:
    """Return the files that sidecars have uploaded for a batch; None if it has none. Raises as `open_store` does."""
    store = batch.lock.store
    if not store.facts.has_sidecar:
        return None
    opened = open_store(store, workspace.settings.results, workspace.repository, workspace.root)
    return cast("RecordFiles", opened)


def on_volume(folder: Path) -> RecordStores:
    """Return the volume at a folder as the store of all batches: on this machine, every batch writes there."""
    return RecordStores.all_in(VolumeResults(folder))


@dataclass(frozen=True)
class ReaderPodOptions:
    """How to start a reader pod."""

    workspace: Workspace
    kubectl: Kubectl
    image: str | None
    patience: float
    """Seconds to wait until a node runs it."""
    claim: str | None = None
    """The claim; None: that of the results."""

    @contextmanager
    def running(self) -> Iterator[helper_pods.ReaderPod]:
        """Start the pod for a block. Raises ClusterError, RepositoryError if no image is known."""
        settings = self.workspace.cluster_settings
        image = settings.trials.image_of(self.image)
        if image == LOCAL_IMAGE:
            raise RepositoryError(
                "the reader pod needs an image with sh, find, tar and sleep, and none is configured",
                hint=f"name one among `images` of {SETTINGS_FILE} by --image, or set defaults.image",
            )
        manifest = helper_pods.reader_pod_manifest(
            settings.trials.namespace,
            self.claim or settings.results.claim,
            image,
            reader_queue(settings.trials, settings.platform.controller),
        )
        with helper_pods.running_reader_pod(self.kubectl, manifest, patience=self.patience) as reader:
            yield reader


def reader_queue(trials: TrialSettings, controller: Controller) -> str | None:
    """Return the queue that admits the pod: the first pool's that has one, or the project's where a person submits.

    None: the settings name no queue of the cluster.
    """
    queues = [pool.queue for _, pool in sorted(trials.pools.items()) if pool.queue is not None]
    if queues:
        return queues[0]
    return workloads.project_queue(trials.namespace) if controller is Controller.SUBMIT else None
