"""One of several values, listed or spaced between two ends."""

import math
from bisect import bisect_right
from collections.abc import Hashable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, ClassVar

from sweepledger.distributions.form import Form, Keys
from sweepledger.distributions.ranges import Spacing, spaced
from sweepledger.distributions.rounding import DRAWN_INDEX_STEPS, index_at
from sweepledger.structs import domain
from sweepledger.structs.values import Value, frozen_value, identity


@dataclass(frozen=True, slots=True)
class Choice(domain.Domain):
    """One of several values. A range with a step or a count is expanded to a choice."""

    listed: tuple[Value, ...]
    chances: tuple[float, ...] | None = None
    """One per value, with the sum 1; None: all equal."""
    draw_steps: ClassVar[int] = DRAWN_INDEX_STEPS

    @property
    def axis(self) -> domain.Axis:
        has_order = self.chances is None and domain.is_ordered(self.listed)
        return domain.Ordinal(len(self.listed)) if has_order else domain.Categorical(len(self.listed))

    @property
    def keys(self) -> dict[str, Any]:
        listed = {"values": list(self.listed)}
        return listed if self.chances is None else listed | {"probabilities": list(self.chances)}

    def quantile(self) -> domain.Quantile:
        """Divide the interval among the values, by their probabilities."""
        values = self.listed
        if self.chances is None:
            return lambda u: values[index_at(u, len(values))]
        possible = [(value, part) for value, part in zip(values, self.chances, strict=True) if part > 0]
        # Without the last end: if the parts add up to a little less than 1, the last value gets the rest.
        inner = list(accumulate(part for _, part in possible))[:-1]
        return lambda u: possible[bisect_right(inner, u)][0]

    def coordinate(self) -> domain.CoordinateOf:
        """Return the middle of the part of each value."""
        parts = self.chances or [1 / len(self.listed)] * len(self.listed)
        middles: dict[Hashable, float] = {}
        for index, value in enumerate(self.listed):
            middles.setdefault(identity(value), math.fsum(parts[:index]) + parts[index] / 2)
        return lambda value: middles.get(identity(value))

    def codec(self) -> domain.Codec:
        """Number the values."""
        values, indices = self.listed, {identity(value): at for at, value in enumerate(self.listed)}
        return lambda index: values[int(index)], lambda value: indices.get(identity(value))


class Rows(Choice):
    """The rows of zipped parameters; a trial has one row."""

    __slots__ = ()

    @property
    def axis(self) -> domain.Axis:
        """Rows are ordered if the values of every parameter are ordered."""
        has_order = all(map(domain.is_ordered, zip(*self.listed, strict=True)))
        return domain.Ordinal(len(self.listed)) if has_order else domain.Categorical(len(self.listed))


def _of_values(keys: Keys) -> Choice:
    chances = keys.get("probabilities")
    return Choice(
        tuple(map(frozen_value, keys["values"])), None if chances is None else tuple(map(float, chances))
    )


def _spaced(spacing: Spacing) -> Form:
    def make(keys: Keys) -> Choice:
        start, stop, count = keys[spacing]
        return Choice(spaced(spacing, start, stop, int(count)))

    return Form(spacing, "", make)


SPACINGS = {str(spacing): _spaced(spacing) for spacing in Spacing}
"""Forms that have a key of their own in place of a distribution."""
FORMS = {
    "categorical": Form("values", "probabilities", _of_values),
    "categorical_w_probabilities": Form("values probabilities", "", _of_values),
}
TEXT = "`categorical` (values), `categorical_w_probabilities` (values, probabilities)"
