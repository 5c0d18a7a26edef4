"""Why a best value moved: planted causes are named, noise is called noise, and confounded causes are admitted."""

from dataclasses import replace
from random import Random

import pytest

from benchmarks.explain import EFFECT, NULL, PLANTED, SEED, Case, main, program, runs
from sweepledger.results.causes import Cause, CauseFinding, State, explain
from sweepledger.structs.metric import Goal


def seeded(seed: int = SEED) -> Random:
    return Random(seed)  # noqa: S311 - the same numbers every time


def finding(cause: Cause, findings: tuple[CauseFinding, ...]) -> CauseFinding:
    return next(each for each in findings if each.cause is cause)


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

    assert falling.named == rising.named == (Cause.VALUES,)
    assert falling.moved == pytest.approx(-rising.moved)


def test_a_change_that_lowers_a_score_that_rose_is_no_reason_for_it() -> None:
    rng = seeded()
    a = runs(rng, range(8))
    b = [
        *runs(rng, range(8), Cause.CODE, gain=-EFFECT),
        *runs(rng, range(20, 28), Cause.CODE, gain=2 * EFFECT),
    ]

    explanation = explain(a, b, Goal.MAXIMIZE)

    assert explanation.named == (Cause.VALUES,)
    assert finding(Cause.CODE, explanation.findings).state is State.OPPOSED


def test_what_always_changed_together_cannot_be_separated() -> None:
    rng = seeded()
    a, b = runs(rng, range(6)), runs(rng, range(6), Cause.CODE, Cause.DATA, gain=2 * EFFECT)

    explanation = explain(a, b, Goal.MAXIMIZE)

    assert explanation.confounded == (Cause.CODE, Cause.DATA)
    assert not explanation.is_noise
    # Trials of the program between them separate the two.
    between = runs(rng, range(6), Cause.DATA, gain=2 * EFFECT)
    assert explain(a, b, Goal.MAXIMIZE, others=between).named == (Cause.DATA,)


def test_other_code_with_other_configurations_cannot_be_separated() -> None:
    rng = seeded()

    explanation = explain(
        runs(rng, range(6)), runs(rng, range(9, 15), Cause.CODE, gain=EFFECT), Goal.MAXIMIZE
    )

    assert explanation.confounded == (Cause.CODE, Cause.VALUES)


def test_code_and_data_with_other_configurations_cannot_be_separated() -> None:
    rng = seeded()
    a, b = runs(rng, range(6)), runs(rng, range(9, 15), Cause.CODE, Cause.DATA, gain=EFFECT)

    explanation = explain(a, b, Goal.MAXIMIZE)

    assert explanation.confounded == (Cause.CODE, Cause.DATA, Cause.VALUES)
    assert explanation.named == ()


def test_one_trial_of_each_shows_nothing() -> None:
    explanation = explain(runs(seeded(), [1]), runs(seeded(2), [1], Cause.CODE, gain=EFFECT), Goal.MAXIMIZE)

    assert explanation.confounded == (Cause.CODE,)
    assert explanation.noise is None


def test_programs_without_noise_differ_for_certain() -> None:
    a = [replace(run, value=0.5) for run in runs(seeded(), range(3))]
    b = [replace(run, trial=f"b{run.trial}", program=program(Cause.CODE), value=0.75) for run in a]

    assert explain(a, b, Goal.MAXIMIZE).named == (Cause.CODE,)
    assert explain(a, a, Goal.MAXIMIZE).is_noise
