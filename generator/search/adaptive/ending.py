"""When a search is over, and how many assignments its next round may have."""

from collections.abc import Iterable, Iterator, Sequence

from generator.search.adaptive.evidence import key_of
from generator.search.adaptive.values import Finished, Observation
from generator.search.limits import running
from generator.structs.adaptive import Search
from generator.structs.counting import MOST_TRIALS
from generator.structs.record import Status
from generator.structs.sweep import Metric, Sweep

Values = tuple[float, ...]


def finished(sweep: Sweep, search: Search, own: Sequence[Observation], *, number: int) -> Finished | None:
    """Say why a search asks for nothing more; None where it goes on. `own` are its own trials, in order."""
    most = search.rounds.max
    if most is not None and number > most:
        return Finished("rounds", f"{most} rounds were asked for")
    for one in own:
        if one.status is Status.OK and one.values and sweep.metric.reaches_target(one.values[0]):
            return Finished("target", f"{one.id} has {sweep.metric.name} {one.values[0]:g}")
    patience = search.rounds.patience
    if patience is not None and (stale := _stale(own, sweep.metrics)) >= patience:
        return Finished("patience", f"{stale} rounds brought nothing better")
    known = assignments(own)
    if search.cap is not None and known >= search.cap:
        return Finished("run-cap", f"{known} assignments were asked for, of run_cap {search.cap}")
    for problem in running.budgets(sweep, len(own) + sweep.replicates, is_all=True):
        return Finished("budget", f"{len(own)} trials were asked for; with more it {problem.message}")
    return None


def size(sweep: Sweep, search: Search, own: Sequence[Observation]) -> int:
    """Count the assignments that the next round may have."""
    return min(search.rounds.size, room(sweep, search, own))


def room(sweep: Sweep, search: Search, own: Sequence[Observation]) -> int:
    """Count the assignments that run_cap and all limits leave."""
    left = (running.affordable(sweep, MOST_TRIALS) - len(own)) // sweep.replicates
    if search.cap is not None:
        left = min(left, search.cap - assignments(own))
    return max(0, left)


def assignments(own: Iterable[Observation]) -> int:
    """Count the different assignments of some trials."""
    return len({key_of(one.assignment) for one in own})


def _stale(own: Iterable[Observation], metrics: Sequence[Metric]) -> int:
    """Count the rounds since the last one that found something better."""
    front: list[Values] = []
    stale = 0
    for values in _by_round(own):
        better = [one for one in values if not any(_covers(other, one, metrics) for other in front)]
        front = [one for one in front if not any(_covers(new, one, metrics) for new in better)] + better
        stale = 0 if better else stale + 1
    return stale


def _by_round(own: Iterable[Observation]) -> Iterator[list[Values]]:
    """Give what each round found; one that left no record at all is none."""
    rounds: dict[int, list[Values]] = {}
    for one in own:
        if one.status.kind not in {Status.MISSING, Status.CANCELLED}:
            found = rounds.setdefault(one.round or 0, [])
            if one.status is Status.OK and one.values is not None:
                found.append(one.values)
    return (rounds[number] for number in sorted(rounds))


def _covers(left: Values, right: Values, metrics: Sequence[Metric]) -> bool:
    """Tell whether left is at least as good in all metrics."""
    return not any(
        metric.better(mine, theirs) for metric, theirs, mine in zip(metrics, left, right, strict=True)
    )
