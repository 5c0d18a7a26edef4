"""The search as written: one section without blocks, otherwise one a block; and the parameters of each."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import wraps
from typing import Any

from generator.problems import Problem
from generator.reader import Path
from generator.reader.assignments import Table
from generator.spec.draft import Draft

Rule = Callable[[Draft], Iterable[Problem]]

SHUFFLED = "shuffled"


@dataclass(frozen=True, slots=True)
class Leaf:
    """A parameter with values of its own; nested ones have dotted names."""

    name: str
    path: Path
    conditions: tuple[Path, ...]
    """Where the conditions stand that it needs: those of the groups around it, and its own."""

    @property
    def end(self) -> int:
        """How much of a path inside the parameter leads to it."""
        return len(self.path)


@dataclass(frozen=True, slots=True)
class Section:
    """The keys of one search: a block, or the top where there are no blocks."""

    path: Path
    method: str | None
    leaves: dict[str, Leaf]
    """The section's own parameters, and those it shares with all blocks."""
    derived: tuple[str, ...]
    listed: dict[str, list[Path]]
    """Names in assignments, and where their values stand."""
    table: Table | None
    """The file of assignments, where there is one that could be read."""
    is_whole: bool
    """All names are known: nothing was unreadable."""
    resource: str | None = None
    """The name of the parameter that a search by rounds sets itself."""

    @property
    def parameters(self) -> frozenset[str]:
        """Everything that a condition may ask for."""
        return frozenset((*self.leaves, *self.listed, *(self.table.names if self.table else ())))


def sections(draft: Draft) -> Iterator[Section]:
    """Give every search of a draft whose keys can be looked at."""
    shared = {leaf.name: leaf for leaf in _leaves(draft, ("parameters",))}
    for path in _paths(draft):
        own = {leaf.name: leaf for leaf in _leaves(draft, (*path, "parameters"))}
        leaves, listed = {**shared, **own}, _listed(draft, path)
        table = draft.tables.get(path)
        is_whole = bool(leaves or listed or table) and _is_whole(draft, path)
        method, derived = draft.get(*path, "method", kind=str), draft.names(*path, "derived")
        resource = None if path else draft.get("resource", "parameter", kind=str)
        yield Section(path, method, leaves, derived, listed, table, is_whole, resource)


def is_shuffled(draft: Draft, section: Section) -> bool:
    """Tell whether a grid is taken in a seeded order."""
    return section.method == "grid" and draft.get(*section.path, "grid_order", kind=str) == SHUFFLED


def written(draft: Draft) -> Iterator[Leaf]:
    """Give every parameter that is written anywhere, each once."""
    for group in groups(draft):
        yield from group


def groups(draft: Draft) -> Iterator[tuple[Leaf, ...]]:
    """Give the parameters of the top and those of each block, a group each, as written."""
    yield tuple(_leaves(draft, ("parameters",)))
    for path in filter(None, _paths(draft)):
        yield tuple(_leaves(draft, (*path, "parameters")))


def sound(draft: Draft, leaf: Leaf) -> dict[str, Any]:
    """Give the keys of a parameter whose values may be looked at."""
    mapping = draft.get(*leaf.path, kind=dict) or {}
    return {key: value for key, value in mapping.items() if (*leaf.path, key) not in draft.broken}


def has_blocks(draft: Draft) -> bool:
    """Tell whether the sweep is written in blocks."""
    return "blocks" in draft.names()


def once(rule: Rule) -> Rule:
    """Let a rule say only once what is wrong with a parameter that several blocks share."""

    @wraps(rule)
    def checked(draft: Draft) -> Iterable[Problem]:
        return dict.fromkeys(rule(draft))

    return checked


def _paths(draft: Draft) -> list[Path]:
    if not has_blocks(draft):
        return [()]
    return [place for place, block in draft.items("blocks") if isinstance(block, dict)]


def _leaves(draft: Draft, path: Path, prefix: str = "", conditions: tuple[Path, ...] = ()) -> Iterator[Leaf]:
    for name in draft.names(*path):
        place = (*path, name)
        if place in draft.document.unread:
            continue
        keys = draft.names(*place)
        needed = (*conditions, (*place, "when")) if "when" in keys else conditions
        if "parameters" in keys:
            yield from _leaves(draft, (*place, "parameters"), f"{prefix}{name}.", needed)
        else:
            yield Leaf(prefix + name, place, needed)


def _listed(draft: Draft, path: Path) -> dict[str, list[Path]]:
    found: dict[str, list[Path]] = {}
    for place, _ in draft.items(*path, "assignments"):
        for name in draft.names(*place):
            found.setdefault(name, []).append((*place, name))
    return found


def _is_whole(draft: Draft, path: Path) -> bool:
    nearby = (place for place in draft.broken if place[: len(path)] == path or place[:1] == ("parameters",))
    has_all = path in draft.tables or "file" not in draft.names(*path)
    return has_all and not any(map(_may_hide_names, nearby))


def _may_hide_names(broken: Path) -> bool:
    return broken[-1:] == ("derived",) or bool({"parameters", "assignments"} & set(broken[-2:]))
