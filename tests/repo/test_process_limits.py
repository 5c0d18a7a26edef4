import os
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from generator.repo import bounded
from generator.repo.bounded import Bounds, ExceededError

MEBIBYTE = 2**20
BOUNDS = Bounds(seconds=20, memory=512 * MEBIBYTE, output=MEBIBYTE)


def run(script: str, bounds: Bounds = BOUNDS) -> bounded.Done:
    return bounded.run([sys.executable, "-c", script], bounds, env={"PATH": os.environ["PATH"]})


def is_alive(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def test_a_program_within_its_bounds_is_heard_to_its_end() -> None:
    done = run("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")

    assert (done.code, done.stdout, done.stderr) == (3, b"out\n", b"err\n")


def test_memory_is_what_is_used_by_the_program_and_its_children_together() -> None:
    hungry = "import time; held = bytearray(b'x' * (60 << 20)); time.sleep(20)"
    script = (
        f"import subprocess, sys; [subprocess.Popen([sys.executable, '-c', {hungry!r}]) for _ in range(3)]"
    )

    with pytest.raises(ExceededError, match="more than 128 MiB of memory"):
        run(f"{script}; import time; time.sleep(20)", Bounds(20, 128 * MEBIBYTE, MEBIBYTE))


def test_address_space_that_is_not_used_is_free() -> None:
    assert run("import mmap; held = mmap.mmap(-1, 4 << 30); print('fine')").stdout == b"fine\n"


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_output_ends_where_it_must(stream: str) -> None:
    with pytest.raises(ExceededError, match="printed more than 1 MiB"):
        run(f"import sys\nwhile True: sys.{stream}.write('x' * 65536)")


def test_what_was_printed_just_before_the_end_counts_too() -> None:
    with pytest.raises(ExceededError, match="printed more than 1 MiB"):
        run("import os; os.write(1, b'x' * (3 << 20))")


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs /proc to look at processes")
@pytest.mark.parametrize("then", ["time.sleep(60)", "sys.exit(0)"], ids=["stopped", "ended by itself"])
def test_its_children_end_with_it(then: str, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    script = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"open({str(note)!r}, 'w').write(str(child.pid))\n{then}"
    )

    with suppress(ExceededError):
        run(script, Bounds(1.5, 512 * MEBIBYTE, MEBIBYTE))

    deadline = time.monotonic() + 5
    while is_alive(int(note.read_text())) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_alive(int(note.read_text()))


def test_without_proc_the_memory_is_asked_of_ps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bounded, "PROC", tmp_path / "nowhere")

    with pytest.raises(ExceededError, match="more than 64 MiB of memory"):
        run(
            "import time; held = bytearray(b'x' * (100 << 20)); time.sleep(20)",
            Bounds(20, 64 * MEBIBYTE, MEBIBYTE),
        )
