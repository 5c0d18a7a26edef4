import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from sweepledger import process, process_tree
from sweepledger.process import LimitExceededError, Limits

MEBIBYTE = 2**20
BOUNDS = Limits(seconds=20, memory=512 * MEBIBYTE, output=MEBIBYTE)


def run(script: str, bounds: Limits = BOUNDS) -> process.ProcessResult:
    return process.run([sys.executable, "-c", script], bounds, env={"PATH": os.environ["PATH"]})


def is_alive(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_program_within_its_limits_runs_to_its_end() -> None:
    done = run("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")

    assert (done.code, done.stdout, done.stderr) == (3, b"out\n", b"err\n")


def test_memory_is_the_sum_of_the_program_and_its_children() -> None:
    hungry = "import time; held = bytearray(b'x' * (60 << 20)); time.sleep(60)"
    script = (
        f"import subprocess, sys; [subprocess.Popen([sys.executable, '-c', {hungry!r}]) for _ in range(3)]"
    )

    with pytest.raises(LimitExceededError, match="more than 128 MiB of memory"):
        run(f"{script}; import time; time.sleep(60)", Limits(60, MEBIBYTE, 128 * MEBIBYTE))


def test_unused_address_space_does_not_count() -> None:
    assert run("import mmap; held = mmap.mmap(-1, 4 << 30); print('fine')").stdout == b"fine\n"


@pytest.mark.parametrize(
    "script",
    [
        "import sys\nwhile True: sys.stdout.write('x' * 65536)",
        "import sys\nwhile True: sys.stderr.write('x' * 65536)",
        "import os; os.write(1, b'x' * (3 << 20))",
    ],
    ids=["output", "errors", "just before the end"],
)
def test_a_program_that_prints_too_much_is_stopped(script: str) -> None:
    with pytest.raises(LimitExceededError, match="printed more than 1 MiB"):
        run(script)


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs /proc to look at processes")
@pytest.mark.parametrize(
    "then", ["print('x' * (2 << 20)); time.sleep(60)", "sys.exit(0)"], ids=["stopped", "ended by itself"]
)
def test_the_children_of_a_program_end_with_it(then: str, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    script = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(note)!r}, 'w').write(str(child.pid))\n{then}"
    )

    with suppress(LimitExceededError):
        run(script, Limits(60, MEBIBYTE, 512 * MEBIBYTE))

    deadline = time.monotonic() + 120
    while is_alive(int(note.read_text())) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_alive(int(note.read_text()))


def test_an_interrupt_while_a_program_starts_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []

    class Interrupted(subprocess.Popen[bytes]):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            started.append(self.pid)
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)

    with pytest.raises(KeyboardInterrupt):
        run("import time; time.sleep(60)")

    assert [is_alive(pid) for pid in started] == [False]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_without_proc_memory_is_read_from_ps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(process_tree, "PROC", str(tmp_path / "nowhere"))

    with pytest.raises(LimitExceededError, match="more than 64 MiB of memory"):
        run(
            "import time; held = bytearray(b'x' * (100 << 20)); time.sleep(60)",
            Limits(60, MEBIBYTE, 64 * MEBIBYTE),
        )
