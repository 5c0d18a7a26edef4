"""What many active batches cost: `sweep status` and the collector, with a hundred packed batches of a thousand trials.

python benchmarks/active.py [BATCHES] [TRIALS] [RECORDED], by default 100, 1,000 and 500

One sweep is generated for real; the others are copies under other names. It needs no cluster: the records are on a
volume, and of one batch all of them, which the collector records.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.cluster_collect import a_record  # noqa: E402
from benchmarks.meter import Used, measured  # noqa: E402
from benchmarks.years import Copies  # noqa: E402
from sweepledger.formats.record_json import to_line  # noqa: E402
from sweepledger.operations.generation.next_batch import generate_batches as generate  # noqa: E402
from sweepledger.operations.repository.batch_records import expected_trials  # noqa: E402
from sweepledger.repo import batches  # noqa: E402
from sweepledger.repo.batches import StoredBatch  # noqa: E402
from tests.repository import SPEC, Sandbox, followed_by  # noqa: E402

SEED = 26


def build(sandbox: Sandbox, count: int, trials: int) -> None:
    """Put so many active batches on the branch."""
    sandbox.write("sweepledger.yaml", followed_by("flux"))
    xs = ", ".join(str(number / 8) for number in range(trials))
    sandbox.write(
        "sweeps/run.yaml", SPEC.format(name="run", xs=xs, parallelism=8) + "  pack: {trials: 100}\n"
    )
    generate(sandbox.workspace)
    sandbox.commit("Ask for one")
    for path, content in copies(sandbox, count):
        (sandbox.root / path).parent.mkdir(parents=True, exist_ok=True)
        (sandbox.root / path).write_bytes(content)
    sandbox.commit("Ask for many")
    sandbox.push()


def copies(sandbox: Sandbox, count: int) -> Iterator[tuple[str, bytes]]:
    """Yield the files of all batches but the first."""
    listed = sandbox.git("ls-tree", "-r", "-z", "--name-only", "HEAD").split("\0")
    places = ("overlays/active/run-", "sweeps/run.", "clusters/flux/active/run-")
    own = {path: (sandbox.root / path).read_bytes() for path in listed if path.startswith(places)}
    for number in range(1, count):
        yield from Copies(own, "run").named(f"many-{number:04d}", Random(SEED + number))  # noqa: S311 - likewise


def leave(volume: Path, batch: StoredBatch, recorded: int) -> None:
    """Leave the records of a batch's first trials, as their launchers would."""
    for trial in expected_trials(batch)[:recorded]:
        pod = f"3f9a1c2e-0000-4000-8000-{batch.lock.run.packed.pod(trial.index):012}"
        uid = batch.lock.attempt(pod, trial.index)
        folder = volume / batch.name / batch.lock.place(trial.index)
        folder.mkdir(parents=True)
        (folder / f"{uid}.json").write_text(to_line(a_record(batch, trial, uid)))


def report(name: str, use: Used) -> None:
    """Print one row of the table."""
    print(f"| {name} | {use.seconds:.2f} | {use.mebibytes:.0f} |", flush=True)


def main() -> int:
    """Build, then measure."""
    count, trials, recorded = (
        int(sys.argv[at]) if len(sys.argv) > at else usual for at, usual in ((1, 100), (2, 1_000), (3, 500))
    )
    sweep = [sys.executable, "-m", "sweepledger.cli"]
    with tempfile.TemporaryDirectory() as temporary:
        sandbox, volume = Sandbox.create(Path(temporary)), Path(temporary, "volume")
        build(sandbox, count, trials)
        active = batches.in_work_tree(sandbox.root)
        for number, batch in enumerate(active):
            leave(volume, batch, trials if number == 0 else recorded)
        print(f"{len(active)} active batches of {trials:,} trials, {recorded:,} recorded\n")
        print("| what | CPU s | MiB |\n|---|---|---|")
        first = measured([*sweep, "status"], sandbox.root)
        report("`sweep status`, the first time", first)
        report("`sweep status`", measured([*sweep, "status"], sandbox.root))
        clone = Path(temporary, "clone")
        subprocess.run(
            ["git", "clone", "-q", "--depth=1", "--branch=main", f"file://{sandbox.remote}", str(clone)],
            check=True,
        )
        words = ["cluster", "collect", "--push", f"--results={volume}", f"--state={temporary}/no-state"]
        report("collector: one batch recorded, the others read", measured([*sweep, *words], clone))
        report("collector: nothing has ended", measured([*sweep, *words], clone))
    return 0


if __name__ == "__main__":
    sys.exit(main())
