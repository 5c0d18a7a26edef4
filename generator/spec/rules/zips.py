"""Zipped parameters: groups that move together."""

from collections.abc import Iterator

from generator.problems import Problem
from generator.reader import Path, shown
from generator.spec.draft import Draft
from generator.spec.nearest import did_you_mean
from generator.spec.rules.choices import is_sound
from generator.spec.rules.sections import Section, sections
from generator.spec.rules.sizes import listed_count
from generator.structs.values import canonical_json

LISTED = "categorical"


def members(draft: Draft) -> Iterator[Problem]:
    """A group names parameters, each once in all groups."""
    for section, group in _groups(draft):
        for place, name in draft.items(*group):
            if isinstance(name, str) and section.is_whole and name not in section.leaves:
                message = f"must be the name of a parameter, got {shown(name)}"
                hint = did_you_mean(name, section.leaves)
                yield draft.problem(place, message, code="unknown-parameter", hint=hint)
    for section in sections(draft):
        first: dict[str, Path] = {}
        for place, name in draft.texts(*section.path, "zip"):
            other = first.setdefault(name, place)
            if other != place:
                line = draft.document.mark(other).line
                message = f"must not be zipped twice, got {shown(name)} as in line {line}"
                yield draft.problem(place, message, code="zip-repeated", hint="make one group of the two")


def counts(draft: Draft) -> Iterator[Problem]:
    """Parameters that move together have equally many values, one for each step."""
    for section, group in _groups(draft):
        first: tuple[str, int] | None = None
        for place, name in draft.items(*group):
            leaf = section.leaves.get(name) if isinstance(name, str) else None
            keys = draft.get(*leaf.path, kind=dict) if leaf else None
            if leaf is None or keys is None:
                continue
            if _is_no_list(keys):
                found = "a single value" if "value" in keys else "a parameter that is drawn"
                message, hint = f"must be a list of values to be zipped, got {shown(name)}: {found}", None
                hint = "what is the same for every trial needs no zip" if "value" in keys else None
                yield draft.problem(place, message, code="zip-values", hint=hint)
            elif (count := listed_count(draft, leaf)) is None and not _is_list(keys):
                message = f"must be a list of values to be zipped, got {shown(name)}: min and max"
                hint = "add step or count"
                yield draft.problem(place, message, code="zip-values", hint=hint)
            elif count is not None:
                first = first or (name, count)
                if count != first[1]:
                    message = (
                        f"must have as many values as {first[0]!r} ({first[1]}), got {name!r} with {count}"
                    )
                    hint = "the first goes with the first, the second with the second"
                    yield draft.problem(place, message, code="zip-values", hint=hint)


def tuples(draft: Draft) -> Iterator[Problem]:
    """Of what moves together, no two steps are the same."""
    for section, group in _groups(draft):
        names = [name for _, name in draft.items(*group) if isinstance(name, str)]
        leaves = [section.leaves[name] for name in names if name in section.leaves]
        columns = [list(draft.items(*leaf.path, "values")) for leaf in leaves]
        whole = all(is_sound(draft, place, value) for column in columns for place, value in column)
        if len(leaves) < len(draft.get(*group, kind=list) or ()) or not whole:
            continue
        if len({len(column) for column in columns}) != 1:
            continue
        first: dict[str, int] = {}
        for index, row in enumerate(zip(*columns, strict=True)):
            key = canonical_json([value for _, value in row])
            if first.setdefault(key, index) != index:
                message = f"must differ from values[{first[key]}] in at least one of {', '.join(names)}, "
                message += f"got {', '.join(shown(value) for _, value in row)} again"
                yield draft.problem(row[0][0], message, code="duplicate-value", hint="delete one of them")


def _groups(draft: Draft) -> Iterator[tuple[Section, Path]]:
    for section in (section for section in sections(draft) if section.method != "list"):
        for place, group in draft.items(*section.path, "zip"):
            if isinstance(group, list):
                yield section, place


def _is_no_list(keys: dict[str, object]) -> bool:
    """Tell whether a parameter is one value or is drawn; categorical is what values are anyway."""
    is_drawn = keys.get("distribution", LISTED) != LISTED or "probabilities" in keys
    return "value" in keys or (is_drawn and "count" not in keys)


def _is_list(keys: dict[str, object]) -> bool:
    """Tell whether a parameter is meant as a list; what is wrong with it is said elsewhere."""
    return bool(keys.keys() & {"values", "step", "count", "linspace", "logspace", "geomspace"})
