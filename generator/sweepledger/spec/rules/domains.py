"""The domain of a parameter as written: one form with its keys, listed values, probabilities, bounds and steps."""

import math
from collections.abc import Iterator
from typing import Any

from sweepledger.distributions import FORMS, RANGE, SPACINGS, UNNAMED, build_domain, ranges
from sweepledger.distributions.form import PROBABILITY_SLACK, BoundKind, Form
from sweepledger.problems import Problem
from sweepledger.reader import DocumentPath, format_path, safe_repr, truncate
from sweepledger.reader.scalars import describe_split
from sweepledger.spec.draft import BOUND_KEYS, Draft, Leaf, forms_of
from sweepledger.structs.domain import is_monotonic
from sweepledger.structs.space import MAX_TRIALS
from sweepledger.structs.values import LARGEST_EXACT_INTEGER, canonical_json

MODIFIER_KEYS = frozenset({"when", "q", "mu", "sigma", "a", "b", "step", "count", "probabilities"})
"""Keys that modify a form."""


def one_form(draft: Draft, leaf: Leaf) -> Iterator[Problem]:
    """A parameter has exactly one form."""
    found = forms_of(leaf.written)
    is_misspelt = not found and not leaf.written.keys() <= MODIFIER_KEYS
    if len(found) == 1 or is_misspelt or draft.get(*leaf.path, kind=dict) is None:
        return
    message = "must have one of value, values, min and max, distribution or a list, "
    message += f"got {' and '.join(found) or 'none of them'}"
    hint = "for example {values: [0.01, 0.1]} or {min: 0.01, max: 0.1}"
    if found == ["value", "values"]:
        hint = "value is for every trial, values are tried in turn"
    elif found:
        hint = "delete all but one of them"
    elif modifiers := leaf.written.keys() - {"when"}:
        hint = _forms_with(leaf, min(modifiers))
    yield draft.at_key(leaf.path, message, "parameter-domain", hint)


def form_keys(draft: Draft, leaf: Leaf) -> Iterator[Problem]:
    """A parameter has all keys that its form requires, and only keys of its form."""
    keys, forms = leaf.written.keys(), forms_of(leaf.written)
    if len(forms) != 1:
        return  # another rule says so, and also if the distribution is unknown
    name, form = forms[0], UNNAMED.get(forms[0])
    if name == "distribution":
        name, form = f"distribution: {leaf.keys.get(name)}", FORMS.get(str(leaf.keys.get(name)))
    if form is None:
        return
    known = {key for each in FORMS.values() for key in each.keys} | MODIFIER_KEYS
    for key in keys & known - {"when", *form.keys}:
        message = f"must not be given with {name}, got {key}: {safe_repr(leaf.written[key])}"
        yield draft.at_key(leaf.at(key), message, "parameter-key", _forms_with(leaf, key))
    if {"step", "count"} <= keys and form is RANGE:
        hint = "step sets the distance, count the number of values"
        yield draft.at_key(leaf.at("count"), "must not be given with step, got both", "parameter-key", hint)
    # Values with a numeric distribution are reported once, for the values.
    needs = frozenset() if {"value", "values"} & keys - form.needs else form.needs
    for key in sorted(needs - keys):
        beside = f"beside {', '.join(sorted(needs & keys))}" if form is RANGE else f"with {name}"
        yield draft.at_key(leaf.at(key), f"must be given {beside}", "missing-key")
    if form.keys - form.needs >= BOUND_KEYS and not BOUND_KEYS & keys:
        hint = f"without bounds it is {name.replace('truncated_', '')}"
        yield draft.at_key(leaf.path, f"must have min, max or both with {name}", "missing-key", hint)


def _forms_with(leaf: Leaf, key: str) -> str:
    """Return a hint with the forms that have all keys of a parameter, else with the forms that have any of them."""
    keys = leaf.written.keys() - {"distribution", "when"}
    having = {name: form for name, form in (UNNAMED | FORMS).items() if key in form.keys}
    fitting = [name for name, form in having.items() if form.needs <= keys <= form.keys] or [*having]
    alike = [name for name in fitting if str(leaf.written.get("distribution")) in name]
    nearest = [min(alike, key=len)] if alike else fitting
    forms = [f"{name} without a distribution" for name in nearest if name in UNNAMED]
    if named := [name for name in nearest if name in FORMS]:
        forms.append(f"distribution: {', '.join(named)}")
    return f"{key} belongs to {' or '.join(forms)}"


