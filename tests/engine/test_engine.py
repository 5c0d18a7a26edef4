"""Rendered manifests in, records out: the engine with real pods, whose launcher does what its row says."""

import dataclasses
import os
import re
import shutil
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from sweepledger.engine.local import events, pod_folders
from sweepledger.engine.local.events import (
    JobCondition,
    JobCreated,
    JobFinished,
    JobPruned,
    PodEnded,
)
from sweepledger.engine.local.local_batch import ResourceAmounts
from sweepledger.engine.local.machine import without_gpus
from sweepledger.engine.local.pod_folders import StateFolders
from sweepledger.engine.local.store import batch_conditions
from sweepledger.errors import RepositoryError, StorageError
from sweepledger.formats import record_json as record_format
from sweepledger.structs.record import Status
from tests.engine.batches import Machine, ends, indexed, trial


def test_a_batch_runs_to_its_end_and_starts_nothing_again(machine: Machine) -> None:
    made = indexed(["", "", "lock-scratch"])

    happened = machine.run(made)
    again = machine.run(made)

    (last,) = [event for event in ends(happened) if event.attempt.index == 2]
    assert [event.status for event in ends(happened)] == [Status.OK] * 3
    assert (last.attempt.trial, last.attempt.number, dict(last.metrics)) == (trial(2), 1, {"score": 1.0})
    assert happened[0] == JobCreated("lr-b1-00000001")
    assert happened[-1] == JobFinished("lr-b1-00000001", JobCondition.COMPLETE, "CompletionsReached")
    assert (again, sorted(machine.starts(made))) == ([], [0, 1, 2])
    assert batch_conditions(machine.state) == {"lr-b1-00000001": JobCondition.COMPLETE}
    assert list((machine.state / "pods").iterdir()) == []
    assert list((machine.root / "locked code").iterdir()) == []


def test_the_trial_gets_folders_for_the_paths_in_the_manifest(machine: Machine) -> None:
    made = replace(indexed(["", ""]), data="sha256:" + "e" * 64)
    desired = replace(machine.desired(made), data=machine.root / "digits")

    with machine.engine() as engine:
        while not engine.is_settled or not machine.records(made, 1):
            engine.step([desired])
            engine.wait(0.1)

    (record,) = machine.records(made, 1)
    environment, state = record.details["env"], machine.state
    scratch = state / "pods" / record.uid / "volumes" / "scratch"
    assert environment["SWEEP_RESULTS"] == str(state / "results/lr-b1-00000001/1")
    assert environment["HOME"] == environment["TMPDIR"] == environment["SWEEP_SCRATCH"] == str(scratch)
    assert environment["SWEEP_RAN"] == record.ran == "process"
    assert environment["JOB_COMPLETION_INDEX"] == "1"
    assert environment["SWEEP_CODE"] == str(machine.root / "locked code")
    assert environment["SWEEP_DATA"] == str(machine.root / "digits")
    assert record.details["cwd"] == str(scratch.parents[1])
    assert record.details["cpus"] == 1
    assert "PYTEST_CURRENT_TEST" not in environment


def test_results_are_read_from_records_without_the_state_file(machine: Machine) -> None:
    made = indexed(["", "exit:42", "exit:1"])
    machine.run(made)
    (machine.state / "state.json").unlink()

    happened = machine.run(made)

    assert [type(event) for event in happened] == [JobCreated, JobFinished]
    assert len(machine.starts(made)) == 3


def test_a_result_that_appears_meanwhile_prevents_the_start_of_its_pod(machine: Machine) -> None:
    made, elsewhere = indexed(["wait-for:go", ""], parallelism=1), Machine(machine.root / "elsewhere")
    elsewhere.root.mkdir()
    (elsewhere.state / "results" / made.name).mkdir(parents=True)
    (elsewhere.state / "results" / made.name / "go").touch()
    elsewhere.run(made)
    results = machine.state / "results" / made.name

    with machine.engine() as engine:
        machine.drive(engine, made, until=lambda: machine.spy(made))
        shutil.copytree(elsewhere.state / "results" / made.name / "1", results / "1")
        (results / "go").touch()
        machine.drive(engine, made)

    assert machine.starts(made) == [0]
    assert batch_conditions(machine.state) == {made.name: JobCondition.COMPLETE}


