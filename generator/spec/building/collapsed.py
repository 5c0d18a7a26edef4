"""Points so close that nothing tells them apart: found only when they are made, so after all rules."""

from collections.abc import Iterator
from typing import Any

from generator.problems import Problem
from generator.reader import shown
from generator.spec.building.domains import domain
from generator.spec.draft import Draft
from generator.spec.ranges import Spacing, is_distinct, is_steppable
from generator.spec.rules.sections import Leaf, written
from generator.structs.domain import Choice

COUNTED = frozenset({"count", *Spacing})


def collapsed(draft: Draft) -> Iterator[Problem]:
    """Refuse points of which some are equal or out of order, in a draft that has no other problem."""
    for leaf in written(draft):
        keys = draft.get(*leaf.path, kind=dict) or {}
        form = next((key for key in keys if key in COUNTED), None)
        if form is not None:
            yield from _counted(draft, leaf, form, keys)
        elif "step" in keys and not is_steppable(keys["min"], keys["max"], keys["step"]):
            found = f"{shown(keys['step'])} from {shown(keys['min'])}"
            message = f"must make numbers that a float can hold, got {found}"
            hint = "up to 15 digits are safe: take a larger step, or fewer digits"
            yield draft.problem((*leaf.path, "step"), message, code="range-count", hint=hint)


def _counted(draft: Draft, leaf: Leaf, form: str, keys: dict[str, Any]) -> Iterator[Problem]:
    made = domain(keys)
    points: Any = made.values if isinstance(made, Choice) else ()
    if is_distinct(points):
        return
    different = len(set(points))
    hint = "points are rounded to 10 significant digits: take fewer, or ends further apart"
    if different < len(points):
        message = f"must make different values, got {different} for {len(points)} points"
    else:
        message = "must make values in order, got some that rounding put before their neighbours"
    yield draft.problem((*leaf.path, form), message, code="range-count", hint=hint)
