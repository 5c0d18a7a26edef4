"""`sweep data digest`: what a folder of data is called by content."""

from collections.abc import Callable
from pathlib import Path

from generator.engine.datasets import Digested, Read, digested
from generator.errors import StorageError, UsageError
from generator.repo.files import storage


def digest(folder: Path, *, progress: Callable[[Read], None] | None = None) -> Digested:
    """Take the digest that the settings must hold for a folder; `progress` hears of it about twice a second.

    Raises UsageError where there is no folder, StorageError for links, devices and what cannot be read.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder", hint="name the folder that trials will read")
    with storage(folder):
        found = digested(folder, progress=progress)
    if not found.files:
        raise StorageError(f"{folder} holds no file", hint="a dataset has at least one")
    return found