def test_a_launcher_that_finds_a_result_leaves_no_second_record(machine: Machine) -> None:
    made, elsewhere = indexed(["wait-for:go vanish:0"]), Machine(machine.root / "elsewhere")
    elsewhere.root.mkdir()
    results = machine.state / "results" / made.name

    with machine.engine() as engine:
        machine.drive(engine, made, until=lambda: machine.spy(made))
        elsewhere.run(indexed([""]))
        (record,) = elsewhere.records(made, 0)
        text = record_format.to_line(
            dataclasses.replace(record, row=machine.desired(made).batch.trials[0].row)
        )
        (results / "0" / f"{record.uid}.json").write_text(text)
        (results / "go").touch()
        (ended,) = ends(machine.drive(engine, made))

    assert (ended.status, ended.reason) == (Status.OK, "already-recorded")
    assert [item.uid for item in machine.records(made, 0)] == [record.uid]


def test_a_failed_trial_is_retried_with_its_number_of_failures_up_to_a_limit(machine: Machine) -> None:
    made = indexed(["fail-first:1", "exit:3"], retries=1)

    happened = ends(machine.run(made))

    first, second = ([event for event in happened if event.attempt.index == index] for index in (0, 1))
    assert [(event.status, event.attempt.number) for event in first] == [(Status.FAILED, 1), (Status.OK, 2)]
    assert [record.attempt for record in machine.records(made, 0)] == [1, 2]
    assert [(event.reason, event.attempts) for event in second] == [("exit-3", 2), ("exit-3", None)]
    assert [event.attempts for event in first] == [2, None], "of the last attempt nothing follows"
    assert batch_conditions(machine.state) == {made.name: JobCondition.FAILED}


def test_the_exit_code_overrides_the_reason_in_the_record(machine: Machine) -> None:
    made = indexed(["odd:43", ""], retries=3, parallelism=1)

    happened = machine.run(made)

    assert happened[-1] == JobFinished(made.name, JobCondition.FAILED, "PodFailurePolicy")
    assert [event.attempts for event in ends(happened)] == [None]
    assert machine.starts(made) == [0]


def test_a_bad_sweep_stops_its_batch_and_no_other(machine: Machine) -> None:
    does = ["wait-for:one wait-for:two exit:43", "orphan make:one sleep:300", "make:two sleep:300", ""]
    made = indexed(does, parallelism=3, retries=3)
    other = indexed(["sleep:0.3"], name="lr-b2-00000002")

    happened = machine.run(made, other)

    assert sorted(machine.starts(made)) == [0, 1, 2]
    assert JobFinished(made.name, JobCondition.FAILED, "PodFailurePolicy") in happened
    assert {record.reason for index in (1, 2) for record in machine.records(made, index)} == {"stopped"}
    assert batch_conditions(machine.state)[other.name] is JobCondition.COMPLETE


ENDS = {
    "killed": (Status.FAILED, "killed", ""),
    "kill-supervisor": (Status.FAILED, "killed", "its supervisor was killed"),
    "say:why vanish:3": (Status.FAILED, "exit-3", "why"),
    "vanish:0": (Status.FAILED, "no-record", ""),
    "vanish:42": (Status.DIVERGED, "bad-hyperparameters", ""),
    "vanish:74": (Status.FAILED, "disk-full", ""),
    "vanish:139": (Status.FAILED, "signal-11", ""),
}


def test_the_engine_writes_the_record_of_an_attempt_that_left_none(machine: Machine) -> None:
    made = indexed(ENDS)

    happened = {event.attempt.index: event for event in ends(machine.run(made))}

    for index, (status, reason, message) in enumerate(ENDS.values()):
        (record,), event = machine.records(made, index), happened[index]
        assert (record.status, record.reason) == (event.status, event.reason) == (status, reason)
        assert (record.trial, record.index, record.attempt) == (trial(index), index, 1)
        assert (record.uid, record.details.get("said", ""), event.output) == (
            event.attempt.uid,
            message,
            message,
        )


@pytest.mark.parametrize(("does", "mebibytes"), [("orphan hold:200", 128), ("setsid hold:150", 64)])
def test_a_pod_over_its_memory_limit_is_recorded_as_oom(machine: Machine, does: str, mebibytes: int) -> None:
    made = indexed([does], resources=ResourceAmounts(1000, mebibytes << 20))

    machine.run(made)

    (record,) = machine.records(made, 0)
    assert record.reason == "oom"
    assert re.fullmatch(
        rf"used [0-9]+Mi of memory, and the limit is {mebibytes}Mi: raise run.resources.memory",
        record.error or "",
    )


def test_a_pod_that_cannot_start_is_recorded_as_start_failed(machine: Machine) -> None:
    made = replace(indexed([""]), interpreter="no-such-program")

    (ended,) = ends(machine.run(made))

    assert (ended.reason, "no-such-program" in ended.output) == ("start-failed", True)


