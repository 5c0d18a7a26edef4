"""Which batches the collector of one of several clusters records."""

from collections.abc import Callable

from sweepledger.commands.repository import at_commit
from sweepledger.commands.repository.workspace import Target
from sweepledger.errors import RepositoryError, UnreadableError
from sweepledger.repo.batches import StoredBatch
from sweepledger.structs.names import SETTINGS_FILE


def recorded_by(target: Target, tip: str | None) -> Callable[[StoredBatch], bool]:
    """Return whether the collector of the target's cluster records a batch; without a cluster, it records all.

    It records those of its cluster. What was cancelled in a cluster that was given up is recorded by the first of the
    others, without evidence. Raises RepositoryError if the commit says that its own cluster was given up.
    """
    cluster = target.cluster
    if cluster is None:
        return lambda _: True
    settings = at_commit.settings_or_defaults(target.repository, tip)
    live = settings.live_clusters
    if cluster in settings.lost_clusters:
        raise RepositoryError(
            f"cluster {cluster} was given up: nothing of it is recorded",
            hint=f"if it is back, remove `lost` from clusters.{cluster}",
        )
    if cluster not in live:
        raise RepositoryError(
            f"must be a cluster of {SETTINGS_FILE}, got {cluster!r}: nothing of it is recorded",
            hint=f"it has {', '.join(live) or 'none'}",
        )

    def is_recorded(batch: StoredBatch) -> bool:
        try:
            where = batch.lock.cluster
        except UnreadableError:
            return True  # which is reported
        return where == cluster or (not batch.is_active and where not in live and cluster == live[0])

    return is_recorded