LONGEST_VALUE = 4096
"""Bytes of a value's JSON, which is copied to tables, arguments and messages."""


def duplicate_values(draft: Draft) -> Iterator[Problem]:
    """Values differ: equal ones would be one trial. Only zipped values may repeat."""
    zipped = {name for _, name in draft.texts("zip")}
    for leaf in draft.parameters.values():
        first: dict[str, tuple[DocumentPath, Any]] = {}
        is_checked = leaf.name not in zipped and leaf.at("values") not in draft.document.divided
        for place, value in draft.items(*leaf.at("values")) if is_checked else ():
            if draft.is_sound(*place):
                path, other = first.setdefault(canonical_json(value), (place, value))
                if path != place:
                    where = format_path(path[len(leaf.path) :])
                    message = f"must differ from {where} ({quote(other)}), got {quote(value)}"
                    yield draft.problem(place, message, "duplicate-value", "delete one of them")


def split_values(draft: Draft) -> Iterator[Problem]:
    """No comma splits a value in brackets: YAML has neither tuples nor calls."""
    lists = [(leaf.at("values"), draft.get(*leaf.at("values"), kind=list)) for leaf in draft.leaves]
    for place, items in (*lists, *_values(draft)):
        joined = draft.document.divided.get(place) if isinstance(items, list) else None
        if items and joined is not None:
            message = f"must not be parts of a value that commas divide, got {quote(items)}"
            yield draft.problem(place, message, "value-divided", describe_split(joined))


def single_values(draft: Draft, leaf: Leaf) -> Iterator[Problem]:
    """Warn of a list with one value."""
    values: Any = leaf.keys.get("values")
    if isinstance(values, list) and len(values) == 1 and "value" not in leaf.written:
        (value,) = map(quote, values)
        message, hint = f"there is one value to try, {value}", f"write a constant as value: {value}"
        yield draft.warning(leaf.at("values"), message, "single-value", hint)


def probabilities(draft: Draft, leaf: Leaf) -> Iterator[Problem]:
    """Each value has a probability, and they sum to 1."""
    place, (values, chances) = leaf.at("probabilities"), map(leaf.keys.get, ("values", "probabilities"))
    if values is None or chances is None:
        return
    total = math.fsum(chances)
    if len(chances) != len(values):
        message = f"must have as many entries as values ({len(values)}), got {len(chances)}"
        yield draft.problem(place, message, "probabilities")
    elif abs(total - 1) > PROBABILITY_SLACK:
        message = f"must sum to 1, got {safe_repr(float(f'{total:.10g}'))}"
        shares = [float(f"{chance / total:.10g}") for chance in chances] if total > 0 else []
        hint = f"in the same proportions: {truncate(repr(shares))}" if shares else None
        yield draft.problem(place, message, "probabilities", hint)


def value_lengths(draft: Draft) -> Iterator[Problem]:
    """A value must fit into an argument and an environment variable."""
    for place, item in _values(draft):
        if len(canonical_json(item)) > LONGEST_VALUE:
            message = f"must be at most {LONGEST_VALUE} bytes as JSON, got {len(canonical_json(item))}"
            hint = "put it in a file of the code and sweep over the file's name"
            yield draft.problem(place, message, "value-too-long", hint)


def quote(value: object) -> str:
    """Return a value quoted for a message."""
    return truncate(repr(value)) if isinstance(value, list) else safe_repr(value)


def _values(draft: Draft) -> Iterator[tuple[DocumentPath, Any]]:
    """Yield every readable value of a search."""
    places = [place for listed in draft.listed.values() for place in listed]
    for leaf in draft.leaves:
        places += [leaf.at("value"), *(place for place, _ in draft.items(*leaf.at("values")))]
    return ((place, draft.get(*place, kind=object)) for place in places if draft.is_sound(*place))


FEWEST_POINTS = 2
"""Both ends of a range are among its points."""
FARTHEST_SIGMAS = 10
"""A draw of 53 bits is at most 8.3 sigmas from the middle."""


