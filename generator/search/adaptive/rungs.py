"""Rungs: many trials get little of a resource, and the best of them go on with more. No chance but the first.

Where a search stands is read from its trials: the amount that each got, and whom it went on from.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from generator import __version__
from generator.search.adaptive import ending
from generator.search.adaptive.chance import feasible, seed_of
from generator.search.adaptive.evidence import key_of
from generator.search.adaptive.values import Finished, Observation, Round, Suggestion
from generator.search.settling import Assignment
from generator.structs.adaptive import Method, Resource, Search, brackets
from generator.structs.record import Status
from generator.structs.sweep import Goal, Metric, Sweep

ENGINE = f"sweepledger {__version__}"


@dataclass(frozen=True, slots=True)
class Ladder:
    """All trials of a search by the rung that they are on."""

    resource: Resource
    metric: Metric
    rungs: tuple[int, ...]
    """What a trial of each gets."""
    trials: Mapping[int, Sequence[Observation]]
    """By the place of their rung; those of an amount that no rung has are left out."""
    configurations: frozenset[str] = field(default=frozenset())
    """What has been tried with any amount."""

    @classmethod
    def of(cls, sweep: Sweep, resource: Resource, own: Iterable[Observation]) -> "Ladder":
        """Put a search's own trials, which are in order, on their rungs."""
        rungs = resource.rungs
        found: dict[int, list[Observation]] = {}
        tried: set[str] = set()
        for one in own:
            tried.add(configuration(one.assignment, resource))
            amount = one.assignment.get(resource.parameter)
            if amount in rungs:
                found.setdefault(rungs.index(int(str(amount))), []).append(one)
        return cls(resource, sweep.metric, rungs, found, frozenset(tried))

    def ranked(self, trials: Iterable[Observation]) -> list[Observation]:
        """Sort trials that can go on, the best first; equals by what they are."""
        sign = -1.0 if self.metric.goal is Goal.MAXIMIZE else 1.0
        fine = [one for one in trials if one.status is Status.OK and one.values]
        return sorted(fine, key=lambda one: (sign * (one.values or (0.0,))[0], one.trial))

    def promoted(self, one: Observation, rung: int) -> Suggestion:
        """Let a trial go on with what a rung gives."""
        return Suggestion({**one.assignment, self.resource.parameter: self.rungs[rung]}, one.id)

    def went_on(self, rung: int) -> frozenset[str]:
        """Name the trials that have gone on to a rung."""
        return frozenset(one.parent for one in self.trials.get(rung, ()) if one.parent is not None)


def configuration(assignment: Assignment, resource: Resource) -> str:
    """Name what a trial tries, whatever it gets for it."""
    return key_of({name: value for name, value in assignment.items() if name != resource.parameter})


def climbed(sweep: Sweep, search: Search, own: Sequence[Observation], number: int) -> Round | Finished:
    """Make the next round of halving, hyperband or asha."""
    assert search.resource is not None
    ladder = Ladder.of(sweep, search.resource, own)
    newcomers = _newcomers(search, ladder, number)
    match search.method:
        case Method.HALVING:
            wished = _halving(search, ladder, newcomers)
        case Method.HYPERBAND:
            wished = _hyperband(search, ladder, newcomers)
        case _:
            wished = _asha(search, ladder, newcomers)
    left = ending.room(sweep, search, own)
    suggestions = tuple(islice(wished, left))
    if suggestions:
        return Round(number, suggestions, 0, 0, ENGINE)
    if search.method is Method.ASHA or not own:
        return Finished("exhausted", "every assignment that could be found is known")
    return Finished("last-rung", "nothing is left that could go on")


def _newcomers(search: Search, ladder: Ladder, number: int) -> Iterator[Assignment]:
    """Draw assignments that were tried with no amount yet."""
    tried = set(ladder.configurations)
    for assignment in feasible(search.space, seed_of(search.seed, number, "newcomers")):
        key = key_of(assignment)
        if key not in tried:
            tried.add(key)
            yield assignment


def _first(ladder: Ladder, newcomers: Iterator[Assignment], count: int, rung: int) -> Iterator[Suggestion]:
    for assignment in islice(newcomers, count):
        yield Suggestion({**assignment, ladder.resource.parameter: ladder.rungs[rung]})


def _halving(search: Search, ladder: Ladder, newcomers: Iterator[Assignment]) -> Iterator[Suggestion]:
    if not ladder.trials:
        yield from _first(ladder, newcomers, search.rounds.size, 0)
        return
    top = max(ladder.trials)
    if top + 1 < len(ladder.rungs):
        yield from _next_rung(ladder, ladder.trials[top], top + 1)


def _next_rung(ladder: Ladder, trials: Sequence[Observation], rung: int) -> Iterator[Suggestion]:
    """Let one in eta go on, and at least one."""
    for one in ladder.ranked(trials)[: max(1, len(trials) // ladder.resource.eta)]:
        yield ladder.promoted(one, rung)


def _hyperband(search: Search, ladder: Ladder, newcomers: Iterator[Assignment]) -> Iterator[Suggestion]:
    """Take all brackets a rung further; which one a trial belongs to, its first forebear says."""
    if not ladder.trials:
        for rung, count in brackets(search.rounds.size, ladder.resource):
            yield from _first(ladder, newcomers, count, rung)
        return
    begun = _beginnings(ladder)
    for first, _ in brackets(search.rounds.size, ladder.resource):
        mine = {
            rung: [one for one in trials if begun[one.id] == first] for rung, trials in ladder.trials.items()
        }
        reached = [rung for rung, trials in mine.items() if trials]
        if reached and max(reached) + 1 < len(ladder.rungs):
            yield from _next_rung(ladder, mine[max(reached)], max(reached) + 1)


def _beginnings(ladder: Ladder) -> dict[str, int]:
    """Say on which rung each trial's first forebear began."""
    begun: dict[str, int] = {}
    for rung in sorted(ladder.trials):
        for one in ladder.trials[rung]:
            begun[one.id] = begun.get(one.parent or "", rung)
    return begun


def _asha(search: Search, ladder: Ladder, newcomers: Iterator[Assignment]) -> Iterator[Suggestion]:
    """Let all go on that are among the best of their rung so far, from the highest down; then begin anew."""
    left = search.rounds.size
    for rung in range(len(ladder.rungs) - 2, -1, -1):
        trials = ladder.trials.get(rung, ())
        best = ladder.ranked(trials)[: len(trials) // ladder.resource.eta]
        gone = ladder.went_on(rung + 1)
        for one in best:
            if one.id not in gone and left:
                left -= 1
                yield ladder.promoted(one, rung + 1)
    yield from _first(ladder, newcomers, left, 0)