def test_a_record_is_read_from_the_termination_log_or_is_unreadable_and_kept(machine: Machine) -> None:
    made = indexed(["only-log", "corrupt"])

    of_log, of_volume = sorted(ends(machine.run(made)), key=lambda event: event.attempt.index)

    path = machine.state / "results" / made.name / "1" / f"{of_volume.attempt.uid}.json"
    assert of_log.status is Status.OK
    assert [record.status for record in machine.records(made, 0)] == [Status.OK]
    assert (of_volume.status, of_volume.reason) == (Status.FAILED, "record-invalid")
    assert path.read_text() == '{"version": 1'


def test_a_record_of_another_row_is_no_result(machine: Machine) -> None:
    first, second = indexed([""]), indexed(["note:other"])
    machine.run(first)
    (machine.state / "state.json").unlink()
    (machine.state / "jobs/lr-b1-00000001").rename(machine.root / "old")

    machine.run(second, capacity=ResourceAmounts(1000, 1 << 40))

    # Counted as a failed attempt, and no retry is left.
    assert machine.starts(second) == [0]
    assert batch_conditions(machine.state) == {second.name: JobCondition.FAILED}


def test_a_pod_past_its_deadline_is_stopped(machine: Machine) -> None:
    made = replace(indexed(["stubborn sleep:300"]), pod_deadline=1, grace=0)

    (ended,) = ends(machine.run(made))

    assert ended.reason == "deadline"


@pytest.mark.parametrize(
    ("jump", "is_restarted"),
    [(8 * 3600, False), (-86400, False), (800 * 86400, True)],
    ids=["asleep", "set back", "switched off"],
)
def test_no_deadline_counts_what_a_machine_slept(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, jump: int, *, is_restarted: bool
) -> None:
    made = replace(indexed(["wait-for:go", "wait-for:go fail-first:1"], retries=1), deadline=400)
    go, awake = machine.state / "results" / made.name / "go", time.time

    with machine.engine() as engine:
        machine.drive(engine, made, until=lambda: len(machine.spy(made)) == 2)
        monkeypatch.setattr(time, "time", lambda: awake() + jump)
        if not is_restarted:
            go.touch()
            machine.drive(engine, made)
    go.touch()
    machine.run(made)

    assert batch_conditions(machine.state) == {made.name: JobCondition.COMPLETE}
    assert sorted(machine.starts(made)) == ([0, 0, 1, 1, 1] if is_restarted else [0, 1, 1])


def test_jobs_that_are_not_desired_are_pruned_and_their_records_stay(machine: Machine) -> None:
    made = indexed(["", "setsid sleep:300"])

    with machine.engine() as engine:
        machine.drive(engine, made, until=lambda: len(machine.spy(made)) == 2 and machine.records(made, 0))
        happened = machine.drive(engine, until=lambda: not (machine.state / "jobs" / made.name).exists())

    assert happened[-1] == JobPruned(made.name)
    assert batch_conditions(machine.state) == {}
    assert len(machine.records(made, 0)) == 1
    assert machine.records(made, 1) == []


def test_a_changed_job_is_refused_once_and_continues(machine: Machine) -> None:
    made, changed = indexed(["wait-for:go"]), indexed(["wait-for:go"], parallelism=2)

    with machine.engine() as engine:
        machine.drive(engine, made, until=lambda: machine.spy(made))
        happened = [event for _ in range(3) for event in engine.step([machine.desired(changed)])]
        (machine.state / "results" / made.name / "go").touch()
        machine.drive(engine, changed)

    assert happened == [events.EditRefused(made.name)]
    assert machine.starts(made) == [0]


def test_an_untouched_batch_is_neither_pruned_nor_continued(machine: Machine) -> None:
    made = indexed(["sleep:0.2", ""], parallelism=1)

    with machine.engine() as engine:
        engine.step([machine.desired(made)])
        happened: list[events.EngineEvent] = []
        while not ends(happened):
            engine.wait(1)
            happened += engine.step([], untouched=[made.name])

    assert [type(event) for event in happened] == [PodEnded]
    assert ends(happened)[0].status is Status.OK
    assert machine.starts(made) == [0]


def test_closing_kills_all_pods_without_counting_an_attempt(machine: Machine) -> None:
    made = indexed(["polite setsid orphan wait-for:go"])

    with machine.engine() as engine:
        machine.drive(engine, made, until=lambda: machine.spy(made))
        begun = time.monotonic()
    took = time.monotonic() - begun

    assert took < 100
    assert machine.processes() == []
    assert machine.records(made, 0) == []
    (machine.state / "results" / made.name / "go").touch()
    machine.run(made)
    assert [record.attempt for record in machine.records(made, 0)] == [1]


