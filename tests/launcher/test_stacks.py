"""Stacks: one process for several rows, and a record for each, whatever becomes of the process and of earlier pods."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.launcher.folders import LAUNCHER, SCHEMA, Run, TrialFolder, wait_for
from tests.launcher.test_packs import PACK, Packed

STACK = Path(__file__).parents[2] / "base/components/stack/v1/stack.py"
VALUES = (1, 2, 3, 5)

PROGRAM = """
import json, os, sys
trials = json.load(open(os.environ["SWEEP_STACK"]))["trials"]
with open("starts", "a") as file:
    file.write(" ".join(str(each["index"]) for each in trials) + "\\n")
print("the output of", len(trials), flush=True)
def write(value_of):
    for each in trials:
        value = value_of(each)
        if value is not None:
            with open(each["result"], "w") as file:
                file.write(json.dumps({"test_accuracy": value}))
def value(each):
    return each["values"]["rate"] / 10
"""


@pytest.fixture
def stacked(trial_folder: TrialFolder) -> Packed:
    """Four rows of one pod; the last differs from the others in a parameter that no stack may vary."""
    trial_folder.columns = [("rate", "number"), ("width", "number")]
    trial_folder.rows = [
        f"t0000000000{number},{value},{64 if number < 3 else 32}" for number, value in enumerate(VALUES)
    ]
    trial_folder.changes = {"pack": {"at_once": 1, "rows": 4, "attempts": 2, "stack": ["rate"]}}
    trial_folder.environment = {"SWEEP_INDEX": "", "JOB_COMPLETION_INDEX": "0"}
    does(trial_folder, "write(value)")
    program = trial_folder.root / "launcher"
    trial_folder.write()
    program.mkdir()
    for path in (PACK, STACK, LAUNCHER):
        shutil.copy(path, program)
    return Packed(trial_folder)


def does(folder: TrialFolder, code: str) -> None:
    """Let the program of a stack do something."""
    folder.command = [sys.executable, "-c", PROGRAM + code, {"macro": "args"}]


def results(stacked: Packed) -> dict[int, list[dict[str, Any]]]:
    """Return the records of each row."""
    read: dict[int, list[dict[str, Any]]] = {row: [] for row in range(4)}
    for path in sorted(stacked.folder.results.glob("*/*.json")):
        record = json.loads(path.read_bytes())
        SCHEMA.validate(record)
        read[record["index"]].append(record)
    return read


def stacks(stacked: Packed) -> list[str]:
    """Return the rows of each process that was started."""
    return (stacked.folder.root / "starts").read_text().splitlines()


def test_rows_that_agree_in_all_but_the_named_parameters_are_one_process(stacked: Packed) -> None:
    run: Run = stacked.run()

    assert run.code == 0
    assert stacks(stacked) == ["0 1 2", "3"]
    records = results(stacked)
    assert [records[row][0]["metrics"] for row in range(4)] == [
        {"test_accuracy": value / 10} for value in VALUES
    ]
    about = [records[row][0]["details"]["stack"] for row in range(4)]
    assert [(each["first"], each["trials"]) for each in about] == [(0, 3)] * 3 + [(3, 1)]
    for row in range(4):
        assert records[row][0]["seconds"] == pytest.approx(
            about[row]["seconds"] / about[row]["trials"], abs=2e-3
        )
        assert records[row][0]["shared"] == 1


def test_each_trial_is_told_its_own_command_and_keeps_its_own_files(stacked: Packed) -> None:
    does(
        stacked.folder,
        """
assert sys.argv[1:] == trials[0]["command"][3:]
for each in trials:
    open(os.path.join(each["artifacts"], each["command"][-2]), "w").close()
