"""What is said of parameters in a README: their shares, and the values at which they did best and worst."""

from collections.abc import Mapping, Sequence
from typing import Any

from generator.results import words
from generator.results.importance import Group, Importance, Share
from generator.structs.sweep import Goal


def mattered(importance: Importance, goal: Goal) -> Mapping[str, Any]:
    """Give the template what it says of the importance of parameters."""
    shares, spread = importance.shares, importance.spread
    reasons = {share.untold for share in shares}
    return {
        "rows": [_row(share, goal) for share in shares],
        "rest": None if importance.rest is None else words.percent(importance.rest),
        # One reason for all is said once.
        "untold": reasons.pop() if len(reasons) == 1 else "",
        "scale": _scale(log=spread.log, beyond=spread.beyond),
    }


def _scale(*, log: bool, beyond: int) -> str:
    told = ["of its logarithm"] * log
    if beyond:
        told.append(f"with {beyond} outliers taken for the worst of the others")
    return ", ".join(told)


def _row(share: Share, goal: Goal) -> Mapping[str, Any]:
    ordered = sorted(share.groups, key=lambda group: group.mean, reverse=goal is Goal.MAXIMIZE)
    width = abs(ordered[0].mean - ordered[-1].mean)
    return {
        "parameter": share.parameter,
        "together": share.together,
        "share": "" if share.share is None else words.percent(share.share),
        "untold": share.untold,
        "by_chance": share.by_chance,
        "best": _end(ordered[0], width),
        "worst": _end(ordered[-1], width),
    }


def _end(group: Group, width: float) -> Mapping[str, Any]:
    alone = words.plain(group.first) == words.plain(group.last)
    ends: Sequence[Any] = (group.first,) if alone else (_round(group.first), _round(group.last))
    return {"values": ends, "mean": words.fine(group.mean, width)}


def _round(value: Any) -> Any:
    """Shorten the end of a group: it is no value that anybody would copy."""
    return float(f"{value:.3g}") if isinstance(value, float) else value
