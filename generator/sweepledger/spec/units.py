"""Texts that stand for amounts: cores, memory, time. The rules and the value read them alike."""

import re
from decimal import Decimal

CORES = re.compile(
    r"(?P<cores>(?:0|[1-9][0-9]{0,9})(?:\.[0-9]{1,3})?)|(?P<thousandths>[1-9][0-9]{0,9})m", re.ASCII
)
MOST_CORES = 1000

MEMORY = re.compile(r"(?P<amount>(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,3})?)(?P<unit>[KMGT]i|[kMGT])", re.ASCII)
MEMORY_UNITS = {
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
}
LEAST_MEMORY = 2**20
MOST_MEMORY = 64 * 2**40

TIME = re.compile(r"(?P<amount>[1-9][0-9]{0,8})(?P<unit>[smhd])", re.ASCII)
TIME_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
LONGEST_TIME = 30 * TIME_UNITS["d"]
MOST_MINUTES = 30
MOST_DAYS = 3650


def cores(amount: str | float) -> str:
    """Give a CPU request as a Kubernetes quantity. Raises ValueError if it is none or out of bounds."""
    text = amount if isinstance(amount, str) else repr(int(amount) if amount == int(amount) else amount)
    found = CORES.fullmatch(text)
    if found is None:
        raise ValueError("must be a number of cores such as 2, 0.5 or '500m'")
    number = Decimal(found["cores"]) if found["cores"] else Decimal(found["thousandths"]) / 1000
    if not 0 < number <= MOST_CORES:
        raise ValueError(f"must be more than 0 and at most {MOST_CORES} cores")
    return text


def memory(text: str) -> str:
    """Give a memory request as a Kubernetes quantity. Raises ValueError if it is none or out of bounds."""
    found = MEMORY.fullmatch(text)
    if found is None:
        raise ValueError("must be an amount of memory with its unit, such as '2Gi' or '512Mi'")
    if not LEAST_MEMORY <= Decimal(found["amount"]) * MEMORY_UNITS[found["unit"]] <= MOST_MEMORY:
        raise ValueError("must be at least 1Mi and at most 64Ti")
    return text


def seconds(text: str) -> int:
    """Give a time in seconds. Raises ValueError if it is none or out of bounds."""
    found = TIME.fullmatch(text)
    if found is None:
        raise ValueError("must be a whole number and one of s, m, h, d, such as '90s' or '10m'")
    time = int(found["amount"]) * TIME_UNITS[found["unit"]]
    if time > LONGEST_TIME:
        raise ValueError("must be at most 30d")
    return time


def minutes(text: str) -> int:
    """Give how often the collector looks, in minutes. Raises ValueError if no clock strikes so often."""
    time = seconds(text)
    minute, hour = TIME_UNITS["m"], TIME_UNITS["h"]
    if time % minute or time > MOST_MINUTES * minute or hour % time:
        raise ValueError("must be whole minutes that divide an hour, at most 30m")
    return time // minute


def days(text: str) -> int:
    """Give how long something is kept, in days. Raises ValueError if it is none or out of bounds."""
    found = TIME.fullmatch(text)
    if found is None or found["unit"] != "d":
        raise ValueError("must be a whole number of days, such as '30d'")
    time = int(found["amount"])
    if time > MOST_DAYS:
        raise ValueError(f"must be at most {MOST_DAYS}d: to keep for ever delete the key")
    return time


def is_memory(text: str) -> bool:
    """Tell whether a text is an amount of memory."""
    try:
        memory(text)
    except ValueError:
        return False
    return True
