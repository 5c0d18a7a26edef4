"""`pack: auto`: what the generator chooses, by what it knows, and where it says so."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from sweepledger.commands.check import check
from sweepledger.commands.generate import generate
from sweepledger.commands.generation import packs
from sweepledger.commands.plan import plan
from sweepledger.plan import TimingHistory
from sweepledger.plan.durations import TimedTrial
from sweepledger.repo import batches
from sweepledger.structs.batch import BatchLock
from sweepledger.structs.node_pool import NodeCapacity, Pool
from sweepledger.structs.run_config import Pack, Resources
from sweepledger.structs.sweep import Sweep
from tests.repository import SPEC, Sandbox
from tests.sweeps import a_program, a_sweep

POOL = Pool("small", NodeCapacity(cpu="8", memory="16Gi"))


def recorded(*seconds: float) -> Any:
    """Stand for the records at a commit."""
    history = TimingHistory(tuple(TimedTrial("lr-b1", {"rate": 0.1}, each) for each in seconds))
    return SimpleNamespace(past=lambda *_: history)


def chosen(
    seconds: float, trials: int = 4_000, *, pool: Pool | None = POOL, **run: Any
) -> tuple[Pack | None, str]:
    """Choose the packs of a sweep whose trials have taken some seconds."""
    wanted = {"parallelism": 16, "resources": Resources("1", "1Gi"), "packs_itself": True, **run}
    sweep: Sweep = replace(a_sweep(), run=replace(a_sweep().run, **wanted), pool=pool)
    made = packs.with_pack(sweep, ({"rate": 0.1},) * trials, a_program(sweep), recorded(*[seconds] * 3)).run
    assert made.pack_choice is not None
    return made.pack, made.pack_choice


def test_short_trials_fill_ten_minutes_of_a_pod_as_many_at_once_as_a_node_has_room_for() -> None:
    pack, why = chosen(6.0)

    assert pack == Pack(800, 8)
    assert why == "a trial takes 6 s by records; 8 at once have the CPUs and the memory of a node of small"


@pytest.mark.parametrize(
    ("changes", "pack"),
    [
        ({"seconds": 0.01}, Pack(1000, 8)),
        ({"seconds": 60.0}, Pack(80, 8)),
        ({"seconds": 6.0, "trials": 160}, Pack(80, 8)),
        ({"seconds": 6.0, "resources": Resources("1", "4Gi")}, Pack(400, 4)),
        ({"seconds": 6.0, "resources": Resources("3", "1Gi")}, Pack(200, 2)),
        ({"seconds": 6.0, "parallelism": 6}, Pack(600, 6)),
        ({"seconds": 6.0, "parallelism": 7, "resources": Resources("2", "1Gi")}, Pack(100, 1)),
        ({"seconds": 6.0, "pool": None}, Pack(100, 1)),
        ({"seconds": 6.0, "resources": Resources("1", "1Gi", gpu=1)}, Pack(100, 1)),
        ({"seconds": 119.0}, Pack(40, 8)),
        ({"seconds": 121.0}, None),
        ({"seconds": 6.0, "trials": 3, "pool": None}, None),
    ],
    ids=str,
)
def test_packs_are_bounded_by_time_trials_and_nodes(changes: dict[str, Any], pack: Pack | None) -> None:
    assert chosen(**changes)[0] == pack


def test_without_records_or_an_estimate_each_trial_has_a_pod() -> None:
    sweep = replace(a_sweep(), run=replace(a_sweep().run, packs_itself=True))

    run = packs.with_pack(sweep, ({},) * 100, a_program(sweep), recorded()).run

    assert (run.pack, run.pack_choice) == (None, "a pod each: no trial of this program is recorded")


def lock(sandbox: Sandbox) -> BatchLock:
    (batch,) = batches.in_work_tree(sandbox.root)
    return batch.lock


def test_the_lock_and_the_plan_say_what_was_chosen_and_why(sandbox: Sandbox) -> None:
    xs = ", ".join(map(str, range(12)))
    text = SPEC.format(name="peak", xs=xs, parallelism=2) + "  pack: auto\n  expected_minutes: 0.1\n"
    sandbox.write("sweeps/peak.yaml", text)
    why = "a trial takes 6 s by run.expected_minutes; one at once, as no pool says how large nodes are"

    (review,) = plan(sandbox.workspace).reviews
    generate(sandbox.workspace)

    assert [note.text for note in review.notes if note.kind == "pack-choice"] == [
        f"pack: auto is 6 trials in a pod: {why}"
    ]
    assert (lock(sandbox).pack, lock(sandbox).pack_choice) == (Pack(6), why)
    sandbox.commit("Add a sweep")
    assert not check(sandbox.workspace).problems


def test_a_search_keeps_the_packs_of_its_first_round(sandbox: Sandbox) -> None:
    text = SPEC.format(name="peak", xs="1", parallelism=2).replace(
        "method: grid\n", "method: tpe\nseed: 1\nrun_cap: 40\nrounds: {size: 20}\n"
    )
    text = text.replace("{values: [1]}", "{min: 0.0, max: 1.0}")
    sandbox.write("sweeps/peak.yaml", text + "  pack: auto\n  expected_minutes: 0.1\n")

    generate(sandbox.workspace)

    assert (lock(sandbox).round, lock(sandbox).pack) == (1, Pack(10))
    sandbox.commit("Add a search")
    assert not check(sandbox.workspace).problems
