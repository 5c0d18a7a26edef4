"""The domain of a parameter as written: one form with its keys, listed values, probabilities, bounds and steps."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from sweepledger.distributions import (
    FORMS,
    RANGE,
    ROUNDED,
    SPACINGS,
    UNNAMED,
    build_domain,
    distribution_name,
    implied_name,
    ranges,
)
from sweepledger.distributions.form import PROBABILITY_SLACK, BoundKind, Form
from sweepledger.problems import Problem
from sweepledger.reader import DocumentPath, format_path, safe_repr, truncate
from sweepledger.reader.scalars import describe_split
from sweepledger.spec.draft import Draft
from sweepledger.spec.sections import Leaf, all_leaves, search_section, sound_keys
from sweepledger.spec.suggestions import quoted_names
from sweepledger.structs.values import LARGEST_EXACT_INTEGER, canonical_json

BOUND_KEYS = frozenset({"min", "max"})
MODIFIER_KEYS = frozenset({"when", "q", "mu", "sigma", "a", "b", "step", "count", "probabilities"})
"""Keys that modify a form."""

TRUNCATED = "truncated_"
"""Begins the name of a distribution that has bounds, unlike the distribution of the rest of the name."""

*_FIRST_BELLS, _LAST_BELL = sorted(
    (name for name, form in FORMS.items() if "mu" in form.keys and name not in ROUNDED), key=len
)
BELLS = f"distribution: {', '.join(_FIRST_BELLS)} or {_LAST_BELL}"
KEY_HINTS = {
    "probabilities": "probabilities belong to values",
    "mu": f"mu belongs to {BELLS}",
    "sigma": f"sigma belongs to {BELLS}",
}
"""Hints for stray keys of any form."""


def one_form(draft: Draft) -> Iterator[Problem]:
    """A parameter has exactly one form."""
    for leaf in all_leaves(draft):
        keys = draft.get(*leaf.path, kind=dict)
        if keys is None:
            continue
        found = _forms(keys)
        if len(found) == 1 or (not found and not keys.keys() <= MODIFIER_KEYS):
            continue  # an unknown key is probably a misspelt form
        got = " and ".join(found) or "none of them"
        message = f"must have one of value, values, min and max, distribution or a list, got {got}"
        hint = _one_form_hint(keys, found)
        yield draft.problem(leaf.path, message, code="parameter-domain", hint=hint, at_key=True)


def form_keys(draft: Draft) -> Iterator[Problem]:
    """A parameter has only keys of its form."""
    for leaf in all_leaves(draft):
        mapping = draft.get(*leaf.path, kind=dict) or {}
        name, form = _form_of(draft, leaf, mapping)
        known = {key for each in FORMS.values() for key in each.keys} | MODIFIER_KEYS
        if form is None:
            continue
        for key in mapping:
            if key not in known or key in form.keys | {"when"}:
                continue
            message = f"must not be given with {name}, got {key}: {safe_repr(mapping[key])}"
            hint = _stray_key_hint(key, name, form)
            yield draft.problem((*leaf.path, key), message, code="parameter-key", hint=hint, at_key=True)
        if {"step", "count"} <= mapping.keys() and form is RANGE:
            place = (*leaf.path, "count")
            message = "must not be given with step, got both"
            hint = "step sets the distance, count the number of values"
            yield draft.problem(place, message, code="parameter-key", hint=hint, at_key=True)


def missing_keys(draft: Draft) -> Iterator[Problem]:
    """A parameter has all keys that its form requires."""
    for leaf in all_leaves(draft):
        mapping = draft.get(*leaf.path, kind=dict) or {}
        name, form = _form_of(draft, leaf, mapping)
        # Values with a numeric distribution are reported once, for the values.
        needs = form.needs if form and not {"value", "values"} & mapping.keys() - form.needs else frozenset()
        for key in sorted(needs - mapping.keys()):
            beside = ", ".join(sorted(needs & mapping.keys()))
            message = f"must be given beside {beside}" if form is RANGE else f"must be given with {name}"
            yield draft.problem((*leaf.path, key), message, code="missing-key", at_key=True)
        if form and form.keys - form.needs >= BOUND_KEYS and not BOUND_KEYS & mapping.keys():
            message = f"must have min, max or both with {name}"
            hint = f"without bounds it is {name.replace(TRUNCATED, '')}"
            yield draft.problem(leaf.path, message, code="missing-key", hint=hint, at_key=True)


def distribution_of(draft: Draft, leaf: Leaf) -> tuple[str, dict[str, Any]] | None:
    """Return the distribution of a parameter and its valid keys; None if it has none."""
    mapping = sound_keys(draft, leaf)
    written_kind = (draft.get(*leaf.path, kind=dict) or {}).get("distribution")
    kind = mapping.get("distribution")
    if kind is None and written_kind is None and mapping.keys() >= BOUND_KEYS and len(_forms(mapping)) == 1:
        return implied_name(mapping["min"], mapping["max"]), mapping
    return (kind, mapping) if kind in FORMS else None


def _forms(mapping: dict[str, Any]) -> list[str]:
    found = [key for key in SPACINGS if key in mapping]
    if "distribution" in mapping:
        return ["distribution", *found]
    found += [key for key in ("value", "values") if key in mapping]
    return [*found, "min and max"] if BOUND_KEYS & mapping.keys() else found


def _form_of(draft: Draft, leaf: Leaf, mapping: dict[str, Any]) -> tuple[str, Form | None]:
    """Return the name and keys of a parameter's form; None if it is unclear, which another rule reports."""
    match _forms(mapping):
        case ["distribution"]:
            kind = draft.get(*leaf.path, "distribution", kind=str)
            return f"distribution: {kind}", FORMS.get(kind or "")
        case [name]:
            return name, UNNAMED[name]
        case _:
            return "", None