def test_a_second_engine_is_refused_with_the_process_of_the_first(machine: Machine) -> None:
    with machine.engine(), pytest.raises(RepositoryError, match=f"process {os.getpid()}"):
        machine.engine()

    machine.engine().close()


@pytest.mark.parametrize("text", ["{", "[]", '{"jobs": {"a": {}}}', '{"jobs": {"a": 1}}'])
def test_a_damaged_state_file_is_named_with_a_hint(machine: Machine, text: str) -> None:
    machine.state.mkdir()
    (machine.state / "state.json").write_text(text)

    for _ in range(2):  # the lock is given back
        with pytest.raises(StorageError, match=r"state\.json is damaged") as caught:
            machine.engine()

    assert "delete it" in (caught.value.hint or "")


def test_a_results_volume_that_cannot_be_written_is_named(machine: Machine) -> None:
    made = indexed([""])
    machine.state.mkdir()
    (machine.state / "results").write_text("a file where a folder should be")

    with machine.engine() as engine, pytest.raises(StorageError, match="results"):
        machine.drive(engine, made)


def test_an_exit_that_cannot_be_recorded_is_kept_until_it_can(machine: Machine) -> None:
    made = indexed(["wait-for:go vanish:3"])
    folder = machine.state / "results" / made.name / "0"

    with machine.engine() as engine:
        machine.drive(engine, made, until=lambda: machine.spy(made))
        folder.rename(machine.root / "aside")
        folder.touch()  # a file where a folder should be
        (folder.parent / "go").touch()
        with pytest.raises(StorageError, match="/0: file exists"):
            machine.drive(engine, made)
        folder.unlink()
        (machine.root / "aside").rename(folder)
        happened = machine.drive(engine, made)

    assert [event.reason for event in ends(happened)] == ["exit-3"]


def test_a_pod_sees_only_its_own_gpus(machine: Machine) -> None:
    wants = ResourceAmounts(1000, 1 << 30, gpus=1)
    made = indexed(["sleep:0.1"] * 2, resources=wants)

    machine.run(made, capacity=ResourceAmounts(64_000, 1 << 40, gpus=2))

    shown = [machine.records(made, index)[0].details["env"]["CUDA_VISIBLE_DEVICES"] for index in (0, 1)]
    assert sorted(shown) == ["0", "1"]


def test_a_trial_without_its_gpu_gets_a_variable(machine: Machine) -> None:
    made = indexed([""], resources=ResourceAmounts(1000, 1 << 30, gpus=1))
    plain = indexed([""], name="lr-b2-00000002")

    machine.run(*map(without_gpus, (made, plain)))

    assert machine.records(made, 0)[0].details["env"]["SWEEP_WITHOUT_GPU"] == "1"
    assert "SWEEP_WITHOUT_GPU" not in machine.records(plain, 0)[0].details["env"]


def test_pods_get_different_cpus(machine: Machine) -> None:
    if len(os.sched_getaffinity(0)) == 1:
        pytest.skip("one CPU")
    made = indexed(["wait-for:go"] * 2)

    with machine.engine() as engine:
        machine.drive(engine, made, until=lambda: len(machine.spy(made)) == 2)
        shown = {tuple(os.sched_getaffinity(pid)) for _, _, pid in machine.spy(made)}
        (machine.state / "results" / made.name / "go").touch()
        machine.drive(engine, made)

    assert len(shown) == 2


def test_a_link_that_another_trial_left_is_removed_not_followed_and_a_pipe_ignored(
    machine: Machine, tmp_path: Path
) -> None:
    made, elsewhere = indexed(["", ""]), tmp_path / "elsewhere"
    elsewhere.mkdir()
    folder = machine.state / "results" / "lr-b1-00000001"
    (folder / "1").mkdir(parents=True)
    os.mkfifo(folder / "1" / "pipe.json")
    (folder / "0").symlink_to(elsewhere)

    happened = machine.run(made)

    assert isinstance(happened[-1], JobFinished)
    assert list(elsewhere.iterdir()) == []
    assert len(list((folder / "0").glob("*.json"))) == 1


def test_a_pod_that_takes_over_a_folder_does_not_get_the_errors_of_the_pod_before(tmp_path: Path) -> None:
    folders = StateFolders(tmp_path)
    copied = folders.pod("first") / "volumes/scratch/trial-1/copied"
    copied.parent.mkdir(parents=True)
    for path in (copied, *(folders.pod("first") / name for name in pod_folders.LEFT_FILES)):
        path.write_text("\nValueError: of the first pod\n")

    assert pod_folders.leave_pod(folders, "first")
    pod_folders.take_pod(folders, "first", "second")

    assert (folders.pod("second") / pod_folders.STDERR_FILE).read_text().strip() == ""
