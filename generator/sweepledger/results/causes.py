"""Why the best value of one side differs from that of another: code, data, environment, values, budget, or noise.

Each factor has its own test, and all tests together name a factor in 5 % of the cases where there is none (Holm,
"A simple sequentially rejective multiple test procedure", 1979). Factors that no test can separate are listed as such.
"""

import math
import random
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import combinations, islice
from typing import TYPE_CHECKING

from sweepledger.results.inference import Interval, mean, pooled, rounded, student, student_tail
from sweepledger.results.sweep_statistics import RESAMPLES, SEED, TOP
from sweepledger.structs.metric import Goal
from sweepledger.structs.program import Program
from sweepledger.structs.record import SummaryRow, TrialResult
from sweepledger.structs.values import as_data, canonical_json, digest

if TYPE_CHECKING:
    import numpy as np

    Matrix = np.typing.NDArray[np.float64]

ALPHA = 0.05
MOST_ENUMERATED = 5000
"""Divisions into two groups that are all counted; of more, random ones are drawn."""
FEWEST_DRAWS, MOST_SHUFFLED = 500, 100_000
"""With replicates, every draw shuffles all trials: bounds of the number of draws, and of the trials in all of them."""
TOLERANCE = 1e-9
"""Relative size below which a singular value, or the difference of two objectives, is zero."""


class Factor(StrEnum):
    """A factor that can move the best value; seed noise is the unexplained rest."""

    CODE = "code"
    DATA = "data"
    ENVIRONMENT = "environment"
    VALUES = "values"
    BUDGET = "budget"


PROGRAM = (Factor.CODE, Factor.DATA, Factor.ENVIRONMENT)
"""The parts of what a trial runs, in the order of `Run.program`."""


@dataclass(frozen=True, slots=True)
class RanProgram:
    """The program of a trial, with the environment from its record."""

    program: Program
    pool: str | None
    in_container: bool
    environment: str | None
    """Digest of the installed software."""

    @property
    def parts(self) -> tuple[str, str, str]:
        """What identifies its code, data and environment."""
        program, data = self.program, self.program.data
        locked = None if program.environment is None else program.environment.digest
        code, config = program.code, as_data(program.config)
        return (
            digest([list(program.command), code.path, code.tree, program.workdir, config]),
            "" if data is None else digest([data.digest, data.as_written()]),
            digest([program.image, locked, self.pool, self.in_container, self.environment]),
        )


@dataclass(frozen=True, slots=True)
class Run:
    """One trial with a result."""

    trial: str
    """Equal for the same trial on both sides."""
    configuration: str
    program: tuple[str, str, str]
    """What identifies its code, data and environment."""
    value: float

    @classmethod
    def of(cls, one: TrialResult | SummaryRow, ran: RanProgram, value: float) -> "Run":
        """Return a trial with its program and its value of the objective."""
        return cls(f"{one.batch}/{one.index}", canonical_json(one.assignment), ran.parts, value)


class State(StrEnum):
    """The finding about a factor."""

    NAMED = "named"
    """It moved the best value in the direction in which it moved."""
    OPPOSED = "opposed"
    """It has an effect, in the other direction."""
    CHANCE = "chance"
    """It differs, and chance alone explains what the trials show."""
    CONFOUNDED = "confounded"
    """It differs, and the recorded trials cannot separate it from other factors, or from noise."""
    EQUAL = "equal"
    """It does not differ."""


@dataclass(frozen=True, slots=True)
class FactorFinding:
    """One factor, with the numbers on which its state is based."""

    factor: Factor
    state: State
    effect: float | None = None
    """By how much it moves the objective, B less A."""
    interval: Interval | None = None
    """95 % interval of the effect, where the test has one."""
    probability: float | None = None
    """Probability that chance alone produces an effect at least as large."""
    trials: int = 0
    """Number of trials that the test used."""
    reason: str = ""
    """What the test compared, or why there is none."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why the best value moved."""

    best: tuple[float, float]
    """Best mean of a configuration, of A and of B."""
    winners: tuple[str, str]
    """The configurations with these means."""
    findings: tuple[FactorFinding, ...]
    """One for each factor."""
    noise: float | None
    """Standard deviation between trials that differ only in their seed; None if there are no such trials."""

    @property
    def moved(self) -> float:
        """By how much the best value moved."""
        return self.best[1] - self.best[0]

    @property
    def named(self) -> tuple[Factor, ...]:
        """The factors that moved it."""
        return self._factors(State.NAMED)

    @property
    def confounded(self) -> tuple[Factor, ...]:
        """The factors that the trials cannot separate."""
        return self._factors(State.CONFOUNDED)

    @property
    def is_noise(self) -> bool:
        """Whether every test was possible, and no test found an effect beyond chance."""
        return not self.confounded and not self.named

    @property
    def verdict(self) -> str:
        """The answer in one line."""
        if self.named:
            text = " and ".join(self.named)
        elif self.confounded:
            text = "the recorded trials cannot tell"
        else:
            text = "no more than seed noise" if self.moved else "it did not move"
        if self.named and self.confounded:
            text += f"; {' and '.join(self.confounded)} cannot be separated yet"
        return text

    def _factors(self, state: State) -> tuple[Factor, ...]:
        return tuple(finding.factor for finding in self.findings if finding.state is state)


