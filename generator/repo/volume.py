"""The results volume: `<batch>/<index>/<pod uid>.json`, written by strangers, read without trust."""

import os
from collections.abc import Iterator
from pathlib import Path

from generator.errors import StorageError
from generator.untrusted import read_regular

LARGEST_FILE = 1024 * 1024


def attempts(results: Path, batch: str, index: int) -> Iterator[bytes]:
    """Yield what each attempt at a trial left as its record, in the order of names.

    Links, devices and files beyond the limit are passed over: a trial owns its folder and can put
    anything there. Raises StorageError where the volume itself fails.
    """
    folder = results / batch / str(index)
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if entry.name.endswith(".json"))
    except FileNotFoundError:
        return
    except NotADirectoryError:
        return
    except OSError as error:
        raise StorageError(f"{folder}: {(error.strerror or str(error)).lower()}") from error
    for name in names:
        content = _read(folder / name)
        if content is not None:
            yield content


def _read(path: Path) -> bytes | None:
    try:
        content = read_regular(path, LARGEST_FILE)
    except OSError as error:
        raise StorageError(f"{path}: {(error.strerror or str(error)).lower()}") from error
    return None if content is None or len(content) > LARGEST_FILE else content


def kept_output(results: Path, batch: str, index: int) -> dict[str, tuple[str, str]]:
    """Give what each attempt printed, by pod uid: standard output and standard error."""
    folder = results / batch / str(index)
    found: dict[str, tuple[str, str]] = {}
    if not folder.is_dir():
        return found
    for path in sorted(folder.iterdir()):
        if path.suffix in {".out", ".err"}:
            texts = [
                (_read(path.with_suffix(suffix)) or b"").decode(errors="replace")
                for suffix in (".out", ".err")
            ]
            found[path.stem] = (texts[0], texts[1])
    return found
