"""Texts with a form, such as amounts with their units: what is wrong with them."""

from collections.abc import Callable, Iterator
from typing import Any

from sweepledger.model.keys import texts_with_forms
from sweepledger.problems import Problem
from sweepledger.reader import DocumentPath, safe_repr
from sweepledger.spec.draft import Draft
from sweepledger.structs.quantities import cores, memory
from sweepledger.structs.settings import Settings


def settings_forms(draft: Draft) -> Iterator[Problem]:
    """Each text of the settings has the form that its class states."""
    for path, written, form, at_key in texts_with_forms(Settings, draft.document.data):
        if not form.code or any(path[:end] in draft.broken for end in range(len(path) + 1)):
            continue
        try:
            form.read(written)
        except ValueError as error:
            message = f"{error}, got {safe_repr(written)}"
            yield draft.problem(path, message, code=form.code, hint=form.hint, at_key=at_key)


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
