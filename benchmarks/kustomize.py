"""CPU seconds and memory of `kustomize build` for batches of every size: median of five.

Built as `sweep check` does it, with the kustomize that it finds.

make bench, or: python benchmarks/kustomize.py
"""

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.meter import measured  # noqa: E402
from sweepledger.repo import kustomize  # noqa: E402

RUNS = 5
MEBIBYTES = 250


class Case(NamedTuple):
    """An overlay, and what its build may cost."""

    shape: str
    rates: int
    widths: int
    bar: float | None
    """CPU seconds; None: for information."""
    options: bool = False
    """Whether it asks for every option that a platform can offer, which doubles a Job."""

    @property
    def title(self) -> str:
        """Name the case for people."""
        return f"{self.rates * self.widths:,} {self.shape}{', all options' if self.options else ''}"


CASES = (
    Case("jobs", 4, 4, 0.1),
    Case("jobs", 10, 10, 0.35),
    Case("indexed", 100, 100, 0.2),
    Case("indexed", 500, 200, 1.2),
    Case("jobs", 10, 10, None, options=True),
    Case("indexed", 500, 200, 1.2, options=True),
)


def write(case: Case, work: Path) -> None:
    """Write an overlay and what it is built from."""
    from sweepledger.distributions.choice import Choice  # noqa: PLC0415
    from sweepledger.repo import files  # noqa: PLC0415
    from sweepledger.search import expansion  # noqa: PLC0415
    from sweepledger.structs.batch import Batch  # noqa: PLC0415
    from sweepledger.structs.run_config import Shape  # noqa: PLC0415
    from sweepledger.structs.search_block import GridSearch  # noqa: PLC0415
    from sweepledger.structs.space import Parameter, SearchSpace  # noqa: PLC0415
    from tests.sweeps import (  # noqa: PLC0415
        FULL_SETTINGS,
        SETTINGS,
        a_full_sweep,
        a_program,
        a_sweep,
        overlay_of,
        real_bases,
    )

    rates = tuple(number / case.rates for number in range(1, case.rates + 1))
    space = SearchSpace(
        (Parameter("learning_rate", Choice(rates)), Parameter("width", Choice(tuple(range(case.widths)))))
    )
    sweep = replace(a_full_sweep() if case.options else a_sweep(), design=GridSearch(space))
    sweep = replace(sweep, run=replace(sweep.run, parallelism=case.rates * case.widths))
    program = a_program(sweep)
    batch = Batch(sweep, program, expansion.expand(sweep, program), shape=Shape(case.shape))
    made = overlay_of(batch, real_bases(), FULL_SETTINGS if case.options else SETTINGS)
    for name in made.lock.bases:
        files.write_folder(work / "base" / name, files.read_folder(ROOT / "base" / name))
    files.write_folder(work / "overlays/active" / made.name, made.tree)


def written(number: int, work: Path) -> Path:
    """Have a process of its own write a case: what is forked from us is charged with all of our memory."""
    subprocess.run(
        [sys.executable, __file__, str(number), str(work)],
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    (overlay,) = (work / "overlays/active").iterdir()
    return overlay


def main() -> int:
    """Measure every case against its bar."""
    missed = False
    for number, case in enumerate(CASES):
        with tempfile.TemporaryDirectory() as folder:
            target = written(number, Path(folder))
            command, variables = [*kustomize.command(), str(target)], kustomize.isolated_environment()
            runs = [measured(command, ROOT, variables=variables) for _ in range(RUNS)]
        seconds = statistics.median(used.seconds for used in runs)
        memory = statistics.median(used.mebibytes for used in runs)
        is_within = (case.bar is None or seconds <= case.bar) and memory <= MEBIBYTES
        missed = missed or not is_within
        bar = "" if case.bar is None else f" of {case.bar}"
        print(
            f"kustomize build, {case.title + ':':<30} {seconds:.2f}{bar} s CPU, "
            f"{memory:.0f} of {MEBIBYTES} MiB{'' if is_within else '  MISSED'}"
        )
    return int(missed)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        write(CASES[int(sys.argv[1])], Path(sys.argv[2]))
    else:
        sys.exit(main())
