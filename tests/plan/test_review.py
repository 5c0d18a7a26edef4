from dataclasses import replace

import pytest

from generator.plan import BlockReview, cost, difference, room, standing
from generator.structs.settings import Node, Pool
from generator.structs.sweep import Resources, Run
from generator.structs.trial import Trial
from tests.sweeps import a_sweep

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


def test_the_gpus_of_all_pods_of_a_trial_are_paid_for() -> None:
    assert cost(Run(resources=Resources(gpu=2), nodes=3), 1).gpu_hours == 6


POOL = Pool("cpu-small", Node("8", "32Gi"), max_nodes=3, price=2)
FOUR_A_NODE = Run(resources=Resources(cpu="2"), parallelism=8, timeout_seconds=1800)


@pytest.mark.parametrize(
    ("run", "trials", "at_once", "nodes", "price"),
    [
        (FOUR_A_NODE, 16, 8, 2, 4),
        (FOUR_A_NODE, 3, 3, 1, 1),
        (replace(FOUR_A_NODE, parallelism=100), 24, 12, 3, 6),
        (replace(FOUR_A_NODE, retries=1), 8, 8, 2, 4),
        (replace(FOUR_A_NODE, nodes=6), 4, 2, 3, 6),
        (replace(FOUR_A_NODE, resources=Resources("500m", "30Gi")), 2, 2, 2, 2),
    ],
    ids=["as wanted", "few", "the pool ends", "retries", "several pods", "memory is scarce"],
)
def test_trials_fill_nodes_as_far_as_there_are_any(
    run: Run, trials: int, at_once: int, nodes: int, price: float
) -> None:
    found = room(a_sweep(run=run, pool=POOL), trials)

    assert found is not None
    assert (found.at_once, found.nodes, found.price) == (at_once, nodes, price)


def test_a_pool_without_end_or_price_has_neither() -> None:
    found = room(a_sweep(run=FOUR_A_NODE, pool=replace(POOL, max_nodes=None, price=None)), 100)

    assert found is not None
    assert (found.at_once, found.nodes, found.price) == (8, 2, None)


def test_without_a_pool_or_trials_nothing_is_said_of_nodes() -> None:
    assert room(a_sweep(), 3) is None
    assert room(a_sweep(pool=POOL), 0) is None
