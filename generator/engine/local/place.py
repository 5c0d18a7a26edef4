"""A manifest read key by key: what nobody asked for is a problem, so nothing is ignored silently."""

from collections.abc import Iterator, Mapping
from typing import Any

from generator.problems import Problem

CODE = "unsupported-manifest"


class Place:
    """A mapping in a manifest that remembers which of its keys were understood."""

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
        """Note something that cannot be honoured."""
        path = f"{self.path}.{key}" if key and self.path else key or self.path
        self._problems.append(Problem(self._file, 0, 0, path, message, CODE, hint))

    def __contains__(self, key: str) -> bool:
        return self._data.get(key) is not None

    def take(self, key: str) -> Any:
        """Give the value of a key, None where absent."""
        self._taken.add(key)
        return self._data.get(key)

    def text(self, key: str, default: str = "") -> str:
        """Give a text."""
        value = self.take(key)
        if value is None or isinstance(value, str):
            return default if value is None else value
        self.refuse(key, f"must be text, got {value!r}")
        return default

    def count(self, key: str) -> int | None:
        """Give a whole number that is not negative, None where absent."""
        value = self.take(key)
        if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
            return value
        self.refuse(key, f"must be a whole number, got {value!r}")
        return None

    def texts(self, key: str) -> tuple[str, ...]:
        """Give a list of texts."""
        value = self.take(key)
        if value is None:
            return ()
        if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
            return tuple(value)
        self.refuse(key, f"must be a list of texts, got {value!r}")
        return ()

    def table(self, key: str) -> dict[str, str]:
        """Give a mapping of text to text."""
        value = self.take(key)
        if value is None:
            return {}
        if isinstance(value, Mapping) and all(isinstance(item, str) for item in value.values()):
            return {str(name): item for name, item in value.items()}
        self.refuse(key, "must be a mapping of text to text")
        return {}

    def child(self, key: str) -> "Place":
        """Give a mapping below this one, empty where absent."""
        return Place(self.take(key), f"{self.path}.{key}" if self.path else key, self._file, self._problems)

    def children(self, key: str) -> Iterator["Place"]:
        """Give each mapping of a list."""
        value = self.take(key)
        if value is not None and not isinstance(value, list | tuple):
            self.refuse(key, f"must be a list, got {value!r}")
            return
        for number, item in enumerate(value or ()):
            yield Place(item, f"{self.path}.{key}[{number}]", self._file, self._problems)

    def only(self, key: str, *allowed: object) -> None:
        """Accept a key whose other values would need a cluster; absent is fine."""
        value = self.take(key)
        if value is not None and value not in allowed:
            legal = " or ".join(repr(item) for item in allowed)
            self.refuse(key, f"must be {legal} to run on this machine, got {value!r}")

    def meaningless(self, *keys: str) -> None:
        """Accept keys that have no counterpart for a process on this machine."""
        self._taken.update(keys)

    def close(self) -> None:
        """Refuse every key that was neither read nor accepted."""
        for key in sorted(set(map(str, self._data)) - self._taken):
            if self._data[key] is not None:
                self.refuse(key, "is nothing that the local engine can honour")
