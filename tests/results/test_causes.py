"""Why a best value moved: planted factors are named, noise is called noise, and confounded factors are admitted."""

from dataclasses import replace
from random import Random

import pytest

from benchmarks.explain import EFFECT, NULL, PLANTED, SEED, Case, main, program, runs
from sweepledger.results.causes import Factor, FactorFinding, State, explain
from sweepledger.structs.metric import Goal


def seeded(seed: int = SEED) -> Random:
    return Random(seed)  # noqa: S311 - the same numbers every time


def finding(factor: Factor, findings: tuple[FactorFinding, ...]) -> FactorFinding:
    return next(each for each in findings if each.factor is factor)


def test_planted_causes_are_named_and_no_others() -> None:
    rng = seeded()

    missed = [case.name for case in PLANTED if frozenset(case.explained(rng).named) != case.planted]

    assert missed == []


@pytest.mark.parametrize("case", NULL[:4], ids=lambda case: case.name)
def test_noise_is_called_noise(case: Case) -> None:
    rng = seeded()

    assert sum(case.explained(rng).is_noise for _ in range(10)) >= 8


@pytest.mark.full_suite("a thousand permutation tests take half a minute")
def test_noise_is_called_noise_in_940_of_1000() -> None:
    assert main(SEED) == 0


def test_a_loss_that_falls_has_the_same_causes_as_a_score_that_rises() -> None:
    a, b, _ = PLANTED[14].build(seeded())
    rising = explain(a, b, Goal.MAXIMIZE)

    fallen, falls = ([replace(run, value=-run.value) for run in side] for side in (a, b))
    falling = explain(fallen, falls, Goal.MINIMIZE)

    assert falling.named == rising.named == (Factor.VALUES,)
    assert falling.moved == pytest.approx(-rising.moved)


def test_a_change_that_lowers_a_score_that_rose_is_no_reason_for_it() -> None:
    rng = seeded()
    a = runs(rng, range(8))
    b = [
        *runs(rng, range(8), Factor.CODE, gain=-EFFECT),
        *runs(rng, range(20, 28), Factor.CODE, gain=2 * EFFECT),
    ]

    explanation = explain(a, b, Goal.MAXIMIZE)

    assert explanation.named == (Factor.VALUES,)
    assert finding(Factor.CODE, explanation.findings).state is State.OPPOSED


def test_what_always_changed_together_cannot_be_separated() -> None:
    rng = seeded()
    a, b = runs(rng, range(6)), runs(rng, range(6), Factor.CODE, Factor.DATA, gain=2 * EFFECT)

    explanation = explain(a, b, Goal.MAXIMIZE)

    assert explanation.confounded == (Factor.CODE, Factor.DATA)
    assert not explanation.is_noise
    # Trials of the program between them separate the two.
    between = runs(rng, range(6), Factor.DATA, gain=2 * EFFECT)
    assert explain(a, b, Goal.MAXIMIZE, others=between).named == (Factor.DATA,)


def test_one_trial_of_each_shows_nothing() -> None:
    explanation = explain(runs(seeded(), [1]), runs(seeded(2), [1], Factor.CODE, gain=EFFECT), Goal.MAXIMIZE)

    assert explanation.confounded == (Factor.CODE,)
    assert explanation.noise is None


def test_programs_without_noise_differ_for_certain() -> None:
    a = [replace(run, value=0.5) for run in runs(seeded(), range(3))]
    b = [replace(run, trial=f"b{run.trial}", program=program(Factor.CODE), value=0.75) for run in a]

    assert explain(a, b, Goal.MAXIMIZE).named == (Factor.CODE,)
    # A third version of the data, which changes nothing, is no cause.
    others = [replace(run, trial=f"c{run.trial}", program=program(Factor.DATA)) for run in a]
    both = [replace(run, trial=f"d{run.trial}", program=program(Factor.CODE, Factor.DATA)) for run in b]
    assert explain(a, both, Goal.MAXIMIZE, others=[*b, *others]).named == (Factor.CODE,)
    assert explain(a, a, Goal.MAXIMIZE).is_noise
