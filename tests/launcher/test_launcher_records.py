"""The record: its content, its file, and what stands when things break on the way to it."""

import contextlib
import errno
import fcntl
import json
import os
import random
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import captured
from tests.launcher.folders import (
    CODE,
    FOLDER,
    REPORT,
    SCHEMA,
    TRIALS,
    TrialFolder,
    ended,
    launch,
    python,
    shell,
    wait_for,
)

STARTS = f"echo x >> $HERE/starts; {REPORT}"


def starts(folder: TrialFolder) -> int:
    """Count how often the command was started."""
    path = folder.root / "starts"
    return path.read_text().count("x") if path.exists() else 0


def a_record(folder: TrialFolder, **changes: Any) -> dict[str, Any]:
    """Make a good record of the folder's first row."""
    return {
        "version": 1,
        "trial": TRIALS[0],
        "row": folder.row_digest(),
        "batch": "lr-b1-3f9a1c2e",
        "index": 0,
        "uid": "earlier",
        "attempt": 1,
        "status": "ok",
        "reason": None,
        "metrics": {"test_accuracy": 0.5},
        "seconds": 1.0,
        "started": "2026-01-01T00:00:00Z",
        "finished": "2026-01-01T00:00:01Z",
        "ran": "process",
        "code": CODE,
        "data": None,
        "seed": 0,
        "node": None,
        "details": {},
        "artifacts": [],
        "disruptions": 0,
        "environment": None,
        **changes,
    }


def leave(folder: TrialFolder, content: object, name: str = "earlier.json") -> Path:
    """Put a file into the trial's own folder before the launcher comes."""
    folder.results.mkdir(parents=True, exist_ok=True)
    path = folder.results / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_a_record_says_everything(trial_folder: TrialFolder) -> None:
    trial_folder.changes = {"seed_base": 7, "data": f"sha256:{'ef' * 32}"}
    trial_folder.command = shell(
        'printf model > "$SWEEP_ARTIFACTS/model.pt";'
        'printf \'{"test_accuracy": 0.94, "loss": 1, "device": "cpu"}\' > "$SWEEP_RESULT"'
    )

    record = trial_folder.try_once(
        SWEEP_INDEX="1", SWEEP_RAN="local", SWEEP_NODE="node-1", SWEEP_FAILURES="2"
    )

    assert not (trial_folder.root / "termination-log").exists()
    assert record.pop("exit") == 0
    assert record.pop("said") == [f"{TRIALS[1]}: ok: test_accuracy=0.94"]
    assert 0 <= record.pop("seconds") < 100
    assert record.pop("started") <= record.pop("finished")
    assert record.pop("environment")["kind"] == "distributions"
    assert record.pop("disruptions") == 0
    assert record.pop("peak_memory") > 0
    assert record.pop("wall") == "directory"
    assert record == {
        "version": 1,
        "trial": TRIALS[1],
        "row": trial_folder.row_digest(1),
        "batch": "lr-b1-3f9a1c2e",
        "index": 1,
        "uid": "uid-1",
        "attempt": 3,
        "status": "ok",
        "reason": None,
        "metrics": {"test_accuracy": 0.94, "loss": 1.0},
        "ran": "local",
        "code": CODE,
        "data": f"sha256:{'ef' * 32}",
        "seed": 7,
        "node": "node-1",
        "details": {"device": "cpu"},
        "artifacts": [
            {
                "path": "model.pt",
                "bytes": 5,
                "sha256": "9372c470eeadd5ecd9c3c74c2b3cb633f8e2f2fad799250a0f70d652b6b825e4",
            }
        ],
    }


def test_a_record_is_one_line_of_ascii_with_sorted_keys_of_which_the_node_keeps_a_copy(
    trial_folder: TrialFolder,
) -> None:
    log = trial_folder.root / "termination-log"
    log.write_text("something longer than a record, from before" * 1000)
    trial_folder.command = shell(
        'printf \'{"test_accuracy": 0.5, "name": "größe\\ud800"}\' > "$SWEEP_RESULT"; echo err >&2'
    )

    trial_folder.run()

    text = (trial_folder.results / "uid-1.json").read_bytes()
    assert text.isascii()
    assert text.decode() == json.dumps(json.loads(text), sort_keys=True, separators=(",", ":")) + "\n"
    assert log.read_bytes() == text
    names = {path.name for path in trial_folder.results.iterdir()}
    assert names - {"environments"} == {".lock", "uid-1.json", "uid-1.out", "uid-1.err"}
    for name in (".lock", "uid-1.json", "uid-1.err"):
        assert (trial_folder.results / name).stat().st_mode & 0o777 == 0o644, "a collector can read it"


