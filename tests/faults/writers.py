"""Many writers of one summary: each adds its row to what stands, by the product's own way to publish."""

import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from generator.commands.collect import Target, collect
from generator.commands.generate import generate
from generator.repo import batches
from generator.repo.git import Change, Repository, publish
from tests.commands.test_collect import leave
from tests.faults.worlds import fsck, git
from tests.repository import Sandbox

SUMMARY = "results/peak/summary.csv"
ROOT = Path(__file__).parents[2]


def publish_row(clone: Path, row: str, budget: float = 600.0) -> None:
    """Add one row to the summary on main; nothing where it stands there already."""
    repository = Repository(clone)

    def make(base: str) -> Change | None:
        rows = repository.read(base, SUMMARY).get(SUMMARY, b"").decode().splitlines()
        if row in rows:
            return None
        text = "".join(f"{line}\n" for line in sorted([*rows, row]))
        return Change(f"results(peak): {row}", {SUMMARY: text.encode()})

    publish(repository, "origin", "main", make, budget=budget)


def clones(remote: Path, folder: Path, number: int) -> list[Path]:
    """Make a bare clone for each writer."""
    made = [folder / f"writer {one}" for one in range(number)]
    for clone in made:
        subprocess.run(["git", "clone", "-q", "--bare", str(remote), str(clone)], check=True)
    return made


def race(places: Sequence[Path], slots: int) -> list[str]:
    """Let all publish at once, so many processes at a time; give what failed."""
    free, failed = threading.Semaphore(slots), []

    def one(number: int, clone: Path) -> None:
        with free:
            argv = [sys.executable, "-m", "tests.faults.writers", str(clone), f"row-{number:03d}"]
            done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
            if done.returncode:
                failed.append(done.stderr)

    threads = [threading.Thread(target=one, args=numbered) for numbered in enumerate(places)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failed


def judge(remote: Path, number: int) -> None:
    """All rows once, a commit each, one after the other, and git finds nothing wrong."""
    rows = git(remote, "show", f"main:{SUMMARY}").splitlines()
    assert rows == [f"row-{one:03d}" for one in range(number)]
    assert git(remote, "rev-list", "--count", "main") == str(number + 1)
    assert git(remote, "rev-list", "--count", "--merges", "main") == "0", "linear"
    fsck(remote)


def many_batches(folder: Path, number: int, trials: int) -> Sandbox:
    """Merge so many batches of one sweep, each of so many trials."""
    sandbox = Sandbox.create(folder)
    for one in range(1, number + 1):
        sandbox.spec(xs=", ".join(map(str, range(one * trials))), parallelism=1)
        generate(sandbox.workspace)
        sandbox.commit(f"Ask {one}")
    sandbox.push()
    return sandbox


def gather(sandbox: Sandbox, results: Path) -> int:
    """Let every trial write its record while one collector commits; give the number of commits."""
    stored = batches.in_work_tree(sandbox.root)
    trials = [(batch, index) for batch in stored for index in range(batch.lock.trials)]
    threads = [
        threading.Thread(target=leave, args=(results, batch, index), kwargs={"uid": f"{batch.name}-{index}"})
        for batch, index in trials
    ]
    target = Target(sandbox.workspace.repository, "origin", "main")
    commits, recorded = 0, 0
    for thread in threads:
        thread.start()
    while recorded < len(stored):
        for found in collect(target, results, ()):
            commits += 1
            recorded += len(found.batches)
    for thread in threads:
        thread.join()
    return commits


if __name__ == "__main__":
    publish_row(Path(sys.argv[1]), sys.argv[2])
