"""How often `sweep compare --explain` names a planted factor, and how often it calls noise noise.

    python benchmarks/explain.py [SEED]      the bars: 20 of 20, and noise in at least 940 of 1,000

A planted factor has an effect of three standard deviations of the seed noise, unless its row says otherwise; a row is
named if the planted factors are named, and no others. In the thousand, nothing has an effect: the sides differ in code,
data, environment, configurations and number of trials, or in nothing but seeds. Nothing is read or written.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from sweepledger.results.causes import Explanation, Factor, Run, explain  # noqa: E402
from sweepledger.structs.metric import Goal  # noqa: E402

SEED = 22
REPETITIONS = 1000
NOISE = 0.01
EFFECT = 3 * NOISE
OLD, NEW = ("code-1", "data-1", "image-1"), ("code-2", "data-2", "image-2")


@dataclass(frozen=True)
class Case:
    """Two sides, other trials between them, and the factors that are planted."""

    name: str
    planted: frozenset[Factor]
    build: Callable[[Random], tuple[Sequence[Run], Sequence[Run], Sequence[Run]]]

    def explained(self, rng: Random, goal: Goal = Goal.MAXIMIZE) -> Explanation:
        a, b, others = self.build(rng)
        return explain(a, b, goal, others=others)


def program(*changed: Factor) -> tuple[str, str, str]:
    parts = zip((Factor.CODE, Factor.DATA, Factor.ENVIRONMENT), OLD, NEW, strict=True)
    code, data, environment = (new if factor in changed else old for factor, old, new in parts)
    return code, data, environment


def runs(
    rng: Random,
    configurations: Iterable[int],
    *changed: Factor,
    replicates: int = 1,
    gain: float = 0.0,
    spread: float = 0.0,
    first: int = 0,
) -> list[Run]:
    """Trials of some configurations; `spread` is the deviation between configurations, each with a seed."""
    listed = []
    for number in configurations:
        level = 0.9 + gain + spread * Random(number).gauss(0, 1)  # noqa: S311 - a configuration's own level
        listed += [
            Run(
                f"{number}-{first + each}-{'-'.join(changed)}",
                f"{number:04}",
                program(*changed),
                level + rng.gauss(0, NOISE),
            )
            for each in range(replicates)
        ]
    return listed


def changed_program(
    *factors: Factor, configurations: int, replicates: int, spread: float, gain: float
) -> Case:
    """The same configurations under another program, all of whose changes have an effect together."""

    def build(rng: Random) -> tuple[list[Run], list[Run], list[Run]]:
        numbers = range(configurations)
        a = runs(rng, numbers, replicates=replicates, spread=spread)
        return a, runs(rng, numbers, *factors, replicates=replicates, spread=spread, gain=gain), []

    named = frozenset(factors) if gain else frozenset()
    return Case(f"{' and '.join(factors)}, {configurations} x {replicates}", named, build)


def between(
    changes: Sequence[Factor], effective: Factor, *, replicates: int = 2, gain: float = EFFECT
) -> Case:
    """Several changes one after the other, with trials of each program; one of them has an effect."""

    def build(rng: Random) -> tuple[list[Run], list[Run], list[Run]]:
        stages = []
        for count in range(len(changes) + 1):
            made = changes[:count]
            level = gain if effective in made else 0.0
            stages.append(runs(rng, range(6), *made, replicates=replicates, spread=NOISE, gain=level))
        return stages[0], stages[-1], [run for stage in stages[1:-1] for run in stage]

    named = frozenset({effective}) if gain else frozenset()
    return Case(f"{effective} of {', '.join(changes)}, trials between", named, build)


def new_values(
    old: int, new: int, *changed: Factor, replicates: int = 1, gain: float = EFFECT, spread: float = 0.0
) -> Case:
    """Side B tries further configurations; with another program it tries those of A, too."""

    def build(rng: Random) -> tuple[list[Run], list[Run], list[Run]]:
        a = runs(rng, range(old), replicates=replicates, spread=spread)
        again = (
            runs(rng, range(old), *changed, replicates=replicates, spread=spread, first=100)
            if changed
            else []
        )
        added = runs(rng, range(500, 500 + new), *changed, replicates=replicates, spread=spread, gain=gain)
        return a, [*again, *added], []

    named = frozenset({Factor.VALUES}) if gain else frozenset()
    return Case(f"values, {old} and {new} x {replicates}{', other code' * bool(changed)}", named, build)


def more_trials(few: int, many: int, *, spread: float) -> Case:
    """Both sides draw from one space; B draws more often."""

    def build(rng: Random) -> tuple[list[Run], list[Run], list[Run]]:
        numbers = rng.sample(range(10_000), few + many)
        return runs(rng, numbers[:few], spread=spread), runs(rng, numbers[few:], spread=spread), []

    return Case(f"budget, {few} and {many}", frozenset({Factor.BUDGET}), build)


PLANTED = (
    changed_program(Factor.CODE, configurations=8, replicates=1, spread=0.0, gain=EFFECT),
    changed_program(Factor.CODE, configurations=12, replicates=1, spread=5 * NOISE, gain=EFFECT),
    changed_program(Factor.CODE, configurations=1, replicates=5, spread=0.0, gain=EFFECT),
    changed_program(Factor.CODE, configurations=16, replicates=3, spread=NOISE, gain=NOISE),
    changed_program(Factor.DATA, configurations=8, replicates=1, spread=NOISE, gain=EFFECT),
    changed_program(Factor.DATA, configurations=3, replicates=4, spread=NOISE, gain=EFFECT),
    changed_program(Factor.DATA, configurations=6, replicates=2, spread=5 * NOISE, gain=EFFECT),
    changed_program(Factor.ENVIRONMENT, configurations=8, replicates=1, spread=NOISE, gain=EFFECT),
    changed_program(Factor.ENVIRONMENT, configurations=2, replicates=5, spread=0.0, gain=EFFECT),
    between((Factor.CODE, Factor.DATA), Factor.CODE),
    between((Factor.CODE, Factor.DATA), Factor.DATA),
    between((Factor.DATA, Factor.CODE, Factor.ENVIRONMENT), Factor.ENVIRONMENT),
    between((Factor.ENVIRONMENT, Factor.CODE, Factor.DATA), Factor.CODE),
    new_values(8, 8),
    new_values(5, 5, replicates=2, spread=0.5 * NOISE),
    new_values(8, 12, Factor.CODE, gain=4 * NOISE),
    new_values(1, 1, replicates=6),
    new_values(6, 6, Factor.ENVIRONMENT, replicates=2),
    more_trials(4, 400, spread=5 * NOISE),
    more_trials(5, 500, spread=EFFECT),
)

NULL = (
    changed_program(Factor.CODE, configurations=8, replicates=1, spread=NOISE, gain=0.0),
    changed_program(Factor.DATA, configurations=2, replicates=3, spread=5 * NOISE, gain=0.0),
    changed_program(Factor.ENVIRONMENT, configurations=4, replicates=2, spread=0.0, gain=0.0),
    between((Factor.CODE, Factor.DATA, Factor.ENVIRONMENT), Factor.CODE, gain=0.0),
    new_values(10, 10, gain=0.0),
    new_values(6, 18, gain=0.0, spread=NOISE),
    new_values(8, 8, Factor.CODE, gain=0.0),
    new_values(3, 3, replicates=4, gain=0.0),
    Case(
        "seeds only",
        frozenset(),
        lambda rng: (runs(rng, range(6), replicates=2), runs(rng, range(6), replicates=2, first=2), []),
    ),
    new_values(4, 12, Factor.DATA, replicates=2, gain=0.0, spread=NOISE),
)
"""Cases in which nothing has an effect."""


def main(seed: int) -> int:
    rng = Random(seed)  # noqa: S311 - the same numbers every time
    named = 0
    for case in PLANTED:
        got = case.explained(rng)
        is_named = frozenset(got.named) == case.planted
        named += is_named
        print(f"{'named' if is_named else 'MISSED':7} {case.name}: {', '.join(got.named) or 'noise'}")
    noise = 0
    for case in NULL:
        times = sum(case.explained(rng).is_noise for _ in range(REPETITIONS // len(NULL)))
        noise += times
        print(f"noise in {times} of {REPETITIONS // len(NULL)}: {case.name}")
    print(f"planted factors named: {named} of {len(PLANTED)}; noise called noise: {noise} of {REPETITIONS}")
    return 0 if named == len(PLANTED) and noise >= 0.94 * REPETITIONS else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else SEED))
