"""Kubernetes quantities, exactly: `500m`, `2Gi`, `1e3`."""

import re
from decimal import Decimal
from math import ceil

QUANTITY = re.compile(
    r"(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:(?P<suffix>m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)|[eE](?P<power>[+-]?[0-9]{1,2}))?",
    re.ASCII,
)
DECIMAL = {"m": Decimal("0.001")} | {suffix: Decimal(10) ** (3 * n) for n, suffix in enumerate("kMGTPE", 1)}
BINARY = {f"{suffix}i": Decimal(2) ** (10 * n) for n, suffix in enumerate("KMGTPE", 1)}


def parse(text: object) -> Decimal:
    """Read a quantity, which YAML may have read as a number. Raises ValueError if it is none."""
    found = QUANTITY.fullmatch(str(text)) if isinstance(text, str | int | float) else None
    if found is None or isinstance(text, bool):
        raise ValueError(f"must be a quantity such as 500m or 2Gi, got {text!r}")
    number = Decimal(found["number"])
    if found["power"]:
        return number * Decimal(10) ** int(found["power"])
    return number * (DECIMAL | BINARY).get(found["suffix"] or "", Decimal(1))


def whole(text: object, *, unit: int = 1) -> int:
    """Read a quantity in units of 1/`unit`, rounded up. Raises ValueError if it is none."""
    return ceil(parse(text) * unit)


def binary(size: int) -> str:
    """Write bytes in the largest unit that leaves no rest, as `kubectl` does."""
    for suffix, unit in reversed(BINARY.items()):
        if size and size % unit == 0:
            return f"{int(size / unit)}{suffix}"
    return str(size)