def _one_form_hint(mapping: dict[str, Any], found: list[str]) -> str:
    if found == ["value", "values"]:
        return "value is for every trial, values are tried in turn"
    if "values" in found and "min and max" in found:
        return "values are used as written: delete them, or min and max"
    if {"mu", "sigma"} & mapping.keys():
        return f"mu and sigma belong to {BELLS}"
    return "for example {values: [0.01, 0.1]} or {min: 0.01, max: 0.1}"


def _stray_key_hint(key: str, name: str, form: Form) -> str:
    kind = name.removeprefix("distribution: ")
    quantized = f"q_{kind}"
    match key:
        case "min" | "max" if TRUNCATED + kind in FORMS:
            return f"distribution: {TRUNCATED}{kind} has bounds"
        case "step" if form.keys >= BOUND_KEYS:
            return "step is for min and max without a distribution; with q_uniform it is called q"
        case "q" if quantized in FORMS:
            return f"distribution: {quantized} rounds to multiples of q"
        case "value" | "values" if form.keys >= BOUND_KEYS:
            return f"{key} are used as written: delete distribution, or write min and max instead"
        case "q" if form is RANGE:
            return "distribution: q_uniform rounds to multiples of q; for a grid there is step"
        case _:
            nearest = f"keys of {name}: {quoted_names(form.keys)}" if form.keys - {name} else "delete the key"
            return KEY_HINTS.get(key, nearest)


LONGEST_VALUE = 4096
"""Bytes of a value's JSON, which is copied to tables, arguments and messages."""


def duplicate_values(draft: Draft) -> Iterator[Problem]:
    """Values differ: equal ones would be one trial. Only zipped values may repeat."""
    zipped = {name for _, name in draft.texts("zip")}
    for leaf in (leaf for leaf in search_section(draft).leaves.values() if leaf.name not in zipped):
        first: dict[str, tuple[DocumentPath, Any]] = {}
        is_divided = (*leaf.path, "values") in draft.document.divided
        for place, value in draft.items(*leaf.path, "values"):
            if not is_sound_value(draft, place, value) or is_divided:
                continue
            key = canonical_json(value)
            if key in first:
                path, other = first[key]
                message = f"must differ from {format_path(path[len(leaf.path) :])} ({quote(other)}), got {quote(value)}"
                yield draft.problem(place, message, code="duplicate-value", hint="delete one of them")
            first.setdefault(key, (place, value))