def range_order(draft: Draft, leaf: Leaf) -> Iterator[Problem]:
    """The upper bound of a range is greater than the lower; a step divides it into a limited number of values."""
    low, high, step = map(leaf.keys.get, ("min", "max", "step"))
    if low is None or high is None:
        return
    if high <= low:
        hint = f"write a single value as value: {safe_repr(low)}" if high == low else "swap them"
        message = f"must be greater than min ({safe_repr(low)})"
        yield draft.wrong(leaf.at("max"), message, "range-inverted", hint)
    elif math.isinf(float(high) - float(low)):
        message = f"must be less than 1.8e308 above min ({safe_repr(low)})"
        yield draft.wrong(leaf.at("max"), message, "out-of-range")
    elif step is not None and "distribution" not in leaf.keys:
        count = ranges.step_count(low, high, step)
        if count is None:
            message = f"must divide the range from {safe_repr(low)} to {safe_repr(high)}"
            hint = "change max or step; count: N makes N values, both bounds among them"
            yield draft.wrong(leaf.at("step"), message, "range-step", hint)
        else:
            yield from _too_many(draft, leaf.at("step"), count)


def spacings(draft: Draft, leaf: Leaf) -> Iterator[Problem]:
    """A spacing has a valid number of points between different ends; a geometric one has ends of the same sign."""
    for key in SPACINGS.keys() & leaf.keys:
        start, stop, count = leaf.keys[key]
        yield from _too_many(draft, leaf.at(key, 2), count)
        if count <= MAX_TRIALS and (count < FEWEST_POINTS or count != int(count)):
            message = f"must be a whole number of at least {FEWEST_POINTS}"
            hint = f"{key}: [start, stop, count] has both ends among its values"
            yield draft.wrong(leaf.at(key, 2), message, "range-count", hint)
        if start == stop:
            message = f"must differ from the start ({safe_repr(start)})"
            hint = f"write a single value as value: {safe_repr(start)}"
            yield draft.wrong(leaf.at(key, 1), message, "range-inverted", hint)
        elif key == "geomspace" and (start == 0 or stop == 0 or (start < 0) is not (stop < 0)):
            message = "must have both ends above 0 or both below, "
            message += f"got {safe_repr(start)} and {safe_repr(stop)}"
            hint = "equal ratios never reach 0; linspace has equal differences"
            yield draft.problem(leaf.at(key), message, "log-range", hint)


def largest_draws(draft: Draft, leaf: Leaf, form: Form) -> Iterator[Problem]:
    """Drawn numbers and powers of e fit into a float, and numbers are not too large for q."""
    keys = leaf.keys
    mu, sigma, quantum = keys.get("mu", 0), keys.get("sigma", 1), keys.get("q", 1)
    largest = max(abs(keys.get(key) or 0) for key in BOUND_KEYS)
    if "mu" in form.keys:
        largest = abs(mu) + FARTHEST_SIGMAS * sigma
    if "mu" in form.keys and form.scale is BoundKind.EXPONENTS:
        message = "must be the mean and the spread of natural logarithms, with "
        message += f"|mu| + {FARTHEST_SIGMAS} * sigma at most {FARTHEST_EXPONENT}, "
        message += f"got mu {safe_repr(mu)} and sigma {safe_repr(sigma)}"
        if largest > FARTHEST_EXPONENT:
            yield draft.at_key(leaf.path, message, "exponent-range")
        return
    if math.isinf(largest):
        yield draft.problem(leaf.at("sigma"), "must keep all draws below 1.8e308", "out-of-range")
    if "q" in form.keys | keys.keys() and largest > quantum * LARGEST_EXACT_INTEGER:
        message = f"must be at least {largest / LARGEST_EXACT_INTEGER:.1g} for numbers of this size, "
        yield draft.problem(leaf.at("q"), message + f"got {safe_repr(quantum)}", "out-of-range")


def _too_many(draft: Draft, place: DocumentPath, count: ranges.Number) -> Iterator[Problem]:
    if count > MAX_TRIALS:
        message = f"must make at most {MAX_TRIALS} values, got {truncate(str(count))}"
        yield draft.problem(place, message, "too-many-values", "a sampling method needs only min and max")


FARTHEST_EXPONENT = 700
"""Exponents of e: above 709 there is no float, and below -708 it loses digits."""
UNLIKELY_EXPONENT = 30
"""e to this power is 10^13: an author who writes 32 to 512 means these numbers, not their exponents."""


