"""Rows of one pod over several pods: what each of them finds, runs, leaves and says."""

import json
import os
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.launcher.folders import SCHEMA, Run, TrialFolder, ended, shell, wait_for

REPORT = 'printf \'{"test_accuracy": 0.5}\' > "$SWEEP_RESULT"'
ROWS = 4


@dataclass
class Packed:
    """The rows of a pod, and the pods that run them one after the other."""

    folder: TrialFolder
    pods: int = 0
    failures: int = 0
    """Of its pods, as the Job controller counts them."""

    def start(self, **variables: str) -> subprocess.Popen[bytes]:
        self.pods += 1
        variables = {"SWEEP_FAILURES": str(self.failures), **variables}
        return self.folder.start_copied(**{"SWEEP_POD_UID": f"pod-{self.pods}", **variables})

    def run(self, **variables: str) -> Run:
        run = ended(self.start(**variables))
        self.failures += run.code != 0
        return run

    def killed(self, *, is_failure: bool = True, **variables: str) -> None:
        """Run a pod until some row has said so, and let its kernel kill all of it."""
        mark = self.folder.root / "now"
        mark.unlink(missing_ok=True)
        process = self.start(**variables)
        wait_for(mark)
        kill_tree(process.pid)
        process.communicate()
        self.failures += is_failure

    def records(self) -> dict[int, list[tuple[str, str | None, int]]]:
        """Say what the records of each row say, in the order of attempts."""
        read: dict[int, list[tuple[str, str | None, int]]] = {row: [] for row in range(ROWS)}
        for path in sorted(self.folder.results.glob("*/*.json")):
            record = json.loads(path.read_bytes())
            SCHEMA.validate(record)
            read[record["index"]].append((record["status"], record["reason"], record["attempt"]))
        return read

    def starts(self) -> list[str]:
        path = self.folder.root / "starts"
        return path.read_text().split() if path.exists() else []


@pytest.fixture
def packed(trial_folder: TrialFolder) -> Packed:
    trial_folder.rows = [f"t0000000000{number},{number}" for number in range(ROWS)]
    trial_folder.command = shell(REPORT)
    trial_folder.changes = {"pack": {"at_once": 2, "rows": ROWS, "attempts": 2}}
    trial_folder.environment = {"SWEEP_INDEX": "", "JOB_COMPLETION_INDEX": "0", "OMP_NUM_THREADS": "3"}
    return Packed(trial_folder)


OK = [("ok", None, 1)]


def row_does(packed: Packed, script: str, row: int = 0, other: str = REPORT) -> None:
    note = "echo $JOB_ID >> $HERE/starts"
    packed.folder.command = shell(f"{note}; if [ $JOB_ID = {row + 1} ]; then {script}; else {other}; fi")


def kill_tree(pid: int) -> None:
    """Kill a process and its descendants at once, as the kernel does with a group that has too much memory."""
    pids = [pid]
    for each in pids:
        with suppress(ProcessLookupError):  # what has ended meanwhile is as killed
            os.kill(each, signal.SIGSTOP)  # it starts no process after its children were read
        for task in Path(f"/proc/{each}/task").glob("*/children"):
            with suppress(FileNotFoundError, ProcessLookupError):
                pids += map(int, task.read_text().split())
    for each in pids:
        with suppress(ProcessLookupError):  # the kernel kills the children of one that was killed
            os.kill(each, signal.SIGKILL)


def test_every_row_runs_with_the_threads_of_a_pod_of_its_own(packed: Packed) -> None:
    packed.folder.command = shell(f"echo ${{SWEEP_ROWS-none}},$OMP_NUM_THREADS >> $HERE/seen; {REPORT}")

    assert packed.run(SWEEP_ROWS="0-3").code == 0

    assert packed.records() == dict.fromkeys(range(ROWS), OK)
    assert (packed.folder.root / "seen").read_text().split() == ["none,3"] * ROWS


def test_a_row_that_fails_is_tried_as_often_as_it_may_and_the_others_once(packed: Packed) -> None:
    row_does(packed, "exit 7")

    codes = [packed.run().code, packed.run().code, packed.run().code]

    assert codes == [7, 42, 42], "the first failure asks for another pod, the last one for none"
    assert packed.records() == {
        0: [("failed", "exit-7", 1), ("failed", "exit-7", 2)],
        **dict.fromkeys(range(1, ROWS), OK),
    }
    assert sorted(packed.starts()) == ["1", "1", "2", "3", "4"]


