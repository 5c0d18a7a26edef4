"""Where a trial stands, in a word: what `sweep status` counts. Words only, no rule."""

from enum import StrEnum


class Standing(StrEnum):
    """Where a trial stands. Of a trial that several batches list, the first of these counts."""

    OK = "ok"
    PRUNED = "pruned"
    DIVERGED = "diverged"
    RUNNING = "running"
    """Active, with an attempt begun and none final."""
    RETRYING = "retrying"
    """An attempt has failed, and the next runs or is due."""
    NODE_LOST = "node lost"
    """It was begun on a node that does not answer."""
    ENDED = "ended"
    """In the cluster it has; the collector has not recorded it yet."""
    FAILED = "failed"
    CANCELLED = "cancelled"
    """Its batch was cancelled before it ended."""
    QUEUED = "queued"
    """Held back in the cluster, by a queue or a person."""
    PENDING = "pending"
    """Merged and not begun, as far as can be seen from here."""
    STALLED = "stalled"
    """What ran it is gone from the cluster, and nothing says how it ended."""
    MISSING = "missing"
    """It has come to its end, or was cut off, without a record."""
    PLANNED = "planned"
    """Only in batches that controllers do not see: what they follow does not hold them yet."""


RANKS = {standing: rank for rank, standing in enumerate(Standing)}
