"""Points so close that rounding makes them one: found only when they are made, so after all rules."""

from collections.abc import Iterator

from generator.problems import Problem
from generator.spec.building.domains import domain
from generator.spec.draft import Draft
from generator.spec.ranges import Spacing
from generator.spec.rules.sections import written
from generator.structs.domain import Choice

COUNTED = frozenset({"count", *Spacing})


def collapsed(draft: Draft) -> Iterator[Problem]:
    """Refuse counted points of which some are equal, in a draft that has no other problem."""
    for leaf in written(draft):
        keys = draft.get(*leaf.path, kind=dict) or {}
        form = next((key for key in keys if key in COUNTED), None)
        made = domain(keys) if form else None
        if form and isinstance(made, Choice) and len(set(made.values)) < len(made.values):
            message = f"must make different values, got {len(set(made.values))} for {len(made.values)} points"
            hint = "points are rounded to 10 significant digits: take fewer, or ends further apart"
            yield draft.problem((*leaf.path, form), message, code="range-count", hint=hint)