def explain(a: Sequence[Run], b: Sequence[Run], goal: Goal, *, others: Iterable[Run] = ()) -> Explanation:
    """Return why the best value of B differs from that of A. Raises ValueError if a side has no run.

    The program of a side is that of its best configuration. `others` are further recorded trials, such as those of
    programs between the two, which can separate factors that always changed together.
    """
    if not a or not b:
        raise ValueError("both sides must have a trial with a result")
    sides = tuple(configuration_means(runs) for runs in (a, b))
    choose = max if goal is Goal.MAXIMIZE else min
    winners = tuple(choose(means, key=lambda key: (means[key], key)) for means in sides)
    best = (sides[0][winners[0]], sides[1][winners[1]])
    runs = list({run.trial: run for run in (*others, *a, *b)}.values())
    programs = [
        next(run.program for run in side if run.configuration == winner)
        for side, winner in zip((a, b), winners, strict=True)
    ]
    model = _ProgramModel.fit(runs, programs[0])
    findings = [
        FactorFinding(factor, State.EQUAL)
        if programs[0][part] == programs[1][part]
        else model.finding(factor, part, programs[1][part])
        for part, factor in enumerate(PROGRAM)
    ]
    # The side with the better best value: what it tried and the other did not may be the reason.
    ahead = best[1] >= best[0] if goal is Goal.MAXIMIZE else best[1] <= best[0]
    sign = 1 if ahead else -1
    better, worse = (b, a) if ahead else (a, b)
    if programs[0] == programs[1]:
        pool = list({run.trial: run for run in (*a, *b)}.values())
    else:
        pool = [run for run in better if run.program == programs[ahead]]
    tried = {run.configuration for run in worse}
    findings.append(_values_finding(pool, tried, winners[ahead], goal, sign))
    findings.append(_budget_finding(better, worse, goal, sign))
    seeds: dict[tuple[str, tuple[str, str, str]], list[float]] = defaultdict(list)
    for run in runs:
        seeds[run.configuration, run.program].append(run.value)
    noise = pooled([*seeds.values()])
    return Explanation(best, (winners[0], winners[1]), _judged(findings, best[1] - best[0]), noise)


def configuration_means(runs: Iterable[Run]) -> dict[str, float]:
    """Return the mean of each configuration."""
    values: dict[str, list[float]] = defaultdict(list)
    for run in runs:
        values[run.configuration].append(run.value)
    return {key: mean(each) for key, each in values.items()}


def _judged(findings: Sequence[FactorFinding], moved: float) -> tuple[FactorFinding, ...]:
    """Return the findings, with their states by Holm's procedure over all tests."""
    tested = sorted(
        (finding.probability, place)
        for place, finding in enumerate(findings)
        if finding.probability is not None
    )
    judged = list(findings)
    for rank, (probability, place) in enumerate(tested):
        if probability > ALPHA / (len(tested) - rank):
            break
        effect = findings[place].effect or 0.0
        judged[place] = replace(findings[place], state=State.NAMED if effect * moved > 0 else State.OPPOSED)
    return tuple(judged)