@pytest.mark.parametrize(
    ("status", "reason", "code"),
    [("ok", None, 0), ("diverged", "bad-hyperparameters", 42), ("diverged", "metric-not-finite", 42)],
)
def test_a_recorded_row_rests(status: str, reason: str | None, code: int, trial_folder: TrialFolder) -> None:
    trial_folder.command = shell(STARTS)
    leave(trial_folder, a_record(trial_folder, status=status, reason=reason))

    run = trial_folder.run()

    assert run.code == code
    assert run.said == [f"{TRIALS[0]}: {status} already, by attempt earlier: nothing to do"]
    assert starts(trial_folder) == 0
    assert {path.name for path in trial_folder.results.iterdir()} == {".lock", "earlier.json"}


@pytest.mark.parametrize(
    "change",
    [
        {"status": "failed", "reason": "exit-1"},
        {"row": "0" * 64},
        {"version": 3},
        {"status": "OK"},
    ],
)
def test_a_record_that_settles_nothing_is_ignored(change: dict[str, Any], trial_folder: TrialFolder) -> None:
    trial_folder.command = shell(STARTS)
    leave(trial_folder, a_record(trial_folder, **change))

    assert trial_folder.run().code == 0
    assert starts(trial_folder) == 1


def test_junk_in_the_folder_does_not_matter(trial_folder: TrialFolder) -> None:
    trial_folder.command = shell(STARTS)
    for number, content in enumerate(("", "[]", '{"version": 1}', "x" * (1 << 20 | 1), "[" * 100_000)):
        leave(trial_folder, content, name=f"earlier-{number}.json")
    leave(trial_folder, a_record(trial_folder), name="earlier.json.tmp")
    (trial_folder.results / "folder.json").mkdir()
    os.mkfifo(trial_folder.results / "fifo.json")
    linked = leave(trial_folder, a_record(trial_folder), name="link.json").rename(trial_folder.root / "else")
    (trial_folder.results / "link.json").symlink_to(linked)

    assert trial_folder.run().code == 0
    assert starts(trial_folder) == 1
    assert json.loads((trial_folder.results / "uid-1.json").read_bytes())["attempt"] == 1


@pytest.mark.parametrize(
    ("failures", "attempt"), [("", 3), ("0", 1), ("4", 5), ("-1", 3), ("1.5", 3), ("٣", 3), ("9" * 10, 3)]
)
def test_attempts_are_counted(failures: str, attempt: int, trial_folder: TrialFolder) -> None:
    failed = {"status": "failed", "reason": "exit-1"}
    leave(trial_folder, a_record(trial_folder, uid="a", **failed), name="a.json")
    leave(trial_folder, a_record(trial_folder, uid="b", **failed), name="b.json")
    leave(trial_folder, a_record(trial_folder, uid="c", row="0" * 64), name="c.json")

    trial_folder.run(SWEEP_FAILURES=failures)

    assert json.loads((trial_folder.results / "uid-1.json").read_bytes())["attempt"] == attempt


def test_an_attempt_without_a_name_makes_one_of_its_own(trial_folder: TrialFolder) -> None:
    trial_folder.command = shell(f"exit 1; {REPORT}")
    trial_folder.run(SWEEP_POD_UID="")
    trial_folder.run(SWEEP_POD_UID="")

    records = trial_folder.records()

    assert all(re.fullmatch(r"[0-9a-f]{32}\.json", name) for name in records)
    assert sorted(record["attempt"] for record in records.values()) == [1, 2]
    assert all(name == f"{record['uid']}.json" for name, record in records.items())


@pytest.mark.parametrize(("target", "end"), [("../other/checkpoints", "exit 0"), ("..", "exit 1")])
def test_no_trial_leads_another_to_a_third(target: str, end: str, trial_folder: TrialFolder) -> None:
    other = trial_folder.root / "other/checkpoints"
    other.mkdir(parents=True)
    (other / "last").write_text("7")
    trial_folder.changes = {"keep_checkpoints": True}
    trial_folder.command = shell(
        f'rm -r "$SWEEP_CHECKPOINTS"; ln -s "{target}" "$SWEEP_CHECKPOINTS"; {REPORT}; {end}'
    )

    trial_folder.run()

    assert len(trial_folder.records()) == 1
    assert not (trial_folder.results / "checkpoints").is_symlink()
    assert (other / "last").read_text() == "7"