def split_values(draft: Draft) -> Iterator[Problem]:
    """No comma divides a value in brackets: YAML has neither tuples nor calls."""
    for place, items in _lists(draft):
        joined = draft.document.divided.get(place)
        if items and joined is not None:
            message = f"must not be parts of a value that commas divide, got {quote(items)}"
            yield draft.problem(place, message, code="value-divided", hint=describe_split(joined))


def _lists(draft: Draft) -> Iterator[tuple[DocumentPath, list[Any]]]:
    """Yield the lists of scalars of a draft with their paths: values, and values that are lists."""
    for leaf in all_leaves(draft):
        place = (*leaf.path, "values")
        yield place, draft.get(*place, kind=list) or []
    for place, value in _values(draft):
        if isinstance(value, list):
            yield place, value


def single_values(draft: Draft) -> Iterator[Problem]:
    """Warn of a list with one value."""
    for leaf in all_leaves(draft):
        values = draft.get(*leaf.path, "values", kind=list) or []
        if (
            len(values) == 1
            and "value" not in draft.names(*leaf.path)
            and not _broken_inside(draft, (*leaf.path, "values"))
        ):
            message = f"there is one value to try, {quote(values[0])}"
            hint = f"write a constant as value: {quote(values[0])}"
            place = (*leaf.path, "values")
            yield draft.warning(place, message, code="single-value", hint=hint)


def probabilities(draft: Draft) -> Iterator[Problem]:
    """Each value has a probability, and they sum to 1."""
    for leaf in all_leaves(draft):
        keys = sound_keys(draft, leaf)
        place, values = (*leaf.path, "probabilities"), keys.get("values")
        chances = None if _broken_inside(draft, place) else draft.get(*place, kind=list)
        if not isinstance(values, list) or chances is None:
            continue
        if len(chances) != len(values):
            message = f"must have as many entries as values ({len(values)}), got {len(chances)}"
            yield draft.problem(place, message, code="probabilities")
            continue
        total = math.fsum(chances)
        if abs(total - 1) > PROBABILITY_SLACK:
            message = f"must sum to 1, got {safe_repr(float(f'{total:.10g}'))}"
            shares = [float(f"{chance / total:.10g}") for chance in chances] if total > 0 else []
            hint = f"in the same proportions: {truncate(repr(shares))}" if shares else None
            yield draft.problem(place, message, code="probabilities", hint=hint)


def value_lengths(draft: Draft) -> Iterator[Problem]:
    """A value must fit into an argument and an environment variable."""
    for place, item in _values(draft):
        if is_sound_value(draft, place, item) and len(canonical_json(item)) > LONGEST_VALUE:
            message = f"must be at most {LONGEST_VALUE} bytes as JSON, got {len(canonical_json(item))}"
            hint = "put it in a file of the code and sweep over the file's name"
            yield draft.problem(place, message, code="value-too-long", hint=hint)


def is_sound_value(draft: Draft, place: DocumentPath, value: object) -> bool:
    """Return whether a value is not a mapping and none of its items is broken."""
    items = range(len(value)) if isinstance(value, list) else ()
    return not isinstance(value, dict) and not any((*place, index) in draft.broken for index in items)


def quote(value: object) -> str:
    """Return a value quoted for a message."""
    return truncate(repr(value)) if isinstance(value, list) else safe_repr(value)


def _values(draft: Draft) -> Iterator[tuple[DocumentPath, Any]]:
    for leaf in all_leaves(draft):
        place: DocumentPath = (*leaf.path, "value")
        yield place, draft.get(*place, kind=object)
        yield from draft.items(*leaf.path, "values")
    section = search_section(draft)
    for places in section.listed.values():
        yield from ((place, draft.get(*place, kind=object)) for place in places)


def _broken_inside(draft: Draft, place: DocumentPath) -> bool:
    return any(broken[: len(place)] == place for broken in draft.broken)


FEWEST_POINTS = 2
"""Both ends of a range are among its points."""

SPACING_LENGTH = 3
"""Start, stop, count."""

