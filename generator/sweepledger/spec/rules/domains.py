"""The domain of a parameter as written: one form with its keys, listed values, probabilities."""

import math
from collections.abc import Iterator
from typing import Any

from sweepledger.distributions import FORMS, RANGE, ROUNDED, SPACINGS, UNNAMED, implied_name
from sweepledger.distributions.form import PROBABILITY_SLACK, Form
from sweepledger.problems import Problem
from sweepledger.reader import DocumentPath, format_path, safe_repr, truncate
from sweepledger.reader.scalars import describe_split
from sweepledger.spec.draft import Draft
from sweepledger.spec.sections import Leaf, all_leaves, search_section, sound_keys
from sweepledger.spec.suggestions import quoted_names
from sweepledger.structs.values import canonical_json

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
                message = (
                    f"must differ from {format_path(path[leaf.end :])} ({quote(other)}), got {quote(value)}"
                )
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
        values, chances = keys.get("values"), _numbers(draft, leaf)
        if not isinstance(values, list) or chances is None:
            continue
        place = (*leaf.path, "probabilities")
        if len(chances) != len(values):
            message = f"must have as many entries as values ({len(values)}), got {len(chances)}"
            yield draft.problem(place, message, code="probabilities")
            continue
        total = math.fsum(chances)
        if abs(total - 1) > PROBABILITY_SLACK:
            message = f"must sum to 1, got {safe_repr(float(f'{total:.10g}'))}"
            yield draft.problem(place, message, code="probabilities", hint=_proportions_hint(chances, total))


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


def _numbers(draft: Draft, leaf: Leaf) -> list[float] | None:
    place = (*leaf.path, "probabilities")
    items = draft.get(*place, kind=list)
    return None if _broken_inside(draft, place) else items


def _broken_inside(draft: Draft, place: DocumentPath) -> bool:
    return any(broken[: len(place)] == place for broken in draft.broken)


def _proportions_hint(chances: list[float], total: float) -> str | None:
    if total <= 0:
        return None
    shares = [float(f"{chance / total:.10g}") for chance in chances]
    return f"in the same proportions: {truncate(repr(shares))}"
