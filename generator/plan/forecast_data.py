"""A forecast as numbers and texts, for JSON: in seconds and hours."""

from typing import Any

from generator.plan.forecast import Forecast
from generator.plan.intervals import Interval


def forecast_as_data(found: Forecast | None) -> dict[str, Any] | None:
    """Give a forecast as JSON shows it."""
    if found is None:
        return None
    return {
        "source": str(found.source),
        "trials": found.trials,
        "records": found.records,
        "by": list(found.by),
        "trial_seconds": _interval(found.trial),
        "trial_hours": _interval(found.hours),
        "money": _interval(found.money),
        "done_seconds": _interval(found.done),
        "ahead": found.ahead,
        "uncounted": found.uncounted,
        "reason": found.reason,
    }


def _interval(found: Interval | None) -> dict[str, float] | None:
    return None if found is None else {"low": found.low, "median": found.median, "high": found.high}
