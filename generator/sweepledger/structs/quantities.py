"""Amounts as texts: `500m` CPUs, `2Gi` of memory, `10m` of time."""

import re
from decimal import Decimal
from math import ceil
from typing import Annotated

from sweepledger.model.keys import TextForm

QUANTITY = re.compile(
    r"(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:(?P<suffix>m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)|[eE](?P<power>[+-]?[0-9]{1,2}))?",
    re.ASCII,
)
BINARY_SUFFIXES = {f"{suffix}i": Decimal(2) ** (10 * n) for n, suffix in enumerate("KMGTPE", 1)}
SUFFIXES: dict[str, Decimal] = BINARY_SUFFIXES | {
    suffix: Decimal(10) ** (3 * n) for n, suffix in enumerate(("m", "", *"kMGTPE"), -1)
}


def parse_quantity(text: object) -> Decimal:
    """Return the number that a quantity means; YAML may have read it as a number. Raises ValueError."""
    match = QUANTITY.fullmatch(str(text)) if isinstance(text, str | int | float) else None
    if match is None or isinstance(text, bool):
        raise ValueError(f"must be a quantity such as 500m or 2Gi, got {text!r}")
    number = Decimal(match["number"]) * SUFFIXES[match["suffix"] or ""]
    return number.scaleb(int(match["power"] or 0))


def whole_quantity(text: object, *, unit: int = 1) -> int:
    """Return a quantity in units of 1/`unit`, rounded up. Raises ValueError."""
    return ceil(parse_quantity(text) * unit)


def format_bytes(size: int) -> str:
    """Return a number of bytes in the largest unit that leaves no remainder, as `kubectl` prints it."""
    for suffix, unit in reversed(BINARY_SUFFIXES.items()):
        if size and size % unit == 0:
            return f"{int(size / unit)}{suffix}"
    return str(size)


def format_cpus(millicpus: int) -> str:
    """Return CPUs as a quantity: whole if possible, otherwise in thousandths."""
    return f"{millicpus}m" if millicpus % 1000 else str(millicpus // 1000)


CORES = re.compile(r"(?:0|[1-9][0-9]{0,9})(?:\.[0-9]{1,3})?|[1-9][0-9]{0,9}m", re.ASCII)
MEMORY = re.compile(r"(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,3})?(?:[KMGT]i|[kMGT])", re.ASCII)
TIME = re.compile(r"(?P<amount>[1-9][0-9]{0,8})(?P<unit>[smhd])", re.ASCII)
TIME_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
MOST_CORES, MOST_MINUTES, MOST_DAYS = 1000, 30, 3650


def cores(amount: str | float) -> str:
    """Return a CPU request as a Kubernetes quantity. Raises ValueError if it is malformed or out of bounds."""
    text = amount if isinstance(amount, str) else repr(int(amount) if amount == int(amount) else amount)
    if CORES.fullmatch(text) is None:
        raise ValueError("must be a number of cores such as 2, 0.5 or '500m'")
    if not 0 < parse_quantity(text) <= MOST_CORES:
        raise ValueError(f"must be more than 0 and at most {MOST_CORES} cores")
    return text


def memory(text: str) -> str:
    """Return a memory request as a Kubernetes quantity. Raises ValueError if it is malformed or out of bounds."""
    if not MEMORY.fullmatch(text):
        raise ValueError("must be an amount of memory with its unit, such as '2Gi' or '512Mi'")
    if not 2**20 <= parse_quantity(text) <= 64 * 2**40:
        raise ValueError("must be at least 1Mi and at most 64Ti")
    return text


def seconds(text: str) -> int:
    """Return a time in seconds. Raises ValueError if it is malformed or out of bounds."""
    found = TIME.fullmatch(text)
    if found is None:
        raise ValueError("must be a whole number and one of s, m, h, d, such as '90s' or '10m'")
    time = int(found["amount"]) * TIME_UNITS[found["unit"]]
    if time > 30 * TIME_UNITS["d"]:
        raise ValueError("must be at most 30d")
    return time


def minutes(text: str) -> int:
    """Return an interval in minutes. Raises ValueError if it does not divide an hour."""
    amount, rest = divmod(seconds(text), TIME_UNITS["m"])
    if rest or amount > MOST_MINUTES or 60 % amount:
        raise ValueError("must be whole minutes that divide an hour, at most 30m")
    return amount


def days(text: str) -> int:
    """Return a retention time in days. Raises ValueError if it is malformed or out of bounds."""
    found = TIME.fullmatch(text)
    if found is None or found["unit"] != "d":
        raise ValueError("must be a whole number of days, such as '30d'")
    if int(found["amount"]) > MOST_DAYS:
        raise ValueError(f"must be at most {MOST_DAYS}d: to keep everything, delete the key")
    return int(found["amount"])


def _written_time(time: int) -> str:
    unit, size = max((item for item in TIME_UNITS.items() if time % item[1] == 0), key=lambda item: item[1])
    return f"{time // size}{unit}"


def seconds_between(least: str, most: str) -> TextForm:
    """Return the form of a time that is neither shorter nor longer than two others."""

    def read(text: str) -> int:
        time = seconds(text)
        if not seconds(least) <= time <= seconds(most):
            raise ValueError(f"must be between {least} and {most}")
        return time

    return TextForm(read, "duration", unit="_seconds", write=_written_time)


Cores = Annotated[str, TextForm(cores, "quantity", types=(str, int, float))]
Memory = Annotated[str, TextForm(memory, "quantity")]
Seconds = Annotated[int, TextForm(seconds, "duration", unit="_seconds", write=_written_time)]
Minutes = Annotated[int, TextForm(minutes, "duration", unit="_minutes", write=lambda time: f"{time}m")]
Days = Annotated[int, TextForm(days, "duration", unit="_days")]
