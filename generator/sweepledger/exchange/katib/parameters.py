"""Katib's parameters as ours: every bound is text there, and becomes the number that it says."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from generator.exchange.katib.fields import Fields
from generator.exchange.loss import ForeignError, Loss

LONGEST_NAME = 63
SIGMAS = 6
"""Katib's normal distributions have their bounds three standard deviations to each side of the middle."""

MOST_STEPS = 10**9

STEPS_FROM_MIN = (
    "values start at min here; Katib's random search rounds to multiples of the step, and draws both ends "
    "half as often"
)


@dataclass(frozen=True, slots=True)
class Read:
    """A parameter of an Experiment, in our words."""

    foreign: str
    name: str
    domain: dict[str, Any]
    losses: tuple[Loss, ...]

    @property
    def count(self) -> int | None:
        """How many values a grid takes of it; None where there is no number."""
        match self.domain:
            case {"value": _}:
                return 1
            case {"values": values}:
                return len(values)
            case {"min": low, "max": high, "step": step} if step > 0:
                return int((exact(high) - exact(low)) / exact(step)) + 1
            case {"min": int(low), "max": int(high), **rest} if not rest:
                return high - low + 1
            case _:
                return None


def parameters(found: Sequence[Fields], *, draws: bool) -> tuple[Read, ...]:
    """Read all parameters. Raises ForeignError."""
    taken: set[str] = set()
    made = []
    for fields in found:
        foreign = fields.text("name")
        if foreign is None:
            raise ForeignError(f"{fields.path} must have a name")
        name = _name(foreign, taken)
        taken.add(name)
        domain, losses = _domain(fields, foreign, draws=draws)
        said = [] if name == foreign else [Loss(f"{fields.path}.name: {foreign}", f"is called {name} here")]
        made.append(Read(foreign, name, domain, (*said, *losses, *fields.rest())))
    return tuple(made)


def _name(foreign: str, taken: set[str]) -> str:
    """Take the dashes of an option away, and make the rest a name that nothing else has."""
    mended = re.sub(r"[^A-Za-z0-9_.-]", "_", foreign.lstrip("-"))[:LONGEST_NAME]
    if not mended[:1].isalpha():
        mended = f"p{mended}"[:LONGEST_NAME]
    name, number = mended, 2
    while name in taken:
        name, number = f"{mended[: LONGEST_NAME - 4]}_{number}", number + 1
    return name


def _domain(fields: Fields, foreign: str, *, draws: bool) -> tuple[dict[str, Any], list[Loss]]:
    kind, space = fields.text("parameterType"), fields.inner("feasibleSpace")
    match kind:
        case "categorical" | "discrete":
            domain, losses = _values(space, foreign, numbers=kind == "discrete")
        case "int" | "double":
            domain, losses = _range(space, foreign, whole=kind == "int", draws=draws)
        case _:
            raise ForeignError(
                f"{fields.at('parameterType')} must be categorical, discrete, double or int, got {kind!r}"
            )
    return domain, [*losses, *space.rest()]


def _values(space: Fields, foreign: str, *, numbers: bool) -> tuple[dict[str, Any], list[Loss]]:
    texts = [str(item).lower() if isinstance(item, bool) else str(item) for item in space.items("list")]
    if not texts:
        raise ForeignError(f"{space.at('list')} must have at least one value")
    values: list[Any] = list(dict.fromkeys(_discrete(text) if numbers else text for text in texts))
    losses = []
    if len(values) < len(texts):
        losses.append(Loss(f"{space.at('list')}", f"values of {foreign} that stand there twice are one"))
    return ({"values": values} if len(values) > 1 else {"value": values[0]}), losses


def _discrete(text: str) -> int | float | str:
    try:
        return written(exact(text))
    except ForeignError:
        return text


def _range(space: Fields, foreign: str, *, whole: bool, draws: bool) -> tuple[dict[str, Any], list[Loss]]:
    low, high, step = (_bound(space, key) for key in ("min", "max", "step"))
    if low is None or high is None:
        raise ForeignError(f"{space.path} must have min and max, for {foreign}")
    if whole and any(bound is not None and not _is_whole(bound) for bound in (low, high, step)):
        raise ForeignError(f"{space.path} must have whole numbers, since {foreign} is an int")
    distribution = space.text("distribution")
    if distribution in {None, "uniform", "unknown"} or not draws:
        losses = (
            []
            if draws or distribution in {None, "uniform", "unknown"}
            else [Loss(f"{space.at('distribution')}: {distribution}", "means nothing in a grid")]
        )
        domain, more = _uniform(space, (low, high, step), whole=whole, draws=draws)
        return domain, losses + more
    return _shaped(space, str(distribution), (low, high, step or (Decimal(1) if whole else None)))


