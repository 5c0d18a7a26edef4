"""The keys of a spec that describe its search, as written, with its parameters."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sweepledger.reader import DocumentPath
from sweepledger.reader.configurations import ConfigurationTable
from sweepledger.spec.draft import Draft


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
    """The keys of a spec that describe its search."""

    method: str | None
    leaves: dict[str, Leaf]
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


def search_section(draft: Draft) -> Section:
    """Return the search of a draft, as far as it can be read; it is computed once, because many rules need it."""
    if search_section not in draft.computed:
        leaves = {leaf.name: leaf for leaf in all_leaves(draft)}
        listed, table = _listed(draft), draft.table
        is_whole = bool(leaves or listed or table) and _is_whole(draft)
        method, derived = draft.get("method", kind=str), draft.names("derived")
        resource = draft.get("resource", "parameter", kind=str)
        draft.computed[search_section] = Section(method, leaves, derived, listed, table, is_whole, resource)
    section: Section = draft.computed[search_section]
    return section


def all_leaves(draft: Draft) -> tuple[Leaf, ...]:
    """Return every parameter as written: a name that is written twice is there twice."""
    if all_leaves not in draft.computed:
        draft.computed[all_leaves] = tuple(_leaves(draft, ("parameters",)))
    leaves: tuple[Leaf, ...] = draft.computed[all_leaves]
    return leaves


def sound_keys(draft: Draft, leaf: Leaf) -> dict[str, Any]:
    """Return the keys of a parameter whose values are not broken."""
    mapping = draft.get(*leaf.path, kind=dict) or {}
    return {key: value for key, value in mapping.items() if (*leaf.path, key) not in draft.broken}


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


def _listed(draft: Draft) -> dict[str, list[DocumentPath]]:
    listed: dict[str, list[DocumentPath]] = {}
    for place, _ in draft.items("assignments"):
        for name in draft.names(*place):
            listed.setdefault(name, []).append((*place, name))
    return listed


def _is_whole(draft: Draft) -> bool:
    has_all = draft.table is not None or draft.get("assignments", kind=str) is None
    return has_all and not any(
        broken[-1:] == ("derived",) or {"parameters", "assignments"} & {*broken[-2:]}
        for broken in draft.broken
    )
