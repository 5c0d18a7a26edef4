"""What one parameter may be, out of the keys a person wrote. W&B's names and meanings become ours here."""

from collections.abc import Mapping
from typing import Any

from generator.spec.ranges import Number, Spacing, exponential, exponentially_spaced, spaced, stepped
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
from generator.structs.values import Value

Written = Mapping[str, Any]

QUANTIZED = "q_"


def domain(written: Written) -> Domain:  # noqa: PLR0911 - one case a form
    """Give the domain of a parameter without problems."""
    for spacing in Spacing:
        if spacing in written:
            start, stop, count = written[spacing]
            return Choice(spaced(spacing, start, stop, int(count)))
    kind = distribution(written)
    if "step" in written:
        return Choice(stepped(written["min"], written["max"], written["step"]))
    if "count" in written:
        return Choice(_points(kind, written["min"], written["max"], int(written["count"])))
    match kind:
        case "constant":
            return Constant(value(written["value"]))
        case "categorical" | "categorical_w_probabilities":
            return _choice(written)
        case "int_uniform":
            return IntUniform(int(written["min"]), int(written["max"]))
        case _ if kind.startswith(QUANTIZED):
            return Quantized(_continuous(kind.removeprefix(QUANTIZED), written), float(written.get("q", 1)))
        case _:
            return _continuous(kind, written)


def distribution(written: Written) -> str:
    """Name the distribution of a parameter, given or not: two integer bounds mean integers, as in W&B.

    0.0 is no integer here: whoever writes it means real numbers.
    """
    if "distribution" in written:
        return str(written["distribution"])
    if "value" in written:
        return "constant"
    if "values" in written:
        return "categorical"
    bounds = (written["min"], written["max"])
    return "int_uniform" if all(isinstance(bound, int) for bound in bounds) else "uniform"


def value(data: Any) -> Value:
    """Give a value that nobody can change."""
    given: Value = tuple(data) if isinstance(data, list) else data
    return given


def _choice(written: Written) -> Choice:
    probabilities = written.get("probabilities")
    return Choice(
        tuple(value(item) for item in written["values"]),
        None if probabilities is None else tuple(float(share) for share in probabilities),
    )


def _points(kind: str, low: Number, high: Number, count: int) -> tuple[Value, ...]:
    match kind:
        case "log_uniform_values" | "inv_log_uniform_values":
            return spaced(Spacing.GEOMETRIC, low, high, count)
        case "log_uniform":
            return exponentially_spaced(low, high, count)
        case "inv_log_uniform":
            return exponentially_spaced(-high, -low, count)
        case _:
            return spaced(Spacing.LINEAR, low, high, count)


def _continuous(kind: str, written: Written) -> Continuous:  # noqa: PLR0911 - one case a kind
    mu, sigma = float(written.get("mu", 0)), float(written.get("sigma", 1))
    match kind, written:
        case "normal", _:
            return Normal(mu, sigma)
        case "truncated_normal", _:
            return Normal(mu, sigma, _bound(written, "min"), _bound(written, "max"))
        case "log_normal", _:
            return LogNormal(mu, sigma)
        case "beta", _:
            return Beta(float(written.get("a", 1)), float(written.get("b", 1)))
        case "uniform", {"min": low, "max": high}:
            return Uniform(float(low), float(high))
        case "log_uniform_values" | "inv_log_uniform_values", {"min": low, "max": high}:
            return LogUniform(float(low), float(high))
        case "log_uniform", {"min": low, "max": high}:
            return LogUniform(exponential(low), exponential(high))
        case "inv_log_uniform", {"min": low, "max": high}:
            return LogUniform(exponential(-high), exponential(-low))
        case _:
            raise AssertionError(f"the rules let through {kind} with the keys {sorted(written)}")


def _bound(written: Written, key: str) -> float | None:
    return float(written[key]) if key in written else None
