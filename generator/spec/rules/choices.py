"""Values written one by one, and their probabilities."""

import math
from collections.abc import Iterator
from typing import Any

from generator.problems import Problem
from generator.reader import Path, cut, dotted, shown
from generator.spec.draft import Draft
from generator.spec.rules.sections import Leaf, sections, sound, written
from generator.structs.domain import PROBABILITY_SLACK
from generator.structs.values import canonical_json

LONGEST_VALUE = 4096
"""Bytes of a value's JSON: a knob, no document; it stands in tables, arguments and messages."""


def duplicates(draft: Draft) -> Iterator[Problem]:
    """Equal values would be two names for one trial; only zipped ones may repeat."""
    free = _free(draft)
    for leaf in (leaf for leaf in written(draft) if leaf.path in free):
        first: dict[str, tuple[Path, Any]] = {}
        for place, value in draft.items(*leaf.path, "values"):
            if not is_sound(draft, place, value):
                continue
            key = canonical_json(value)
            if key in first:
                path, other = first[key]
                message = f"must differ from {dotted(path[leaf.end :])} ({said(other)}), got {said(value)}"
                yield draft.problem(place, message, code="duplicate-value", hint="delete one of them")
            first.setdefault(key, (place, value))


def single(draft: Draft) -> Iterator[Problem]:
    """A list of one value is no search."""
    for leaf in written(draft):
        values = draft.get(*leaf.path, "values", kind=list) or []
        if (
            len(values) == 1
            and "value" not in draft.names(*leaf.path)
            and not _broken_inside(draft, (*leaf.path, "values"))
        ):
            message = f"there is one value to try, {said(values[0])}"
            hint = f"what is the same for every trial is written value: {said(values[0])}"
            place = (*leaf.path, "values")
            yield draft.warning(place, message, code="single-value", hint=hint)


def probabilities(draft: Draft) -> Iterator[Problem]:
    """Each value has a probability, and together they are 1."""
    for leaf in written(draft):
        keys = sound(draft, leaf)
        values, chances = keys.get("values"), _numbers(draft, leaf)
        if not isinstance(values, list) or chances is None:
            continue
        place = (*leaf.path, "probabilities")
        if len(chances) != len(values):
            message = f"must be as many as the values ({len(values)}), got {len(chances)}"
            yield draft.problem(place, message, code="probabilities")
            continue
        total = math.fsum(chances)
        if abs(total - 1) > PROBABILITY_SLACK:
            message = f"must sum to 1, got {shown(float(f'{total:.10g}'))}"
            hint = _shares(chances, total)
            yield draft.problem(place, message, code="probabilities", hint=hint)


def lengths(draft: Draft) -> Iterator[Problem]:
    """A value must fit into an argument and an environment variable."""
    for place, item in _values(draft):
        if is_sound(draft, place, item) and len(canonical_json(item)) > LONGEST_VALUE:
            message = f"must be at most {LONGEST_VALUE} bytes as JSON, got {len(canonical_json(item))}"
            hint = "put it in a file of the code and sweep over the file's name"
            yield draft.problem(place, message, code="value-too-long", hint=hint)


def is_sound(draft: Draft, place: Path, value: object) -> bool:
    """Tell whether all of a value may be looked at: it is no mapping, and no item of it is broken."""
    items = range(len(value)) if isinstance(value, list) else ()
    return not isinstance(value, dict) and not any((*place, index) in draft.broken for index in items)


def said(value: object) -> str:
    """Show a value, a list with its items."""
    return cut(repr(value)) if isinstance(value, list) else shown(value)


def _values(draft: Draft) -> Iterator[tuple[Path, Any]]:
    for leaf in written(draft):
        place: Path = (*leaf.path, "value")
        yield place, draft.get(*place, kind=object)
        yield from draft.items(*leaf.path, "values")
    for section in sections(draft):
        for places in section.listed.values():
            yield from ((place, draft.get(*place, kind=object)) for place in places)


def _free(draft: Draft) -> frozenset[Path]:
    """Find the parameters that some search uses without zipping them."""
    found: set[Path] = set()
    for section in sections(draft):
        zipped = {name for _, name in draft.texts(*section.path, "zip")}
        found |= {leaf.path for leaf in section.leaves.values() if leaf.name not in zipped}
    return frozenset(found)


def _numbers(draft: Draft, leaf: Leaf) -> list[float] | None:
    place = (*leaf.path, "probabilities")
    items = draft.get(*place, kind=list)
    numbers = [item for item in items or () if isinstance(item, int | float) and not isinstance(item, bool)]
    whole = items is not None and len(numbers) == len(items) and not _broken_inside(draft, place)
    return numbers if whole else None


def _broken_inside(draft: Draft, place: Path) -> bool:
    return any(broken[: len(place)] == place for broken in draft.broken)


def _shares(chances: list[float], total: float) -> str | None:
    if total <= 0:
        return None
    shares = [float(f"{chance / total:.10g}") for chance in chances]
    return f"in the same proportions: {cut(repr(shares))}"