def distribution_bounds(draft: Draft, leaf: Leaf, form: Form) -> Iterator[Problem]:
    """Bounds fit their distribution: integers, more than 0 on a logarithmic scale, exponents that a float can have."""
    for key in sorted(BOUND_KEYS & form.needs & leaf.keys.keys(), reverse=True):
        bound = leaf.keys[key]
        if form.is_integer and not float(bound).is_integer():
            rule, code = f"must be an integer with distribution: {leaf.distribution}", "wrong-type"
            hint = "fractions come from distribution: uniform"
        elif form.scale is BoundKind.LOG and bound <= 0:
            rule, code = "must be more than 0 on a logarithmic scale", "log-range"
            plain = leaf.distribution.removesuffix("_values")
            hint = f"exponents of e are the bounds of distribution: {plain}" if bound else "for example 1e-6"
        elif form.scale is BoundKind.EXPONENTS and abs(bound) > FARTHEST_EXPONENT:
            rule = f"must be an exponent of e from -{FARTHEST_EXPONENT} to {FARTHEST_EXPONENT}"
            hint = f"`distribution: {leaf.distribution}_values` takes the values instead of their exponents"
            code = "exponent-range"
        else:
            continue
        yield draft.wrong(leaf.at(key), rule, code, hint)


def exponents(draft: Draft, leaf: Leaf, form: Form) -> Iterator[Problem]:
    """Two exponents give different numbers after rounding; warn if they look like values."""
    low, high = leaf.keys.get("min", math.inf), leaf.keys.get("max", -math.inf)
    is_range = form.scale is BoundKind.EXPONENTS and "min" in form.needs
    if not (is_range and -FARTHEST_EXPONENT <= low < high <= FARTHEST_EXPONENT):
        return
    first, last = form.ends(low, high)
    if first >= last:
        message = f"must be so far above min ({safe_repr(low)}) that e to both powers differs"
        hint = f"both are {safe_repr(first)}; `distribution: {leaf.distribution}_values` takes the values instead"
        yield draft.wrong(leaf.at("max"), message, "exponent-range", hint)
    if low >= 0 and ((low > 0 and high <= 1) or high > UNLIKELY_EXPONENT):
        message = f"{safe_repr(low)} and {safe_repr(high)} are natural-log exponents: "
        message += f"values from {first:.6g} to {last:.6g}"
        hint = f"did you mean {leaf.distribution}_values?"
        yield draft.warning(leaf.at("distribution"), message, "exponent-range", hint)


def _fractions(draft: Draft, leaf: Leaf, form: Form, points: tuple[ranges.Number, ...]) -> Iterator[Problem]:
    """Refuse a count between two integers that gives fractions, which a program may reject."""
    low, high = map(leaf.keys.get, ("min", "max"))
    fraction = next((point for point in points if not float(point).is_integer()), None)
    if (
        not (isinstance(low, int) and isinstance(high, int))
        or form.scale is BoundKind.EXPONENTS
        or not fraction
    ):
        return
    message = f"must make integers between the integers {low} and {high}, got {safe_repr(fraction)}"
    hint = f"for real numbers, write min: {safe_repr(float(low))}; for integers, "
    if form.scale is not BoundKind.LOG:
        counts = [*range(len(points) - 1, 1, -1)], range(len(points) + 1, MAX_TRIALS + 1)
        near = (next((count for count in each if (high - low) % (count - 1) == 0), 0) for each in counts)
        hint += f"count: {' or '.join(str(count) for count in near if count)}, or "
    yield draft.problem(leaf.at("count"), message, "range-count", f"{hint}list them in values")


def distinct_points(draft: Draft, leaf: Leaf) -> Iterator[Problem]:
    """Refuse points that are equal or out of order, in a draft without other problems."""
    listing = next((key for key in leaf.keys if key in {"count", *SPACINGS}), None)
    if listing is not None:
        points: Any = build_domain(leaf.keys).listed
        if is_monotonic(points):
            if listing == "count":
                yield from _fractions(draft, leaf, FORMS[leaf.distribution], points)
            return
        different = len(set(points))
        message = f"must make different values, got {different} for {len(points)} points"
        if different == len(points):
            message = "must make values in order, got some that rounding put before their neighbours"
        hint = "points are rounded to 10 significant digits: take fewer, or ends further apart"
        yield draft.problem(leaf.at(listing), message, "range-count", hint)
    elif "step" in leaf.keys:
        low, high, step = (leaf.keys[key] for key in ("min", "max", "step"))
        if not ranges.is_steppable(low, high, step):
            message = f"must make numbers that a float can hold, got {safe_repr(step)} from {safe_repr(low)}"
            hint = "up to 15 digits are safe: take a larger step, or fewer digits"
            yield draft.problem(leaf.at("step"), message, "range-count", hint)
