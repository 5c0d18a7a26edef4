"""What is recorded stays and is never requested again, pushed or not, in a fork, and after a rebase or a merge."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from sweepledger.errors import RepositoryError, UsageError
from sweepledger.operations.collection.record_store import on_volume
from sweepledger.operations.collection.results_commit import commit_results
from sweepledger.operations.generation.next_batch import Generated
from sweepledger.operations.generation.next_batch import generate_batches as generate
from sweepledger.operations.repository.workspace import Target, Workspace
from sweepledger.operations.rounds.next_round import RoundDue
from sweepledger.repo import batches
from sweepledger.verbs.cluster.next_ import write_next
from sweepledger.verbs.generate import generate_changed
from tests.builders import present
from tests.repository import Sandbox
from tests.searches import hill, leave


def record_here(sandbox: Sandbox, results: Path, **changes: object) -> None:
    """Commit what the work tree requests, and its results on the branch that is checked out, as `sweep run` does."""
    if sandbox.git("status", "--porcelain"):
        sandbox.commit("Request")
    repository = sandbox.workspace.repository
    for batch in batches.in_commit(repository, "HEAD", batches.ACTIVE):
        leave(results, batch, **changes)
    branch = sandbox.git("branch", "--show-current").strip()
    commit_results(Target(repository, branch=branch, is_laptop=True), on_volume(results), ())


def archived(sandbox: Sandbox) -> list[str]:
    return [batch.name for batch in sandbox.batches() if not batch.is_active]


def new_trials(generated: Generated) -> list[object]:
    if generated.batch is None:
        return []
    stored = batches.StoredBatch(f"{batches.ACTIVE}/{generated.batch.name}", generated.batch.tree)
    return [row.values["x"] for row in stored.rows]


def differences(sandbox: Sandbox) -> list[str]:
    return [str(one) for sweep in sandbox.verify().sweeps for one in sweep.differences]


def copied(pristine: Sandbox, sandbox: Sandbox) -> Sandbox:
    sandbox.copy_from(pristine)
    return sandbox


@pytest.fixture(scope="module")
def pristine_unpushed(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    folder = tmp_path_factory.mktemp("unpushed")
    sandbox = Sandbox.create(folder)
    sandbox.propose(xs="1, 2")
    record_here(sandbox, folder / "results")
    sandbox.push()
    sandbox.propose(xs="1, 2, 3")
    record_here(sandbox, folder / "results")
    assert len(archived(sandbox)) == 2
    return sandbox


@pytest.fixture
def unpushed(pristine_unpushed: Sandbox, sandbox: Sandbox) -> Sandbox:
    """A second batch of one trial that is recorded on main and not pushed; the first is on the remote."""
    return copied(pristine_unpushed, sandbox)


def with_a_remote_that_moved(sandbox: Sandbox) -> Sandbox:
    """Let somebody else push, whose clone it returns: neither branch contains the other."""
    sandbox.git("worktree", "add", "-q", "--detach", "../other", "origin/main")
    other = Sandbox(sandbox.remote, sandbox.root.parent / "other")
    other.commit("Move main", {"NOTES.md": "Main has moved.\n"})
    other.git("push", "-q", "origin", "HEAD:main")
    return other


def rebased(sandbox: Sandbox) -> None:
    with_a_remote_that_moved(sandbox)
    sandbox.git("rebase", "-q", "origin/main")


def with_the_archive_removed_by_hand(sandbox: Sandbox) -> None:
    """Lose the folder in the work tree, as an earlier version lost it; HEAD still has it."""
    sandbox.git("rm", "-rq", f"overlays/archive/{archived(sandbox)[-1]}")


@pytest.mark.parametrize("move", [with_a_remote_that_moved, rebased, with_the_archive_removed_by_hand])
def test_an_added_value_is_requested_alone(unpushed: Sandbox, move: Callable[[Sandbox], object]) -> None:
    move(unpushed)
    before = archived(unpushed)
    unpushed.spec(xs="1, 2, 3, 4")

    (review,) = unpushed.plan("peak").reviews
    (made,) = unpushed.generate()

    assert (review.counts.new, review.counts.running, review.counts.recorded) == (1, 0, 3)
    assert (new_trials(made), made.stale, archived(unpushed)) == ([4], (), before)
    if len(before) == 2:
        unpushed.commit("Request one more")
        assert differences(unpushed) == []


@pytest.fixture
def fork(sandbox: Sandbox, results: Path, tmp_path: Path) -> Sandbox:
    """A clone of a fork whose main is old; the team's main records the sweep, and is merged here."""
    bare = tmp_path / "fork.git"
    subprocess.run(["git", "clone", "-q", "--bare", str(sandbox.remote), str(bare)], check=True)
    sandbox.merged(xs="1, 2")
    record_here(sandbox, results)
    sandbox.push()
    subprocess.run(["git", "clone", "-q", str(bare), str(tmp_path / "mine")], check=True)
    mine = Sandbox(bare, tmp_path / "mine")
    mine.git("remote", "add", "upstream", str(sandbox.remote))
    mine.git("fetch", "-q", "upstream")
    mine.git("merge", "-q", "--ff-only", "upstream/main")
    return mine


