"""How an attempt may end: status, reason and exit code of each way."""

import os
import signal
import subprocess
import time
from types import SimpleNamespace
from typing import Any

import pytest

from tests.launcher.folders import (
    HOUR,
    LATE,
    LAUNCHER,
    REPORT,
    TRIALS,
    TrialFolder,
    ended,
    launch,
    make_late,
    shell,
    wait_for,
)


def verdict(code: int, cause: int, value: float | None, reason: str | None = None) -> Any:
    metrics = {} if value is None else {"loss": value}
    report = launch.Report(metrics, {}, reason, "")
    return tuple(launch.judge(launch.Ending(code, cause, 1.0), report, ["loss"]))


@pytest.mark.parametrize(
    ("script", "status", "reason", "code"),
    [
        (REPORT, "ok", None, 0),
        (f"{REPORT}; exit 42", "diverged", "bad-hyperparameters", 42),
        (f"{REPORT}; exit 43", "failed", "bad-sweep", 43),
        (f"{REPORT}; exit 44", "failed", "exit-44", 1),
        (f"{REPORT}; exit 7", "failed", "exit-7", 7),
        (f"{REPORT}; kill -9 $$", "failed", "signal-9", 137),
        ("exit 0", "failed", "metric-missing", 1),
        ("printf x > $SWEEP_RESULT", "failed", "result-invalid", 1),
        ("printf x > $SWEEP_RESULT; exit 3", "failed", "exit-3", 3),
    ],
)
def test_the_commands_end_decides(
    script: str, status: str, reason: str | None, code: int, trial_folder: TrialFolder
) -> None:
    trial_folder.command = shell(script)

    record = trial_folder.try_once()

    assert (record["status"], record["reason"], record["exit"]) == (status, reason, code)


@pytest.mark.parametrize("number", ["NaN", "-Infinity"])
def test_a_metric_that_is_not_finite_is_diverged(number: str, trial_folder: TrialFolder) -> None:
    trial_folder.command = shell(f"printf '{{\"test_accuracy\": {number}}}' > $SWEEP_RESULT")

    record = trial_folder.try_once()

    assert (record["status"], record["reason"], record["exit"]) == ("diverged", "metric-not-finite", 42)
    assert record["metrics"] == {}
    assert record["details"] == {"test_accuracy": str(float(number))}
    assert record["said"] == [f"{TRIALS[0]}: diverged: metric-not-finite: test_accuracy={float(number)}"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((0, 0, 0.5), ("ok", None, 0)),
        ((0, 15, 0.5), ("ok", None, 0)),
        ((0, 124, 0.5), ("failed", "timeout", 124)),
        ((42, 124, None), ("failed", "timeout", 124)),
        ((42, 15, None), ("diverged", "bad-hyperparameters", 42)),
        ((-42, 0, None), ("failed", "signal-42", 170)),
        ((0, 0, float("nan")), ("diverged", "metric-not-finite", 42)),
        ((0, 15, float("inf")), ("diverged", "metric-not-finite", 42)),
        ((0, 15, None, "metric-missing"), ("failed", "signal-15", 143)),
        ((0, 0, None, "result-invalid"), ("failed", "result-invalid", 1)),
        ((1, 2, None, "metric-missing"), ("failed", "signal-2", 130)),
        ((-9, 15, 0.5), ("failed", "signal-15", 143)),
        ((-9, 0, 0.5), ("failed", "signal-9", 137)),
        ((1, 0, 0.5), ("failed", "exit-1", 1)),
        ((124, 0, 0.5), ("failed", "exit-124", 124)),
    ],
)
def test_the_cause_of_the_end_comes_first(arguments: tuple[Any, ...], expected: tuple[Any, ...]) -> None:
    assert verdict(*arguments) == expected


def test_a_trial_beyond_its_timeout_is_told_to_end(trial_folder: TrialFolder) -> None:
    trial_folder.command = shell(f'{REPORT}; trap "echo told; exit 0" TERM; {LATE}; sleep 600 & wait')

    run = trial_folder.run()

    record = trial_folder.record()
    assert (record["status"], record["reason"], run.code) == ("failed", "timeout", 124)
    assert run.out == b"told\n"
    assert HOUR < record["seconds"] < 2 * HOUR
    assert record["metrics"] == {"test_accuracy": 0.5}
    assert run.said == [f"{TRIALS[0]}: failed: timeout: test_accuracy=0.5"]


def test_a_trial_that_will_not_end_is_killed_after_its_grace(trial_folder: TrialFolder) -> None:
    trial_folder.command = shell(f'trap "echo told; {LATE}" TERM; {LATE}; while :; do sleep 0.05; done')

    record = trial_folder.try_once()

    assert (record["reason"], record["exit"]) == ("timeout", 124)
    assert 2 * HOUR < record["seconds"] < 3 * HOUR
    assert (trial_folder.results / "uid-1.out").read_text() == "told\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_is_passed_on_as_sigterm(number: signal.Signals, trial_folder: TrialFolder) -> None:
    trial_folder.command = shell('trap "echo told; exit 5" TERM; touch $HERE/up; sleep 20 & wait')
    launcher = trial_folder.start()
    wait_for(trial_folder.root / "up")

    launcher.send_signal(number)
    run = ended(launcher)

    record = trial_folder.record()
    assert (record["status"], record["reason"]) == ("failed", f"signal-{number}")
    assert (run.code, run.out) == (128 + number, b"told\n")


