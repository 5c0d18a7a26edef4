"""A mapping in a rendered manifest that is read key by key: what is not read is a problem, so nothing is ignored."""

from collections.abc import Iterator, Mapping
from typing import Any

from sweepledger.problems import Problem

PROBLEM_CODE = "unsupported-manifest"


class ManifestNode:
    """A mapping in a manifest that records which of its keys were read."""

    def __init__(self, data: Any, path: str, file: str, problems: list[Problem]) -> None:
        self.path = path
        self._file = file
        self._problems = problems
        self._taken: set[str] = set()
        self._data: Mapping[str, Any] = {}
        if isinstance(data, Mapping):
            self._data = data
        elif data is not None:
            self.refuse("", f"must be a mapping, got {data!r}")

    def refuse(self, key: str, message: str, *, hint: str | None = None) -> None:
        """Add a problem."""
        path = f"{self.path}.{key}" if key and self.path else key or self.path
        self._problems.append(Problem(self._file, 0, 0, path, message, PROBLEM_CODE, hint))

    @property
    def data(self) -> Mapping[str, Any]:
        """The mapping itself, for a comparison as a whole."""
        return self._data

    def __contains__(self, key: str) -> bool:
        return self._data.get(key) is not None

    def take(self, key: str) -> Any:
        """Return the value of a key; None if it is absent."""
        self._taken.add(key)
        return self._data.get(key)

    def text(self, key: str, default: str = "") -> str:
        """Return the text of a key; the default if it is absent."""
        value = self.take(key)
        if value is None or isinstance(value, str):
            return default if value is None else value
        self.refuse(key, f"must be text, got {value!r}")
        return default

    def count(self, key: str) -> int | None:
        """Return the whole number of a key, which must not be negative; None if it is absent."""
        value = self.take(key)
        if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
            return value
        self.refuse(key, f"must be a whole number, got {value!r}")
        return None

    def texts(self, key: str) -> tuple[str, ...]:
        """Return the list of texts of a key; empty if it is absent."""
        value = self.take(key)
        if value is None:
            return ()
        if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
            return tuple(value)
        self.refuse(key, f"must be a list of texts, got {value!r}")
        return ()

    def table(self, key: str) -> dict[str, str]:
        """Return the mapping of text to text of a key; empty if it is absent."""
        value = self.take(key)
        if value is None:
            return {}
        if isinstance(value, Mapping) and all(isinstance(item, str) for item in value.values()):
            return {str(name): item for name, item in value.items()}
        self.refuse(key, "must be a mapping of text to text")
        return {}

    def child(self, key: str) -> "ManifestNode":
        """Return the mapping of a key; empty if it is absent."""
        return ManifestNode(
            self.take(key), f"{self.path}.{key}" if self.path else key, self._file, self._problems
        )

    def children(self, key: str) -> Iterator["ManifestNode"]:
        """Yield the mappings in the list of a key."""
        value = self.take(key)
        if value is not None and not isinstance(value, list | tuple):
            self.refuse(key, f"must be a list, got {value!r}")
            return
        for number, item in enumerate(value or ()):
            yield ManifestNode(item, f"{self.path}.{key}[{number}]", self._file, self._problems)

    def only(self, key: str, *allowed: object) -> None:
        """Add a problem if a key has other values than these, which need a cluster."""
        value = self.take(key)
        if value is not None and value not in allowed:
            legal = " or ".join(repr(item) for item in allowed)
            self.refuse(key, f"must be {legal} to run on this machine, got {value!r}")

    def meaningless(self, *keys: str) -> None:
        """Ignore keys that have no meaning for a process on this machine."""
        self._taken.update(keys)

    def close(self) -> None:
        """Add a problem for every key that was neither read nor ignored."""
        for key in sorted(set(map(str, self._data)) - self._taken):
            if self._data[key] is not None:
                self.refuse(key, "is not supported by the local engine")
