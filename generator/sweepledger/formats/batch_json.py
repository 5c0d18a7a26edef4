"""`batch.json`: the lock file of an overlay."""

from functools import lru_cache

from sweepledger.formats import documents
from sweepledger.formats.hyperparams_csv import ColumnType
from sweepledger.problems import TextError
from sweepledger.structs.batch import BatchLock

MAX_KEPT = 1000
"""Locks that are kept, about 10 KB each: a check reads most of them at the base commit and in the work tree."""


class LockError(TextError):
    """The text is not a batch lock."""


@lru_cache(maxsize=MAX_KEPT)
def read(text: str | bytes) -> BatchLock:
    """Return the lock in an untrusted text, which is parsed once. Raises LockError."""
    try:
        lock = documents.read(BatchLock, text)
    except TextError as error:
        raise LockError(f"not a lock file: {error}", line=error.line) from error
    if unknown := set(lock.columns.values()) - set(ColumnType):
        raise LockError(f"not a lock file: columns: must be types of columns, but got {min(unknown)!r}")
    return lock