@pytest.mark.parametrize("has_name", [True, False])
def test_a_fork_knows_what_the_team_has_recorded(fork: Sandbox, *, has_name: bool) -> None:
    if not has_name:
        fork.git("remote", "remove", "upstream")
    fork.spec(xs="1, 2, 3")

    (review,) = fork.plan("peak").reviews
    (made,) = fork.generate()
    fork.commit("Request one more")

    assert (review.counts.new, review.counts.recorded) == (1, 2)
    assert (new_trials(made), len(archived(fork))) == ([3], 1)
    assert fork.workspace.remote == ("upstream" if has_name else "origin")
    assert not has_name or fork.check().problems == ()


def test_a_merge_that_is_not_finished_brings_what_stays(fork: Sandbox) -> None:
    fork.git("reset", "-q", "--hard", "origin/main")
    fork.git("merge", "-q", "--no-commit", "--no-ff", "upstream/main")
    fork.git("remote", "remove", "upstream")

    (made,) = fork.generate()

    assert (made.batch, made.stale, len(archived(fork))) == (None, (), 1)


def test_the_configuration_of_the_clone_names_the_remote(fork: Sandbox) -> None:
    for key in ("checkout.defaultRemote", "sweepledger.remote"):
        fork.git("config", key, "origin")
        assert fork.workspace.base_commit(None) == fork.git("rev-parse", "origin/main").strip()
        fork.git("config", "--unset", key)
    fork.git("config", "sweepledger.remote", "origin")
    fork.spec(xs="1, 2, 3")

    (made,) = fork.generate()

    assert (new_trials(made), len(archived(fork))) == ([3], 1), "what HEAD has recorded is known anyway"
    fork.git("config", "sweepledger.remote", "upsteam")
    with pytest.raises(UsageError, match="'upsteam', which is no remote") as caught:
        fork.plan()
    assert caught.value.hint == "remotes: origin, upstream; `git config sweepledger.remote NAME`"


def test_remotes_of_which_none_contains_the_others_are_named(fork: Sandbox) -> None:
    fork.git("switch", "-q", "--detach", "origin/main")
    fork.commit("Move the fork", {"NOTES.md": "The fork has moved.\n"})
    fork.git("push", "-q", "origin", "HEAD:main")
    fork.git("switch", "-q", "main")

    with pytest.raises(UsageError, match="several remotes have a branch main") as caught:
        fork.generate()

    commands = present(caught.value.hint).split("`")[1::2]
    assert commands == [f"git config sweepledger.remote {name}" for name in ("origin", "upstream")]
    assert fork.generate(base="upstream/main")[0].batch is None
    fork.git(*commands[1].split()[1:])
    assert fork.generate()[0].batch is None


