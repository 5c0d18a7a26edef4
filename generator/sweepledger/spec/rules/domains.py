"""The forms of a parameter: exactly one each, with the keys that belong to it and no others."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from generator.problems import Problem
from generator.reader import shown
from generator.spec.draft import Draft
from generator.spec.nearest import quoted
from generator.spec.rules.sections import Leaf, sound, written

LISTS = ("linspace", "logspace", "geomspace")
BOUNDS = frozenset({"min", "max"})
NO_FORM = frozenset({"when", "q", "mu", "sigma", "a", "b", "step", "count", "probabilities"})
"""Keys that only say more about a form."""


@dataclass(frozen=True, slots=True)
class Form:
    """What a form of parameter needs and what else it may have."""

    needs: frozenset[str]
    may_have: frozenset[str] = frozenset()

    @property
    def keys(self) -> frozenset[str]:
        """Every key of the form but `when`, which all have."""
        return self.needs | self.may_have


def _form(needs: str = "", may_have: str = "") -> Form:
    return Form(frozenset(needs.split()), frozenset(may_have.split()))


DISTRIBUTIONS = {
    "constant": _form("value"),
    "categorical": _form("values", "probabilities"),
    "categorical_w_probabilities": _form("values probabilities"),
    "uniform": _form("min max", "count"),
    "int_uniform": _form("min max"),
    "q_uniform": _form("min max", "q"),
    "log_uniform": _form("min max", "count"),
    "log_uniform_values": _form("min max", "count"),
    "q_log_uniform": _form("min max", "q"),
    "q_log_uniform_values": _form("min max", "q"),
    "inv_log_uniform": _form("min max", "count"),
    "inv_log_uniform_values": _form("min max", "count"),
    "normal": _form("", "mu sigma"),
    "q_normal": _form("", "mu sigma q"),
    "log_normal": _form("", "mu sigma"),
    "q_log_normal": _form("", "mu sigma q"),
    "truncated_normal": _form("", "mu sigma min max"),
    "beta": _form("", "a b"),
    "q_beta": _form("", "a b q"),
}
HINTS = {
    "probabilities": "probabilities belong to values",
    "mu": "mu belongs to distribution: normal, log_normal or truncated_normal",
    "sigma": "sigma belongs to distribution: normal, log_normal or truncated_normal",
}
"""What is meant by a stray key, whatever the form."""

RANGE = _form("min max", "step count")


def forms(draft: Draft) -> Iterator[Problem]:
    """A parameter is written in one form, never in none or in two."""
    for leaf in written(draft):
        keys = draft.get(*leaf.path, kind=dict)
        if keys is None:
            continue
        found = _forms(keys)
        if len(found) == 1 or (not found and not keys.keys() <= NO_FORM):
            continue  # an unknown key is likely to be the form, misspelt
        got = " and ".join(found) or "none of them"
        message = f"must have one of value, values, min and max, distribution or a list, got {got}"
        hint = _one_form_hint(keys, found)
        yield draft.problem(leaf.path, message, code="parameter-domain", hint=hint, at_key=True)


def keys(draft: Draft) -> Iterator[Problem]:
    """Each form has its own keys: a stray one would say something that does not happen."""
    for leaf in written(draft):
        mapping = draft.get(*leaf.path, kind=dict) or {}
        name, form = _form_of(draft, leaf, mapping)
        known = {key for each in DISTRIBUTIONS.values() for key in each.keys} | NO_FORM
        if form is None:
            continue
        for key in mapping:
            if key not in known or key in form.keys | {"when"}:
                continue
            message = f"must not be given with {name}, got {key}: {shown(mapping[key])}"
            hint = _stray_key_hint(key, name, form)
            yield draft.problem((*leaf.path, key), message, code="parameter-key", hint=hint, at_key=True)
        if {"step", "count"} <= mapping.keys() and form is RANGE:
            place = (*leaf.path, "count")
            message, hint = "must not be given with step, got both", "step says the distance, count how many"
            yield draft.problem(place, message, code="parameter-key", hint=hint, at_key=True)


def missing(draft: Draft) -> Iterator[Problem]:
    """A form is nothing without the keys it needs."""
    for leaf in written(draft):
        mapping = draft.get(*leaf.path, kind=dict) or {}
        name, form = _form_of(draft, leaf, mapping)
        # Values beside a distribution of numbers are one slip, which is said of the values.
        needs = form.needs if form and not {"value", "values"} & mapping.keys() - form.needs else frozenset()
        for key in sorted(needs - mapping.keys()):
            beside = ", ".join(sorted(needs & mapping.keys()))
            message = f"must be given beside {beside}" if form is RANGE else f"must be given with {name}"
            yield draft.problem((*leaf.path, key), message, code="missing-key", at_key=True)
        if name == "distribution: truncated_normal" and not BOUNDS & mapping.keys():
            message = f"must have min, max or both with {name}"
            hint = "without bounds it is distribution: normal"
            yield draft.problem(leaf.path, message, code="missing-key", hint=hint, at_key=True)


def range_of(draft: Draft, leaf: Leaf) -> tuple[str, dict[str, Any]] | None:
    """Give the distribution and the sound keys of a parameter with numeric bounds; None if it has none."""
    mapping = sound(draft, leaf)
    written_kind = (draft.get(*leaf.path, kind=dict) or {}).get("distribution")
    kind = mapping.get("distribution")
    if kind is None and written_kind is None and mapping.keys() >= BOUNDS and len(_forms(mapping)) == 1:
        whole = isinstance(mapping["min"], int) and isinstance(mapping["max"], int)  # 0.0 means real numbers
        return ("int_uniform" if whole else "uniform"), mapping
    return (kind, mapping) if kind in DISTRIBUTIONS else None


def _forms(mapping: dict[str, Any]) -> list[str]:
    found = [key for key in LISTS if key in mapping]
    if "distribution" in mapping:
        return ["distribution", *found]
    found += [key for key in ("value", "values") if key in mapping]
    return [*found, "min and max"] if BOUNDS & mapping.keys() else found


def _form_of(draft: Draft, leaf: Leaf, mapping: dict[str, Any]) -> tuple[str, Form | None]:
    """Name a parameter's one form; None where it is not clear, which is said elsewhere."""
    match _forms(mapping):
        case ["distribution"]:
            kind = draft.get(*leaf.path, "distribution", kind=str)
            return f"distribution: {kind}", DISTRIBUTIONS.get(kind or "")
        case ["values"]:
            return "values", DISTRIBUTIONS["categorical"]
        case ["value"]:
            return "value", DISTRIBUTIONS["constant"]
        case ["min and max"]:
            return "min and max", RANGE
        case [name]:
            return name, _form(name)
        case _:
            return "", None


