"""Our domains as Katib's feasible spaces; everything in them is text, written as a trial would get it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, assert_never

from generator.exchange.loss import Loss
from generator.structs.domain import (
    Beta,
    Choice,
    Constant,
    Continuous,
    Domain,
    IntUniform,
    LogNormal,
    LogUniform,
    Normal,
    Quantized,
    Uniform,
)
from generator.structs.values import Value, canonical

HALF_WIDTH = 3
"""Standard deviations from the middle of Katib's normal distributions to their bounds."""


@dataclass(frozen=True, slots=True)
class Space:
    """One of Katib's parameters, less its name."""

    kind: str
    feasible: dict[str, Any]
    count: int | None
    """Values in a grid; None where there is no number."""
    losses: tuple[Loss, ...] = ()


def text(value: Value) -> str:
    """Write a value as `${args}` does."""
    return str(canonical(value))


def space(name: str, domain: Domain, *, grid: bool) -> Space | Value:
    """Give a parameter's space; of a single value, that value itself."""
    match domain:
        case Constant(value):
            return value
        case Choice(values, probabilities):
            even = len(set(probabilities or ())) < 2  # noqa: PLR2004 - none, or all alike
            why = "Katib draws each of its values alike often"
            return listed(name, values, () if even else (Loss(f"{name}.probabilities", why),))
        case IntUniform(low, high):
            return Space("int", {"min": str(low), "max": str(high)}, high - low + 1)
        case Quantized(Uniform(low, high), q) if grid:
            return listed(name, _multiples(low, high, q))
        case Quantized(of, q):
            inner = _continuous(name, of)
            return Space("double", inner.feasible | {"step": number(q)}, None, inner.losses)
        case _:
            return _continuous(name, domain)


def listed(name: str, values: Sequence[Value], losses: tuple[Loss, ...] = ()) -> Space:
    """Give the space of values written out; steps too, since Katib sums its ranges up in floats."""
    texts = list(dict.fromkeys(map(text, values)))
    numbers = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    if len(texts) < len(values):
        losses = (*losses, Loss(name, "values that are one text, such as 1 and '1', are one value in Katib"))
    if not all(isinstance(value, str) for value in values) and not numbers:
        why = "values are text in Katib: true, null and lists stand there as ${args} writes them"
        losses = (*losses, Loss(name, why))
    return Space("discrete" if numbers else "categorical", {"list": texts}, len(texts), losses)


def _multiples(low: float, high: float, q: float) -> tuple[Value, ...]:
    first, last, step = (Decimal(repr(bound)) for bound in (low, high, q))
    count = math.ceil((last - first) / step)
    return tuple(float(first + step * place) for place in range(count))


def _continuous(name: str, domain: Continuous) -> Space:
    match domain:
        case Uniform(low, high):
            return Space("double", _ends(low, high), None)
        case LogUniform(low, high):
            return Space("double", _ends(low, high) | {"distribution": "logUniform"}, None)
        case Normal(mu, sigma, low, high):
            ends = _ends(mu - HALF_WIDTH * sigma, mu + HALF_WIDTH * sigma)
            cut = low is not None or high is not None
            losses = (Loss(f"{name}: bounds of the normal distribution", "Katib's has none"),) if cut else ()
            return Space("double", ends | {"distribution": "normal"}, None, losses)
        case LogNormal(mu, sigma):
            ends = _ends(_power(mu - HALF_WIDTH * sigma), _power(mu + HALF_WIDTH * sigma))
            return Space("double", ends | {"distribution": "logNormal"}, None)
        case Beta():
            loss = Loss(f"{name}: beta", "Katib has no such distribution; uniform from 0 to 1 there")
            return Space("double", _ends(0, 1), None, (loss,))
        case _:
            assert_never(domain)


def _ends(low: float, high: float) -> dict[str, Any]:
    return {"min": number(low), "max": number(high)}


def _power(exponent: float) -> float:
    """Keep 10 digits: mu and sigma come from logarithms, so the bounds they came from are met again."""
    return float(f"{math.exp(exponent):.10g}")


def number(value: float) -> str:
    """Write a bound with at most 15 digits, so that no noise of a sum is in it."""
    short = float(f"{value:.15g}")
    return text(short)


def seen(name: str, assignments: Sequence[Mapping[str, Value]]) -> Space | Value:
    """Give the space of the values that a parameter has anywhere; of one value, that value itself."""
    values: dict[str, Value] = {}
    for assignment in assignments:
        if name in assignment:
            values.setdefault(text(assignment[name]), assignment[name])
    found = list(values.values())
    return found[0] if len(found) == 1 else listed(name, found)
