"""The packs that `sweep plan` proposes, by what is known of the trials, and that the pasted block is what runs."""

from typing import Any

import pytest
from msgspec.structs import replace

from sweepledger.operations.generation import spec_change
from sweepledger.plan.durations import TimedTrial, TimingHistory
from sweepledger.plan.forecast import PlannedTrials
from sweepledger.structs.node_pool import NodeCapacity, Pool
from sweepledger.structs.run_config import Pack, Resources
from tests.repository import SPEC, Sandbox
from tests.sweeps import a_sweep

POOL = Pool("small", NodeCapacity(cpu="8", memory="16Gi"))


def chosen(
    seconds: float, trials: int = 4_000, *, pool: Pool | None = POOL, **run: Any
) -> tuple[Pack | None, str]:
    """Choose the packs of a sweep whose trials have taken some seconds."""
    wanted = {"parallelism": 16, "resources": Resources("1", "1Gi"), **run}
    history = TimingHistory(tuple(TimedTrial("lr-b1", {"rate": 0.1}, seconds) for _ in range(3)))
    workload = PlannedTrials(replace(a_sweep().run, **wanted), ({"rate": 0.1},) * trials, pool, history)
    return spec_change.choose_pack(replace(a_sweep(), run=workload.run, pool=pool), workload)


def test_short_trials_fill_ten_minutes_of_a_pod_as_many_at_once_as_a_node_has_room_for() -> None:
    pack, why = chosen(6.0)

    assert pack == Pack(800, 8)
    assert why == "a trial takes 6 s by records; 8 at once have the CPUs and the memory of a node of small"


@pytest.mark.parametrize(
    ("changes", "pack"),
    [
        ({"seconds": 0.01}, Pack(1000, 8)),
        ({"seconds": 6.0, "trials": 160}, Pack(80, 8)),
        ({"seconds": 6.0, "resources": Resources("1", "4Gi")}, Pack(400, 4)),
        ({"seconds": 6.0, "parallelism": 7, "resources": Resources("2", "1Gi")}, Pack(100, 1)),
        ({"seconds": 6.0, "pool": None}, Pack(100, 1)),
        ({"seconds": 6.0, "resources": Resources("1", "1Gi", gpu=1)}, Pack(100, 1)),
        ({"seconds": 6.0, "resources": Resources("1", "1Gi", shared_memory="64Mi")}, Pack(100, 1)),
        ({"seconds": 119.0}, Pack(40, 8)),
        ({"seconds": 121.0}, None),
        ({"seconds": 6.0, "trials": 3, "pool": None}, None),
    ],
    ids=str,
)
def test_packs_are_bounded_by_time_trials_and_nodes(changes: dict[str, Any], pack: Pack | None) -> None:
    assert chosen(**changes)[0] == pack


def test_without_records_or_an_estimate_each_trial_has_a_pod() -> None:
    workload = PlannedTrials(a_sweep().run, ({},) * 100)

    why = "a pod each: no trial of this program is recorded"
    assert spec_change.choose_pack(a_sweep(), workload) == (None, why)


def spec(sandbox: Sandbox, more: str = "", *, search: bool = False) -> None:
    """Write a spec of twelve trials of six seconds, or a search with rounds of twenty."""
    xs = ", ".join(map(str, range(12)))
    text = SPEC.format(name="peak", xs=xs, parallelism=2) + f"  expected_minutes: 0.1\n{more}"
    if search:
        text = text.replace("method: grid\n", "method: tpe\nseed: 1\nrun_cap: 40\nrounds: {size: 20}\n")
        text = text.replace(f"{{values: [{xs}]}}", "{min: 0.0, max: 1.0}")
    sandbox.write("sweeps/peak.yaml", text)


def proposed(sandbox: Sandbox) -> list[str]:
    (review,) = sandbox.plan().reviews
    return [note.text for note in review.notes if note.kind == "pack"]


@pytest.mark.parametrize(("search", "pack"), [(False, Pack(6)), (True, Pack(10))])
def test_the_pasted_block_of_the_plan_runs(sandbox: Sandbox, *, search: bool, pack: Pack) -> None:
    spec(sandbox, search=search)

    (text,) = proposed(sandbox)
    block, _, why = text.removeprefix("write `").partition("` under run: ")

    assert (
        why == "a trial takes 6 s by run.expected_minutes; one at once, as no pool says how large nodes are"
    )
    spec(sandbox, f"  {block}\n", search=search)
    assert proposed(sandbox) == []
    sandbox.generate()
    (batch,) = sandbox.batches()
    assert batch.lock.run.pack == pack
    sandbox.commit("Add a sweep")
    assert not sandbox.check().problems


def test_no_packs_are_proposed_where_a_key_or_the_store_excludes_them(sandbox: Sandbox) -> None:
    spec(sandbox, "  max_failed: 2\n")
    assert proposed(sandbox) == []

    sandbox.write("sweepledger.yaml", "version: 1\nresults: {store: api}\n")
    spec(sandbox)

    assert proposed(sandbox) == []
