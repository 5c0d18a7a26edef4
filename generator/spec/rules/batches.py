"""Batches that a spec names: those of its own sweep."""

from collections.abc import Iterator

from generator.problems import Problem
from generator.reader import Path, shown
from generator.spec.draft import Draft
from generator.structs.names import split_batch_name


def named(draft: Draft) -> Iterator[Problem]:
    """A batch is cancelled or retried by the spec of its sweep, once."""
    sweep = draft.get("name", kind=str)
    for key in ("cancel", "retry"):
        seen = set[str]()
        for place, name in _names(draft, key):
            parts = split_batch_name(name)
            if sweep is not None and (parts is None or parts[0] != sweep):
                message = f"must be a batch of this sweep, got {shown(name)}"
                hint = f"such as {sweep}-b1-3f9a1c2e; `sweep status` lists them"
                yield draft.problem(place, message, code="batch-name", hint=hint)
            elif name in seen:
                message = f"must be named once, got {shown(name)} again"
                yield draft.problem(place, message, code="batch-name", hint="delete one of them")
            seen.add(name)


def _names(draft: Draft, key: str) -> Iterator[tuple[Path, str]]:
    for place, item in draft.items(key):
        whole = place if isinstance(item, str) else (*place, "batch")
        name = draft.get(*whole, kind=str)
        if name is not None:
            yield whole, name
