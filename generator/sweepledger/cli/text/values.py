"""Values, numbers, durations and sizes as plain text, without Rich."""

import re
from collections.abc import Mapping

from sweepledger.structs.values import Value

LOOKS_TYPED = re.compile(r"(?i:null|true|false|~)|[-+.\d\[{\"'].*|", re.DOTALL)
"""Text that a reader could take for another type of value, or overlook, is quoted."""

MINUTE, HOUR, DAY = 60, 3600, 86_400
WHOLE_FROM = 100
"""Amounts from here on are rounded to whole numbers."""


def value_text(value: Value) -> str:
    """Return a value in full, on one line."""
    from sweepledger.results.display import format_value, quote_value

    if isinstance(value, str) and LOOKS_TYPED.fullmatch(value):
        return quote_value(value)
    return format_value(value)


def configuration_text(values: Mapping[str, Value]) -> str:
    """Return the names and values of a configuration on one line."""
    return "  ".join(f"{name}={value_text(value)}" for name, value in values.items())


def number_text(number: float | None) -> str:
    """Return a number with six significant digits; an empty text for None."""
    return "" if number is None else f"{number:.6g}"


def amount_text(amount: float, *, digits: int) -> str:
    """Return an amount with this number of significant digits; a hundred or more as a whole number."""
    return f"{amount:,.0f}" if amount >= WHOLE_FROM else f"{amount:.{digits}g}"


def duration_text(seconds: float) -> str:
    """Return a duration with two significant digits, in a unit that keeps the number small."""
    length, unit = _duration_unit(seconds)
    return f"{amount_text(seconds / length, digits=2)} {unit}"


def duration_range_text(low: float, high: float) -> str:
    """Return two durations in the unit of the longer one."""
    length, unit = _duration_unit(high)
    return f"{amount_text(low / length, digits=2)} to {amount_text(high / length, digits=2)} {unit}"


def timeout_text(seconds: int) -> str:
    """Return a timeout as a spec writes it."""
    for unit, length in (("h", HOUR), ("m", MINUTE)):
        if seconds % length == 0:
            return f"{seconds // length:,}{unit}"
    return f"{seconds:,}s"


def _duration_unit(seconds: float) -> tuple[int, str]:
    for length, unit, limit in ((1, "s", 100), (MINUTE, "min", 100), (HOUR, "h", 48)):
        if seconds < limit * length:
            return length, unit
    return DAY, "days"


def count_text(count: int, noun: str) -> str:
    """Return a count with its noun, such as `2 trials`."""
    return f"{count:,} {noun}" + "s" * (count != 1)


def rounds_text(trials: int | None, rounds: int | None, size: int, *, further: bool = False) -> str:
    """Return the bounds of a search; with `further`, those of the rounds that are not yet in the repository."""
    size_text = count_text(size, "trial")
    if trials is None:
        return f"rounds of {size_text}, until the results end the search"
    if further and not rounds:
        return "no further rounds"
    count = count_text(rounds or 0, "further round" if further else "round")
    total = f", {trials:,} in all" if not further else ""
    return f"at most {count} of at most {size_text}{total}"
