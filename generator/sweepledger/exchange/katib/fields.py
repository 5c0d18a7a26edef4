"""A stranger's mapping, of which every key is either used or named as lost."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from generator.exchange.loss import ForeignError, Loss

SHOWN = 60
"""Characters of a value in a report."""


@dataclass(slots=True)
class Fields:
    """The keys of a mapping at a path; what was never asked for is what is left."""

    data: dict[str, Any]
    path: str
    taken: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, data: object, path: str) -> "Fields":
        """Look into a mapping; nothing is an empty one. Raises ForeignError."""
        if data is None:
            return cls({}, path)
        if not isinstance(data, dict):
            raise ForeignError(f"{path or 'the file'} must be a mapping, got {shown(data)}")
        return cls(data, path)

    def at(self, key: str) -> str:
        """Name the place of a key."""
        return f"{self.path}.{key}" if self.path else key

    def take(self, key: str) -> Any:
        """Use a key; None where it is absent."""
        self.taken.add(key)
        return self.data.get(key)

    def inner(self, key: str) -> "Fields":
        """Use a key that holds a mapping."""
        return Fields.of(self.take(key), self.at(key))

    def items(self, key: str) -> list[Any]:
        """Use a key that holds a list."""
        found = self.take(key)
        if found is None:
            return []
        if not isinstance(found, list):
            raise ForeignError(f"{self.at(key)} must be a list, got {shown(found)}")
        return found

    def each(self, key: str) -> list["Fields"]:
        """Use a key that holds a list of mappings."""
        return [Fields.of(item, f"{self.at(key)}[{place}]") for place, item in enumerate(self.items(key))]

    def text(self, key: str) -> str | None:
        """Use a key that holds text, or what YAML made of text; None where it is absent or empty."""
        found = self.take(key)
        if isinstance(found, dict | list):
            raise ForeignError(f"{self.at(key)} must be text, got {shown(found)}")
        return None if found in {None, ""} else plain(found)

    def whole(self, key: str) -> int | None:
        """Use a key that holds a whole number; None where it is absent."""
        found = self.take(key)
        if found is None:
            return None
        if isinstance(found, bool) or not isinstance(found, int):
            raise ForeignError(f"{self.at(key)} must be a whole number, got {shown(found)}")
        return found

    def lost(self, key: str, why: str) -> Iterator[Loss]:
        """Name a key as lost, where it is there."""
        if self.take(key) is not None:
            yield Loss(f"{self.at(key)}: {shown(self.data[key])}", why)

    def rest(self, why: str = "has no counterpart here") -> Iterator[Loss]:
        """Name everything that was not used."""
        for key, value in self.data.items():
            if key not in self.taken and value not in (None, [], {}, ""):
                yield Loss(f"{self.at(key)}: {shown(value)}", why)


def plain(value: object) -> str:
    """Write a scalar as the text it was in the file, or near it."""
    return json.dumps(value) if isinstance(value, bool) else str(value)


def shown(value: object) -> str:
    """Show a value in a report, cut where it is long."""
    text = plain(value) if isinstance(value, str | int | float) else json.dumps(value, default=str)
    text = " ".join(text.split())
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