FARTHEST_SIGMAS = 10
"""A draw of 53 bits is at most 8.3 sigmas from the middle."""


def range_order(draft: Draft) -> Iterator[Problem]:
    """The upper bound of a range is greater than the lower."""
    for leaf in all_leaves(draft):
        keys = sound_keys(draft, leaf)
        low, high = keys.get("min"), keys.get("max")
        if low is None or high is None:
            continue
        place = (*leaf.path, "max")
        if high <= low:
            hint = f"write a single value as value: {safe_repr(low)}" if high == low else "swap them"
            message = f"must be greater than min ({safe_repr(low)}), got {safe_repr(high)}"
            yield draft.problem(place, message, code="range-inverted", hint=hint)
        elif math.isinf(float(high) - float(low)):
            message = f"must be less than 1.8e308 above min ({safe_repr(low)}), got {safe_repr(high)}"
            yield draft.problem(place, message, code="out-of-range")


def range_steps(draft: Draft) -> Iterator[Problem]:
    """A step divides the range, and does not make too many values."""
    for leaf in all_leaves(draft):
        keys = sound_keys(draft, leaf)
        low, high, step = (keys.get(key) for key in ("min", "max", "step"))
        if "distribution" in keys or low is None or high is None or step is None or low >= high:
            continue
        count = ranges.step_count(low, high, step)
        if count is None:
            message = (
                f"must divide the range from {safe_repr(low)} to {safe_repr(high)}, got {safe_repr(step)}"
            )
            hint = "change max or step; count: N makes N values, both bounds among them"
            yield draft.problem((*leaf.path, "step"), message, code="range-step", hint=hint)
        elif count > ranges.MAX_VALUES:
            yield _too_many(draft, (*leaf.path, "step"), count)


def spacing_counts(draft: Draft) -> Iterator[Problem]:
    """The third number of a spacing is a valid number of points."""
    for leaf, key in _spacings(draft):
        place, count = (*leaf.path, key, 2), sound_keys(draft, leaf)[key][2]
        if count > ranges.MAX_VALUES:
            yield _too_many(draft, place, count)
        elif count < FEWEST_POINTS or count != int(count):
            message = f"must be a whole number of at least {FEWEST_POINTS}, got {safe_repr(count)}"
            hint = f"{key}: [start, stop, count] has both ends among its values"
            yield draft.problem(place, message, code="range-count", hint=hint)


def spacing_ends(draft: Draft) -> Iterator[Problem]:
    """The ends of a spacing differ; those of a geometric one have the same sign."""
    for leaf, key in _spacings(draft):
        start, stop, _ = sound_keys(draft, leaf)[key]
        if start == stop:
            message = f"must differ from the start ({safe_repr(start)}), got {safe_repr(stop)}"
            hint = f"write a single value as value: {safe_repr(start)}"
            yield draft.problem((*leaf.path, key, 1), message, code="range-inverted", hint=hint)
        elif key == "geomspace" and (start == 0 or stop == 0 or (start < 0) is not (stop < 0)):
            message = (
                f"must have both ends above 0 or both below, got {safe_repr(start)} and {safe_repr(stop)}"
            )
            hint = "equal ratios never reach 0; linspace has equal differences"
            yield draft.problem((*leaf.path, key), message, code="log-range", hint=hint)


def largest_draws(draft: Draft) -> Iterator[Problem]:
    """Drawn numbers are finite, and not too large for their quantum."""
    for leaf, _, form, keys in _distributions(draft):
        if "mu" in form.keys and form.scale is BoundKind.LINEAR:
            largest = abs(keys.get("mu", 0)) + FARTHEST_SIGMAS * keys.get("sigma", 1)
        else:
            largest = max(abs(keys.get(key) or 0) for key in ("min", "max"))
        if math.isinf(largest):
            message = "must keep all draws below 1.8e308"
            yield draft.problem((*leaf.path, "sigma"), message, code="out-of-range")
        quantum = keys.get("q", 1)
        if "q" in form.keys | keys.keys() and largest > quantum * LARGEST_EXACT_INTEGER:
            message = f"must be at least {largest / LARGEST_EXACT_INTEGER:.1g} for numbers of this size, "
            yield draft.problem((*leaf.path, "q"), message + f"got {safe_repr(quantum)}", code="out-of-range")


