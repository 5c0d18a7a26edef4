"""Several rows in one pod: each has a process, a folder, a record and a fate of its own."""

import hashlib
import json
import os
import re
import signal
from typing import Any

import pytest

from tests.launcher.folders import LATE, SCHEMA, TrialFolder, ended, launch, shell, wait_for

REPORT = 'printf \'{"test_accuracy": 0.%d}\' $JOB_ID > "$SWEEP_RESULT"'


@pytest.fixture
def rows(trial_folder: TrialFolder) -> TrialFolder:
    trial_folder.rows = [f"t0000000000{number},{number}" for number in range(6)]
    trial_folder.command = shell(REPORT)
    trial_folder.changes = {"pack": {"at_once": 3}}
    trial_folder.environment = {"SWEEP_ROWS": "1-4", "SWEEP_INDEX": ""}
    return trial_folder


def records(folder: TrialFolder) -> dict[int, Any]:
    """Read the records by row; each is in its own folder and as the schema says."""
    read = {}
    for path in folder.results.glob("*/*.json"):
        record = json.loads(path.read_bytes())
        SCHEMA.validate(record)
        assert path.name == f"{record['uid']}.json" == f"uid-1-{path.parent.name}.json"
        read[int(path.parent.name)] = record
    return dict(sorted(read.items()))


def of_row(script: str, row: int, other: str = REPORT) -> list[Any]:
    """Make a command in which one row does something else."""
    return shell(f"if [ $JOB_ID = {row + 1} ]; then {script}; else {other}; fi")


def test_every_row_has_a_record_an_output_and_a_seed_of_its_own(rows: TrialFolder) -> None:
    rows.columns = [("x", "number"), ("replicate", "number")]
    rows.rows = [f"t0000000000{number},1,{number}" for number in range(6)]
    rows.command = shell(f"echo out $SWEEP_SEED $SWEEP_PARAM_X; echo err $SWEEP_TRIAL_ID >&2; {REPORT}")
    rows.changes |= {"seed_base": 40}

    run = rows.run()

    document = records(rows)
    assert run.code == 0
    assert [(row, record["index"], record["seed"]) for row, record in document.items()] == [
        (row, row, 40 + row) for row in (1, 2, 3, 4)
    ]
    assert [record["metrics"]["test_accuracy"] for record in document.values()] == [0.2, 0.3, 0.4, 0.5]
    for row in document:
        assert (rows.results / f"{row}/uid-1-{row}.out").read_text() == f"out {40 + row} 1\n"
        assert (rows.results / f"{row}/uid-1-{row}.err").read_text() == f"err t0000000000{row}\n"
    assert sorted(run.out.splitlines()) == [b"out %d 1" % (40 + row) for row in (1, 2, 3, 4)]
    assert sorted(path.name for path in rows.results.iterdir()) == ["1", "2", "3", "4"]


@pytest.mark.parametrize("at_once", [1, 2])
def test_as_many_rows_run_at_the_same_time_as_the_pack_says(at_once: int, rows: TrialFolder) -> None:
    rows.changes = {"pack": {"at_once": at_once}}
    rows.command = shell(
        "touch $HERE/running-$JOB_ID; sleep 0.15; ls $HERE | grep -c running > $HERE/seen-$JOB_ID;"
        "rm $HERE/running-$JOB_ID;" + REPORT
    )

    assert rows.run().code == 0

    seen = [int((rows.root / f"seen-{row + 1}").read_text()) for row in range(1, 5)]
    shared = [record["shared"] for record in records(rows).values()]
    assert max(seen) <= at_once
    assert max(shared) == at_once
    assert all(count <= most for count, most in zip(seen, shared, strict=True))


def test_a_row_counts_those_of_its_pod_before_its_record(monkeypatch: pytest.MonkeyPatch) -> None:
    pod, seen = launch.Pod({}, range(2), "uid-1", None), []
    pod.running[1] = 0

    def fork() -> int:
        seen.append([pod.slots[row].most for row in (0, 1)])
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(os, "fork", fork)
    pod.start(1)

    assert (seen, pod.codes) == ([[2, 2]], {1: launch.STORAGE_FAILED})


@pytest.mark.parametrize(
    ("script", "reason", "code"),
    [("(sleep 600 &) ; setsid sleep 600 & exit 7", "exit-7", 7), (f"{LATE}; sleep 600", "timeout", 124)],
    ids=["exit", "timeout"],
)
def test_a_row_that_fails_harms_no_other(script: str, reason: str, code: int, rows: TrialFolder) -> None:
    rows.command = of_row(script, 2, f"sleep 0.1; {REPORT}")

    run = rows.run()

    document = records(rows)
    assert run.code == code
    assert document.pop(2)["reason"] == reason
    assert [record["status"] for record in document.values()] == ["ok", "ok", "ok"]