@dataclass(frozen=True)
class _ProgramModel:
    """An additive model of configurations and parts of the program, fitted by least squares to all trials.

    Its noise includes effects of a part in only some configurations.
    """

    columns: tuple[tuple[int, str], ...]
    """Part and what it is, of each column: all but those of A."""
    matrix: "Matrix"
    """Whether each trial ran with that, less the mean of its configuration."""
    deviations: "Matrix"
    """The value of each trial, less the mean of its configuration."""
    freedom: int
    """Degrees of freedom that the effects leave."""

    @classmethod
    def fit(cls, runs: Sequence[Run], reference: tuple[str, ...]) -> "_ProgramModel":
        import numpy as np  # noqa: PLC0415  (the import takes a fifth of a second)

        levels = sorted({(part, level) for run in runs for part, level in enumerate(run.program)})
        columns = tuple((part, level) for part, level in levels if level != reference[part])
        by_configuration: dict[str, list[Run]] = defaultdict(list)
        for run in runs:
            by_configuration[run.configuration].append(run)
        matrix, deviations = [np.zeros((0, len(columns)))], [np.zeros(0)]
        for group in by_configuration.values():
            if len(group) > 1:
                marks = np.array([[run.program[part] == level for part, level in columns] for run in group])
                matrix.append(marks - marks.mean(axis=0))
                deviations.append(np.array([run.value for run in group]) - mean([run.value for run in group]))
        whole, used = np.concatenate(matrix), sum(map(len, matrix))
        rank = int(np.linalg.matrix_rank(whole, tol=TOLERANCE))
        return cls(columns, whole, np.concatenate(deviations), used - (len(matrix) - 1) - rank)

    def finding(self, factor: Factor, part: int, level: str) -> FactorFinding:
        """Return the finding about one part of the program."""
        import numpy as np  # noqa: PLC0415  (as above)

        used, contrast = len(self.deviations), np.array([key == (part, level) for key in self.columns], float)
        inverse = np.linalg.pinv(self.matrix, rcond=TOLERANCE)
        weights = contrast @ inverse
        if not np.allclose(weights @ self.matrix, contrast, atol=TOLERANCE**0.5):
            reason = "no configuration ran with both, or it always changed together with something else"
            return FactorFinding(factor, State.CONFOUNDED, reason=reason)
        effect = rounded(float(weights @ self.deviations))
        if abs(effect) <= TOLERANCE * float(np.abs(self.deviations).max()):
            effect = 0.0
        if self.freedom < 1:
            reason = "one trial of each: its effect cannot be distinguished from seed noise"
            return FactorFinding(factor, State.CONFOUNDED, effect, trials=used, reason=reason)
        residuals = self.deviations - self.matrix @ (inverse @ self.deviations)
        rest = float(residuals @ residuals)
        if rest <= TOLERANCE**2 * float(self.deviations @ self.deviations):
            rest = 0.0
        error = rounded(math.sqrt(rest / self.freedom * float(weights @ weights)))
        reach = student(self.freedom) * error
        probability = student_tail(effect / error, self.freedom) if error else float(effect == 0)
        return FactorFinding(
            factor,
            State.CHANCE,
            effect,
            Interval(effect - reach, effect + reach),
            probability,
            used,
            "configurations that ran with both",
        )


def _values_finding(
    pool: Sequence[Run], tried: Collection[str], winner: str, goal: Goal, sign: int
) -> FactorFinding:
    """Return the finding about configurations that only the better side tried, by a permutation test.

    All trials of the pool have one program: if the sides' programs differ, it has only trials of the better side.
    """
    new = [run for run in pool if run.configuration not in tried]
    old = [run for run in pool if run.configuration in tried]
    if winner in tried:
        return FactorFinding(
            Factor.VALUES, State.EQUAL, reason="the best configuration ran on both sides" if new else ""
        )
    if not old:
        reason = "no configuration of the other side ran with this program"
        return FactorFinding(Factor.VALUES, State.CONFOUNDED, reason=reason)
    effect, probability, least = _permuted(new, old, goal)
    if least > ALPHA:
        reason = f"too few trials: {len(new)} of new configurations, {len(old)} of the others"
        return FactorFinding(Factor.VALUES, State.CONFOUNDED, sign * effect, trials=len(pool), reason=reason)
    reason = "new configurations and the others, under one program"
    return FactorFinding(Factor.VALUES, State.CHANCE, sign * effect, None, probability, len(pool), reason)