def is_spacing(draft: Draft, leaf: Leaf, key: str) -> bool:
    """Return whether a parameter has a list of this spacing with three valid numbers."""
    return len([*draft.items(*leaf.path, key)]) == SPACING_LENGTH


def _spacings(draft: Draft) -> Iterator[tuple[Leaf, str]]:
    for leaf in all_leaves(draft):
        yield from ((leaf, key) for key in SPACINGS if is_spacing(draft, leaf, key))


def _distributions(draft: Draft) -> Iterator[tuple[Leaf, str, Form, dict[str, Any]]]:
    for leaf in all_leaves(draft):
        if (named := distribution_of(draft, leaf)) is not None:
            kind, keys = named
            yield leaf, kind, FORMS[kind], keys


def _too_many(draft: Draft, place: DocumentPath, count: ranges.Number) -> Problem:
    message = f"must make at most {ranges.MAX_VALUES} values, got {truncate(str(count))}"
    hint = "a sampling method needs only min and max"
    return draft.problem(place, message, code="too-many-values", hint=hint)


FARTHEST_EXPONENT = 700
"""Exponents of e: above 709 there is no float, and below -708 it loses digits."""

UNLIKELY_EXPONENT = 30
"""e to this power is 10^13: an author who writes 32 to 512 means these numbers, not their exponents."""


def distribution_bounds(draft: Draft) -> Iterator[Problem]:
    """Bounds fit their distribution: integers, more than 0 on a logarithmic scale, exponents that a float can have."""
    for leaf, kind, form, keys in _distributions(draft):
        for key in sorted({"min", "max"} & form.needs & keys.keys(), reverse=True):
            bound = keys[key]
            if form.is_integer and not float(bound).is_integer():
                rule, code = f"must be an integer with distribution: {kind}", "wrong-type"
                hint = "fractions come from distribution: uniform"
            elif form.scale is BoundKind.LOG and bound <= 0:
                rule = "must be more than 0 on a logarithmic scale"
                code = "log-range"
                plain = kind.removesuffix("_values")
                hint = (
                    f"exponents of e are the bounds of distribution: {plain}" if bound else "for example 1e-6"
                )
            elif form.scale is BoundKind.EXPONENTS and abs(bound) > FARTHEST_EXPONENT:
                rule = f"must be an exponent of e from -{FARTHEST_EXPONENT} to {FARTHEST_EXPONENT}"
                code = "exponent-range"
                hint = f"distribution: {kind}_values takes the values themselves"
            else:
                continue
            yield draft.problem((*leaf.path, key), f"{rule}, got {safe_repr(bound)}", code=code, hint=hint)


def _exponents(draft: Draft) -> Iterator[tuple[Leaf, str, Form, tuple[float, float]]]:
    """Yield each distribution between two exponents that a float can have, the first of them smaller."""
    for leaf, kind, form, keys in _distributions(draft):
        low, high = keys.get("min", math.inf), keys.get("max", -math.inf)
        if (
            form.scale is BoundKind.EXPONENTS
            and "min" in form.needs
            and -FARTHEST_EXPONENT <= low < high <= FARTHEST_EXPONENT
        ):
            yield leaf, kind, form, (low, high)


def distinct_exponents(draft: Draft) -> Iterator[Problem]:
    """Two exponents give different numbers after rounding."""
    for leaf, kind, form, (low, high) in _exponents(draft):
        first, last = form.ends(low, high)
        if first >= last:
            message = (
                f"must be so far above min ({safe_repr(low)}) that e to both powers differs, "
                f"got {safe_repr(high)}"
            )
            hint = f"both are {safe_repr(first)}; distribution: {kind}_values takes the values themselves"
            yield draft.problem((*leaf.path, "max"), message, code="exponent-range", hint=hint)


