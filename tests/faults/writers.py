"""Many writers of one summary: each adds its row to what stands, by the product's own way to publish."""

import multiprocessing
import subprocess
import threading
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from sweepledger.operations.collection.record_store import on_volume
from sweepledger.operations.collection.results_commit import commit_results
from sweepledger.repo.git import Change, Repository, publish
from tests.faults.worlds import fsck, git
from tests.operations.test_collect import leave
from tests.repository import Sandbox

SUMMARY = "results/peak/summary.csv"


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
    made = [folder / f"writer {item}" for item in range(number)]
    for clone in made:
        subprocess.run(["git", "clone", "-q", "--bare", str(remote), str(clone)], check=True)
    return made


def race(places: Sequence[Path], slots: int) -> list[str]:
    """Let all publish at once, so many processes at a time; give what failed."""
    forks = multiprocessing.get_context("fork")
    with warnings.catch_warnings():  # Python 3.12 warns of forks next to a thread, and pytest-xdist has one
        warnings.simplefilter("ignore", DeprecationWarning)
        with ProcessPoolExecutor(min(slots, len(places)), forks) as pool:
            publishing = [
                pool.submit(publish_row, clone, f"row-{number:03d}") for number, clone in enumerate(places)
            ]
    return [str(future.exception()) for future in publishing if future.exception()]


def judge(remote: Path, number: int) -> None:
    """All rows once, a commit each, one after the other, and git finds nothing wrong."""
    rows = git(remote, "show", f"main:{SUMMARY}").splitlines()
    assert rows == [f"row-{item:03d}" for item in range(number)]
    assert git(remote, "rev-list", "--count", "main") == str(number + 1)
    assert git(remote, "rev-list", "--count", "--merges", "main") == "0", "linear"
    fsck(remote)


def many_batches(folder: Path, number: int, trials: int) -> Sandbox:
    sandbox = Sandbox.create(folder)
    for item in range(1, number + 1):
        sandbox.spec(xs=", ".join(map(str, range(item * trials))), parallelism=1)
        sandbox.commit_batches(f"Ask {item}")
    sandbox.push()
    return sandbox


def gather(sandbox: Sandbox, results: Path) -> int:
    """Let every trial write its record while one collector commits; give the number of commits."""
    stored = sandbox.batches()
    trials = [(batch, index) for batch in stored for index in range(batch.lock.trials)]
    threads = [
        threading.Thread(target=leave, args=(results, batch, index), kwargs={"uid": f"{batch.name}-{index}"})
        for batch, index in trials
    ]
    target = sandbox.target()
    commits, recorded = 0, 0
    for thread in threads:
        thread.start()
    while recorded < len(stored):
        for commit in commit_results(target, on_volume(results), ()):
            commits += 1
            recorded += len(commit.batches)
    for thread in threads:
        thread.join()
    return commits
