"""When it is done and what it costs, in words: rounded as much as anybody can know, and no more."""

from collections.abc import Iterator

from generator.plan import Forecast, Interval, Review, Source, Unit
from generator.results.words import one_line

MINUTE, HOUR, DAY = 60, 3600, 86_400
LONGEST_REASON = 120


def lines(review: Review, currency: str) -> Iterator[tuple[str, str]]:
    """Say what is foreseen, each line under its name."""
    found = review.forecast
    if found is None:
        return
    yield "time", time(found)
    if found.done is not None:
        yield "done", done(found, review)
    if found.hours is not None:
        yield "use", use(found, review, currency)


def budgets(review: Review, month: str, currency: str) -> Iterator[str]:
    """Say what is left of each budget, and what of it this may take."""
    for one in review.balances:
        unit = "GPU hours" if one.unit is Unit.GPU_HOURS else currency or "of money"
        promised = f", {number(one.promised)} promised" if one.promised else ""
        over = ": more than is left" if one.is_exceeded else ""
        told = f"{one.team} {month}: {number(one.used)} of {number(one.limit)} {unit} used{promised}"
        yield f"{told}, {number(one.asked)} at most by this{over}"


def time(found: Forecast) -> str:
    """Say what one trial takes, and how anybody knows."""
    if found.trial is None:
        way = "run.expected_minutes may say it"
        return f"unknown: {one_line(found.reason)[:LONGEST_REASON]}; {way}"
    middle = f"≈ {_span(found.trial.median)} a trial"
    if found.source is Source.EXPECTED:
        return f"{middle}, as its author expects"
    by = f"; by {', '.join(found.by)}" if found.by else ""
    known = f"{found.records:,} recorded trials of this program"
    return f"{middle} (80 %: {_spans(found.trial)}; {known}{by})"


def done(found: Forecast, review: Review) -> str:
    """Say when the last trial ends, and who comes first."""
    if found.done is None:
        return ""
    within = "" if found.done.is_exact else f" (80 %: {_spans(found.done)})"
    told = f"≈ {_span(found.done.median)} after the merge{within}"
    if found.ahead and review.sweep.pool is not None:
        told += f" · {found.ahead:,} ahead in pool {review.sweep.pool.name}"
    if found.uncounted:
        told += f", {found.uncounted:,} not counted: nobody knows how long"
    return told


def use(found: Forecast, review: Review, currency: str) -> str:
    """Say what is used up on average, and what that costs."""
    if found.hours is None:
        return ""
    run = review.sweep.run
    if run.resources.gpu:
        amount, unit = found.hours.times(run.resources.gpu * run.nodes), "GPU hours"
    else:
        amount, unit = found.hours.times(run.resources.threads * run.nodes), "CPU hours"
    told = f"≈ {number(amount.median)} {unit}"
    if not amount.is_exact:
        told += f" (80 %: {number(amount.low)} to {number(amount.high)})"
    return told if found.money is None else f"{told} · {money(found.money, currency)}"


def money(found: Interval, currency: str) -> str:
    """Show a price."""
    unit = f" {currency}" if currency else " at the pool's price"
    if found.is_exact:
        return f"{found.median:,.2f}{unit}"
    return f"{found.low:,.2f} to {found.high:,.2f}{unit}"


EXACT_ENOUGH = 100


def number(found: float) -> str:
    """Round to what is worth reading."""
    return f"{found:,.0f}" if found >= EXACT_ENOUGH else f"{found:.2g}"


def _unit(seconds: float) -> tuple[int, str]:
    """Choose a unit in which a time is neither a fraction nor a crowd."""
    for length, name, most in ((1, "s", 100), (MINUTE, "min", 100), (HOUR, "h", 48)):
        if seconds < most * length:
            return length, name
    return DAY, "days"


def _span(seconds: float) -> str:
    length, name = _unit(seconds)
    return f"{number(seconds / length)} {name}"


def _spans(found: Interval) -> str:
    length, name = _unit(found.high)
    return f"{number(found.low / length)} to {number(found.high / length)} {name}"
