"""Stands in for the launcher in tests of the engine: writes records, and misbehaves as its row says.

It knows no contract but the environment, the table and the record's form; words in the column `does`
say what it is to do, one after the other. Copied into the ConfigMap of a batch, so it stands alone.
"""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

ENV = os.environ
INDEX = int(ENV.get("SWEEP_INDEX") or ENV["JOB_COMPLETION_INDEX"])
LAUNCH = json.loads(Path(ENV["SWEEP_LAUNCH"]).read_text())
HEADER, *ROWS = (Path(ENV["SWEEP_TABLE"]) / "hyperparams.csv").read_text().splitlines()
ROW = ROWS[INDEX]
TRIAL, WORDS = ROW.replace('"', "").split(",")[:2]
RESULTS = Path(ENV["SWEEP_RESULTS"])
ATTEMPT = int(ENV["SWEEP_FAILURES"]) + 1


def record(status: str, reason: str | None = None) -> None:
    """Write this attempt's record, all or nothing."""
    uid = ENV["SWEEP_POD_UID"]
    data = {
        "version": 1,
        "trial": TRIAL,
        "row": hashlib.sha256(f"{LAUNCH['program']}\n{HEADER}\n{ROW}\n".encode()).hexdigest(),
        "batch": LAUNCH["batch"],
        "index": INDEX,
        "uid": uid,
        "attempt": ATTEMPT,
        "disruptions": 0,
        "status": status,
        "reason": reason,
        "metrics": {"score": INDEX / 2},
        "seconds": 0.1,
        "started": "2026-01-01T00:00:00Z",
        "finished": "2026-01-01T00:00:01Z",
        "ran": ENV["SWEEP_RAN"],
        "code": LAUNCH["code"],
        "data": None,
        "seed": 0,
        "node": ENV["SWEEP_NODE"],
        "environment": None,
        "details": {"env": dict(ENV), "cwd": str(Path.cwd()), "cpus": len(os.sched_getaffinity(0))},
        "artifacts": [],
    }
    temporary = RESULTS / f"{uid}.tmp"
    temporary.write_text(json.dumps(data))
    temporary.replace(RESULTS / f"{uid}.json")


def end(code: int) -> None:
    statuses = {0: ("ok", None), 42: ("diverged", "bad-hyperparameters"), 43: ("failed", "bad-sweep")}
    record(*statuses.get(code, ("failed", f"exit-{code}")))
    sys.exit(code)


def note(word: str) -> None:
    """Tell the test what happened, in one line of the spy file; appending is atomic."""
    with (RESULTS.parent / "spy").open("a") as file:
        file.write(f"{word} {INDEX} {os.getpid()}\n")


def sleeper(*, double_fork: bool) -> None:
    """Leave a process in a session of its own, orphaned at once if double-forked."""
    sleeping = [sys.executable, "-c", "import time; time.sleep(300)"]
    if double_fork:
        if os.fork() == 0:
            os.setsid()
            subprocess.Popen(sleeping, start_new_session=True)
            os._exit(0)
        os.wait()
    else:
        subprocess.Popen(sleeping, start_new_session=True)


def hold(mebibytes: str) -> None:
    """Use memory until someone objects."""
    held = bytearray(int(mebibytes) << 20)
    time.sleep(300)
    del held


def kill_supervisor(_: str) -> None:
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(300)


def corrupt(_: str) -> None:
    """Leave a record that nobody can read."""
    (RESULTS / f"{ENV['SWEEP_POD_UID']}.json").write_text('{"version": 1')
    sys.exit(0)


def only_log(_: str) -> None:
    """Leave the record where the volume was full: in the copy that the node keeps."""
    record("ok")
    mine = RESULTS / f"{ENV['SWEEP_POD_UID']}.json"
    Path(ENV["SWEEP_TERMINATION_LOG"]).write_text(mine.read_text())
    mine.unlink()
    sys.exit(74)


def fail_first(times: str) -> None:
    if int(times) >= ATTEMPT:
        end(1)


def wait_for(name: str) -> None:
    """Go on when the test has made a file."""
    while not (RESULTS.parent / name).exists():
        time.sleep(0.01)


def odd(code: str) -> None:
    record("failed", "out-of-sorts")
    sys.exit(int(code))


def polite(_: str) -> None:
    """Write a record before ending on request, as the real launcher does."""

    def stop(_number: int, _frame: object) -> None:
        record("failed", "signal-15")
        os._exit(143)

    signal.signal(signal.SIGTERM, stop)


def lock_scratch(_: str) -> None:
    """Leave a folder that its owner may not list."""
    folder = Path(ENV["SWEEP_SCRATCH"]) / "locked"
    (folder / "below").mkdir(parents=True)
    folder.chmod(0)


VERBS = {
    "lock-scratch": lock_scratch,
    "sleep": lambda argument: time.sleep(float(argument)),
    "exit": lambda argument: end(int(argument)),
    "fail-first": fail_first,
    "vanish": lambda argument: os._exit(int(argument)),
    "killed": lambda _: os.kill(os.getpid(), signal.SIGKILL),
    "kill-supervisor": kill_supervisor,
    "setsid": lambda _: sleeper(double_fork=False),
    "orphan": lambda _: sleeper(double_fork=True),
    "hold": hold,
    "say": lambda argument: os.write(2, argument.encode()),
    "stubborn": lambda _: signal.signal(signal.SIGTERM, signal.SIG_IGN),
    "corrupt": corrupt,
    "only-log": only_log,
    "wait-for": wait_for,
    "odd": odd,
    "polite": polite,
    "make": lambda name: (RESULTS.parent / name).touch(),
    "note": note,
}


def main() -> None:
    note("start")
    if any(path.suffix == ".json" and '"status": "ok"' in path.read_text() for path in RESULTS.iterdir()):
        note("again")
    for word in WORDS.split():
        verb, _, argument = word.partition(":")
        VERBS[verb](argument)
    end(0)


main()
