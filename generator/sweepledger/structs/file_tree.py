"""A folder of files as a value, and its drift from the files on disk."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Self

from sweepledger.structs.values import blob_id, bytes_digest, digest


@dataclass(frozen=True, slots=True)
class FileTree:
    """Relative paths with forward slashes and the content of each file, sorted by path."""

    files: Mapping[str, bytes]

    def __post_init__(self) -> None:
        for path in self.files:
            if not {"", ".."}.isdisjoint(path.split("/")):
                raise ValueError(f"a path must stay inside its tree, but got {path!r}")
        object.__setattr__(self, "files", MappingProxyType(dict(sorted(self.files.items()))))

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        return iter(self.files.items())

    def __getitem__(self, path: str) -> bytes:
        return self.files[path]

    read = __getitem__

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths, sorted."""
        return tuple(self.files)

    @property
    def blob_ids(self) -> dict[str, str]:
        """The id that git gives to every file, by path."""
        return {path: blob_id(content) for path, content in self}

    @property
    def digests(self) -> dict[str, str]:
        """SHA-256 of every file, by path."""
        return {path: bytes_digest(content) for path, content in self}

    @property
    def digest(self) -> str:
        """SHA-256 of all paths and contents, 64 hex digits."""
        return digest(self.digests)


@dataclass(frozen=True, slots=True)
class Drift:
    """Differences between a folder and the tree that the generator writes."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()

    @classmethod
    def between(cls, expected: Mapping[str, Any], actual: Mapping[str, Any]) -> Self:
        """Return how files differ from those that there should be; both by path, with anything that tells contents."""
        return cls(
            added=tuple(sorted(expected.keys() - actual.keys())),
            changed=tuple(
                sorted(path for path in expected.keys() & actual.keys() if expected[path] != actual[path])
            ),
            stale=tuple(sorted(actual.keys() - expected.keys())),
        )

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.stale)
