"""Texts that stand for amounts: where one is wrong, its unit's own words say how."""

from collections.abc import Callable, Iterator
from typing import Any

from generator.problems import Problem
from generator.reader import Path, shown
from generator.spec import units
from generator.spec.draft import Draft


def cores(draft: Draft, place: Path) -> Iterator[Problem]:
    """Cores are a Kubernetes quantity."""
    text = draft.get(*place, kind=str)
    amount = draft.number(*place) if text is None else text
    yield from _read(draft, place, amount, units.cores, "quantity")


def memory(draft: Draft, place: Path) -> Iterator[Problem]:
    """Memory is a Kubernetes quantity with a unit: bytes alone are always a slip."""
    yield from _read(draft, place, draft.get(*place, kind=str), units.memory, "quantity")


def duration(draft: Draft, place: Path, unit: Callable[[str], int]) -> Iterator[Problem]:
    """Times are a number and its unit."""
    yield from _read(draft, place, draft.get(*place, kind=str), unit, "duration")


def _read(
    draft: Draft, place: Path, amount: Any, unit: Callable[[Any], object], code: str
) -> Iterator[Problem]:
    if amount is None:
        return
    try:
        unit(amount)
    except ValueError as error:
        yield draft.problem(place, f"{error}, got {shown(amount)}", code=code)
