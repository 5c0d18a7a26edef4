"""Measure what the private working directory of a trial costs beside `cp -r`: a small and a large tree of code.

Both ways copy the same tree alternately; medians of CPU seconds and their ratio are printed. The launcher's includes
the comparison of the tree with what was locked, by which a changed file is noticed.
Usage: python benchmarks/private_folders.py [--repeats 5] [--folder DIR]
"""

import argparse
import importlib
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent.parent
LAUNCHER = ROOT / "base/launcher/v1"
TREES = ((200, 5_000_000), (20_000, 500_000_000))
"""Files and bytes."""


def write_tree(folder: Path, files: int, size: int) -> None:
    """Write a tree of files of equal size, a hundred in a folder."""
    content = os.urandom(size // files)
    for number in range(files):
        path = folder / f"package{number // 100}" / f"module{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def seconds_of(work: Callable[[], object]) -> float:
    """Do some work, and return the CPU seconds of this process and of those that it waited for."""
    usage = [resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN]
    before = [resource.getrusage(who) for who in usage]
    work()
    after = [resource.getrusage(who) for who in usage]
    return sum(one.ru_utime + one.ru_stime for one in after) - sum(
        one.ru_utime + one.ru_stime for one in before
    )


def main() -> None:
    """Print a row for each tree."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where to copy; default: the folder of temporary files")
    options = parser.parse_args()
    sys.path.insert(0, str(LAUNCHER))
    copy_folder = importlib.import_module("launch_folders").copy_folder
    print(f"{'files':>6} {'MB':>5} {'launcher':>10} {'cp -r':>10} {'ratio':>6}")
    for files, size in TREES:
        with tempfile.TemporaryDirectory(dir=options.folder) as scratch:
            os.environ["SWEEP_SCRATCH"] = scratch
            write_tree(Path(scratch) / "code", files, size)
            ours, theirs = measure(copy_folder, Path(scratch), options.repeats)
        print(f"{files:>6} {size // 1_000_000:>5} {ours:>8.4f} s {theirs:>8.4f} s {ours / theirs:>6.2f}")


def measure(copy_folder: Callable[[str, str], object], scratch: Path, repeats: int) -> tuple[float, float]:
    """Return the median CPU seconds of the launcher's copy, and of `cp -r`."""
    code, copy = scratch / "code", scratch / "copy"
    ours, theirs = list[float](), list[float]()
    for _ in range(repeats):
        copy.mkdir()
        ours.append(seconds_of(lambda: copy_folder(str(code), str(copy / "work"))))
        shutil.rmtree(copy)
        copy.mkdir()
        theirs.append(seconds_of(lambda: subprocess.run(["cp", "-r", code, copy / "work"], check=True)))
        shutil.rmtree(copy)
    return statistics.median(ours), statistics.median(theirs)


if __name__ == "__main__":
    main()