def test_a_row_that_ends_its_pod_ends_it_alone_and_keeps_no_other_from_running(packed: Packed) -> None:
    row_does(packed, "touch $HERE/now; sleep 600", other=f"[ -e $HERE/again ] || sleep 600; {REPORT}")

    packed.killed()
    assert packed.records() == {key: [] for key in range(ROWS)}, "two rows had begun, and two had not"
    (packed.folder.root / "again").touch()
    packed.killed()
    packed.killed()
    last = packed.run()

    assert last.code == 42
    assert packed.records() == {0: [("failed", "signal-9", 2)], **dict.fromkeys(range(1, ROWS), OK)}
    (record,) = (json.loads(path.read_bytes()) for path in packed.folder.results.glob("0/*.json"))
    assert "no other trial was to blame" in record["details"]["error"]
    assert packed.starts().count("1") == 3, "once beside others, which does not count, and twice alone"


def test_disruptions_count_for_the_rows_that_were_running(packed: Packed) -> None:
    packed.folder.changes |= {"max_disruptions": 1}
    row_does(packed, "touch $HERE/now; sleep 600", other=f"sleep 0.3; {REPORT}")

    packed.killed(is_failure=False)
    packed.killed(is_failure=False, SWEEP_DISRUPTIONS="1")
    last = packed.run(SWEEP_DISRUPTIONS="2")

    assert last.code == 44
    assert packed.records() == {0: [("failed", "disrupted", 1)], **dict.fromkeys(range(1, ROWS), OK)}


def test_no_journal_outweighs_the_count_of_the_cluster(packed: Packed) -> None:
    packed.folder.changes |= {"max_disruptions": 1}

    assert packed.run(SWEEP_DISRUPTIONS="9").code == 44

    assert packed.records() == {key: [("failed", "disrupted", 1)] for key in range(ROWS)}


def stopped(packed: Packed, *, is_failure: bool, **variables: str) -> int:
    """Run a pod until some row has said so, and ask it to end."""
    mark = packed.folder.root / "now"
    mark.unlink(missing_ok=True)
    process = packed.start(**variables)
    wait_for(mark)
    process.terminate()
    packed.failures += is_failure
    return ended(process).code


def test_an_attempt_that_a_disruption_ends_does_not_count(packed: Packed) -> None:
    packed.folder.changes = {"pack": {"at_once": 2, "rows": ROWS, "attempts": 1}, "max_disruptions": 5}
    row_does(packed, f"if [ $SWEEP_DISRUPTIONS = 2 ]; then {REPORT}; else touch $HERE/now; sleep 600; fi")

    codes = [
        stopped(packed, is_failure=False),
        stopped(packed, is_failure=False, SWEEP_DISRUPTIONS="1"),
        packed.run(SWEEP_DISRUPTIONS="2").code,
    ]

    assert codes == [143, 143, 0]
    assert packed.records()[0] == [("failed", "signal-15", 1), ("failed", "signal-15", 1), ("ok", None, 1)]


def test_a_row_whose_pods_are_stopped_and_count_as_failed_has_failed(packed: Packed) -> None:
    row_does(packed, "touch $HERE/now; sleep 600", other=f"sleep 0.3; {REPORT}")

    codes = [stopped(packed, is_failure=True) for _ in range(3)]

    assert codes == [143, 143, 143], "its node ends it, for its deadline or its disk"
    assert packed.run().code == 42
    records = packed.records()
    assert records[0] == [("failed", "signal-15", 1), ("failed", "signal-15", 1), ("failed", "signal-15", 2)]
    assert [records[row][-1] for row in range(1, ROWS)] == OK * 3


@pytest.mark.parametrize(
    ("script", "codes", "record"),
    [
        ("kill -9 $PPID", [137, 42], ("failed", "signal-9", 2)),
        ("exit 42", [42, 42], ("diverged", "bad-hyperparameters", 1)),
        ("exit 43", [43, 43], None),
    ],
    ids=["its launcher is killed", "diverged", "bad sweep"],
)
def test_a_row_that_ends_otherwise_harms_no_other(
    script: str, codes: list[int], record: tuple[str, str, int] | None, packed: Packed
) -> None:
    row_does(packed, script)

    assert [packed.run().code, packed.run().code] == codes
    rows = packed.records()
    assert record is None or rows.pop(0) == [record]
    assert [rows[row] for row in range(1, ROWS)] == [OK] * 3


def test_a_small_machine_runs_fewer_rows_at_once(packed: Packed) -> None:
    assert packed.run(SWEEP_AT_ONCE="1").code == 0

    shared = {json.loads(path.read_bytes())["shared"] for path in packed.folder.results.glob("*/*.json")}
    assert shared == {1}


