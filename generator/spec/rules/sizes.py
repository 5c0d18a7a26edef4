"""How many values and combinations there are, by arithmetic alone."""

import math
from collections import Counter
from collections.abc import Iterator

from generator.problems import Problem
from generator.reader import cut
from generator.reader.assignments import COLUMNS
from generator.spec.draft import Draft
from generator.spec.ranges import MOST_VALUES, step_count
from generator.spec.rules.bounds import is_space, number
from generator.spec.rules.forms import LISTS, range_of
from generator.spec.rules.sections import Leaf, Section, has_blocks, is_shuffled, sections, sound
from generator.structs.counting import MOST_COMBINATIONS, MOST_TRIALS
from generator.structs.dimensions import Steps


def listed_count(draft: Draft, leaf: Leaf) -> int | None:
    """Count the values of a parameter that is a list of them; None if it is none, or wrong."""
    keys = sound(draft, leaf)
    if isinstance(values := keys.get("values"), list):
        return len(values)
    if "count" in keys:
        return int(keys["count"])
    for key in LISTS:
        if is_space(draft, leaf, key):
            return int(keys[key][2])
    low, high, step = (number(keys, key) for key in ("min", "max", "step"))
    if low is None or high is None or step is None or low >= high:
        return None
    return step_count(low, high, step)


def values(draft: Draft) -> Iterator[Problem]:
    """All lists of all blocks together are no longer than a single one may be."""
    counts = [
        listed_count(draft, leaf) or 0 for section in sections(draft) for leaf in section.leaves.values()
    ]
    total = sum(counts)
    if total > MOST_VALUES >= max(counts):
        message = f"must list at most {MOST_VALUES} values in all parameters together, got {total}"
        hint = "integers from min to max are not listed, nor is what a method draws from min and max"
        place = ("blocks",) if has_blocks(draft) else ("parameters",)
        yield draft.problem(place, message, code="too-many-values", hint=hint, at_key=True)


def listed_names(draft: Draft) -> Iterator[Problem]:
    """Assignments name no more values than a file of them has columns."""
    for section in sections(draft):
        count = len(section.listed)
        if count > COLUMNS:
            message = f"must name at most {COLUMNS} different values, got {count}"
            hint = "assignments of different things are several sweeps"
            place = (*section.path, "assignments")
            yield draft.problem(place, message, code="out-of-range", hint=hint, at_key=True)


def grids(draft: Draft) -> Iterator[Problem]:
    """A grid must be small enough to be walked, and without constraints to be run.

    One with conditions is left to the search, which counts exactly what they take away.
    """
    for section in sections(draft):
        conditional = any(leaf.conditions for leaf in section.leaves.values())
        if section.method != "grid" or is_shuffled(draft, section) or conditional:
            continue
        constrained = "constraints" in draft.names(*section.path)
        most = MOST_COMBINATIONS if constrained else MOST_TRIALS
        factors = [factor for factor in _factors(draft, section) if factor > 1]
        product = math.prod(factors)
        if product <= most:
            continue
        what = "combinations before constraints" if constrained else "trials"
        message = f"must make at most {most} {what}, got {cut(_multiplied(factors))}"
        allowed = draft.number("budget", "max_trials")
        fewer = "fewer values" if allowed is None else f"fewer values (budget.max_trials is {allowed})"
        hint = f"try {fewer}, or a part of them: grid_order: shuffled with seed and run_cap"
        place = (*section.path, "parameters")
        yield draft.problem(place, message, code="too-many-trials", hint=hint, at_key=True)


def _factors(draft: Draft, section: Section) -> list[int]:
    """List how far each thing goes that moves by itself; 1 for what is unknown."""
    sizes = {leaf.name: _size(draft, leaf) for leaf in section.leaves.values()}
    for _, group in draft.items(*section.path, "zip"):
        for name in (group if isinstance(group, list) else [])[1:]:
            if isinstance(name, str):
                sizes.pop(name, None)
    return list(sizes.values())


def _multiplied(factors: list[int]) -> str:
    counted = Counter(factors).items()
    powers = [str(factor) if times == 1 else f"{factor}^{times}" for factor, times in counted]
    product = str(math.prod(factors))
    return f"{product} = {' * '.join(powers)}" if len(factors) > 1 else product


def _size(draft: Draft, leaf: Leaf) -> int:
    count = listed_count(draft, leaf)
    if count is not None:
        return count if count <= MOST_VALUES else 1  # what is said already of a parameter is not said again
    kind, keys = range_of(draft, leaf) or ("", {})
    low, high = number(keys, "min"), number(keys, "max")
    if low is None or high is None or low >= high:
        return 1
    if kind == "int_uniform":
        return int(high) - int(low) + 1
    quantum = number(keys, "q") or 1
    if kind == "q_uniform":
        return Steps.between(low, high, quantum).count
    return 1
