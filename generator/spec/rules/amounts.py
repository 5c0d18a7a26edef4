"""Texts that stand for amounts: where one is wrong, its unit's own words say how."""

from collections.abc import Callable, Iterator

from generator.problems import Problem
from generator.reader import Path, shown
from generator.spec import units
from generator.spec.draft import Draft


def cores(draft: Draft, place: Path) -> Iterator[Problem]:
    """Cores are a Kubernetes quantity."""
    text = draft.get(*place, kind=str)
    amount = draft.number(*place) if text is None else text
    if amount is None:
        return
    try:
        units.cores(amount)
    except ValueError as error:
        yield draft.problem(place, f"{error}, got {shown(amount)}", code="quantity")


def memory(draft: Draft, place: Path) -> Iterator[Problem]:
    """Memory is a Kubernetes quantity with a unit: bytes alone are always a slip."""
    text = draft.get(*place, kind=str)
    if text is None:
        return
    try:
        units.memory(text)
    except ValueError as error:
        yield draft.problem(place, f"{error}, got {shown(text)}", code="quantity")


def duration(draft: Draft, place: Path, unit: Callable[[str], int]) -> Iterator[Problem]:
    """Times are a number and its unit."""
    text = draft.get(*place, kind=str)
    if text is None:
        return
    try:
        unit(text)
    except ValueError as error:
        yield draft.problem(place, f"{error}, got {shown(text)}", code="duration")
