"""Texts with a form, such as amounts with their units and names: each has the one that its class states."""

from collections.abc import Iterator
from typing import Any

from sweepledger.model.keys import texts_with_forms
from sweepledger.problems import Problem
from sweepledger.reader import safe_repr
from sweepledger.spec.draft import Draft
from sweepledger.spec.keys import SEARCH_KEYS, Spec
from sweepledger.structs.settings import Settings


def sweep_forms(draft: Draft) -> Iterator[Problem]:
    """Each text of a spec has its form; the keys of the search, which may be large, have rules of their own."""
    data = draft.document.data
    yield from _problems(draft, Spec, {key: data[key] for key in data.keys() - SEARCH_KEYS})


def settings_forms(draft: Draft) -> Iterator[Problem]:
    """Each text of the settings has its form."""
    yield from _problems(draft, Settings, draft.document.data)


def _problems(draft: Draft, kind: type, data: Any) -> Iterator[Problem]:
    for path, written, form, at_key in texts_with_forms(kind, data):
        if not form.code or any(path[:end] in draft.broken for end in range(len(path) + 1)):
            continue
        try:
            form.read(written)
        except ValueError as error:
            message = f"{error}, got {safe_repr(written)}"
            yield draft.problem(path, message, code=form.code, hint=form.hint, at_key=at_key)
