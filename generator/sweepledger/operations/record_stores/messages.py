"""Records only in the termination messages of pods: only the held pods have them."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from sweepledger.repo.git import Repository
from sweepledger.structs.batch import BatchLock
from sweepledger.structs.settings import ResultsSettings


class MessageResults:
    """The store of batches whose records are only in pods: it is always empty."""

    counts_alone = False
    is_common = False

    def records(self, batch: str, index: int, place: str) -> Iterator[bytes | None]:  # noqa: ARG002
        """Yield nothing."""
        return iter(())

    def thresholds(self, batch: str, place: str, digest: str) -> str | None:  # noqa: ARG002
        """Return None: a message has no room for thresholds."""
        return None

    def unconfirmed(self, batch: str) -> Mapping[tuple[int, str], str]:  # noqa: ARG002
        """Return nothing."""
        return {}

    def has_begun(self, batch: str) -> bool:  # noqa: ARG002
        """Return False: only pods show this."""
        return False

    def has_every_trial(self, lock: BatchLock) -> bool:  # noqa: ARG002
        """Return False: only pods show this."""
        return False

    def last_change(self, batch: str) -> float | None:  # noqa: ARG002
        """Return None."""
        return None


def open_store(results: ResultsSettings, repository: Repository, volume: Path) -> MessageResults:  # noqa: ARG001
    """Return the empty store."""
    return MessageResults()
