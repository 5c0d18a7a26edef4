"""Budgets of the settings: whose they are, and in what they count."""

import re
from collections.abc import Iterator

from generator.problems import Problem
from generator.reader import shown
from generator.spec.draft import Draft

TEAM = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
PATTERN = re.compile(r"[a-z0-9*-]{1,63}", re.ASCII)
CURRENCY = re.compile(r"[A-Za-z€$£¥]{1,8}", re.ASCII)


def named(draft: Draft) -> Iterator[Problem]:
    """A team's name is a plain word, and so is a sweep's, but for its stars."""
    for team in draft.names("budgets"):
        place = ("budgets", team)
        if not TEAM.fullmatch(team):
            message = f"must be named with small letters, digits and dashes, got {shown(team)}"
            yield draft.problem(place, message, code="budget-name", at_key=True)
        for index, pattern in enumerate(draft.get(*place, "sweeps", kind=list) or ()):
            if isinstance(pattern, str) and not PATTERN.fullmatch(pattern):
                message = f"must be the name of a sweep, or one with stars, got {shown(pattern)}"
                hint = "for example vision-*"
                yield draft.problem((*place, "sweeps", index), message, code="budget-name", hint=hint)


def limited(draft: Draft) -> Iterator[Problem]:
    """A budget without a limit is none."""
    for team in draft.names("budgets"):
        place = ("budgets", team)
        if draft.get(*place, kind=dict) is not None and not {"gpu_hours", "money"} & {*draft.names(*place)}:
            message = "must be given, or money"
            yield draft.problem((*place, "gpu_hours"), message, code="missing-key", at_key=True)


def currency(draft: Draft) -> Iterator[Problem]:
    """What stands behind every price is short."""
    found = draft.get("currency", kind=str)
    if found is not None and not CURRENCY.fullmatch(found):
        message = f"must be a currency's letters or its sign, got {shown(found)}"
        yield draft.problem(("currency",), message, code="currency", hint="for example EUR")
