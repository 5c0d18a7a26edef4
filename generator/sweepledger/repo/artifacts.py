"""Artifacts of attempts on a volume: copied only if size and checksum match the record."""

import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from sweepledger.errors import StorageError
from sweepledger.formats import record_json
from sweepledger.formats.json import RejectedInput
from sweepledger.process import ByteSource
from sweepledger.safe_open import FILE_FLAGS, open_below
from sweepledger.storage import storage_error, storage_errors
from sweepledger.structs.names import file_system_name
from sweepledger.structs.record import Artifact, ArtifactList

CHUNK_BYTES = 1 << 20
BY_HAND = "the trial chose this name, and nothing was copied; copy what you trust from the volume manually"


class UnsafeArtifactError(StorageError):
    """An artifact's path could lead out of the folder of copies, or affect programs that are started there."""


OBEYED = re.compile(
    r"""\.(?!(hydra|ipynb_checkpoints|config\.json)$).*|git~\d+|sweepl~\d+|mise(\..*)?\.toml|.+\.code-workspace
    |(conftest|sitecustomize|usercustomize)\.py|(jupyter_.*|ipython_)config\.(py|json)|startup\.m
    |_g?vimrc|_exrc|-[-a-z].*""",
    re.VERBOSE,
)
"""Names that git, shells, editors, interpreters or this program obey where they find them: nearly all hidden ones.

Nothing obeys what Hydra and Jupyter keep in `.hydra` and `.ipynb_checkpoints`. A name that begins as an option does is
one for any command that is started with `*`.
"""
OBEYED_PATHS = re.compile(r"(.*/)?mise/(config(\..*)?|conf\.d/.*)\.toml")
"""Names that are obeyed in a folder of some name."""


def artifact_paths(artifacts: Iterable[Artifact], into: Path) -> tuple[Path, ...]:
    """Return the paths of the copies in a folder. Raises UnsafeArtifactError with the first unsafe path.

    The trial chose the record's paths, so they are untrusted: no path may lead out of the folder, and none may
    be read as configuration by a program started there, also together with files that another trial left there.
    """
    paths = [artifact.path for artifact in artifacts]
    into = into.absolute()
    outer = file_system_name(into.name)
    entries: dict[tuple[str, ...], dict[str, bool]] = {(): {outer: False}}
    """The names in each folder, and which are files; the folders begin beside `into`."""
    for path in paths:
        parts = path.split("/")
        if {"", ".", ".."}.intersection(parts) or not path.isprintable() or "\\" in path:
            raise UnsafeArtifactError(
                f"artifact {path!r}: must be a plain path below its folder", hint=BY_HAND
            )
        names = [file_system_name(part) for part in parts]
        obeyed = next((part for part, name in zip(parts, names, strict=True) if OBEYED.fullmatch(name)), None)
        if OBEYED_PATHS.fullmatch("/".join((outer, *names))):
            obeyed = path
        if obeyed is not None:
            raise UnsafeArtifactError(
                f"artifact {path!r}: must have no part that git, a shell or an editor obeys, got {obeyed!r}",
                hint=BY_HAND,
            )
        for depth, name in enumerate(names):
            entries.setdefault((outer, *names[:depth]), {})[name] = depth == len(names) - 1
    for folder, names_there in entries.items():
        for entry in _present(into.parent, folder):
            name = file_system_name(entry.name)
            names_there[name] = names_there.get(name, False) or not entry.is_dir()
        if names_there.get("head") and (
            {"objects", "refs"} <= names_there.keys() or "commondir" in names_there
        ):
            raise UnsafeArtifactError(
                f"artifacts in {'/'.join(folder) or into.parent.name!r}: must not become a git repository with what "
                "is there already, got HEAD, objects, refs",
                hint=BY_HAND,
            )
    return tuple(into.joinpath(*path.split("/")) for path in paths)


def _present(place: Path, folder: tuple[str, ...]) -> Iterator[os.DirEntry[str]]:
    """Yield the paths below a path of a folder, and below each spelling that some file systems treat as equal."""
    with storage_errors(place), suppress(FileNotFoundError), os.scandir(place) as entries:
        for entry in entries:
            if not folder:
                yield entry
            elif file_system_name(entry.name) == folder[0] and entry.is_dir():
                yield from _present(Path(entry.path), folder[1:])


def is_copied(artifact: Artifact, path: Path) -> bool:
    """Return whether the copy exists and matches its record. Raises StorageError if other content exists."""
    if not os.path.lexists(path):
        return False
    if path.is_file() and not path.is_symlink() and path.stat().st_size == artifact.bytes:
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() == artifact.sha256:
                return True
    raise StorageError(f"{path}: exists already, with other content", hint="choose another folder with --to")


def copy_verified(source: ByteSource, artifact: Artifact, path: Path) -> None:
    """Copy a source to a new file, which appears only if it matches its record. Raises StorageError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".fetch.", suffix=".tmp")
        try:
            with os.fdopen(descriptor, "wb") as file:
                _copy(source, artifact, file)
                os.fsync(file.fileno())
            Path(name).chmod(0o644)
            Path(name).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as error:
        raise storage_error(path, error) from error


def _copy(source: ByteSource, artifact: Artifact, file: IO[bytes]) -> None:
    left, digest = artifact.bytes, hashlib.sha256()
    while chunk := source.read(min(CHUNK_BYTES, left + 1)):
        left -= len(chunk)
        if left < 0:
            break
        digest.update(chunk)
        file.write(chunk)
    if left or digest.hexdigest() != artifact.sha256:
        got = f"sha256:{digest.hexdigest()[:12]}" if not left else f"{artifact.bytes - left} bytes"
        raise StorageError(
            f"artifact {artifact.path!r}: must be {artifact.bytes} bytes of sha256:{artifact.sha256[:12]} "
            f"according to its record, got {got}{' or more' if left < 0 else ''}",
            hint="the file was changed after its trial ended; nothing was copied",
        )


def read_list(source: ByteSource, listed: ArtifactList) -> tuple[Artifact, ...]:
    """Return the artifacts in a list next to a record. Raises StorageError if the record names another list."""
    content = b""
    while len(content) <= listed.bytes and (chunk := source.read(listed.bytes + 1 - len(content))):
        content += chunk
    if len(content) != listed.bytes or hashlib.sha256(content).hexdigest() != listed.sha256:
        raise StorageError(
            "the list of artifacts is not the one that the record names",
            hint="the file was changed after its trial ended; nothing was copied",
        )
    try:
        return record_json.read_artifacts(content)
    except RejectedInput as error:
        raise StorageError(f"the list of artifacts cannot be read: {error}", hint=BY_HAND) from error


@contextmanager
def open_file(roots: Iterable[Path], path: str) -> Iterator[ByteSource]:
    """Open a file, by its path below, in the first of a trial's folders that has it. Raises StorageError.

    No link on the path is followed, and only a regular file is opened: the trial can write to its folder.
    """
    folders = tuple(roots)
    for folder in folders:
        descriptor = _open(folder, path.split("/"))
        if descriptor is not None:
            with os.fdopen(descriptor, "rb") as file:
                yield file
            return
    raise StorageError(
        f"{folders[0]}/{path}: does not exist",
        hint="pass the mounted volume with --results, or read it through a pod with --by-pod",
    )


def _open(folder: Path, parts: list[str]) -> int | None:
    try:
        descriptor = open_below(folder, parts, FILE_FLAGS)
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return None
    return descriptor
