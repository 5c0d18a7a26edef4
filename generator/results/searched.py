"""What the README of results says of searches by rounds, and of trials that were ended early."""

from collections.abc import Mapping
from typing import Any

from generator.results import words
from generator.results.early import Early
from generator.results.rounds import Rounded, Rung, Shared


def round_(found: Rounded) -> Mapping[str, Any]:
    """Give the template a line of its table of rounds."""
    return {
        "number": found.number,
        "engine": found.engine,
        "amounts": ", ".join(map(str, found.amounts)),
        "is_record": found.is_record,
        **_shared(found.shared),
    }


def rung(found: Rung) -> Mapping[str, Any]:
    """Give the template a line of its table of rungs."""
    return {"amount": found.amount, **_shared(found.shared)}


def _shared(found: Shared) -> Mapping[str, Any]:
    return {
        "trials": found.trials,
        "ok": found.ok,
        "pruned": found.pruned,
        "seconds": words.duration(found.seconds),
        "best": "" if found.best is None else words.short(found.best),
        "kept": "" if found.kept is None else str(found.kept),
    }


def early(found: Early | None) -> Mapping[str, Any] | None:
    """Give the template what it says of trials that did not run to their end."""
    if found is None:
        return None
    return {
        "rules": [(rule, words.trials(count)) for rule, count in found.rules.items()],
        "whole": found.whole or 0,
        "steps": found.steps,
        "seconds": words.duration(found.seconds),
    }
