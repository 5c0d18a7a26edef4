"""Quantities with a unit (cores, memory, time): their values, and the problems of a malformed one."""

import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

from sweepledger.problems import Problem
from sweepledger.reader import DocumentPath, safe_repr
from sweepledger.spec.draft import Draft
from sweepledger.structs.quantities import parse_quantity

CORES = re.compile(
    r"(?P<cores>(?:0|[1-9][0-9]{0,9})(?:\.[0-9]{1,3})?)|(?P<thousandths>[1-9][0-9]{0,9})m", re.ASCII
)
MOST_CORES = 1000

MEMORY = re.compile(r"(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,3})?(?:[KMGT]i|[kMGT])", re.ASCII)
LEAST_MEMORY = 2**20
MOST_MEMORY = 64 * 2**40

TIME = re.compile(r"(?P<amount>[1-9][0-9]{0,8})(?P<unit>[smhd])", re.ASCII)
TIME_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
LONGEST_TIME = 30 * TIME_UNITS["d"]
MOST_MINUTES = 30
MOST_DAYS = 3650


def cores(amount: str | float) -> str:
    """Return a CPU request as a Kubernetes quantity. Raises ValueError if it is malformed or out of bounds."""
    text = amount if isinstance(amount, str) else repr(int(amount) if amount == int(amount) else amount)
    found = CORES.fullmatch(text)
    if found is None:
        raise ValueError("must be a number of cores such as 2, 0.5 or '500m'")
    number = Decimal(found["cores"]) if found["cores"] else Decimal(found["thousandths"]) / 1000
    if not 0 < number <= MOST_CORES:
        raise ValueError(f"must be more than 0 and at most {MOST_CORES} cores")
    return text


def memory(text: str) -> str:
    """Return a memory request as a Kubernetes quantity. Raises ValueError if it is malformed or out of bounds."""
    if not MEMORY.fullmatch(text):
        raise ValueError("must be an amount of memory with its unit, such as '2Gi' or '512Mi'")
    if not LEAST_MEMORY <= parse_quantity(text) <= MOST_MEMORY:
        raise ValueError("must be at least 1Mi and at most 64Ti")
    return text


def seconds(text: str) -> int:
    """Return a time in seconds. Raises ValueError if it is malformed or out of bounds."""
    found = TIME.fullmatch(text)
    if found is None:
        raise ValueError("must be a whole number and one of s, m, h, d, such as '90s' or '10m'")
    time = int(found["amount"]) * TIME_UNITS[found["unit"]]
    if time > LONGEST_TIME:
        raise ValueError("must be at most 30d")
    return time


def minutes(text: str) -> int:
    """Return an interval in minutes. Raises ValueError if it does not divide an hour."""
    time = seconds(text)
    minute, hour = TIME_UNITS["m"], TIME_UNITS["h"]
    if time % minute or time > MOST_MINUTES * minute or hour % time:
        raise ValueError("must be whole minutes that divide an hour, at most 30m")
    return time // minute


def days(text: str) -> int:
    """Return a retention time in days. Raises ValueError if it is malformed or out of bounds."""
    found = TIME.fullmatch(text)
    if found is None or found["unit"] != "d":
        raise ValueError("must be a whole number of days, such as '30d'")
    time = int(found["amount"])
    if time > MOST_DAYS:
        raise ValueError(f"must be at most {MOST_DAYS}d: to keep everything, delete the key")
    return time


def is_memory(text: str) -> bool:
    """Return whether a text is a valid amount of memory."""
    try:
        memory(text)
    except ValueError:
        return False
    return True


def cores_problems(draft: Draft, place: DocumentPath) -> Iterator[Problem]:
    """CPU cores are a Kubernetes quantity."""
    text = draft.get(*place, kind=str)
    amount = draft.number(*place) if text is None else text
    yield from _unit_problems(draft, place, amount, cores, "quantity")


def memory_problems(draft: Draft, place: DocumentPath) -> Iterator[Problem]:
    """Memory is a Kubernetes quantity with a unit: a number without one is probably a mistake."""
    yield from _unit_problems(draft, place, draft.get(*place, kind=str), memory, "quantity")


def duration_problems(draft: Draft, place: DocumentPath, unit: Callable[[str], int]) -> Iterator[Problem]:
    """A time is a number and its unit."""
    yield from _unit_problems(draft, place, draft.get(*place, kind=str), unit, "duration")


def _unit_problems(
    draft: Draft, place: DocumentPath, amount: Any, unit: Callable[[Any], object], code: str
) -> Iterator[Problem]:
    if amount is None:
        return
    try:
        unit(amount)
    except ValueError as error:
        yield draft.problem(place, f"{error}, got {safe_repr(amount)}", code=code)
