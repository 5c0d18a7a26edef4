"""What a trial may use: cores, memory, time."""

from collections.abc import Iterator

from generator.problems import Problem
from generator.reader import shown
from generator.spec import units
from generator.spec.draft import Draft


def cpu(draft: Draft) -> Iterator[Problem]:
    """Cores are a Kubernetes quantity."""
    place = ("run", "resources", "cpu")
    text = draft.get(*place, kind=str)
    amount = draft.number(*place) if text is None else text
    if amount is None:
        return
    try:
        units.cores(amount)
    except ValueError as error:
        yield draft.problem(place, f"{error}, got {shown(amount)}", code="quantity")


def memory(draft: Draft) -> Iterator[Problem]:
    """Memory is a Kubernetes quantity with a unit: bytes alone are always a slip."""
    place = ("run", "resources", "memory")
    text = draft.get(*place, kind=str)
    if text is None:
        return
    try:
        units.memory(text)
    except ValueError as error:
        yield draft.problem(place, f"{error}, got {shown(text)}", code="quantity")


def timeout(draft: Draft) -> Iterator[Problem]:
    """A trial that hangs must end some day."""
    text = draft.get("run", "timeout", kind=str)
    if text is None:
        return
    try:
        units.seconds(text)
    except ValueError as error:
        yield draft.problem(("run", "timeout"), f"{error}, got {shown(text)}", code="duration")
