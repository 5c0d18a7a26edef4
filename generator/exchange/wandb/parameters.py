"""The parameters of a W&B sweep as parameters of ours: the same words, less what no spec may say."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from generator.exchange.loss import ForeignError, Loss
from generator.formats.foreign_yaml import number
from generator.structs.values import canonical_json

NUMBERS = ("min", "max", "mu", "sigma", "q", "a", "b")
KEYS = ("distribution", "value", "values", "probabilities", *NUMBERS, "parameters")
"""In the order to be written."""

ROUNDED = ("q_uniform", "q_log_uniform", "q_log_uniform_values")
"""No set: a stranger's distribution may be a list, which none can be asked for."""


@dataclass(slots=True)
class Parameters:
    """Translates parameters, and collects what is said otherwise on the way."""

    is_grid: bool
    losses: list[Loss] = field(default_factory=list)

    def translate(self, data: object, place: str = "parameters") -> dict[str, Any]:
        """Make the value of our key `parameters`. Raises ForeignError where W&B would see no parameter."""
        if not isinstance(data, dict) or not data:
            raise ForeignError(f"{place} must be a mapping of at least one parameter")
        return {name: self._parameter(keys, f"{place}.{name}") for name, keys in data.items()}

    def _parameter(self, data: object, place: str) -> dict[str, Any]:
        if not isinstance(data, dict):
            hint = "W&B wants {value: …}, {values: […]} or {min: …, max: …}"
            raise ForeignError(f"{place} must be a mapping, got {data!r}", hint=hint)
        for key in sorted(data.keys() - set(KEYS)):
            self._lose(f"{place}.{key}", "is no key of W&B's parameters; left out")
        found = dict(self._keys(data, place))
        if "parameters" in found:
            why = "W&B hands a mapping over; a trial gets each value by its full name, as in --a.b=1"
            self._lose(place, why)
        _say_uniform(found)
        if not self.is_grid and found.get("distribution") in ROUNDED:
            why = "where rounding to q would leave [min, max], W&B leaves it; here the value stays inside"
            self._lose(place, why)
        return found

    def _keys(self, data: Mapping[str, Any], place: str) -> Iterator[tuple[str, Any]]:
        for key in KEYS:
            if key not in data or (key == "probabilities" and "values" in data):
                continue
            here, value = f"{place}.{key}", data[key]
            if key == "parameters":
                yield key, self.translate(value, here)
            elif key == "values" and isinstance(value, list):
                yield from self._values(value, data.get("probabilities"), place)
            elif key == "value":
                yield key, self._value(self._numeric(value, here), here)
            elif key in NUMBERS:
                yield key, self._numeric(value, here)
            else:
                yield key, value

    def _values(self, values: list[Any], weights: object, place: str) -> Iterator[tuple[str, Any]]:
        """Give the values, each once: a repeated one is twice as likely to W&B."""
        here = f"{place}.values"
        numeric = all(number(value) is not None for value in values)
        plain = [self._value(self._numeric(value, here) if numeric else value, here) for value in values]
        names = [canonical_json(value) for value in plain]
        kept = dict(zip(reversed(names), reversed(plain), strict=True))
        distinct = {name: kept[name] for name in names}
        yield "values", list(distinct.values())
        shares = _shares(weights, names)
        if shares is None:
            if weights is not None:
                yield "probabilities", weights
            return
        if len(distinct) < len(names):
            why = "repeats a value, which makes it likelier to be drawn; it stands once"
            self._lose(here, why if self.is_grid else f"{why}, with its share as probability")
        if weights is not None or (len(distinct) < len(names) and not self.is_grid):
            yield "probabilities", [_tidy(math.fsum(shares[name])) for name in distinct]

    def _value(self, value: Any, place: str) -> Any:
        """Turn what is neither a scalar nor a list of scalars into text."""
        items = value if isinstance(value, list) else [value]
        if not any(isinstance(item, dict | list) for item in items):
            return value
        text = canonical_json(value)
        self._lose(place, f"a value is a scalar or a list of scalars; written as the JSON text {text}")
        return text

    def _numeric(self, value: Any, place: str) -> Any:
        """Take `1e-3` for the number that its author meant."""
        found = number(value) if isinstance(value, str) else None
        if found is None:
            return value
        self._lose(f"{place}: {value}", f"is text to W&B, whose YAML wants a point; written as {found!r}")
        return found

    def _lose(self, what: str, why: str) -> None:
        self.losses.append(Loss(what, why))


def _say_uniform(found: dict[str, Any]) -> None:
    """Two whole bounds written with a point are `uniform` to W&B; our numbers know no such difference."""
    bounds = [found.get("min"), found.get("max")]
    if "distribution" in found or not any(isinstance(bound, float) for bound in bounds):
        return
    if all(isinstance(bound, int | float) and bound == int(bound) for bound in bounds):
        found["distribution"] = "uniform"


def _shares(weights: object, names: Sequence[str]) -> dict[str, list[float]] | None:
    """Collect the probabilities of each value; None if there is not one for each."""
    if weights is None:
        weights = [1 / max(1, len(names))] * len(names)
    if not isinstance(weights, list) or len(weights) != len(names):
        return None
    shares: dict[str, list[float]] = {}
    for name, weight in zip(names, weights, strict=True):
        share = number(weight)
        if share is None:
            return None
        shares.setdefault(name, []).append(share)
    return shares


def _tidy(share: float) -> float | int:
    """Drop the noise that adding up decimals leaves."""
    return int(share) if share.is_integer() else float(f"{share:.15g}")
