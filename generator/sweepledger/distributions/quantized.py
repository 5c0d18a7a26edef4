"""A continuous distribution, rounded to multiples of a number."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from msgspec import structs

from sweepledger.distributions.continuous import Continuous
from sweepledger.distributions.form import Form, Keys
from sweepledger.distributions.rounding import quantized_quantile
from sweepledger.structs import domain
from sweepledger.structs.values import Value, is_number

PREFIX = "q_"
"""Of the names of its forms."""


@dataclass(frozen=True, slots=True)
class Quantized(domain.Domain):
    """A continuous domain rounded to multiples of q, within its bounds if it has any."""

    of: Continuous
    q: float

    @property
    def shape(self) -> domain.NumberRange | domain.Bell | None:
        return None if self.of.shape is None else structs.replace(self.of.shape, step=self.q)

    @property
    def ends(self) -> tuple[float, ...]:
        return self.of.ends

    @property
    def is_whole(self) -> bool:
        return float(self.q).is_integer()

    @property
    def grid_values(self) -> domain.GridValues | None:
        match self.of.shape:
            case domain.NumberRange(low, high, is_log=False):
                return domain.StepRange.between(low, high, self.q)
            case _:
                return None

    @property
    def axis(self) -> domain.Axis:
        numbers = self._multiples
        return domain.UnitInterval() if numbers is None else domain.Ordinal(len(numbers))

    @property
    def _multiples(self) -> range | None:
        match self.of.shape:
            case domain.NumberRange(low, high, is_log=False) if round(low / self.q) < round(high / self.q):
                return range(round(low / self.q), round(high / self.q) + 1)
            case _:
                return None

    @property
    def draw_steps(self) -> int:
        return self.of.quantized_steps(self.q)

    @property
    def text(self) -> str:
        return f"{self.of.text}, by {domain.number_text(self.q)}"

    @property
    def keys(self) -> dict[str, Any]:
        keys = self.of.keys
        return {**keys, "distribution": f"{PREFIX}{keys['distribution']}", "q": self.q}

    def quantile(self) -> domain.Quantile:
        """Round the quantile function."""
        return quantized_quantile(self.of.unrounded(), self.q)

    def coordinate(self) -> domain.CoordinateOf:
        """Return the share of the distribution below a number."""
        return self.of.coordinate()

    def codec(self) -> domain.Codec:
        """Number the multiples if all are equally likely, so that each index stands for one value."""
        numbers = self._multiples
        if numbers is None:
            return domain.Domain.codec(self)
        quantile, q, (low, high) = self.quantile(), self.q, self.of.support

        def decode(index: float) -> Value:
            # Through the quantile function, so that proposals and draws have the same values.
            fraction = ((numbers.start + int(index)) * q - low) / (high - low)
            return quantile(min(max(fraction, 0.0), domain.LARGEST_FRACTION))

        def encode(value: Value) -> int | None:
            if not is_number(value) or not low <= value <= high:
                return None
            return min(max(round(value / q) - numbers.start, 0), len(numbers) - 1)

        return decode, encode

    def narrowness(self) -> tuple[str, str] | None:
        """Return a requirement if only one multiple can be drawn."""
        first, last = map(self.quantile(), (0.0, domain.LARGEST_FRACTION)) if self.of.is_exact else (0, 1)
        if first != last:
            return None
        hint = "lower q, widen the range, or write one value as value"
        return f"several multiples of q ({self.q:g}), got {first!r} alone", hint


def with_rounded(forms: Mapping[str, Form]) -> dict[str, Form]:
    """Return forms of continuous distributions together with their rounded forms."""
    return {**forms, **{f"{PREFIX}{name}": _quantized(form) for name, form in forms.items()}}


def _quantized(form: Form) -> Form:
    def make(keys: Keys) -> Quantized:
        of = form.make(keys)
        assert isinstance(of, Continuous), f"{of!r} is not continuous"
        return Quantized(of, float(keys.get("q", 1)))

    return replace(form, optional=f"{form.optional} q".removeprefix("count "), make=make)