def _is_whole(number: Decimal) -> bool:
    """Tell without `% 1`, which Decimal refuses for large numbers."""
    return number == number.to_integral_value()


def _bound(space: Fields, key: str) -> Decimal | None:
    text = space.text(key)
    return None if text is None else exact(text, space.at(key))


def _uniform(
    space: Fields, bounds: tuple[Decimal, Decimal, Decimal | None], *, whole: bool, draws: bool
) -> tuple[dict[str, Any], list[Loss]]:
    low, high, step = bounds
    if low == high:
        return {"value": written(low)}, []
    ends: dict[str, Any] = {"min": written(low), "max": written(high)}
    if step is None or (whole and step == 1):
        # Two whole bounds alone would mean whole numbers.
        plain = not whole and _is_whole(low) and _is_whole(high)
        return ends | ({"distribution": "uniform"} if plain else {}), []
    losses = [Loss(f"{space.at('step')}: {step}", STEPS_FROM_MIN)] if draws else []
    # More steps than a spec may have values: its own rules say so, and Decimal could not divide them.
    if step > 0 and 0 < (high - low) / step < MOST_STEPS and (high - low) % step:
        last = low + (high - low) // step * step
        why = f"the steps from min end at {written(last)}, which stands there as max"
        losses.append(Loss(f"{space.at('max')}: {high}", why))
        ends["max"] = written(last)
        if last == low:
            return {"value": written(low)}, losses
    return {**ends, "step": written(step)}, losses


def _shaped(
    space: Fields, distribution: str, bounds: tuple[Decimal, Decimal, Decimal | None]
) -> tuple[dict[str, Any], list[Loss]]:
    low, high, step = bounds
    q = "" if step is None else "q_"
    rounding = {} if step is None else {"q": written(step)}
    if distribution == "logUniform":
        ends = {"min": written(low), "max": written(high)}
        return {"distribution": f"{q}log_uniform_values", **ends, **rounding}, []
    if distribution not in {"normal", "logNormal"}:
        raise ForeignError(
            f"{space.at('distribution')} must be one of logNormal, logUniform, normal, uniform, "
            f"got {distribution!r}"
        )
    mu, sigma = _middle(space, low, high, logarithms=distribution == "logNormal")
    why = "min and max are no bounds in Katib, but three standard deviations to each side: mu and sigma here"
    kind = "log_normal" if distribution == "logNormal" else "normal"
    loss = Loss(f"{space.at('distribution')}: {distribution}", why)
    return {"distribution": f"{q}{kind}", "mu": mu, "sigma": sigma, **rounding}, [loss]


def _middle(
    space: Fields, low: Decimal, high: Decimal, *, logarithms: bool
) -> tuple[int | float, int | float]:
    if not low < high or (logarithms and low <= 0):
        raise ForeignError(
            f"{space.path} must have {'0 < ' if logarithms else ''}min < max, got {low} and {high}"
        )
    if logarithms:
        return _short(float((low * high).ln()) / 2), _short(float((high / low).ln()) / SIGMAS)
    return written((low + high) / 2), _short(float((high - low) / SIGMAS))


def _short(number: float) -> float:
    """Keep 12 digits: what a logarithm leaves behind them differs between machines."""
    return float(f"{number:.12g}")


def exact(text: object, where: str = "the value") -> Decimal:
    """Read a number as written. Raises ForeignError."""
    try:
        number = Decimal(str(text).strip())
    except InvalidOperation:
        raise ForeignError(f"{where} must be a number, got {str(text)[:60]!r}") from None
    if not number.is_finite() or not math.isfinite(float(number)):
        raise ForeignError(f"{where} must be a finite number, got {str(text)[:60]!r}")
    if number and not float(number):
        raise ForeignError(f"{where} must not be so small that it becomes 0, got {str(text)[:60]!r}")
    return number


def written(number: Decimal) -> int | float:
    """Give the number that a spec holds for it: whole ones without a point."""
    return int(number) if _is_whole(number) and abs(number) <= 2**53 else float(number)


def losses(found: Sequence[Read]) -> Iterator[Loss]:
    """Tell what all parameters lost."""
    for parameter in found:
        yield from parameter.losses