def log_normal_exponents(draft: Draft) -> Iterator[Problem]:
    """Exponents drawn by a log-normal distribution are small enough for a float."""
    for leaf, _, form, keys in _distributions(draft):
        if "mu" not in form.keys or form.scale is not BoundKind.EXPONENTS:
            continue
        mu, sigma = keys.get("mu", 0), keys.get("sigma", 1)
        if abs(mu) + FARTHEST_SIGMAS * sigma > FARTHEST_EXPONENT:
            message = "must be the mean and the spread of natural logarithms, with "
            message += f"|mu| + {FARTHEST_SIGMAS} * sigma at most {FARTHEST_EXPONENT}, "
            message += f"got mu {safe_repr(mu)} and sigma {safe_repr(sigma)}"
            yield draft.problem(leaf.path, message, code="exponent-range", at_key=True)


def exponents_like_values(draft: Draft) -> Iterator[Problem]:
    """Warn of exponents that look like values."""
    for leaf, kind, form, (low, high) in _exponents(draft):
        if low >= 0 and ((low > 0 and high <= 1) or high > UNLIKELY_EXPONENT):
            first, last = (f"{end:.6g}" for end in form.ends(low, high))
            message = f"{safe_repr(low)} and {safe_repr(high)} are natural-log exponents: values from {first} to {last}"
            place = (*leaf.path, "distribution")
            yield draft.warning(place, message, code="exponent-range", hint=f"did you mean {kind}_values?")


def _fractions_between_integers(
    draft: Draft, leaf: Leaf, form: str, made: tuple[dict[str, Any], Sequence[ranges.Number]]
) -> Iterator[Problem]:
    """Refuse a count between two integers that makes other numbers, which a program may refuse."""
    keys, points = made
    low, high = keys.get("min"), keys.get("max")
    if form != "count" or not (isinstance(low, int) and isinstance(high, int)):
        return
    scale = FORMS[distribution_name(keys)].scale
    if scale is BoundKind.EXPONENTS:
        return
    fraction = next((point for point in points if not float(point).is_integer()), None)
    if fraction is not None:
        message = f"must make integers between the integers {low} and {high}, got {safe_repr(fraction)}"
        hint = f"for real numbers, write min: {safe_repr(float(low))}; for integers, "
        if scale is BoundKind.LOG:
            hint += "list them in values"
        else:
            counts = [*range(len(points) - 1, 1, -1)], range(len(points) + 1, ranges.MAX_VALUES + 1)
            near = (next((count for count in each if (high - low) % (count - 1) == 0), 0) for each in counts)
            hint += f"count: {' or '.join(str(count) for count in near if count)}, or list them in values"
        yield draft.problem((*leaf.path, "count"), message, code="range-count", hint=hint)


COUNTED_FORMS = frozenset({"count", *ranges.Spacing})


def distinct_points(draft: Draft) -> Iterator[Problem]:
    """Refuse points that are equal or out of order, in a draft without other problems."""
    for leaf in all_leaves(draft):
        keys = draft.get(*leaf.path, kind=dict) or {}
        form = next((key for key in keys if key in COUNTED_FORMS), None)
        if form is not None:
            yield from _indistinct_points(draft, leaf, form, keys)
        elif "step" in keys and not ranges.is_steppable(keys["min"], keys["max"], keys["step"]):
            found = f"{safe_repr(keys['step'])} from {safe_repr(keys['min'])}"
            message = f"must make numbers that a float can hold, got {found}"
            hint = "up to 15 digits are safe: take a larger step, or fewer digits"
            yield draft.problem((*leaf.path, "step"), message, code="range-count", hint=hint)


def _indistinct_points(draft: Draft, leaf: Leaf, form: str, keys: dict[str, Any]) -> Iterator[Problem]:
    points: Any = build_domain(keys).listed
    if ranges.is_distinct(points):
        yield from _fractions_between_integers(draft, leaf, form, (keys, points))
        return
    different = len(set(points))
    hint = "points are rounded to 10 significant digits: take fewer, or ends further apart"
    if different < len(points):
        message = f"must make different values, got {different} for {len(points)} points"
    else:
        message = "must make values in order, got some that rounding put before their neighbours"
    yield draft.problem((*leaf.path, form), message, code="range-count", hint=hint)
