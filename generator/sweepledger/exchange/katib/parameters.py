"""Katib's parameters and feasible spaces, in both directions; every bound is text."""

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sweepledger.exchange.conversion import LossList
from sweepledger.exchange.fields import Fields, exact_number
from sweepledger.exchange.spec_parts import listed_keys, range_keys
from sweepledger.formats.foreign_yaml import ForeignError
from sweepledger.structs.domain import Bell, Domain, NumberRange, StepRange
from sweepledger.structs.values import Value, canonical

SIGMAS = 6
"""Standard deviations between the bounds of Katib's normal distributions."""

STEPS_FROM_MIN = (
    "values start at min here; Katib's {algorithm} search rounds to multiples of the step and draws both ends "
    "half as often"
)
UNUSED_STEP = "Katib's {algorithm} does not use the step; here values are min plus multiples of it"
STEP_NOTES = {
    "random": STEPS_FROM_MIN,
    "tpe": STEPS_FROM_MIN,
    "bayesianoptimization": UNUSED_STEP,
    "hyperband": UNUSED_STEP,
}
"""What algorithms do with steps; the others add them to min, as a sweep does."""
LOGARITHMIC = "bayesianoptimization"
"""The algorithm that searches floating-point numbers on a logarithmic scale, whatever their distribution."""


def domain_keys(fields: Fields, foreign: str, algorithm: str, losses: LossList) -> dict[str, Any]:
    """Return the keys of a parameter for a spec. Raises ForeignError."""
    kind, space = fields.text("parameterType"), fields.inner("feasibleSpace")
    if kind in {"int", "double"}:
        return _range(space, foreign, algorithm, losses, whole=kind == "int")
    if kind not in {"categorical", "discrete"}:
        raise ForeignError(
            f"{fields.at('parameterType')} must be categorical, discrete, double or int, got {kind!r}"
        )
    values: list[int | float | str] = []
    for item in space.items("list"):
        text = str(item).lower() if isinstance(item, bool) else str(item)
        values.append(text)
        if kind == "discrete":
            with suppress(ForeignError):
                values[-1] = exact_number(text)
    return listed_keys(values, space.at("list"), losses)


def _range(space: Fields, foreign: str, algorithm: str, losses: LossList, *, whole: bool) -> dict[str, Any]:
    low, high, step = (
        None if (text := space.text(key)) is None else exact_number(text, space.at(key))
        for key in ("min", "max", "step")
    )
    if low is None or high is None:
        raise ForeignError(f"{space.path} must have min and max, for {foreign}")
    if whole and not all(float(bound).is_integer() for bound in (low, high, step or 1)):
        raise ForeignError(f"{space.path} must have whole numbers, since {foreign} is an int")
    distribution = space.text("distribution")
    if distribution not in {None, "uniform", "unknown"}:
        if algorithm != "grid":
            return _shaped(space, str(distribution), (low, high, step or (1 if whole else None)), losses)
        losses.add(f"{space.at('distribution')}: {distribution}", "has no effect in a grid")
    keys = range_keys(low, high, is_log=False, is_whole=whole, step=step)
    if (note := STEP_NOTES.get(algorithm)) and "step" in keys:
        losses.add(f"{space.at('step')}: {step}", note.format(algorithm=algorithm))
    if low != high and (last := keys.get("max", low)) != high:
        losses.add(f"{space.at('max')}: {high}", f"the steps from min end at {last}, which is written as max")
    if algorithm == LOGARITHMIC and not whole and low < high:
        why = "Katib searches it on a logarithmic scale with this algorithm; written as uniform"
        losses.add(space.path, why)
    return keys


