import pytest
from msgspec.structs import replace

from sweepledger.plan.budgets import cost, pool_usage
from sweepledger.plan.review import count_trials, difference
from sweepledger.structs.node_pool import NodeCapacity, Pool
from sweepledger.structs.run_config import Pack, Resources, RunConfig
from sweepledger.structs.trial import Trial
from tests.sweeps import a_sweep

TRIALS = tuple(Trial({"x": number}, "program") for number in range(6))


def digests(*numbers: int) -> set[str]:
    return {TRIALS[number].digest for number in numbers}


def test_a_trial_of_active_and_archived_batches_counts_as_running() -> None:
    counts = count_trials(TRIALS, active=digests(0), archived=digests(0, 1))

    assert (counts.new, counts.running, counts.recorded) == (4, 1, 1)


def test_the_upper_bound_assumes_that_every_attempt_lasts_until_its_timeout() -> None:
    run = RunConfig(timeout_seconds=1800, retries=2, max_disruptions=1, resources=Resources(gpu=4))

    result = cost(run, None, 10)

    assert (result.trials, result.trial_hours, result.gpu_hours) == (10, 20, 80)
    assert result.wall_hours == 15
    assert cost(replace(run, resources=Resources()), None, 10).gpu_hours == 0


def test_added_removed_and_unchanged_trials_are_compared_by_content() -> None:
    result = difference("sweeps/lr.yaml", TRIALS[:4], [TRIALS[5], TRIALS[1], TRIALS[0]])

    assert result.added == (TRIALS[5],)
    assert result.removed == (TRIALS[2], TRIALS[3])
    assert result.unchanged == 2
    assert not result.is_empty


POOL = Pool("cpu-small", NodeCapacity("8", "32Gi"), max_nodes=3, price=2)
FOUR_A_NODE = RunConfig(resources=Resources(cpu="2"), parallelism=8, timeout_seconds=1800, max_disruptions=0)


@pytest.mark.parametrize(
    ("run", "trials", "at_once", "nodes", "price"),
    [
        (FOUR_A_NODE, 16, 8, 2, 4),
        (replace(FOUR_A_NODE, parallelism=100), 24, 12, 3, 6),
        (replace(FOUR_A_NODE, nodes=6), 4, 2, 3, 6),
        (replace(FOUR_A_NODE, resources=Resources("500m", "30Gi")), 2, 2, 2, 2),
        (replace(FOUR_A_NODE, pack=Pack(10, 4), retries=0), 16, 8, 2, 8),
        (replace(FOUR_A_NODE, pack=Pack(10, 2), parallelism=100), 30, 6, 2, 20),
    ],
    ids=[
        *("as wanted", "the pool ends", "several pods"),
        *("memory is scarce", "packs", "fewer packs than the pool has room for"),
    ],
)
def test_trials_fill_the_nodes(run: RunConfig, trials: int, at_once: int, nodes: int, price: float) -> None:
    usage = pool_usage(a_sweep(run=run, pool=POOL), trials)

    assert usage is not None
    assert (usage.at_once, usage.nodes, usage.price) == (at_once, nodes, price)


def test_without_a_pool_or_trials_there_is_no_pool_usage() -> None:
    assert pool_usage(a_sweep(), 3) is None
    assert pool_usage(a_sweep(pool=POOL), 0) is None
