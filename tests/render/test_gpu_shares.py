"""Trials that share a GPU: what they are told, and what plans, quotas and budgets count."""

import pytest
from msgspec.structs import replace

from sweepledger.plan.budgets import charge, cost
from sweepledger.plan.forecast import hourly_price
from sweepledger.structs import node_pool
from sweepledger.structs.node_pool import GpuShares, GpuSharing, NodeCapacity, Pool
from sweepledger.structs.run_config import Pack, Resources, RunConfig
from tests.sweeps import a_sweep

SHARED = Pool(
    "shared", NodeCapacity("16", "64Gi", 4), gpu_shares=GpuShares(GpuSharing.TIME_SLICING, 4), price=4.0
)
WHOLE = replace(SHARED, gpu_shares=None)
SLICED = replace(SHARED, gpu_shares=GpuShares(GpuSharing.MIG, 4))


def a_run(pack: Pack | None = None) -> RunConfig:
    return replace(a_sweep().run, resources=Resources("1", "1Gi", gpu=1), pack=pack, timeout_seconds=3600)


@pytest.mark.parametrize(
    ("pool", "at_once", "gpus", "memory"),
    [
        (None, 1, 1.0, 1.0),
        (WHOLE, 1, 1.0, 1.0),
        (WHOLE, 4, 0.25, 0.25),
        (SHARED, 1, 0.25, 0.25),
        (SHARED, 2, 0.125, 0.125),
        (SLICED, 1, 0.25, 1.0),
        (SLICED, 2, 0.125, 0.5),
    ],
    ids=["no pool", "whole", "whole, packed", "shared", "shared, packed", "slices", "slices, packed"],
)
def test_a_trial_counts_as_part_of_a_gpu(pool: Pool | None, at_once: int, gpus: float, memory: float) -> None:
    run = a_run(Pack(4, at_once))

    assert node_pool.gpus_per_trial(run, pool) == gpus
    assert node_pool.gpu_memory_variables(run, pool).get("SWEEP_GPU_FRACTION", "1.000000") == f"{memory:.6f}"
    assert charge("a", run, pool, 3600).gpu_hours == gpus
    assert cost(run, pool, 1).gpu_hours == gpus * cost(run, pool, 1).trial_hours


def test_a_share_costs_its_part_of_a_node() -> None:
    assert hourly_price(a_run(), SHARED) == 1.0, "a node has four shares"
