"""Cores, memory and time at their bounds."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from sweepledger.structs import quantities as units


@pytest.mark.parametrize(
    ("amount", "quantity"),
    [
        *((1, "1"), (2.0, "2"), (0.5, "0.5"), (0.001, "0.001"), (1000, "1000"), (1e3, "1000")),
        *((text, text) for text in ("4", "0.25", "1.125", "500m", "1m", "1000000m")),
    ],
)
def test_cores_are_numbers_or_thousandths(amount: str | float, quantity: str) -> None:
    assert units.cores(amount) == quantity


@pytest.mark.parametrize(
    "text",
    [
        *("2Gi", "1.5Gi", "512Mi", "1Mi", "1024Ki", "64Ti", "0.5Gi"),
        *("2M", "2000k", "1G", "1T", "70T", "1.049M", "0.001Gi"),
    ],
)
def test_memory_is_an_amount_with_a_unit(text: str) -> None:
    assert units.memory(text) == text


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1s", 1),
        ("90s", 90),
        ("10m", 600),
        ("2h", 7200),
        ("1d", 86400),
        ("30d", 2592000),
        ("2592000s", 2592000),
    ],
)
def test_times_are_whole_numbers_of_a_unit(text: str, seconds: int) -> None:
    assert units.seconds(text) == seconds


NO_AMOUNTS: list[tuple[Callable[[Any], object], str, list[Any]]] = [
    (
        units.cores,
        "must be a number of cores such as 2, 0.5 or '500m'",
        [
            *("lots", "", "-1", "1.0000", "01", "0.5m", "1e3", "1 ", "m", "0m", "01m", "1M"),
            *(-1, 0.0001, 1e-7, "9" * 11, "\u0661"),
        ],
    ),
    (
        units.cores,
        "must be more than 0 and at most 1000 cores",
        [0, "0", "0.000", 1000.001, 1001, "1000001m"],
    ),
    (
        units.memory,
        "must be an amount of memory with its unit, such as '2Gi' or '512Mi'",
        [
            *("2", "", "2GB", "2gi", "Gi", "-1Gi", "01Gi", "1e3Mi", "1.0000Gi", "2 Gi", "2K", "2Pi"),
            *("2m", "9" * 19 + "Gi"),
        ],
    ),
    (
        units.memory,
        "must be at least 1Mi and at most 64Ti",
        ["1023Ki", "1048k", "1.048M", "0Gi", "0.001M", "65Ti", "64.001Ti", "71T", "1k"],
    ),
    (
        units.seconds,
        "must be a whole number and one of s, m, h, d, such as '90s' or '10m'",
        ["", "10", "0s", "01s", "1.5h", "-1s", "10min", "1w", "1D", " 1s", "1" * 10 + "s"],
    ),
    (units.seconds, "must be at most 30d", ["31d", "2592001s", "721h", "43201m"]),
]


@pytest.mark.parametrize(
    ("read", "rule", "amount"),
    [(read, rule, amount) for read, rule, amounts in NO_AMOUNTS for amount in amounts],
)
def test_anything_else_is_refused(read: Callable[[Any], object], rule: str, amount: object) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(rule)}$"):
        read(amount)
