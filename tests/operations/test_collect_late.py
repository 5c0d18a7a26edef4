"""Records that come after their batch was recorded: a new commit corrects what was missing, no more."""

import os
import time
from pathlib import Path

import pytest

from sweepledger.operations.collection import attempts
from sweepledger.operations.collection.record_store import on_volume
from sweepledger.operations.collection.results_commit import UnrecordedError, commit_results
from tests.operations.test_collect import branches, column, leave, reviewed, stored
from tests.repository import Sandbox


@pytest.fixture
def incomplete(sandbox: Sandbox, results: Path) -> Sandbox:
    """A batch of three that was recorded with two missing rows."""
    name = sandbox.merged()
    leave(results, stored(sandbox), 0)
    sandbox.collect(results, {name})
    assert column(sandbox, "status") == ["ok", "missing", "missing"]
    return sandbox


def test_a_later_file_corrects_a_missing_row_by_a_new_commit(incomplete: Sandbox, results: Path) -> None:
    batch = stored(incomplete)
    assert incomplete.collect(results) == ()
    leave(results, batch, 0, metrics={"score": 99.0}, uid="another")
    leave(results, batch, 1)

    (commit,) = incomplete.collect(results, alive=())

    assert commit.batches == (batch.name,)
    assert column(incomplete, "status") == ["ok", "ok", "missing"]
    assert column(incomplete, "metrics.score") == ["0", "0.5", ""], "what git holds of others stays"
    touched = incomplete.git("diff-tree", "-r", "--name-only", "--no-commit-id", "HEAD").splitlines()
    assert all(path.startswith("results/peak/") for path in touched)
    assert incomplete.verify().sweeps[0].differences == ()
    assert incomplete.collect(results) == ()


def test_a_record_takes_the_place_of_the_word_that_there_was_none(sandbox: Sandbox, results: Path) -> None:
    name = sandbox.merged()
    batch = stored(sandbox)
    leave(results, batch, 0, status="failed", reason="no-record", metrics={})
    sandbox.collect(results, {name})
    assert column(sandbox, "reason")[0] == "no-record"
    leave(results, batch, 0)

    sandbox.collect(results)

    assert (column(sandbox, "status")[0], column(sandbox, "attempts")[0]) == ("ok", "1")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("fault", ["cannot be read", "of another row", "of a month ago"])
def test_what_is_false_or_old_makes_no_commit(fault: str, incomplete: Sandbox, results: Path) -> None:
    batch = stored(incomplete)
    path = leave(results, batch, 1, **({"row": "0" * 64} if fault == "of another row" else {}))
    if fault == "cannot be read":
        path.write_text("{")
    if fault == "of a month ago":
        long_ago = time.time() - attempts.LOOK_BACK_SECONDS - 60
        os.utime(results / batch.name, (long_ago, long_ago))

    assert incomplete.collect(results) == ()


def test_with_reviews_a_correction_has_its_own_branch(incomplete: Sandbox, results: Path) -> None:
    leave(results, stored(incomplete), 1)

    (commit,) = commit_results(reviewed(incomplete), on_volume(results), ())

    assert len(branches(incomplete)) == 2
    assert commit_results(reviewed(incomplete), on_volume(results), ()) == ()
    assert len(branches(incomplete)) == 2
    assert commit.batches == (stored(incomplete).name,)


def test_two_corrections_at_once_are_both_kept(incomplete: Sandbox, results: Path, tmp_path: Path) -> None:
    batch = stored(incomplete)
    other = tmp_path / "another view of the volume"
    leave(results, batch, 1)
    leave(other, batch, 2)

    incomplete.collect(results)
    incomplete.git("reset", "-q", "--hard", "HEAD~1")
    incomplete.collect(other)

    assert column(incomplete, "status") == ["ok", "ok", "ok"]


LATE_REFUSED = """#!/bin/sh
while read -r old new ref; do
  [ -z "$(git diff --name-only --diff-filter=M "$old" "$new" -- results/peak/records)" ] || exit 1
done
"""
"""The rule of `clusters/pre-receive.sh` on records."""


def test_a_server_that_keeps_files_gets_records_of_others(incomplete: Sandbox, results: Path) -> None:
    late = stored(incomplete)
    incomplete.merged(xs="1, 2, 3, 4")
    (second,) = (batch for batch in incomplete.batches() if batch.is_active)
    hook = incomplete.remote / "hooks/pre-receive"
    hook.write_text(LATE_REFUSED)
    hook.chmod(0o755)
    leave(results, late, 1)
    leave(results, second, 0)

    (commit,) = incomplete.collect(results, {second.name})

    assert commit.batches == (second.name,)
    with pytest.raises(UnrecordedError, match="peak is not recorded"):
        incomplete.collect(results)