def test_the_processes_of_one_row_end_while_others_run(rows: TrialFolder) -> None:
    rows.environment |= {"SWEEP_ROWS": "0-1"}
    rows.command = of_row(
        "setsid sleep 600 & echo $! > $HERE/left; exit 7",
        0,
        "while kill -0 $(cat $HERE/left) 2>/dev/null || [ ! -e $HERE/left ]; do sleep 0.01; done; " + REPORT,
    )

    run = rows.run()

    assert run.code == 7
    assert records(rows)[1]["status"] == "ok"


@pytest.mark.parametrize(
    ("codes", "worst"),
    [
        ([0, 42], 42),
        ([42, 1], 1),
        ([137, 7, 0], 137),
        ([44, 137], 44),
        ([74, 44, 7], 74),
        ([42, 74, 43, 44], 43),
        ([70, 42], 70),
    ],
)
def test_the_exit_code_is_that_of_the_worst_row(codes: list[int], worst: int) -> None:
    assert launch.worst(codes) == worst


def test_rows_with_a_final_record_are_skipped(rows: TrialFolder) -> None:
    rows.command = of_row("exit 7", 2, f"touch $HERE/began-$JOB_ID; {REPORT}")
    assert rows.run().code == 7
    for path in rows.root.glob("began-*"):
        path.unlink()
    (rows.results / "3/uid-1-3.json").unlink()
    rows.command = shell(f"touch $HERE/began-$JOB_ID; {REPORT}")

    assert rows.run(SWEEP_POD_UID="uid-2").code == 0

    assert sorted(path.name for path in rows.root.glob("began-*")) == ["began-3", "began-4"]
    assert (rows.results / "2/uid-2-2.json").exists()
    assert (rows.results / "3/uid-2-3.json").exists()


def test_a_disrupted_pod_starts_no_row_that_is_not_recorded(rows: TrialFolder) -> None:
    rows.command = of_row("exit 7", 2, f"touch $HERE/began-$JOB_ID; {REPORT}")
    rows.run()
    (rows.results / "2/uid-1-2.json").unlink()

    run = rows.run(SWEEP_DISRUPTIONS="6")

    assert run.code == 44
    assert [record["reason"] for record in records(rows).values()] == [None, "disrupted", None, None]


@pytest.mark.parametrize("ignores", [False, True])
def test_sigterm_ends_all_rows_within_their_grace_and_starts_no_others(
    rows: TrialFolder, *, ignores: bool
) -> None:
    rows.changes = {"pack": {"at_once": 2}, "grace_seconds": 0.2 if ignores else 10}
    told = "" if ignores else "touch $SWEEP_ARTIFACTS/kept; exit 9"
    rows.command = shell(f"trap '{told}' TERM; touch $HERE/up-$JOB_ID; while :; do sleep 0.05; done")
    launcher = rows.start()
    for row in (1, 2):
        wait_for(rows.root / f"up-{row + 1}")

    launcher.send_signal(signal.SIGTERM)
    run = ended(launcher)

    document = records(rows)
    assert run.code == 143
    assert {row: record["reason"] for row, record in document.items()} == {1: "signal-15", 2: "signal-15"}
    kept = [] if ignores else ["kept"]
    assert all([item["path"] for item in record["artifacts"]] == kept for record in document.values())


def test_a_row_whose_launcher_is_killed_leaves_no_processes_and_no_harm(rows: TrialFolder) -> None:
    rows.command = of_row(
        "setsid sleep 600 & echo $! > $HERE/left; kill -9 $PPID; sleep 600", 2, f"sleep 0.3; {REPORT}"
    )

    run = rows.run()

    assert run.code == 137
    assert "the launcher of row 2 was ended by signal 9" in run.said
    assert {row: record["status"] for row, record in records(rows).items()} == {1: "ok", 3: "ok", 4: "ok"}
    with pytest.raises(ProcessLookupError):
        os.kill(int((rows.root / "left").read_text()), 0)


