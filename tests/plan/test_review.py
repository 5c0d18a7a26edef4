from dataclasses import replace

from generator.plan import BlockReview, cost, difference, standing
from generator.structs.sweep import Resources, Run
from generator.structs.trial import Trial

TRIALS = tuple(Trial({"x": number}, "program") for number in range(6))


def digests(*numbers: int) -> set[str]:
    return {TRIALS[number].digest for number in numbers}


def test_a_trial_that_no_batch_lists_is_new() -> None:
    found = standing(TRIALS, active=digests(0, 1), archived=digests(2))

    assert (found.new, found.running, found.recorded) == (3, 2, 1)


def test_a_trial_that_is_asked_for_again_is_running() -> None:
    found = standing(TRIALS, active=digests(0), archived=digests(0, 1))

    assert (found.new, found.running, found.recorded) == (4, 1, 1)


def test_batches_of_trials_that_the_spec_no_longer_asks_for_count_for_nothing() -> None:
    found = standing(TRIALS[:2], active=digests(3), archived=digests(4, 5))

    assert (found.new, found.running, found.recorded) == (2, 0, 0)


def test_the_cost_is_bounded_by_every_attempt_lasting_until_its_timeout() -> None:
    run = Run(timeout_seconds=1800, retries=2, resources=Resources(gpu=4))

    found = cost(run, 10)

    assert (found.trials, found.hours, found.gpu_hours) == (10, 15, 60)
    assert cost(replace(run, resources=Resources()), 10).gpu_hours == 0


def test_added_removed_and_unchanged_trials_are_told_apart_by_content() -> None:
    found = difference("sweeps/lr.yaml", TRIALS[:4], [TRIALS[5], TRIALS[1], TRIALS[0]])

    assert found.added == (TRIALS[5],)
    assert found.removed == (TRIALS[2], TRIALS[3])
    assert found.unchanged == 2
    assert not found.is_empty


def test_the_order_of_trials_is_no_difference() -> None:
    found = difference("sweeps/lr.yaml", TRIALS, TRIALS[::-1])

    assert found.is_empty
    assert found.unchanged == len(TRIALS)


def test_acceptance_is_the_share_that_no_constraint_rejected() -> None:
    assert BlockReview("grid", candidates=8, rejected=6, duplicates=1, kept=1).acceptance == 0.25
    assert BlockReview("list", candidates=0, rejected=0, duplicates=0, kept=0).acceptance == 0