def _shaped(
    space: Fields, distribution: str, bounds: tuple[float, float, float | None], losses: LossList
) -> dict[str, Any]:
    low, high, step = bounds
    q, rounding = ("", {}) if step is None else ("q_", {"q": step})
    if distribution == "logUniform":
        return {"distribution": f"{q}log_uniform_values", "min": low, "max": high, **rounding}
    if distribution not in {"normal", "logNormal"}:
        raise ForeignError(
            f"{space.at('distribution')} must be one of logNormal, logUniform, normal, uniform, "
            f"got {distribution!r}"
        )
    is_log = distribution == "logNormal"
    if not low < high or (is_log and low <= 0):
        raise ForeignError(
            f"{space.path} must have {'0 < ' if is_log else ''}min < max, got {low} and {high}"
        )
    least, most = Decimal(repr(low)), Decimal(repr(high))
    if is_log:
        mu, sigma = _short((least * most).ln() / 2), _short((most / least).ln() / SIGMAS)
    else:
        mu, sigma = exact_number((least + most) / 2), _short((most - least) / SIGMAS)
    why = "in Katib, min and max are not bounds but three standard deviations from the mean; written as mu and sigma"
    kind = "log_normal" if is_log else "normal"
    losses.add(f"{space.at('distribution')}: {distribution}", why)
    return {"distribution": f"{q}{kind}", "mu": mu, "sigma": sigma, **rounding}


def _short(number: Decimal) -> float:
    """Return a number with 12 digits: further digits of logarithms differ between machines."""
    return float(f"{number:.12g}")


@dataclass(frozen=True, slots=True)
class FeasibleSpace:
    """One of Katib's parameters without its name."""

    kind: str
    feasible: dict[str, Any]
    count: int | None
    """Number of values in a grid; None if it is infinite."""


def feasible_space(name: str, domain: Domain, losses: LossList, *, grid: bool) -> FeasibleSpace | Value:
    """Return a parameter's space; for a single value, that value."""
    if domain.is_constant:
        return domain.listed[0]
    if domain.listed:
        if len(set(domain.chances or ())) > 1:
            losses.add(f"{name}.probabilities", "Katib draws all of its values equally often")
        return listed_space(name, domain.listed, losses)
    shape = domain.shape
    match shape:
        case NumberRange(low, high, is_integer=True):
            return FeasibleSpace("int", {"min": str(low), "max": str(high)}, int(high - low) + 1)
        case NumberRange(step=float()) if grid and isinstance(values := domain.grid_values, StepRange):
            return listed_space(name, [float(values[place]) for place in range(values.count)], losses)
    feasible = _continuous(name, domain, losses)
    if shape is not None and shape.step is not None:
        feasible["step"] = bound_text(shape.step)
    return FeasibleSpace("double", feasible, None)


def _continuous(name: str, domain: Domain, losses: LossList) -> dict[str, Any]:
    match domain.shape:
        case NumberRange(low, high, is_log):
            return _ends(low, high) | ({"distribution": "logUniform"} if is_log else {})
        case Bell(mu, sigma, is_log) as bell:
            low, high = mu - SIGMAS / 2 * sigma, mu + SIGMAS / 2 * sigma
            if is_log:
                # With 10 digits, so that an import and export returns the same bounds.
                low, high = (float(f"{math.exp(exponent):.10g}") for exponent in (low, high))
            if bell.ends:
                losses.add(f"{name}: bounds of the normal distribution", "Katib's has none")
            return _ends(low, high) | {"distribution": "logNormal" if is_log else "normal"}
        case None:
            low, high = domain.ends
            why = f"Katib does not have this distribution; written as uniform from {low:g} to {high:g}"
            losses.add(f"{name}: {domain.keys['distribution'].removeprefix('q_')}", why)
            return _ends(low, high)


def listed_space(name: str, values: Sequence[Value], losses: LossList) -> FeasibleSpace:
    """Return the space of listed values; steps are listed too, because Katib adds them in floating point."""
    texts = list(dict.fromkeys(map(_text, values)))
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    if len(texts) < len(values):
        losses.add(name, "values with the same text, such as 1 and '1', are one value in Katib")
    if not all(isinstance(value, str) for value in values) and not numbers:
        losses.add(name, "values are text in Katib: true, null and lists are written as by ${args}")
    return FeasibleSpace("discrete" if numbers else "categorical", {"list": texts}, len(texts))


def _text(value: Value) -> str:
    return str(canonical(value))  # as `${args}` writes it


def _ends(low: float, high: float) -> dict[str, Any]:
    return {"min": bound_text(low), "max": bound_text(high)}


def bound_text(value: float) -> str:
    """Return a bound with at most 15 digits, without the noise of sums."""
    return _text(float(f"{value:.15g}"))