def test_a_trial_that_goes_on_changes_no_other(trial_folder: TrialFolder) -> None:
    parent, artifacts = trial_folder.root / "parent", trial_folder.root / "artifacts"
    (parent / "deep").mkdir(parents=True)
    artifacts.mkdir()
    for path in (parent / "state", parent / "moved", parent / "deep/state", artifacts / "best"):
        path.write_text("7\n")
    links = {"latest": parent / "state", "best": artifacts / "best", "kept": artifacts}
    for name, target in {**links, "beside": Path("../artifacts/best")}.items():
        (parent / name).symlink_to(target)
    before = sorted((path.as_posix(), path.read_text()) for path in parent.rglob("*") if path.is_file())
    writes = [
        "cat $SWEEP_PARENT/latest $SWEEP_PARENT/deep/state $SWEEP_PARENT/best",
        "[ ! -e $SWEEP_PARENT/kept ]",
        "cp -a $SWEEP_PARENT/. $SWEEP_CHECKPOINTS; echo through a link > $SWEEP_CHECKPOINTS/beside",
        "echo through a link > $SWEEP_PARENT/latest; echo through a link > $SWEEP_PARENT/best",
        "echo in place > $SWEEP_PARENT/state; echo >> $SWEEP_PARENT/deep/state; touch $SWEEP_PARENT/deep/new",
        "rm -r $SWEEP_PARENT/deep; mv $SWEEP_PARENT/moved $SWEEP_PARENT/deep",
    ]
    trial_folder.command = shell(f"set -e; {'; '.join(writes)}; {REPORT}")

    run = trial_folder.run(SWEEP_PARENT=str(parent))

    assert run.out == b"7\n7\n7\n"
    assert trial_folder.record()["status"] == "ok"
    after = sorted((path.as_posix(), path.read_text()) for path in parent.rglob("*") if path.is_file())
    assert after == before
    assert (artifacts / "best").read_text() == "7\n"


@pytest.mark.parametrize("code", ["1", "43"])
def test_an_attempt_finds_the_last_checkpoints_and_keeps_its_artifacts(
    code: str, trial_folder: TrialFolder
) -> None:
    trial_folder.command = shell(
        'cp "$SWEEP_CHECKPOINTS/at" "$SWEEP_ARTIFACTS/found" ||'
        '{ echo 7 > "$SWEEP_CHECKPOINTS/at"; exit $CODE; };' + REPORT
    )
    trial_folder.run(CODE=code)

    trial_folder.run(SWEEP_POD_UID="uid-2")

    records = trial_folder.records()
    assert [record["status"] for record in records.values()] == ["failed", "ok"]
    assert (trial_folder.results / "artifacts" / "uid-2" / "found").read_text() == "7\n"
    assert not (trial_folder.results / "artifacts" / "uid-1").exists()
    assert not (trial_folder.results / "checkpoints").exists()


@pytest.mark.parametrize(("size", "whole"), [(4095, True), (4096, False)])
def test_the_copy_is_whole_up_to_4095_bytes(size: int, trial_folder: TrialFolder, *, whole: bool) -> None:
    record = a_record(trial_folder, details={"a": ""})
    record["details"]["a"] = "x" * (size - len(launch.dump(record)))

    copy = launch.brief(record)

    assert (json.loads(copy) == record) == whole


