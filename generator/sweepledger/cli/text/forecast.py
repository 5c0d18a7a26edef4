"""Forecast and budgets as text, rounded to the precision of the estimate."""

from collections.abc import Iterator

from sweepledger.cli.text.values import amount_text, duration_range_text, duration_text
from sweepledger.plan import BudgetUnit, DurationSource, Forecast, Quantiles, Review
from sweepledger.results.display import one_line
from sweepledger.structs import node_pool

LONGEST_REASON = 120


def forecast_rows(review: Review, currency: str) -> Iterator[tuple[str, str]]:
    """Yield labels and lines of the forecast."""
    forecast = review.forecast
    if forecast is None:
        return
    yield "time", trial_time_text(forecast)
    if forecast.completion is not None:
        yield "done", completion_text(forecast, review)
    if forecast.hours is not None:
        yield "use", usage_text(forecast, review, currency)


def budget_lines(review: Review, month: str, currency: str) -> Iterator[str]:
    """Yield the balance of each team budget, and the upper bound of what this sweep adds."""
    for balance in review.balances:
        unit = "GPU hours" if balance.unit is BudgetUnit.GPU_HOURS else currency or "of money"
        used = f"{_amount(balance.used)} of {_amount(balance.limit)} {unit} used"
        reserved = f", {_amount(balance.reserved)} reserved" if balance.reserved else ""
        exceeded = ": more than remains" if balance.is_exceeded else ""
        added = f"this sweep adds at most {_amount(balance.requested)}"
        yield f"{balance.team} {month}: {used}{reserved}; {added}{exceeded}"


def trial_time_text(forecast: Forecast) -> str:
    """Return the duration of one trial, and its source."""
    if forecast.trial_seconds is None:
        reason = one_line(forecast.reason)[:LONGEST_REASON]
        return f"unknown: {reason}; set run.expected_minutes for an estimate"
    median = f"≈ {duration_text(forecast.trial_seconds.median)} per trial"
    if forecast.source is DurationSource.EXPECTED:
        return f"{median}, from run.expected_minutes"
    groups = f"; by {', '.join(forecast.parameters)}" if forecast.parameters else ""
    source = f"{forecast.records:,} recorded trials of this program"
    return f"{median} (80 %: {_duration_interval(forecast.trial_seconds)}; {source}{groups})"


def completion_text(forecast: Forecast, review: Review) -> str:
    """Return when the last trial ends, and how many trials of the pool come first."""
    if forecast.completion is None:
        return ""
    interval = "" if forecast.completion.is_exact else f" (80 %: {_duration_interval(forecast.completion)})"
    text = f"≈ {duration_text(forecast.completion.median)} after the merge{interval}"
    if forecast.ahead and review.sweep.pool is not None:
        text += f" · {forecast.ahead:,} ahead in pool {review.sweep.pool.name}"
    if forecast.uncounted:
        text += f", {forecast.uncounted:,} of unknown duration not counted"
    return text


def usage_text(forecast: Forecast, review: Review, currency: str) -> str:
    """Return the expected use of resources, and its price."""
    if forecast.hours is None:
        return ""
    run = review.sweep.run
    if run.resources.gpu:
        amount, unit = forecast.hours.times(node_pool.gpus_per_trial(run, review.sweep.pool)), "GPU hours"
    else:
        amount, unit = forecast.hours.times(run.resources.threads * run.nodes), "CPU hours"
    text = f"≈ {_amount(amount.median)} {unit}"
    if not amount.is_exact:
        text += f" (80 %: {_amount(amount.low)} to {_amount(amount.high)})"
    return text if forecast.money is None else f"{text} · {price_text(forecast.money, currency)}"


def price_text(price: Quantiles, currency: str) -> str:
    """Return a price, or the interval of a price."""
    unit = f" {currency}" if currency else " at the pool's price"
    if price.is_exact:
        return f"{price.median:,.2f}{unit}"
    return f"{price.low:,.2f} to {price.high:,.2f}{unit}"


def _amount(amount: float) -> str:
    return amount_text(amount, digits=2)


def _duration_interval(interval: Quantiles) -> str:
    return duration_range_text(interval.low, interval.high)
