"""One value for all trials."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from sweepledger.distributions.form import Form
from sweepledger.structs.domain import Axis, Categorical, Codec, CoordinateOf, Domain, Quantile
from sweepledger.structs.values import Value, frozen_value, identity


@dataclass(frozen=True, slots=True)
class Constant(Domain):
    """One value for all trials."""

    value: Value
    listed: tuple[Value, ...] = field(init=False, repr=False, compare=False)
    is_constant: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "listed", (self.value,))

    @property
    def axis(self) -> Axis:
        return Categorical(1)

    @property
    def draw_steps(self) -> int:
        return 0

    @property
    def keys(self) -> dict[str, Any]:
        return {"value": self.value}

    def quantile(self) -> Quantile:
        """Return the function that always returns the value."""
        return lambda _: self.value

    def coordinate(self) -> CoordinateOf:
        """Refuse: a constant has no axis."""
        raise AssertionError(f"constants have no coordinates, but got {self!r}")

    def codec(self) -> Codec:
        """Encode the value as 0."""
        key = identity(self.value)
        return lambda _: self.value, lambda value: 0 if identity(value) == key else None


FORMS = {"constant": Form("value", "", lambda keys: Constant(frozen_value(keys["value"])))}
TEXT = "`constant` (value)"