write(value)
""",
    )

    assert stacked.run().code == 0

    kept = {row: records[0]["artifacts"] for row, records in results(stacked).items()}
    assert [[each["path"] for each in kept[row]] for row in range(4)] == [
        [f"--rate={value}"] for value in VALUES
    ]


def test_every_trial_has_the_output_of_its_stack(stacked: Packed) -> None:
    stacked.run()

    outputs = [path.read_text() for path in sorted(stacked.folder.results.glob("*/*.out"))]
    assert outputs == ["the output of 3\n"] * 3 + ["the output of 1\n"]


def test_a_value_that_is_not_finite_ends_its_trial_alone(stacked: Packed) -> None:
    does(stacked.folder, 'write(lambda each: float("nan") if each["index"] == 1 else value(each))')

    assert stacked.run().code == 42

    ends = {row: (records[0]["status"], records[0]["reason"]) for row, records in results(stacked).items()}
    assert ends == {0: ("ok", None), 1: ("diverged", "metric-not-finite"), 2: ("ok", None), 3: ("ok", None)}


def test_a_stack_is_trained_whole_again_for_the_trials_that_have_no_final_record(stacked: Packed) -> None:
    mark = stacked.folder.root / "again"
    does(
        stacked.folder,
        f"""
again = os.path.exists({str(mark)!r})
open({str(mark)!r}, "w").close()
write(lambda each: value(each) if again or each["index"] != 1 else None)
""",
    )

    codes = [stacked.run().code, stacked.run().code]

    assert codes == [1, 0]
    assert stacks(stacked) == ["0 1 2", "3", "0 1 2"]
    ends = {row: [each["status"] for each in records] for row, records in results(stacked).items()}
    assert ends == {0: ["ok"], 1: ["failed", "ok"], 2: ["ok"], 3: ["ok"]}
    assert not list(stacked.folder.results.glob("*/artifacts")), "nothing is left of those that were recorded"


@pytest.mark.parametrize(("code", "reason"), [(7, "exit-7"), (42, "exit-42")])
def test_a_process_that_fails_is_a_failure_of_all_its_trials(stacked: Packed, code: int, reason: str) -> None:
    does(stacked.folder, f"sys.exit({code} if len(trials) > 1 else write(value))")

    codes = [stacked.run().code, stacked.run().code]

    assert codes[1] == 42, "no trial has another attempt"
    assert stacks(stacked) == ["0 1 2", "3", "0 1 2"]
    records = results(stacked)
    assert [[each["reason"] for each in records[row]] for row in range(3)] == [[reason, reason]] * 3
    assert [each["attempt"] for each in records[2]] == [1, 2]
    assert records[3][0]["status"] == "ok"


def test_a_process_that_knows_nothing_of_stacks_yields_the_first_trial_and_failures(stacked: Packed) -> None:
    does(stacked.folder, 'open(os.environ["SWEEP_RESULT"], "w").write(json.dumps({"test_accuracy": 0.5}))')

    stacked.run()

    ends = {row: records[0]["status"] for row, records in results(stacked).items()}
    assert ends == {0: "ok", 1: "failed", 2: "failed", 3: "ok"}


def waits_in_stacks(stacked: Packed) -> Path:
    """Let the program of several trials wait for its end, and return the file that it makes before."""
    mark = stacked.folder.root / "now"
    does(
        stacked.folder,
        f"""
if len(trials) > 1:
    open({str(mark)!r}, "w").close()
    import time; time.sleep(600)
write(value)
""",
    )
    return mark


def test_a_stack_that_ends_its_pod_costs_the_others_nothing(stacked: Packed) -> None:
    mark = waits_in_stacks(stacked)
    stacked.killed()
    does(stacked.folder, "write(value)")

    assert stacked.run().code == 0

    wait_for(mark)
    assert stacks(stacked) == ["0 1 2", "3", "0 1 2"], "the stack that was interrupted comes last"
    assert {row: records[0]["attempt"] for row, records in results(stacked).items()} == {
        0: 2,
        1: 2,
        2: 2,
        3: 1,
    }


def test_a_stack_that_ends_every_pod_is_given_up_and_recorded(stacked: Packed) -> None:
    waits_in_stacks(stacked)
    stacked.killed()
    stacked.killed()

    code = stacked.run().code

    assert code == 42
    ends = {row: (records[-1]["status"], records[-1]["reason"]) for row, records in results(stacked).items()}
    assert ends == {**dict.fromkeys(range(3), ("failed", "signal-9")), 3: ("ok", None)}


def test_a_metric_on_stdout_is_refused(stacked: Packed) -> None:
    stacked.folder.changes["metric"] = {"name": "test_accuracy", "source": "stdout"}

    assert stacked.run().code == 43
