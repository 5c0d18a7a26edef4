"""Two hundred writers of one summary at once, and the same two hundred results by one collector.

python benchmarks/writers.py [--writers 200] [--slots 200]
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.faults import writers  # noqa: E402
from tests.repository import Sandbox  # noqa: E402

BATCHES = 10
MOST_COMMITS = 15
MOST_SECONDS = 20.0


def racing(folder: Path, number: int, slots: int) -> None:
    """Let each writer be a process with a clone of its own."""
    sandbox = Sandbox.create(folder)
    places = writers.clones(sandbox.remote, folder, number)
    began = time.monotonic()
    failed = writers.race(places, slots)
    seconds = time.monotonic() - began
    assert failed == [], failed[:3]
    writers.judge(sandbox.remote, number)
    print(
        f"{number} writers, {slots} at once: {number}/{number} rows once, linear, fsck clean, {seconds:.0f} s"
    )


def gathering(folder: Path, number: int) -> bool:
    """Let one collector commit what as many trials leave while it runs."""
    sandbox = writers.many_batches(folder, BATCHES, number // BATCHES)
    began = time.monotonic()
    commits = writers.gather(sandbox, folder / "results")
    seconds = time.monotonic() - began
    sandbox.pull()
    rows = (sandbox.root / "results/peak/summary.csv").read_text().splitlines()[1:]
    assert len(rows) == len(set(rows)) == number
    print(
        f"{number} results by one collector: {commits} commits (at most {MOST_COMMITS}), {seconds:.1f} s (20)"
    )
    return commits <= MOST_COMMITS and seconds <= MOST_SECONDS


def main() -> int:
    """Measure both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--writers", type=int, default=200)
    parser.add_argument("--slots", type=int, default=200)
    options = parser.parse_args()
    os.environ.update({"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"})
    with tempfile.TemporaryDirectory() as scratch:
        for name in ("racing", "gathering"):
            Path(scratch, name).mkdir()
        is_fast = gathering(Path(scratch, "gathering"), options.writers)
        racing(Path(scratch, "racing"), options.writers, options.slots)
    return 0 if is_fast else 1


if __name__ == "__main__":
    sys.exit(main())
