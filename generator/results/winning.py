"""What is said of the winner and of those next to it: of trials, or with replicates of assignments."""

from collections.abc import Mapping, Sequence
from typing import Any

from generator.results import words
from generator.results.inference import Interval
from generator.results.replicated import Replicated
from generator.results.summary import TOP, Summary
from generator.results.verdict import Verdict
from generator.structs.record import Outcome


def winner(summary: Summary) -> Mapping[str, Any] | None:
    """Give the template what it says of the winner, if there is one."""
    trial, best = summary.winner, summary.best
    if trial is None or best is None:
        return None
    varied = {effect.parameter for effect in summary.effects}
    values = list(trial.assignment.items())
    width = 0.0 if summary.interval is None else summary.interval.high - summary.interval.low
    return {
        "trial": trial.trial,
        "objective": _within(best, width),
        "interval": _interval(summary.interval, width),
        "next": _next(summary),
        "replicated": bool(summary.replicated),
        "count": summary.replicated[0].count if summary.replicated else 1,
        "ties": _ties(summary, best),
        "assignment": values,
        "varied": [(name, value) for name, value in values if name in varied],
        "metrics": [] if summary.replicated else _measured(summary, trial),
    }


def _next(summary: Summary) -> Mapping[str, str] | None:
    """Give the interval that the winner's clears."""
    if summary.verdict is not Verdict.CLEAR:
        return None
    found = leading(summary)[1].interval
    return None if found is None else _interval(found, found.high - found.low)


def _ties(summary: Summary, best: float) -> int:
    name = summary.metric.name
    return sum(summary.may_win(each) and each.metric(name) == best for each in summary.outcomes)


def _measured(summary: Summary, trial: Outcome) -> list[tuple[str, float]]:
    found = {} if trial.record is None else trial.record.metrics
    others = sorted((name, number) for name, number in found.items() if number is not None)
    return [(name, number) for name, number in others if name != summary.metric.name]


def leading(summary: Summary) -> Sequence[Replicated]:
    """Give the assignments to list: the best that may win and have a result; none without replicates."""
    ranked = [one for one in summary.replicated if one.mean is not None and one.in_spec is not False]
    return ranked[:TOP]


def assignments(summary: Summary) -> list[tuple[Replicated, Mapping[str, Any]]]:
    """Give the template what it says of these: all numbers with the digits of the narrowest interval."""
    listed = leading(summary)
    widths = [one.interval.high - one.interval.low for one in listed if one.interval is not None]
    width = min((width for width in widths if width > 0), default=0.0)
    return [(one, _assignment(one, width)) for one in listed]


def _assignment(one: Replicated, width: float) -> Mapping[str, Any]:
    return {
        "trial": one.trial.trial,
        "mean": _within(one.mean or 0.0, width),
        "interval": _interval(one.interval, width),
        "count": one.count,
    }


def _interval(found: Interval | None, width: float) -> Mapping[str, str] | None:
    return None if found is None else {"low": _within(found.low, width), "high": _within(found.high, width)}


def _within(number: float, width: float) -> str:
    """Write a number with two digits of what an interval of this width leaves open."""
    return words.fine(number, 10 * width)
