"""The trial's output: copied through as it comes, and kept with head and tail."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.launcher.folders import LAUNCHER, REPORT, TrialFolder, ended, launch, python, shell

KEPT = 256 * 1024


def feed(path: Path, *chunks: bytes) -> bytes:
    """Give what is kept of an output that comes in pieces."""
    tee = launch.Tee(-1, str(path), len, launch.create(str(path)))
    for chunk in chunks:
        tee.keep(chunk)
    reader, writer = os.pipe()
    os.close(writer)
    with os.fdopen(reader, "rb") as source:
        tee.copy(source)
        tee.finish(time.monotonic() + 5)
    return path.read_bytes()


def numbered(size: int) -> bytes:
    return b"".join(b"%07d\n" % number for number in range(size // 8 + 1))[:size]


@pytest.mark.parametrize("piece", [1000, 1 << 21])
def test_output_of_up_to_twice_256_kibibytes_is_kept_whole_and_of_more_head_and_tail(
    piece: int, tmp_path: Path
) -> None:
    def kept(content: bytes) -> bytes:
        path = tmp_path / str(len(content))
        return feed(path, *(content[at : at + piece] for at in range(0, len(content), piece)))

    for size in (0, KEPT, KEPT + 1, 2 * KEPT):
        assert kept(numbered(size)) == numbered(size)
    for cut in (1, 1000, 3 * KEPT + 5):
        content = numbered(2 * KEPT + cut)
        assert kept(content) == content[:KEPT] + b"\n[launch.py cut %d bytes here]\n" % cut + content[-KEPT:]


def test_outputs_come_through_and_are_kept_apart_while_the_trial_runs_and_after_they_were_closed(
    trial_folder: TrialFolder,
) -> None:
    trial_folder.command = shell(
        "echo early; echo err >&2; while [ ! -e $HERE/go ]; do sleep 0.01; done; printf '\\377\\000';"
        f"exec >&- 2>&-; sleep 0.1; {REPORT}"
    )
    launcher = trial_folder.start()
    assert launcher.stdout

    assert launcher.stdout.readline() == b"early\n"
    assert (trial_folder.results / "uid-1.out").read_bytes().startswith(b"early\n")
    (trial_folder.root / "go").touch()
    run = ended(launcher)

    assert (run.code, run.out) == (0, b"\xff\x00")
    assert run.err.startswith("err\n")
    assert trial_folder.record()["status"] == "ok"  # it reports after its outputs have closed
    assert (trial_folder.results / "uid-1.out").read_bytes() == b"early\n\xff\x00"
    assert (trial_folder.results / "uid-1.err").read_bytes() == b"err\n"


@pytest.mark.skipif(sys.platform != "linux", reason="skipped: only Linux tells how much memory a process had")
def test_a_hundred_megabytes_take_little_memory_and_disk(trial_folder: TrialFolder) -> None:
    size = 100_000_000
    trial_folder.may_fork = False
    trial_folder.changes = {"metric": {"name": "loss", "source": "stdout"}}
    trial_folder.command = shell(
        f"head -c {size} /dev/zero; echo; echo loss=1; awk '/VmHWM/ {{print $2}}' /proc/$PPID/status > $HERE/peak"
    )

    run = ended(trial_folder.start(subprocess.DEVNULL))

    assert run.code == 0
    assert int((trial_folder.root / "peak").read_text()) < 30_000
    kept = (trial_folder.results / "uid-1.out").read_bytes()
    cut = size + len("\nloss=1\n") - 2 * KEPT
    assert kept.count(b"\n[launch.py cut %d bytes here]\n" % cut) == 1
    assert kept.endswith(b"\0\nloss=1\n")


def test_a_slow_reader_that_takes_only_what_fits_loses_nothing(trial_folder: TrialFolder) -> None:
    trial_folder.command = shell(f"{REPORT}; head -c 300000 /dev/zero")
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    launcher = trial_folder.start(writer)
    os.close(writer)
    time.sleep(0.2)

    with os.fdopen(reader, "rb") as output:
        content = output.read()

    assert ended(launcher).code == 0
    assert content == bytes(300_000)


@pytest.mark.parametrize("opened", [os.pipe, os.openpty], ids=["pipe", "terminal"])
def test_a_stuck_reader_is_no_delay(opened: Callable[[], tuple[int, int]], trial_folder: TrialFolder) -> None:
    trial_folder.changes = {"timeout_seconds": 0.3}
    trial_folder.command = shell("head -c 1000000 /dev/zero")
    reader, writer = opened()
    launcher = trial_folder.start(writer)
    os.close(writer)

    run = ended(launcher)

    os.close(reader)
    assert run.code == 124
    assert trial_folder.record()["reason"] == "timeout"


def test_a_pipe_that_somebody_else_holds_open_does_not_hold_the_launcher(trial_folder: TrialFolder) -> None:
    trial_folder.command = python(
        "import os, socket\n"
        "print('loss=1', flush=True)\n"
        "with socket.socket(socket.AF_UNIX) as door:\n"
        "    os.chdir(os.environ['HERE'])\n"
        "    door.connect('door')\n"
        "    socket.send_fds(door, [b'x'], [1])\n"
    )
    trial_folder.changes = {"metric": {"name": "loss", "source": "stdout"}}
    door = socket.socket(socket.AF_UNIX)
    old = Path.cwd()
    os.chdir(trial_folder.root)
    try:
        door.bind("door")
    finally:
        os.chdir(old)
    door.listen()
    began = time.monotonic()
    launcher = trial_folder.start()
    caller, _ = door.accept()
    _, (held,), _, _ = socket.recv_fds(caller, 1, 1)

    run = ended(launcher)

    for file in (held, caller.detach(), door.detach()):
        os.close(file)
    assert 1.5 < time.monotonic() - began < 20
    assert (run.code, run.out) == (0, b"loss=1\n")
    assert (trial_folder.results / "uid-1.out").read_bytes() == b"loss=1\n"


def test_a_full_disk_costs_the_kept_output_but_not_the_trial(trial_folder: TrialFolder) -> None:
    trial_folder.command = shell(f"head -c 10000 /dev/zero | tr '\\0' x; {REPORT}")
    trial_folder.write()

    run = subprocess.run(
        ["sh", "-c", 'ulimit -f 8; exec "$@"', "sh", trial_folder.interpreter, str(LAUNCHER)],
        env=trial_folder.variables({}),
        cwd=trial_folder.code,
        capture_output=True,
        check=False,
    )

    assert run.returncode == 0
    assert run.stdout == b"x" * 10000
    assert (trial_folder.results / "uid-1.out").read_bytes() == b"x" * 4096
    assert (
        f"the kept output {trial_folder.results}/uid-1.out is not complete: [Errno 27]" in run.stderr.decode()
    )
    assert run.stderr.count(b"\n") == 2
    assert trial_folder.record()["status"] == "ok"


@pytest.mark.parametrize("planted", ["link", "fifo"])
def test_nothing_writes_through_what_was_planted(planted: str, trial_folder: TrialFolder) -> None:
    trial_folder.results.mkdir(parents=True)
    target, place = trial_folder.root / "target", trial_folder.results / "uid-1.out"
    target.write_text("precious")
    trial_folder.command = shell(f"touch $HERE/began; echo x; {REPORT}")
    if planted == "link":
        place.symlink_to(target)
    else:
        os.mkfifo(place)

    run = trial_folder.run()

    assert run.code == 74
    assert run.said[0].startswith("results volume, scratch folder or node failed: [Errno ")
    assert target.read_text() == "precious"
    assert not (trial_folder.root / "began").exists()
