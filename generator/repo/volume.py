"""The results volume: `<batch>/<index>/<pod uid>.json`, written by strangers, read without trust."""

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from generator.errors import StorageError
from generator.untrusted import STRANGE, read_regular

T = TypeVar("T")

LARGEST_FILE = 1024 * 1024

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def attempts(results: Path, batch: str, index: int) -> Iterator[bytes | None]:
    """Yield what each attempt at a trial left as its record, in the order of names.

    A trial owns its folder and can put anything there: of what is too large as much as shows that, and None
    for links, devices and folders. Raises StorageError where the volume itself fails.
    """
    # Text, not a Path: joining one costs as much as opening the folder, and there may be 100,000.
    place = f"{results}/{batch}/{index}"
    try:
        folder = _patiently(lambda: os.open(place, _FOLDER))
    except OSError as error:
        if error.errno in STRANGE:
            return
        raise _failed(place, error) from error
    try:
        for name in _names(place, folder):
            yield _read(name, folder)
    finally:
        os.close(folder)


def _names(place: str, folder: int) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if name.endswith(".json"))
    except OSError as error:
        raise _failed(place, error) from error


def _read(path: str, folder: int | None = None) -> bytes | None:
    try:
        return _patiently(lambda: read_regular(path, LARGEST_FILE, dir_fd=folder))
    except OSError as error:
        raise _failed(path, error) from error


def _patiently(action: Callable[[], T]) -> T:
    """Try twice where a network file system has lost its hold on what it named a moment ago."""
    try:
        return action()
    except OSError as error:
        if error.errno != errno.ESTALE:
            raise
        return action()


def _failed(place: str, error: OSError) -> StorageError:
    return StorageError(f"{place}: {(error.strerror or str(error)).lower()}")


def kept_output(results: Path, batch: str, index: int) -> dict[str, tuple[str, str]]:
    """Give what each attempt printed, by pod uid: standard output and standard error."""
    folder = results / batch / str(index)
    found: dict[str, tuple[str, str]] = {}
    if not folder.is_dir():
        return found
    for path in sorted(folder.iterdir()):
        if path.suffix in {".out", ".err"}:
            found[path.stem] = (_output(f"{path.stem}.out", folder), _output(f"{path.stem}.err", folder))
    return found


def _output(name: str, folder: Path) -> str:
    content = _read(str(folder / name)) or b""
    return content.decode(errors="replace") if len(content) <= LARGEST_FILE else ""
