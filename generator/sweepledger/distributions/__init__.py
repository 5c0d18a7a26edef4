"""The distributions of values: one module for each, and the table of their names in a spec.

A module has the domain, `FORMS` (its names in a spec) and `TEXT` (these names for people to read).
"""

from collections.abc import Iterable
from typing import Any

from sweepledger.distributions import (
    beta,
    choice,
    constant,
    int_uniform,
    log_normal,
    log_uniform,
    normal,
    uniform,
)
from sweepledger.distributions.form import Form, Keys
from sweepledger.distributions.ranges import stepped
from sweepledger.structs.domain import Domain

MODULES = (constant, choice, uniform, int_uniform, log_uniform, normal, log_normal, beta)
FORMS: dict[str, Form] = {name: form for module in MODULES for name, form in module.FORMS.items()}
"""What each distribution is in a spec."""
ROUNDED = tuple(name for name, form in FORMS.items() if "q" in form.keys)


def implied_name(low: object, high: object) -> str:
    """Return the distribution implied by two bounds without a name: integers for two integers, as in W&B.

    0.0 is not an integer here: authors who write it mean real numbers.
    """
    return "int_uniform" if isinstance(low, int) and isinstance(high, int) else "uniform"


RANGE = Form("min max", "step count", lambda keys: FORMS[implied_name(keys["min"], keys["max"])].make(keys))
LISTED = "categorical"
"""The distribution of listed values."""
SPACINGS = choice.SPACINGS
"""Forms that have a key of their own in place of a distribution."""
UNNAMED = {**SPACINGS, "value": FORMS["constant"], "values": FORMS[LISTED], "min and max": RANGE}
"""Forms of parameters without a distribution."""


def build_domain(keys: Keys) -> Domain:
    """Return the domain of a parameter without problems."""
    if "step" in keys:
        return choice.Choice(stepped(keys["min"], keys["max"], keys["step"]))
    unnamed = next((form for key, form in UNNAMED.items() if key in keys), RANGE)
    form = FORMS[keys["distribution"]] if "distribution" in keys else unnamed
    if "count" in keys:
        return choice.Choice(form.points(keys["min"], keys["max"], int(keys["count"])))
    return form.make(keys)


def zipped_domain(rows: Iterable[Any]) -> Domain:
    """Return the domain of zipped parameters, whose values are their rows."""
    return choice.Rows(tuple(rows))
