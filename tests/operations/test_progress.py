"""What still runs, summarised on a branch of its own: never on main, and gone when nothing runs."""

import subprocess
import time
from dataclasses import replace
from pathlib import Path

from sweepledger.operations.collection.collector import update_progress_branches
from sweepledger.operations.collection.record_store import on_volume
from sweepledger.operations.collection.results_commit import commit_results
from sweepledger.operations.repository.workspace import Target
from tests.operations.test_collect import branches, leave, stored
from tests.repository import Sandbox


def every(sandbox: Sandbox, minutes: int | None = 15) -> Target:
    return replace(sandbox.target(), progress_minutes=minutes)


def column(sandbox: Sandbox) -> list[str]:
    sandbox.git("fetch", "-q", "origin", "progress/peak")
    table = sandbox.git("show", "FETCH_HEAD:results/peak/summary.csv").splitlines()[1:]
    return [line.split(",")[5] for line in table]


def test_progress_has_a_branch_that_ends_with_the_run(sandbox: Sandbox, results: Path) -> None:
    name = sandbox.merged()
    batch, main = stored(sandbox), sandbox.head()
    leave(results, batch, 0)
    now = time.time()
    assert list(update_progress_branches(every(sandbox, None), on_volume(results), now=now)) == []
    assert branches(sandbox) == ["main"], "nobody has asked for it"

    assert list(update_progress_branches(every(sandbox), on_volume(results), now=now)) == []
    assert column(sandbox) == ["ok", "missing", "missing"]
    first = sandbox.git("rev-parse", "FETCH_HEAD").strip()
    leave(results, batch, 1)
    assert list(update_progress_branches(every(sandbox), on_volume(results), now=now + 60)) == []
    assert column(sandbox) == ["ok", "missing", "missing"], "it is not due"
    assert list(update_progress_branches(every(sandbox), on_volume(results), now=now + 16 * 60)) == []

    assert column(sandbox) == ["ok", "ok", "missing"]
    assert sandbox.git("rev-parse", "FETCH_HEAD^").strip() == first, "it only moves on"
    assert sandbox.git("ls-remote", "origin", "main").split()[0] == main
    touched = sandbox.git("diff", "--name-only", main, "FETCH_HEAD").splitlines()
    assert all(path.startswith("results/peak/") for path in touched)
    leave(results, batch, 2)
    commit_results(every(sandbox), on_volume(results), {name})
    assert list(update_progress_branches(every(sandbox), on_volume(results), now=now + 17 * 60)) == []
    assert branches(sandbox) == ["main"]


def test_one_that_is_refused_is_told(sandbox: Sandbox, results: Path) -> None:
    sandbox.merged()
    leave(results, stored(sandbox), 0)
    hook = sandbox.remote / "hooks/update"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)

    (error,) = update_progress_branches(every(sandbox), on_volume(results), now=time.time())

    assert "git push failed" in str(error)


def test_the_status_names_the_branch(sandbox: Sandbox) -> None:
    sandbox.write("sweepledger.yaml", "version: 1\nresults: {progress: 15m}\n")
    sandbox.merged()

    done: subprocess.CompletedProcess[str] = sandbox.sweep("status")

    assert "peak: intermediate results: branch progress/peak of origin" in done.stdout
