"""The stores of records: what the program must know of each, in one table; readers are in `operations/record_stores`.

A store is an entry here and the module that it names, which is loaded when a batch with the store is read.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Self


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFacts:
    """What differs between stores."""

    module: str
    """Has `open_store(results, repository, volume)`, which returns a `RecordStore`."""
    foreign_keys: tuple[str, ...]
    """Keys of `results` that mean nothing with it."""
    why: str
    """Why they do not, and what to do about one."""
    needed_keys: tuple[tuple[tuple[str, str], str], ...] = ()
    """Paths of what the settings must have with it, and a hint for each."""
    component: str = ""
    """Folder below `base/` that its pods need; empty for none."""
    keeps_files: bool = True
    """Whether output, artifacts and checkpoints outlive the pod."""
    holds_pods: bool = True
    """Whether a finalizer keeps pods until their termination messages are recorded."""
    has_claims: bool = False
    """Whether files are on volumes that pods claim."""
    is_shared: bool = False
    """Whether every node can mount these, and the collector."""
    has_sidecar: bool = False
    """Whether a sidecar moves files, so that they can be read from any machine, and copies data into the pod."""
    against_packs: str = ""
    """Why a pod cannot run several trials; empty if it can."""


class ResultsStore(StrEnum):
    """Where trials leave their records."""

    facts: StoreFacts

    def __new__(cls, name: str, facts: StoreFacts) -> Self:
        """Return a member with its facts; its value is the name alone."""
        member = str.__new__(cls, name)
        member._value_ = name
        member.facts = facts
        return member

    # In the termination messages of their pods; files are not kept.
    API = (
        "api",
        StoreFacts(
            module="sweepledger.operations.record_stores.messages",
            foreign_keys=("claim", "checkpoints", "artifacts", "nfs", "keep", "progress", "bucket"),
            why="the API server keeps records and no files; delete the key, or choose another store",
            component="components/api-store/v1",
            keeps_files=False,
            against_packs="only a message outlives a pod there, and the next pod could not know which trials are done",
        ),
    )
    # In object storage, where a sidecar moves files; what counts, the termination messages say.
    BUCKET = (
        "bucket",
        StoreFacts(
            module="sweepledger.operations.record_stores.bucket",
            foreign_keys=("claim", "checkpoints", "artifacts", "nfs", "progress"),
            why="all files are objects of results.bucket; delete the key, or choose store: volume",
            needed_keys=(
                (("results", "bucket"), "for example {url: s3://ml-sweeps/vision, …}"),
                (
                    ("images", "collector"),
                    "a sidecar in its image moves the files of trials; images/collector of the project builds it",
                ),
            ),
            component="components/bucket-store/v1",
            has_sidecar=True,
        ),
    )
    # In the termination messages of their pods; files are on a volume that one node can mount.
    CLAIM = (
        "claim",
        StoreFacts(
            module="sweepledger.operations.record_stores.messages",
            foreign_keys=("nfs", "progress", "bucket"),
            why="one node mounts the claim, and the collector none; delete the key, or choose store: volume",
            component="components/claim-store/v1",
            has_claims=True,
            against_packs="records travel in a pod's message there, which has room for that of one trial",
        ),
    )
    # On a volume that every node can mount.
    VOLUME = (
        "volume",
        StoreFacts(
            module="sweepledger.operations.record_stores.volume",
            foreign_keys=("bucket",),
            why="choose store: bucket, or delete the key",
            holds_pods=False,
            has_claims=True,
            is_shared=True,
        ),
    )


DEFAULT_STORE = ResultsStore.VOLUME