def _permuted(new: Sequence[Run], old: Sequence[Run], goal: Goal) -> tuple[float, float, float]:
    """Return the difference of the best means, its two-sided probability, and the smallest possible probability.

    By chance, each trial could have any other's value, so the best of more configurations is better by chance.
    """
    slots = [run.configuration for run in (*new, *old)]
    values = [run.value for run in (*new, *old)]
    places: dict[str, list[int]] = defaultdict(list)
    for place, key in enumerate(slots):
        places[key].append(place)
    ours = [places[key] for key in dict.fromkeys(slots[: len(new)])]
    theirs = [places[key] for key in dict.fromkeys(slots[len(new) :])]
    top = min(TOP, len(ours), len(theirs))
    direction = 1 if goal is Goal.MAXIMIZE else -1

    def statistic(order: Sequence[float]) -> float:
        first, second = (
            sorted((direction * mean([order[place] for place in group]) for group in side), reverse=True)
            for side in (ours, theirs)
        )
        return mean(first[:top]) - mean(second[:top])

    observed = statistic(values)
    enough = observed - TOLERANCE * abs(observed)
    is_simple = len(ours) == len(new) and len(theirs) == len(old)
    count = math.comb(len(values), len(new))
    if count <= MOST_ENUMERATED and (is_simple or len(ours) == len(theirs) == 1):
        every = set(range(len(values)))
        orders = (
            (*part, *sorted(every.difference(part))) for part in combinations(range(len(values)), len(new))
        )
        reached = sum(statistic([values[place] for place in order]) >= enough for order in orders)
        least, share = 1 / count, reached / count
    else:
        draws = min(RESAMPLES, max(FEWEST_DRAWS, MOST_SHUFFLED // len(values)))
        if is_simple:
            draws, drawn = RESAMPLES, _drawn_tops([direction * each for each in values], len(new), top)
        else:
            drawn = map(statistic, _shuffled(values))
        reached = 1 + sum(each >= enough for each in islice(drawn, draws))
        least, share = max(1 / (draws + 1), 1 / count), reached / (draws + 1)
    effect = _best_mean(new, direction) - _best_mean(old, direction)
    return effect, min(1.0, 2 * share), min(1.0, 2 * least)


def _shuffled(values: Sequence[float]) -> Iterator[list[float]]:
    # Python guarantees that `random()` gives the same numbers for a seed in every version; `shuffle` uses it in a
    # way that may change.
    rng = random.Random(SEED)  # noqa: S311 - statistics
    while True:
        keys = [rng.random() for _ in values]
        yield [values[place] for place in sorted(range(len(values)), key=keys.__getitem__)]


def _drawn_tops(values: Sequence[float], size: int, top: int) -> Iterator[float]:
    """Yield the difference of the mean of the best between random groups: `size` values, and the remaining values.

    The values are assigned to the groups best first, until both groups have their best ones.
    """
    rng = random.Random(SEED)  # noqa: S311 - statistics
    ordered = sorted(values, reverse=True)
    while True:
        places, rest = [size, len(ordered) - size], len(ordered)
        sums, counts = [0.0, 0.0], [0, 0]
        for value in ordered:
            group = 0 if rng.random() * rest < places[0] else 1
            places[group] -= 1
            rest -= 1
            if counts[group] < top:
                counts[group] += 1
                sums[group] += value
                if counts[0] == counts[1] == top:
                    break
        yield (sums[0] - sums[1]) / top


def _best_mean(runs: Iterable[Run], direction: int) -> float:
    return direction * max(direction * value for value in configuration_means(runs).values())


def _budget_finding(better: Sequence[Run], worse: Sequence[Run], goal: Goal, sign: int) -> FactorFinding:
    """Return the finding about the number of configurations.

    If their order does not matter, the best of n configurations is among any m of them with probability m / n.
    """
    means = configuration_means(better)
    more, fewer = len(means), len(configuration_means(worse))
    if more <= fewer:
        return FactorFinding(Factor.BUDGET, State.EQUAL)
    expected = _expected_best([*means.values()], fewer, goal)
    best = max(means.values()) if goal is Goal.MAXIMIZE else min(means.values())
    reason = f"the best of {fewer} of its {more} configurations is {expected:.6g} on average"
    return FactorFinding(
        Factor.BUDGET, State.CHANCE, sign * (best - expected), None, fewer / more, len(better), reason
    )


def _expected_best(values: Sequence[float], count: int, goal: Goal) -> float:
    """Return the expected best value of a random selection of `count` values."""
    ordered = sorted(values, reverse=goal is Goal.MAXIMIZE)
    share, rest, expected = 1.0, len(ordered), 0.0
    for place, value in enumerate(ordered[: len(ordered) - count + 1]):
        chosen = share * count / (rest - place)
        expected += chosen * value
        share -= chosen
    return expected
