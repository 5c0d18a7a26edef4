"""The beta distribution, whose quantiles are SciPy's."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from sweepledger.distributions.continuous import Continuous
from sweepledger.distributions.form import Form
from sweepledger.distributions.quantized import with_rounded
from sweepledger.distributions.rounding import ContinuousQuantile
from sweepledger.distributions.scipy_modules import import_scipy
from sweepledger.structs.domain import number_text

REQUIREMENT = "distribution: beta requires"
DRAWN_BETA_STEPS = 40


@dataclass(frozen=True, slots=True)
class Beta(Continuous):
    """The beta distribution on 0 to 1."""

    a: float = 1.0
    b: float = 1.0
    name: ClassVar[str] = "beta"
    is_exact: ClassVar[bool] = False
    support: ClassVar[tuple[float, float]] = (0.0, 1.0)
    ends: ClassVar[tuple[float, ...]] = support

    @property
    def text(self) -> str:
        return f"beta, a {number_text(self.a)}, b {number_text(self.b)}"

    def quantized_steps(self, _: float | None) -> int:
        """Return the steps of a draw, which do not depend on q: SciPy computes every quantile in the same way."""
        return DRAWN_BETA_STEPS

    def unrounded(self) -> ContinuousQuantile:
        """Return SciPy's function. Raises ToolError without SciPy."""
        inverse, a, b = import_scipy("special", REQUIREMENT).betaincinv, self.a, self.b
        return ContinuousQuantile(lambda u: float(inverse(a, b, u)), low=0.0, high=1.0)

    def below(self) -> Callable[[float], float]:
        """Return SciPy's function. Raises ToolError without SciPy."""
        cumulative, a, b = import_scipy("special", REQUIREMENT).betainc, self.a, self.b
        return lambda value: float(cumulative(a, b, value))


FORMS = with_rounded({"beta": Form("", "a b", Beta.of)})
TEXT = "`beta` (a, b)"
