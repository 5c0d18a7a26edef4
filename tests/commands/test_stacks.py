"""Trials that one process trains: their ids, their order, their records, and how one of them is reproduced."""

import json
from pathlib import Path

import pytest

from sweepledger.commands.check import check
from sweepledger.commands.generate import generate
from sweepledger.commands.reproduce import reproduce
from sweepledger.commands.verify import verify
from sweepledger.formats.launch_json import LAUNCH_FILE
from sweepledger.structs.program import Stack
from sweepledger.structs.record import Status
from sweepledger.structs.run_config import Pack
from tests.commands.test_packs import batch_of, played, recorded
from tests.repository import Sandbox

SPEC = """name: {name}
method: grid
metric: {{name: score, goal: maximize}}
parameters:
  x: {{values: [0.5, 1.0, 1.5]}}
  width: {{values: [16, 32]}}
command: [python, code/train.py, "${{args}}"]
run:
  code: {{path: code}}
  shape: indexed
  retries: 0
{stack}"""
STACKED = "  stack: {trials: 4, parameters: [x]}\n"

PROGRAM = """import json, os
trials = json.load(open(os.environ["SWEEP_STACK"]))["trials"]
# Like rounding, but easier to see: the score of a trial depends on how many are beside it.
for trial in trials:
    with open(trial["result"], "w") as file:
        json.dump({"score": trial["values"]["x"] + trial["values"]["width"] + len(trials) / 1000}, file)
"""


@pytest.fixture
def stacked(sandbox: Sandbox) -> Sandbox:
    sandbox.push()
    sandbox.use_as_laptop()
    sandbox.write("code/train.py", PROGRAM)
    sandbox.commit("Train stacks")
    sandbox.write("sweeps/stacked.yaml", SPEC.format(name="stacked", stack=STACKED))
    return sandbox


def test_trials_are_trained_in_stacks_and_recorded_one_by_one(stacked: Sandbox) -> None:
    assert len(played(stacked, "stacked")) == 6

    batch, records = batch_of(stacked, "stacked"), recorded(stacked, "stacked")
    assert [row.values["width"] for row in batch.rows] == [16] * 3 + [32] * 3, (
        "neighbours can share a process"
    )
    assert batch.lock.pack == Pack(4)
    assert batch.lock.program.stack == Stack(4, ("x",))
    assert json.loads(batch.tree[LAUNCH_FILE])["pack"]["stack"] == ["x"]
    scores = [records[row.trial][0].metrics["score"] for row in batch.rows]
    beside = [3, 3, 3, 1, 2, 2]  # a pod has four rows
    assert scores == [
        float(str(row.values["x"])) + float(str(row.values["width"])) + count / 1000
        for row, count in zip(batch.rows, beside, strict=True)
    ]
    assert all(record.status is Status.OK for (record,) in records.values())
    details = [records[row.trial][0].details["stack"] for row in batch.rows]
    assert [(each["first"], each["trials"]) for each in details] == [(0, 3)] * 3 + [(3, 1)] + [(4, 2)] * 2
    assert not check(stacked.workspace).problems
    assert verify(stacked.workspace).is_good


@pytest.mark.full_suite("whole runs")
def test_a_trial_is_reproduced_with_the_stack_that_it_was_part_of(stacked: Sandbox) -> None:
    played(stacked, "stacked")
    batch = batch_of(stacked, "stacked")

    for index in (1, 3, 5):
        again = reproduce(stacked.workspace, batch.rows[index].trial)

        assert again.is_equal, again.metrics
        assert again.record is not None
        assert again.record.trial == batch.rows[index].trial


def test_stacking_is_part_of_a_trials_identity(stacked: Sandbox) -> None:
    stacked.write("sweeps/alone.yaml", SPEC.format(name="alone", stack=""))
    wider = STACKED.replace("4", "6")
    stacked.write("sweeps/wider.yaml", SPEC.format(name="wider", stack=wider))

    generate(stacked.workspace, ())

    ids = [{row.trial for row in batch_of(stacked, name).rows} for name in ("stacked", "alone", "wider")]
    assert len(set.union(*ids)) == 18


def test_a_stack_adds_its_program_beside_that_of_packs(stacked: Sandbox) -> None:
    generate(stacked.workspace, ())

    bases = batch_of(stacked, "stacked").lock.bases
    assert {"components/pack/v1", "components/stack/v1"} <= {*bases}
    assert Path(stacked.root, "base/components/stack/v1/stack.py").is_file()
