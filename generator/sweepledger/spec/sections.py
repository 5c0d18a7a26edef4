"""The sections of a spec as written: one, or one per block, with the parameters of each."""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from sweepledger.reader import DocumentPath
from sweepledger.reader.configurations import ConfigurationTable
from sweepledger.spec.draft import Draft

SHUFFLED = "shuffled"
Part = TypeVar("Part")


@dataclass(frozen=True, slots=True)
class Leaf:
    """A parameter that is not a group; nested ones have dotted names."""

    name: str
    path: DocumentPath
    conditions: tuple[DocumentPath, ...]
    """Paths of its conditions: those of the groups around it, and its own."""

    @property
    def end(self) -> int:
        """Number of path elements that lead to the parameter."""
        return len(self.path)


@dataclass(frozen=True, slots=True)
class Section:
    """The keys of one block, or of the top level of a spec without blocks."""

    path: DocumentPath
    method: str | None
    leaves: dict[str, Leaf]
    """The section's own parameters, and those it shares with all blocks."""
    derived: tuple[str, ...]
    listed: dict[str, list[DocumentPath]]
    """Names in `assignments`, and the paths of their values."""
    table: ConfigurationTable | None
    """The file of configurations; None if there is none, or if it cannot be read."""
    is_whole: bool
    """Whether all names are known, because everything could be read."""
    resource: str | None = None
    """The name of the parameter that an adaptive method sets."""

    @property
    def parameters(self) -> frozenset[str]:
        """The names that a condition may mention."""
        return frozenset((*self.leaves, *self.listed, *(self.table.names if self.table else ())))


def _once(compute: Callable[[Draft], Iterator[Part]]) -> Callable[[Draft], tuple[Part, ...]]:
    """Return a function that computes the parts of each draft once, because many rules need them."""

    @functools.wraps(compute)
    def computed(draft: Draft) -> tuple[Part, ...]:
        if compute not in draft.computed:
            draft.computed[compute] = tuple(compute(draft))
        parts: tuple[Part, ...] = draft.computed[compute]
        return parts

    return computed


@_once
def sections(draft: Draft) -> Iterator[Section]:
    """Return the sections of a draft that can be read."""
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
    """Return whether a grid is run in a seeded order."""
    return section.method == "grid" and draft.get(*section.path, "grid_order", kind=str) == SHUFFLED


def all_leaves(draft: Draft) -> Iterator[Leaf]:
    """Yield every parameter of the spec once."""
    for group in leaf_groups(draft):
        yield from group


@_once
def leaf_groups(draft: Draft) -> Iterator[tuple[Leaf, ...]]:
    """Return the parameters of the top level, then those of each block, as written."""
    yield tuple(_leaves(draft, ("parameters",)))
    for path in filter(None, _paths(draft)):
        yield tuple(_leaves(draft, (*path, "parameters")))


def sound_keys(draft: Draft, leaf: Leaf) -> dict[str, Any]:
    """Return the keys of a parameter whose values are not broken."""
    mapping = draft.get(*leaf.path, kind=dict) or {}
    return {key: value for key, value in mapping.items() if (*leaf.path, key) not in draft.broken}


def has_blocks(draft: Draft) -> bool:
    """Return whether the spec has blocks."""
    return "blocks" in draft.names()


def _paths(draft: Draft) -> list[DocumentPath]:
    if not has_blocks(draft):
        return [()]
    return [place for place, block in draft.items("blocks") if isinstance(block, dict)]


def _leaves(
    draft: Draft, path: DocumentPath, prefix: str = "", conditions: tuple[DocumentPath, ...] = ()
) -> Iterator[Leaf]:
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


def _listed(draft: Draft, path: DocumentPath) -> dict[str, list[DocumentPath]]:
    found: dict[str, list[DocumentPath]] = {}
    for place, _ in draft.items(*path, "assignments"):
        for name in draft.names(*place):
            found.setdefault(name, []).append((*place, name))
    return found


def _is_whole(draft: Draft, path: DocumentPath) -> bool:
    nearby = (place for place in draft.broken if place[: len(path)] == path or place[:1] == ("parameters",))
    has_all = path in draft.tables or "file" not in draft.names(*path)
    return has_all and not any(map(_may_hide_names, nearby))


def _may_hide_names(broken: DocumentPath) -> bool:
    return broken[-1:] == ("derived",) or bool({"parameters", "assignments"} & set(broken[-2:]))