def test_a_trial_that_finishes_in_its_grace_is_ok(trial_folder: TrialFolder) -> None:
    trial_folder.command = shell(
        f"finish() {{ {REPORT}; exit 0; }}; trap finish TERM; touch $HERE/up; sleep 20 & wait"
    )
    launcher = trial_folder.start()
    wait_for(trial_folder.root / "up")

    launcher.terminate()

    assert ended(launcher).code == 0
    assert trial_folder.record()["status"] == "ok"


def test_a_stopped_trial_that_will_not_end_is_killed_after_its_grace(trial_folder: TrialFolder) -> None:
    trial_folder.command = shell("trap 'touch $HERE/told' TERM; touch $HERE/up; while :; do sleep 0.05; done")
    launcher = trial_folder.start()
    wait_for(trial_folder.root / "up")

    launcher.terminate()
    wait_for(trial_folder.root / "told")  # of two signals at once, Python would handle the lower number first
    launcher.send_signal(signal.SIGINT)
    make_late(trial_folder.root, launcher.pid)

    assert ended(launcher).code == 143
    assert trial_folder.record()["reason"] == "signal-15"


def test_a_signal_that_was_ignored_stays_ignored(trial_folder: TrialFolder) -> None:
    trial_folder.command = shell(f"touch $HERE/up; while [ ! -e $HERE/go ]; do sleep 0.01; done; {REPORT}")
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        launcher = trial_folder.start()
    finally:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    wait_for(trial_folder.root / "up")

    launcher.send_signal(signal.SIGHUP)
    time.sleep(0.05)
    (trial_folder.root / "go").touch()

    assert ended(launcher).code == 0


def test_a_launcher_stopped_before_the_command_begins_starts_nothing(trial_folder: TrialFolder) -> None:
    # Reading a FIFO holds the launcher where it has not begun yet.
    table = trial_folder.root / "slow" / "hyperparams.csv"
    table.parent.mkdir()
    os.mkfifo(table)
    trial_folder.command = shell("touch $HERE/began")
    launcher = trial_folder.start(SWEEP_TABLE=str(table.parent))
    with table.open("w", encoding="utf-8") as writer:
        launcher.terminate()
        time.sleep(0.05)
        writer.write(trial_folder.table)

    run = ended(launcher)

    assert (run.code, run.said) == (143, ["stopped by signal 15 before the command began"])
    assert trial_folder.records() == {}
    assert not (trial_folder.root / "began").exists()


def test_stopped_just_before_the_command(trial_folder: TrialFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    trial_folder.write()
    monkeypatch.setenv("SWEEP_SCRATCH", str(trial_folder.root / "scratch"))
    monkeypatch.setenv("HERE", str(trial_folder.root))
    monkeypatch.setenv("SWEEP_CODE", str(trial_folder.code))
    row = launch.Row(0, "t1", "0" * 64, {})
    trial_folder.command = shell("touch $HERE/began")
    attempt = launch.Attempt(trial_folder.launch_json(), row, "uid-1", 1, str(trial_folder.results))

    with pytest.raises(launch.Stopped, match="15"):
        launch.run_command(attempt, SimpleNamespace(stop=signal.SIGTERM))

    assert not (trial_folder.root / "began").exists()


def test_the_time_of_the_attempt_is_utc(trial_folder: TrialFolder) -> None:
    trial_folder.command = shell(REPORT)
    before = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())

    record = trial_folder.try_once(TZ="Asia/Tokyo")

    after = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    assert before <= record["started"] <= record["finished"] <= after
    assert record["seconds"] == round(record["seconds"], 3)


def test_no_reader_of_stdout_is_no_failure(trial_folder: TrialFolder) -> None:
    trial_folder.command = shell(f"echo one; {REPORT}; echo two; echo three >&2")
    reader, writer = os.pipe()
    os.close(reader)
    launcher = trial_folder.start(writer)
    os.close(writer)

    run = ended(launcher)

    assert run.code == 0
    assert "three\n" in run.err
    assert (trial_folder.results / "uid-1.out").read_text() == "one\ntwo\n"


def test_closed_standard_streams_are_no_failure(trial_folder: TrialFolder) -> None:
    trial_folder.command = shell(f"echo out; echo err >&2; {REPORT}")
    trial_folder.write()

    code = subprocess.run(
        ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", trial_folder.interpreter, str(LAUNCHER)],
        env=trial_folder.variables({}),
        cwd=trial_folder.code,
        check=False,
    ).returncode

    assert code == 0
    assert trial_folder.record()["status"] == "ok"
    assert (trial_folder.results / "uid-1.out").read_text() == "out\n"
    assert (trial_folder.results / "uid-1.err").read_text() == "err\n"
