"""A document whose structure was checked, in the form that rules read, with the parameters of a spec."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from sweepledger.distributions import FORMS, SPACINGS, implied_name
from sweepledger.problems import DocumentPath, Problem, Severity, SourcePosition, format_path
from sweepledger.reader import Document, safe_repr
from sweepledger.reader.configurations import ConfigurationTable
from sweepledger.structs.settings import Settings

Kind = TypeVar("Kind")

RawMapping = Mapping[str, Any]
"""A mapping of a document, as the reader returns it."""
BOUND_KEYS = frozenset({"min", "max"})


@dataclass(frozen=True, slots=True)
class Leaf:
    """A parameter that is not a group; nested ones have dotted names."""

    name: str
    path: DocumentPath
    conditions: tuple[DocumentPath, ...]
    """Paths of its conditions: those of the groups around it, and its own."""
    written: RawMapping
    """Its mapping; empty if that is broken."""
    keys: RawMapping
    """The keys whose values are sound."""

    def at(self, *part: str | int) -> DocumentPath:
        """Return the path of a part of the parameter."""
        return (*self.path, *part)

    @property
    def distribution(self) -> str:
        """The distribution, written or implied; empty if there is none."""
        if self.keys.keys() >= BOUND_KEYS and forms_of(self.written) == ["min and max"]:
            return implied_name(self.keys["min"], self.keys["max"])
        kind = str(self.keys.get("distribution"))
        return kind if kind in FORMS else ""


def forms_of(keys: RawMapping) -> list[str]:
    """Return the forms whose keys a parameter has; it must have exactly one."""
    spacings = [key for key in SPACINGS if key in keys]
    if "distribution" in keys:
        return ["distribution", *spacings]
    values = [key for key in ("value", "values") if key in keys]
    return [*spacings, *values, *(["min and max"] if BOUND_KEYS & keys.keys() else [])]


@dataclass(frozen=True, slots=True)
class Draft:
    """A document whose structure was checked. Parts of it may be invalid."""

    document: Document
    broken: frozenset[DocumentPath]
    """Paths that rules must not read: refused by the reader, or of the wrong structure."""
    settings: Settings
    """The repository's settings; the defaults while a settings file itself is checked."""
    table: ConfigurationTable | None = None
    """The file of configurations; None if the spec names none, or if it cannot be read."""
    unsound: frozenset[DocumentPath] = field(init=False)
    """The broken paths, and those above them."""
    leaves: tuple[Leaf, ...] = field(init=False)
    """Every parameter as written: a name that is written twice is there twice."""
    parameters: Mapping[str, Leaf] = field(init=False)
    listed: Mapping[str, list[DocumentPath]] = field(init=False)
    """Names in `assignments`, and the paths of their values."""
    is_whole: bool = field(init=False)
    """Whether all names are known, because everything could be read."""

    def __post_init__(self) -> None:
        unsound = {broken[:end] for broken in self.broken for end in range(len(broken) + 1)}
        object.__setattr__(self, "unsound", frozenset(unsound))
        listed: dict[str, list[DocumentPath]] = {}
        for place, _ in self.items("assignments"):
            for name in self.names(*place):
                listed.setdefault(name, []).append((*place, name))
        leaves = tuple(self._leaves(("parameters",)))
        is_whole = bool(leaves or listed or self.table)
        is_whole &= self.table is not None or self.text("assignments") is None
        for broken in self.broken:
            is_whole &= broken[-1:] != ("derived",) and {"parameters", "assignments"}.isdisjoint(broken[-2:])
        parameters = {leaf.name: leaf for leaf in leaves}
        computed = {"leaves": leaves, "parameters": parameters, "listed": listed, "is_whole": is_whole}
        for attribute, value in computed.items():
            object.__setattr__(self, attribute, value)

    def _leaves(
        self, path: DocumentPath, prefix: str = "", conditions: tuple[DocumentPath, ...] = ()
    ) -> Iterator[Leaf]:
        for name in self.names(*path):
            place = (*path, name)
            if place in self.document.unread:
                continue
            written: RawMapping = self.get(*place, kind=dict) or {}
            needed = (*conditions, (*place, "when")) if "when" in written else conditions
            if "parameters" in written:
                yield from self._leaves((*place, "parameters"), f"{prefix}{name}.", needed)
            else:
                keys = {key: value for key, value in written.items() if self.is_sound(*place, key)}
                yield Leaf(prefix + name, place, needed, written, keys)

    @property
    def method(self) -> str | None:
        """The search method."""
        return self.text("method")

    @property
    def variables(self) -> frozenset[str]:
        """The names that a condition may mention."""
        return frozenset((*self.parameters, *self.listed, *(self.table.names if self.table else ())))

    def get(self, *path: str | int, kind: type[Kind]) -> Kind | None:
        """Return the value at a path; None if it is absent, broken, or of another type."""
        value = self.document.data
        for end, part in enumerate(path, start=1):
            parts = range(len(value)) if isinstance(value, list) else value if isinstance(value, dict) else ()
            if part not in parts or path[:end] in self.broken:
                return None
            value = value[part]
        return value if isinstance(value, kind) else None

    def text(self, *path: str | int) -> str | None:
        """Return the text at a path; None if it is absent, broken, or not a text."""
        return self.get(*path, kind=str)

    def number(self, *path: str | int) -> int | float | None:
        """Return the number at a path; None if it is absent, broken, or not a number."""
        value = self.get(*path, kind=object)
        return value if isinstance(value, int | float) else None

    def meaning(self, read: Callable[[str], Kind], *path: str | int, default: Kind) -> Kind | None:
        """Return the value that the text of a key stands for, or the default without the key; None for an invalid text.

        An invalid text, for which `read` raises ValueError, has a problem already.
        """
        if not self.has(*path):
            return default
        try:
            return read(self.text(*path) or "")
        except ValueError:
            return None

    def texts(self, *path: str | int) -> Iterator[tuple[DocumentPath, str]]:
        """Return all texts at and below a path."""
        value = self.get(*path, kind=object)
        match value:
            case str():
                yield path, value
            case dict() | list():
                for part in value if isinstance(value, dict) else range(len(value)):
                    yield from self.texts(*path, part)

    def items(self, *path: str | int) -> Iterator[tuple[DocumentPath, Any]]:
        """Return the valid items of a list, with their paths; null is an item."""
        for index, item in enumerate(self.get(*path, kind=list) or ()):
            if (*path, index) not in self.broken:
                yield (*path, index), item

    def names(self, *path: str | int) -> tuple[str, ...]:
        """List the keys of a mapping in the order written."""
        mapping: Mapping[str, Any] = self.get(*path, kind=dict) or {}
        return tuple(mapping)

    def has(self, *path: str | int) -> bool:
        """Return whether the mapping around a path has its last key."""
        return path[-1] in self.names(*path[:-1])

    def each(self, *pattern: str) -> list[DocumentPath]:
        """Return the existing paths that match a pattern: `*` is every key of a mapping."""
        paths: list[DocumentPath] = [()]
        for part in pattern:
            paths = [(*path, name) for path in paths for name in self.names(*path) if part in {"*", name}]
        return paths

    def each_text(self, *pattern: str) -> Iterator[tuple[DocumentPath, str]]:
        """Return all texts at and below the paths of a pattern."""
        return (item for path in self.each(*pattern) for item in self.texts(*path))

    def is_sound(self, *path: str | int) -> bool:
        """Return whether a path and everything below it is valid."""
        return path not in self.unsound

    def problem(
        self, path: DocumentPath, message: str, code: str, hint: str | None = None, *, at_key: bool = False
    ) -> Problem:
        """Return an error at a path."""
        return self.document.problem(path, message, code=code, hint=hint, at_key=at_key)

    def at_key(self, path: DocumentPath, message: str, code: str, hint: str | None = None) -> Problem:
        """Return an error at the last key of a path."""
        return self.problem(path, message, code, hint, at_key=True)

    def wrong(self, path: DocumentPath, message: str, code: str, hint: str | None = None) -> Problem:
        """Return an error at a path; the message states the rule, and the value is added."""
        found = safe_repr(self.get(*path, kind=object))
        return self.problem(path, f"{message}, got {found}", code, hint)

    def wrong_key(self, path: DocumentPath, message: str, code: str, hint: str | None = None) -> Problem:
        """Return an error at the last key of a path; the key is added to the message."""
        return self.at_key(path, f"{message}, got {safe_repr(path[-1])}", code, hint)

    def unwanted(self, path: DocumentPath, where: str, code: str, hint: str | None = None) -> Problem:
        """Return an error at the last key of a path: the key must not be given here."""
        return self.at_key(path, f"must not be given {where}, got {path[-1]}", code, hint)

    def warning(
        self, path: DocumentPath, message: str, code: str, hint: str | None = None, *, at_key: bool = False
    ) -> Problem:
        """Return a warning at a path."""
        return replace(self.problem(path, message, code, hint, at_key=at_key), severity=Severity.WARNING)

    def place(self, path: DocumentPath, *, at_key: bool = False) -> SourcePosition:
        """Return the position of a path, for problems that are found later."""
        mark = self.document.places[path][at_key]
        return SourcePosition(format_path(path), mark.line, mark.column)
