"""Kubernetes quantities: `500m` CPUs, `2Gi` of memory."""

import re
from decimal import Decimal
from math import ceil

QUANTITY = re.compile(
    r"(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:(?P<suffix>m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)|[eE](?P<power>[+-]?[0-9]{1,2}))?",
    re.ASCII,
)
DECIMAL_SUFFIXES = {"m": Decimal("0.001")} | {
    suffix: Decimal(10) ** (3 * n) for n, suffix in enumerate("kMGTPE", 1)
}
BINARY_SUFFIXES = {f"{suffix}i": Decimal(2) ** (10 * n) for n, suffix in enumerate("KMGTPE", 1)}


def parse_quantity(text: object) -> Decimal:
    """Return the number that a quantity means; YAML may have read it as a number. Raises ValueError."""
    match = QUANTITY.fullmatch(str(text)) if isinstance(text, str | int | float) else None
    if match is None or isinstance(text, bool):
        raise ValueError(f"must be a quantity such as 500m or 2Gi, got {text!r}")
    number = Decimal(match["number"])
    if match["power"]:
        return number * Decimal(10) ** int(match["power"])
    return number * (DECIMAL_SUFFIXES | BINARY_SUFFIXES).get(match["suffix"] or "", Decimal(1))


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
