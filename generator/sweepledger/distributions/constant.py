"""One value for all trials."""

from typing import Any, ClassVar

from sweepledger.distributions.choice import Choice
from sweepledger.distributions.form import Form
from sweepledger.structs.values import Value, frozen_value


class Constant(Choice):
    """One value for all trials."""

    __slots__ = ()

    is_constant: ClassVar[bool] = True
    draw_steps: ClassVar[int] = 0

    def __init__(self, value: Value) -> None:
        super().__init__((value,))

    @property
    def keys(self) -> dict[str, Any]:
        return {"value": self.listed[0]}


FORMS = {"constant": Form("value", "", lambda keys: Constant(frozen_value(keys["value"])))}
TEXT = "`constant` (value)"