def test_a_journal_that_trials_have_spoilt_does_no_harm(packed: Packed) -> None:
    packed.folder.results.mkdir(parents=True)
    lines = [b"\xff", b"[]", b'["begun", 1, 2, 3]', b'{"a": 1}', b'["alone", "pod-9", 99, 0]', b"x" * 10_000]
    (packed.folder.results / ".pack").write_bytes(b"\n".join(lines) + b"\n")

    assert packed.run().code == 0

    assert packed.records() == dict.fromkeys(range(ROWS), OK)


def test_a_number_of_rows_is_needed(packed: Packed) -> None:
    packed.folder.changes = {"pack": {"at_once": 2}}

    run = packed.run()

    assert run.code == 43
    assert "must have pack.rows" in run.said[0]


def test_pods_of_the_same_rows_take_turns(packed: Packed) -> None:
    row_does(packed, f"sleep 0.2; {REPORT}", other=f"sleep 0.2; {REPORT}")

    both = [packed.start(), packed.start()]

    assert [ended(process).code for process in both] == [0, 0]
    assert sorted(packed.starts()) == ["1", "2", "3", "4"]


def test_a_row_that_the_results_volume_fails_is_for_the_next_pod(packed: Packed) -> None:
    row_does(packed, REPORT)
    packed.folder.results.mkdir(parents=True)
    obstacle = packed.folder.results / "0"
    obstacle.touch()

    first = packed.run().code
    obstacle.unlink()

    assert (first, packed.run().code) == (74, 0)
    assert packed.records() == dict.fromkeys(range(ROWS), OK)
    assert sorted(packed.starts()) == ["1", "2", "3", "4"]


def test_what_a_row_leaves_running_ends_with_it(packed: Packed) -> None:
    left = "(setsid sh -c 'echo $$ > $HERE/left; exec sleep 600' &); while ! [ -s $HERE/left ]; do sleep 0.01; done"
    row_does(packed, f"{left}; {REPORT}")

    assert packed.run().code == 0

    pid = int((packed.folder.root / "left").read_text())
    assert not Path(f"/proc/{pid}").exists()


def test_packs_run_in_every_python(any_python: str, packed: Packed) -> None:
    packed.folder.interpreter = any_python
    row_does(packed, "exit 7")

    assert [packed.run().code, packed.run().code] == [7, 42]


LEAVES = "ls -A $MEMORY > $HERE/seen-$JOB_ID; mkdir -p $MEMORY/folder; echo $JOB_ID > $MEMORY/folder/best"
"""Say what is in shared memory, and leave something there."""


@pytest.mark.parametrize(
    "leaves",
    [f"{LEAVES}; ln -s /etc $MEMORY/link; exit 7", f"{LEAVES}; (sleep 60 < $MEMORY/folder/best &)"],
    ids=["a failing trial", "a file that a process has open"],
)
def test_no_row_finds_what_an_earlier_one_left_in_shared_memory(packed: Packed, leaves: str) -> None:
    memory = packed.folder.root / "memory"
    memory.mkdir()
    packed.folder.changes["pack"]["at_once"] = 1
    row_does(packed, leaves, other=leaves)

    packed.run(SWEEP_SHARED_MEMORY=str(memory), MEMORY=str(memory))

    assert {(packed.folder.root / f"seen-{number + 1}").read_text() for number in range(ROWS)} == {""}


def test_a_row_keeps_its_shared_memory_while_rows_beside_it_begin_and_end(packed: Packed) -> None:
    memory = packed.folder.root / "memory"
    memory.mkdir()
    waits = "touch $MEMORY/own; while [ ! -e $HERE/last ]; do sleep 0.01; done; ls $MEMORY > $HERE/seen"
    row_does(packed, f"{waits}; {REPORT}", other=f"[ $JOB_ID != {ROWS} ] || touch $HERE/last; {REPORT}")

    packed.run(SWEEP_SHARED_MEMORY=str(memory), MEMORY=str(memory))

    assert packed.records() == dict.fromkeys(range(ROWS), OK)
    assert (packed.folder.root / "seen").read_text() == "own\n"


def test_no_row_begins_beside_shared_memory_that_cannot_be_emptied(packed: Packed) -> None:
    run = packed.run(SWEEP_SHARED_MEMORY="/proc/self/fdinfo")

    assert run.code not in {0, 42}, "the next pod has other memory"
    assert "shared memory cannot be emptied for the next trial" in run.err
    assert packed.records() == {row: [] for row in range(ROWS)}
    assert packed.run().code == 0
    assert packed.records() == dict.fromkeys(range(ROWS), OK)