def hold(folder: TrialFolder) -> int:
    folder.results.mkdir(parents=True, exist_ok=True)
    file = os.open(folder.results / ".lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


def first_line(launcher: subprocess.Popen[bytes]) -> str:
    assert launcher.stderr
    return launcher.stderr.readline().decode()


WAITING = "launch.py: another launcher of this trial is at work: waiting for it\n"


def test_of_two_launchers_at_once_one_starts_the_trial(trial_folder: TrialFolder) -> None:
    trial_folder.command = shell(f"touch $HERE/up; while [ ! -e $HERE/go ]; do sleep 0.01; done; {STARTS}")
    first = trial_folder.start()
    wait_for(trial_folder.root / "up")
    second = trial_folder.start(SWEEP_POD_UID="uid-2")

    assert first_line(second) == WAITING
    (trial_folder.root / "go").touch()

    assert ended(first).code == 0
    run = ended(second)
    assert (run.code, run.said) == (0, [f"{TRIALS[0]}: ok already, by attempt uid-1: nothing to do"])
    assert starts(trial_folder) == 1


def test_a_waiting_launcher_can_be_stopped(trial_folder: TrialFolder) -> None:
    file = hold(trial_folder)
    launcher = trial_folder.start()
    assert first_line(launcher) == WAITING

    launcher.terminate()
    run = ended(launcher)

    os.close(file)
    assert (run.code, run.said) == (143, ["stopped by signal 15 before the command began"])
    assert trial_folder.records() == {}


def test_where_locks_are_not_supported_it_goes_on_without(trial_folder: TrialFolder) -> None:
    (trial_folder.root / "path").mkdir()
    # Not a module of that name: some Pythons have theirs built in.
    (trial_folder.root / "path" / "sitecustomize.py").write_text(
        "import fcntl\n"
        "def flock(file, operation): raise OSError(37, 'No locks available')\n"
        "fcntl.flock = flock\n"
    )

    run = trial_folder.run(PYTHONPATH=str(trial_folder.root / "path"), PYTHONDONTWRITEBYTECODE="1")

    assert run.code == 0
    assert re.fullmatch(
        r"the results volume has no locks, .* without: \[Errno 37\] No locks available", run.said[0]
    )


@contextlib.contextmanager
def tiny_volume(path: Path, size: int) -> Iterator[None]:
    """Mount a file system of so many bytes, or skip by name."""
    path.mkdir(parents=True)
    options = ["-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)]
    try:
        mounted = captured(["mount", *options]).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("skipped: a file system cannot be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", str(path)], check=True)


def test_on_a_full_disk_the_record_survives_at_the_node_if_there_is_one(trial_folder: TrialFolder) -> None:
    log = trial_folder.root / "termination-log"
    trial_folder.command = shell(f'{REPORT}; cat /dev/zero > "$SWEEP_ARTIFACTS/big"; exit 0')
    with tiny_volume(trial_folder.results, 64 * 1024):
        assert trial_folder.run(SWEEP_POD_UID="uid-0").code == 74, (
            "nobody else was told, so it is tried again"
        )
        shutil.rmtree(trial_folder.results / "artifacts")
        log.touch()
        run = trial_folder.run()
        names = {path.name for path in trial_folder.results.iterdir()}

    assert run.code == 0
    assert run.said[-1].startswith("the record cannot be written: [Errno 28] No space left on device: ")
    assert "uid-1.json" in run.said[-1]
    outputs = {f"uid-{attempt}.{kind}" for attempt in (0, 1) for kind in ("out", "err")}
    assert names == {".lock", *outputs, "artifacts", "checkpoints", "environments"}
    record = json.loads(log.read_bytes())
    SCHEMA.validate(record)
    assert (record["status"], record["metrics"]) == ("ok", {"test_accuracy": 0.5})


def test_a_file_that_cannot_be_finished_leaves_the_old_one_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("old")
    (tmp_path / "a.json.tmp").write_text("half of a long record of a launcher that was killed")
    script = (
        "import sys\n"
        "sys.dont_write_bytecode, target = True, sys.argv.pop()\n"
        "sys.path.append(sys.argv.pop())\n"
        "from launch_files import write_safely\n"
        "write_safely(target, b'x' * 5000)"
    )

    run = subprocess.run(
        ["sh", "-c", 'ulimit -f 8; exec "$@"', "sh", *python(script), FOLDER, tmp_path / "a.json"],
        capture_output=True,
        check=False,
    )

    assert b"File too large" in run.stderr
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a.json": "old"}


def test_a_folder_that_cannot_be_synced_is_a_failure_unless_its_file_system_never_can(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail(_file: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    launch.sync_folder("/proc")
    with pytest.raises(FileNotFoundError):
        launch.sync_folder(str(tmp_path / "gone"))
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="Input/output error"):
        launch.sync_folder(str(tmp_path))


def test_killed_at_any_moment_it_leaves_no_half_record(trial_folder: TrialFolder) -> None:
    trial_folder.command = shell(STARTS)
    moments = random.Random(3)  # noqa: S311 - moments, not secrets
    for number in range(14):
        launcher = trial_folder.start(SWEEP_POD_UID=f"uid-{number}")
        time.sleep(moments.uniform(0.0, 0.04))
        launcher.kill()
        launcher.communicate()
        settled = [record["status"] for record in trial_folder.records().values()]
        assert settled in ([], ["ok"])
    before = starts(trial_folder) if trial_folder.records() else None

    assert trial_folder.run(SWEEP_POD_UID="last").code == 0

    assert len(trial_folder.records()) == 1
    assert before in (None, starts(trial_folder))
