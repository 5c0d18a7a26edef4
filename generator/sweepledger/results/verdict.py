"""Whether a sweep has a winner, and what a reader must know before believing it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from generator.results.inference import Interval
from generator.results.replicated import Replicated
from generator.results.words import one_line, short
from generator.structs.record import PROCESS, Outcome, Status
from generator.structs.sweep import Goal, Metric


class Verdict(StrEnum):
    """Why there is a winner, or none."""

    BEST = "best"
    """The best trial, of one an assignment: how much of it is luck nobody can say."""
    CLEAR = "clear"
    """With replicates: the interval of the best mean clears that of the next."""
    ALONE = "alone"
    """With replicates: no other assignment has a result."""
    OVERLAP = "overlap"
    """No winner: the intervals of the best two means overlap."""
    TOO_FEW = "too-few"
    """No winner: one of the best two has a single result, and so no interval."""
    NOTHING_OK = "nothing-ok"
    """No winner: no trial that may win has a result."""

    @property
    def is_won(self) -> bool:
        """Tell whether it names a winner."""
        return self in {Verdict.BEST, Verdict.CLEAR, Verdict.ALONE}


@dataclass(frozen=True, slots=True)
class Field:
    """All assignments of a sweep, by whether they may win; each part best first."""

    ranked: tuple[Replicated, ...]
    """Of the newest program, asked for by today's spec, with a result."""
    outside: tuple[Replicated, ...]
    """Of the newest program; today's spec does not ask for them."""
    earlier: tuple[Replicated, ...]
    """Of other programs."""
    metric: Metric
    trials: int
    """How many may win, with or without a result."""
    has_replicates: bool
    """Whether any of these is a repetition."""


def decide(field: Field) -> Verdict:
    """Decide by the assignments that may win and have a result."""
    ranked = field.ranked
    if not ranked:
        return Verdict.NOTHING_OK
    if not field.has_replicates:
        return Verdict.BEST
    if len(ranked) == 1:
        return Verdict.ALONE
    first, second = (one.interval for one in ranked[:2])
    if first is None or second is None:
        return Verdict.TOO_FEW
    return Verdict.CLEAR if _clears(first, second, field.metric) else Verdict.OVERLAP


def _clears(first: Interval, second: Interval, metric: Metric) -> bool:
    """Tell whether the worst of one is better than the best of the other."""
    return metric.better(first.low, second.high) and metric.better(first.high, second.low)


def said(verdict: Verdict, field: Field) -> str:
    """Give the reason for a verdict."""
    name, ranked = one_line(field.metric.name), field.ranked
    trials = sum(one.count for one in ranked)
    match verdict:
        case Verdict.NOTHING_OK:
            return f"none of {field.trials} trial(s) of the newest program ended ok with a finite {name}"
        case Verdict.BEST:
            return f"the best {name} of {trials} trial(s) that ended ok, one an assignment"
        case Verdict.ALONE:
            return f"no other assignment has a {name}"
        case Verdict.CLEAR:
            return f"the 95 % interval of its mean {name}, {_both(ranked)}"
        case Verdict.OVERLAP:
            return f"the 95 % intervals of the best two means of {name} overlap: {_both(ranked)}"
        case Verdict.TOO_FEW:
            counts = " and ".join(str(one.count) for one in ranked[:2])
            return f"the best two assignments have {counts} result(s), and an interval takes two of each"


def _both(ranked: Sequence[Replicated]) -> str:
    first, second = (_shown(one.interval) for one in ranked[:2])
    return f"{first} over {ranked[0].count} trials, and the next, {second} over {ranked[1].count}"


def _shown(found: Interval | None) -> str:
    return "" if found is None else f"{short(found.low)} to {short(found.high)}"


def warnings(field: Field, outcomes: Iterable[Outcome]) -> Iterator[str]:
    """Yield what could mislead: better trials that may not win, mixed company, unusable records."""
    listed = tuple(outcomes)
    if any(one.in_spec is None for one in listed):
        yield "today's spec cannot be read or expanded: nobody can say which trials it still asks for"
    yield from _better(field, field.outside, "today's spec does not ask for it")
    yield from _better(field, field.earlier, "it ran an earlier program")
    yield from _mixed(field.ranked)
    for status, what in ((Status.CORRUPT, "cannot be read"), (Status.FOREIGN, "are not its own")):
        count = sum(one.status is status for one in listed)
        if count:
            yield f"of {count} trial(s) nothing is known: the records in their place {what}"


def _better(field: Field, others: Sequence[Replicated], why: str) -> Iterator[str]:
    """Tell of the best of those that may not win, where it is better than all that may."""
    sign = -1 if field.metric.goal is Goal.MAXIMIZE else 1
    known = [(sign * one.mean, one.trial.trial, one.mean) for one in others if one.mean is not None]
    if not known:
        return
    _, trial, value = min(known)
    best = field.ranked[0].mean if field.ranked else None
    if best is None or field.metric.better(value, best):
        number = f"{one_line(field.metric.name)} {short(value)}"
        yield f"trial {trial} ({number}) is better than all that may win, but {why}"


def _mixed(ranked: Iterable[Replicated]) -> Iterator[str]:
    places = Counter(
        one.record.ran == PROCESS
        for each in ranked
        for one in each.trials
        if one.record is not None and one.status is Status.OK
    )
    if places[True] and places[False]:
        yield (
            f"{places[True]} of the ranked trials ran as processes of `sweep local` and {places[False]} in "
            "containers: they may differ for that alone"
        )