def _one_form_hint(mapping: dict[str, Any], found: list[str]) -> str:
    if found == ["value", "values"]:
        return "value is for every trial, values are tried in turn"
    if "values" in found and "min and max" in found:
        return "values are tried as they stand; min and max need none"
    if {"mu", "sigma"} & mapping.keys():
        return "mu and sigma belong to distribution: normal, log_normal or truncated_normal"
    return "for example {values: [0.01, 0.1]} or {min: 0.01, max: 0.1}"


def _stray_key_hint(key: str, name: str, form: Form) -> str:
    quantized = f"q_{name.removeprefix('distribution: ')}"
    match key:
        case "min" | "max" if name == "distribution: normal":
            return "distribution: truncated_normal has bounds"
        case "step" if form.keys >= BOUNDS:
            return "step is for min and max without a distribution; with q_uniform it is called q"
        case "q" if quantized in DISTRIBUTIONS:
            return f"distribution: {quantized} rounds to multiples of q"
        case "value" | "values" if form.keys >= BOUNDS:
            return f"{key} are tried as they stand: delete distribution, or write min and max instead"
        case "q" if form is RANGE:
            return "distribution: q_uniform rounds to multiples of q; for a grid there is step"
        case _:
            nearest = f"keys of {name}: {quoted(form.keys)}" if form.keys - {name} else "delete the key"
            return HINTS.get(key, nearest)