@pytest.fixture(scope="module")
def pristine_search(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    folder = tmp_path_factory.mktemp("search")
    sandbox = Sandbox.create(folder)
    sandbox.write("sweepledger.yaml", "version: 1\n")
    hill(sandbox, rounds=2, size=2)
    sandbox.publish("Ask for a search")
    sandbox.generate()
    record_here(sandbox, folder / "results")
    write_next(sandbox.workspace)
    record_here(sandbox, folder / "results")
    assert [name[:7] for name in archived(sandbox)] == ["hill-b1", "hill-b2"]
    return sandbox


@pytest.fixture
def search(pristine_search: Sandbox, sandbox: Sandbox) -> Sandbox:
    """A search of two rounds, both of which are recorded on main and not pushed."""
    return copied(pristine_search, sandbox)


@pytest.mark.parametrize(
    "command",
    [
        lambda workspace: generate(workspace, ["hill"]),
        lambda workspace: write_next(workspace, ["hill"]),
        generate_changed,
    ],
    ids=["generate", "next", "hook"],
)
def test_no_command_removes_a_recorded_round(search: Sandbox, command: Callable[[Workspace], object]) -> None:
    rebased(search)
    before = archived(search)

    command(search.workspace)

    assert (archived(search), search.active()) == (before, [])
    assert search.git("status", "--porcelain") == ""
    assert differences(search) == []


def test_rounds_that_two_machines_recorded_apart_are_not_continued(search: Sandbox, results: Path) -> None:
    search.git("branch", "desktop", "origin/main")
    search.git("switch", "-q", "desktop")
    hill(search, rounds=2, size=3)
    search.generate(base="HEAD")
    record_here(search, results)
    search.git("push", "-q", "origin", "desktop:main")
    search.git("switch", "-q", "main")
    hill(search, rounds=3, size=2)
    before = archived(search)

    with pytest.raises(RepositoryError, match="no commit has all results of hill") as caught:
        write_next(search.workspace)

    base = search.git("rev-parse", "origin/main").strip()
    assert caught.value.hint == f"merge the base commit first: `git merge {base}`"
    assert archived(search) == before


def test_pushed_results_of_another_sweep_stop_no_search(search: Sandbox, results: Path) -> None:
    search.git("worktree", "add", "-q", "-b", "desktop", "../other", "origin/main")
    other = Sandbox(search.remote, search.root.parent / "other")
    other.spec(xs="1")
    other.generate("peak")
    record_here(other, results)
    other.git("push", "-q", "origin", "desktop:main")
    hill(search, rounds=3, size=2)
    search.commit("One more round")

    (step,) = write_next(search.workspace)

    assert isinstance(step.step, RoundDue)
    assert [name[:7] for name in search.active()] == ["hill-b3"]


def test_check_names_what_the_base_lacks_and_how_a_vanished_batch_comes_back(unpushed: Sandbox) -> None:
    name = archived(unpushed)[-1]

    problems = unpushed.check().problems

    (moved,) = [problem for problem in problems if problem.code == "batch-moved"]
    assert moved.file == f"overlays/archive/{name}"
    assert "never ran" not in moved.message
    assert not [one for one in unpushed.check(base="HEAD").problems if one.code.startswith("batch-")]

    first = archived(unpushed)[0]
    unpushed.git("rm", "-rq", f"overlays/archive/{first}")
    (gone,) = [one for one in unpushed.check(base="HEAD").problems if one.code == "batch-vanished"]
    unpushed.git(*present(gone.hint).split("`")[1].split()[1:])
    assert unpushed.check(base="HEAD").problems == ()
    assert unpushed.git("status", "--porcelain") == ""


def test_a_batch_that_never_ran_is_still_refused_in_the_archive_with_a_way_out(sandbox: Sandbox) -> None:
    sandbox.spec()
    made = sandbox.new_batch()
    sandbox.git("add", "--all")
    sandbox.git("mv", f"overlays/active/{made.name}", f"overlays/archive/{made.name}")
    sandbox.git("commit", "-q", "-m", "Archive it by hand")

    (moved,) = [one for one in sandbox.check().problems if one.code == "batch-moved"]

    assert moved.message == "a batch that never ran must not be in the archive"
    assert str(moved.hint).startswith(f"`rm -r overlays/archive/{made.name}`, commit that, then")

    shutil.rmtree(sandbox.root / f"overlays/archive/{made.name}")
    sandbox.git("commit", "-q", "-a", "-m", "Follow the hint")
    sandbox.generate("peak")
    assert sandbox.check().problems == ()


def test_a_round_recorded_by_one_of_two_machines_runs_once(sandbox: Sandbox, results: Path) -> None:
    sandbox.spec(xs="1, 2")
    sandbox.commit_batches("Request")
    sandbox.git("branch", "laptop")
    record_here(sandbox, results)
    (name,) = archived(sandbox)
    sandbox.push()
    sandbox.git("switch", "-q", "laptop")
    sandbox.commit("Note", {"NOTES.md": "A note.\n"})
    sandbox.git("read-tree", "-m", "-u", "laptop", "main")
    sandbox.git("checkout", "-q", "laptop", "--", f"overlays/active/{name}", "NOTES.md")
    sandbox.git("commit", "-q", "-m", "A merge that keeps both folders")

    assert "batch-active-twice" in {problem.code for problem in sandbox.check().problems}
    (made,) = generate_changed(sandbox.workspace).generated
    sandbox.commit("Remove the copy")

    assert ([batch.folder for batch in made.stale], made.batch) == ([f"overlays/active/{name}"], None)
    assert (archived(sandbox), sandbox.active()) == ([name], [])


def test_while_a_rebase_is_stopped_what_it_will_repeat_is_known(unpushed: Sandbox) -> None:
    other = with_a_remote_that_moved(unpushed)
    other.spec(xs="1, 2, 9")
    other.commit("Ask for another value")
    other.git("push", "-q", "origin", "HEAD:main")
    with pytest.raises(subprocess.CalledProcessError):
        unpushed.git("rebase", "-q", "origin/main")
    unpushed.spec(xs="1, 2, 3, 4")

    (made,) = unpushed.generate()

    assert new_trials(made) == [4]


FAILED: dict[str, object] = {"status": "failed", "reason": "exit-1", "metrics": {}}


@pytest.fixture
def failed(sandbox: Sandbox, results: Path) -> Sandbox:
    """A merged batch, and a second one whose trial failed; both are recorded, and nothing of that is pushed."""
    sandbox.merged(xs="1, 2")
    record_here(sandbox, results)
    sandbox.propose(xs="1, 2, 3")
    record_here(sandbox, results, **FAILED)
    return sandbox


@pytest.mark.parametrize("named", [False, True])
def test_unpushed_failed_trials_are_retried(failed: Sandbox, *, named: bool) -> None:
    rebased(failed)
    before = archived(failed)

    made = failed.retry(batch=before[-1] if named else None)

    assert (new_trials(made.generated), made.generated.retried) == ([3], 1)
    assert (archived(failed), failed.active()) == (before, [made.batch])
    assert failed.retry().commit is None
    assert failed.check(base="HEAD").problems == ()


def test_a_batch_that_is_recorded_here_and_active_on_main_is_not_cancelled(failed: Sandbox) -> None:
    first, second = archived(failed)
    for name in (first, second):
        with pytest.raises(UsageError, match=f"{name} is recorded"):
            failed.cancel(batch=name)
    with pytest.raises(UsageError, match="no active batch to cancel"):
        failed.cancel()
    with pytest.raises(UsageError, match="has no active batch"):
        failed.pause()
    assert archived(failed) == [first, second]


def test_an_unpushed_cancellation_stops_no_other(sandbox: Sandbox, results: Path) -> None:
    first = sandbox.merged(xs="1")
    for batch in sandbox.batches():
        leave(results, batch, **FAILED)
    sandbox.record(results)
    second, third = sandbox.merged(xs="1, 2"), sandbox.merged(xs="1, 2, 3")

    sandbox.cancel(batch=second)
    made = sandbox.retry()
    sandbox.cancel(batch=third)

    assert (new_trials(made.generated), archived(sandbox)) == ([1], [first, second, third])
    assert sandbox.active() == [made.batch]


def test_a_cancellation_whose_entry_was_lost_from_the_spec_is_named_again(sandbox: Sandbox) -> None:
    name = sandbox.merged(xs="1, 2")
    sandbox.cancel()
    sandbox.spec(xs="1, 2")
    sandbox.commit("Lose the entry")
    assert "batch-moved" in {problem.code for problem in sandbox.check().problems}

    sandbox.cancel()

    assert sandbox.workspace.sweeps(["peak"])[0].cancel == (name,)
    assert archived(sandbox) == [name]
    assert sandbox.check().problems == ()