@pytest.mark.parametrize(
    ("given", "at_once", "threads"),
    [("2", 3, 1), ("8", 9, 2), ("", 2, max(1, len(os.sched_getaffinity(0)) // 2))],
    ids=["fewer", "more", "of the processors"],
)
def test_the_threads_are_divided(given: str, at_once: int, threads: int, rows: TrialFolder) -> None:
    rows.changes = {"pack": {"at_once": at_once}}
    rows.command = shell(f"echo $OMP_NUM_THREADS; {REPORT}")

    assert rows.run(OMP_NUM_THREADS=given).out.split() == [b"%d" % threads] * 4


def test_each_row_has_its_own_folders_on_other_volumes_and_in_the_scratch(rows: TrialFolder) -> None:
    volumes = {"SWEEP_CHECKPOINT_VOLUME": "checkpoints", "SWEEP_ARTIFACT_VOLUME": "artifacts"}
    paths = {name: str(rows.root / "volumes" / folder) for name, folder in volumes.items()}
    rows.command = shell("touch $SWEEP_ARTIFACTS/model $SWEEP_CHECKPOINTS/last; echo $HOME; exit 7")

    run = rows.run(**paths)

    for row in (1, 2, 3, 4):
        assert (rows.root / f"volumes/artifacts/{row}/artifacts/uid-1-{row}/model").exists()
        assert (rows.root / f"volumes/checkpoints/{row}/checkpoints/last").exists()
    assert len(set(run.out.split())) == 4
    assert list((rows.root / "scratch").iterdir()) == []


def test_early_stopping_ends_one_row(rows: TrialFolder) -> None:
    rule = {"rule": "median", "goal": "maximize", "value": "best", "thresholds": [[1, 0.5]]}
    rows.changes |= {"metric": {"name": "test_accuracy", "source": "stdout"}, "stop": [rule]}
    rows.command = of_row("echo test_accuracy=0.1; sleep 600", 2, "echo test_accuracy=0.9")

    assert rows.run().code == 0

    assert [record["status"] for record in records(rows).values()] == ["ok", "pruned", "ok", "ok"]
    assert records(rows)[2]["stopped"]["threshold"] == 0.5


def test_the_termination_message_has_the_digest_of_each_record(rows: TrialFolder) -> None:
    log = rows.root / "termination-log"
    log.write_text("x" * 5000)
    rows.command = of_row("kill -9 $PPID; sleep 600", 2)

    rows.run()

    digests = {
        path.parent.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in rows.results.glob("*/*.json")
    }
    assert json.loads(log.read_bytes()) == {"version": 1, "rows": {**digests, "2": None}}


def test_the_message_of_many_rows_is_one_digest(rows: TrialFolder) -> None:
    slots = {}
    for row in range(80):
        slots[row] = launch.Slot()
        slots[row].record = hashlib.sha256(b"%d" % row).digest()
    members = {str(row): hashlib.sha256(b"%d" % row).hexdigest() for row in range(80)}
    pod = launch.Pod(rows.launch_json(), range(80), "uid-1", None)
    pod.slots = slots

    digest = hashlib.sha256(launch.dump({"version": 1, "rows": members}).encode()).hexdigest()
    assert json.loads(pod.message()) == {"version": 1, "rows_sha256": digest}


@pytest.mark.parametrize("text", ["2-1", "1", "a-b", "0-1000"])
def test_rows_are_a_first_and_a_last_one(text: str, rows: TrialFolder) -> None:
    run = rows.run(SWEEP_ROWS=text)

    assert run.code == 43
    assert run.said == [f"SWEEP_ROWS must be the first and the last of 1 to 1000 rows, got {text!r}"]


def test_a_row_beyond_the_table_is_refused_and_the_others_run(rows: TrialFolder) -> None:
    run = rows.run(SWEEP_ROWS="5-6")
    none = rows.run(SWEEP_ROWS="5-5", SWEEP_RANK="1")

    assert (run.code, list(records(rows))) == (43, [5])
    assert "index 6 is beyond the table, which has 6 rows" in run.said
    assert none.code == 43
    assert none.said == ["a trial of several pods has one row, got SWEEP_RANK 1 and several rows"]


def test_a_pack_can_give_each_index_its_rows(rows: TrialFolder) -> None:
    rows.changes = {"pack": {"at_once": 4, "rows": 4}}

    last, beyond = (rows.run(SWEEP_ROWS="", SWEEP_INDEX=index) for index in ("1", "2"))

    assert (last.code, list(records(rows))) == (0, [4, 5])
    assert (beyond.code, beyond.said) == (43, ["row 8 is beyond the table, which has 6 rows"])


@pytest.mark.parametrize("pack", [{}, {"at_once": 1001}, {"at_once": 1, "rows": 0}, {"at_once": "2"}])
def test_a_pack_that_no_pod_can_run_is_refused(pack: dict[str, Any], rows: TrialFolder) -> None:
    rows.changes = {"pack": pack}

    run = rows.run()

    assert run.code == 43
    assert re.match(r"launch\.json: pack: (at_once|rows) must be ", run.said[0])
