"""CPU seconds of `sweep log` over two thousand batches and their results commits, of the process tree.

python benchmarks/history.py [COMMITS]
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.meter import measured  # noqa: E402
from sweepledger.formats import documents  # noqa: E402
from sweepledger.formats.summary_csv import write  # noqa: E402
from sweepledger.structs.batch import BatchLock, SpecFile  # noqa: E402
from sweepledger.structs.metric import Goal, Metric  # noqa: E402
from sweepledger.structs.names import LOCK_FILE  # noqa: E402
from sweepledger.structs.program import Code, Program  # noqa: E402
from sweepledger.structs.run_config import RunConfig, Shape  # noqa: E402

COMMITS = 2000
SWEEPS = 20
TRIALS = 16
BAR_SECONDS = 1.0
RUNS = 5

PROGRAM = Program("local", ("python", "-m", "trainer", "mnist", "${args}"), Code("trainer", "0" * 40), None)
HEAD = write((), objective="score").strip().replace(",metrics.", ",params.rate,metrics.")


def summary(sweep: int, done: int) -> str:
    """Write a summary in which so many trials are recorded; every commit has another."""
    known = {
        "batch": f"s{sweep}-b1-01234567",
        "replicate": "0",
        "status": "ok",
        "attempts": "1",
        "seconds": "1.5",
        "seed": "0",
        "ran": "process",
        "code": "0" * 40,
        "program": PROGRAM.digest,
        "started": "2026-01-01T00:00:00Z",
        "finished": "2026-01-01T00:00:02Z",
    }
    rows = [HEAD]
    for index in range(TRIALS):
        own = {
            **known,
            "trial": f"t{sweep:03d}{index:08d}",
            "index": str(index),
            "params.rate": str(index),
            "metrics.score": f"0.{done:06d}{index}",
        }
        rows.append(",".join(own.get(name, "") for name in HEAD.split(",")))
    return "".join(f"{row}\n" for row in rows)


def lock(sweep: int, number: int) -> BatchLock:
    """Make a lock as `sweep generate` does; every batch has one."""
    name = f"s{sweep}-b{number}-01234567"
    digest = "sha256:" + "0" * 64
    return BatchLock(
        name=name,
        digest=digest,
        sweep=f"s{sweep}",
        number=number,
        parent=None,
        generated="by a benchmark",
        spec=SpecFile(f"sweeps/s{sweep}.yaml", digest),
        shape=Shape.INDEXED,
        trials=TRIALS,
        metric=Metric("score", Goal.MAXIMIZE),
        program=PROGRAM,
        run=RunConfig(retries=1),
        generator="0.1.0",
        bases=("launcher/v1", "trial/v1", "components/data/v1"),
        files=dict.fromkeys(("hyperparams.csv", "job.yaml", "kustomization.yaml", "launch.json"), digest),
        columns={},
        blobs={},
    )


def history(commits: int) -> Iterator[bytes]:
    """Yield a history as `git fast-import` reads it: sweep by sweep a batch, then its results, and again."""
    for number in range(2 * commits):
        kind, turn = number % 2, number // 2
        sweep, batch = turn % SWEEPS, 1 + turn // SWEEPS
        yield f"commit refs/heads/main\ncommitter B <b@example.org> {1_700_000_000 + number} +0000\n".encode()
        if kind == 0:
            yield _data(f"generate(s{sweep}): {TRIALS} trials")
            yield from _file(f"sweeps/s{sweep}.yaml", f"name: s{sweep}\ndescription: '{batch}'\n")
            held = lock(sweep, batch)
            text = documents.write(held)
            yield from _file(f"overlays/active/{held.name}/{LOCK_FILE}", text)
        else:
            yield _data(
                f"results(s{sweep}): {TRIALS}/{TRIALS} trials, best score 0.5 (t0)\n\nSweep: s{sweep}\n"
            )
            name = lock(sweep, batch).name
            yield f"R overlays/active/{name} overlays/archive/{name}\n".encode()
            yield from _file(f"results/s{sweep}/summary.csv", summary(sweep, number))


def _file(path: str, text: str) -> Iterator[bytes]:
    yield f"M 100644 inline {path}\n".encode()
    yield _data(text)


def _data(text: str) -> bytes:
    return f"data {len(text.encode())}\n{text}\n".encode()


def make(folder: Path, commits: int) -> None:
    """Make a repository with that history, packed as one that people fetch is."""
    git = ["git", "-C", str(folder)]
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True)
    subprocess.run([*git, "fast-import", "--quiet"], input=b"".join(history(commits)), check=True)
    subprocess.run([*git, "gc", "-q"], check=True)
    subprocess.run([*git, "reset", "-q", "--hard", "main"], check=True)


def main() -> int:
    """Measure all of it, and one sweep's part."""
    commits = int(sys.argv[1]) if len(sys.argv) > 1 else COMMITS
    late = False
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder), commits)
        for words in (["log"], ["log", "s7"], ["log", "--format", "json"]):
            argv = [sys.executable, "-m", "sweepledger.cli", *words]
            seconds = min(measured(argv, Path(folder)).seconds for _ in range(RUNS))
            late |= seconds > BAR_SECONDS
            print(
                f"sweep {' '.join(words):20} {seconds:6.2f} CPU s over {commits} batches and results commits"
            )
    print(f"bar {BAR_SECONDS:g} s, least of {RUNS}")
    return int(late)


if __name__ == "__main__":
    sys.exit(main())
