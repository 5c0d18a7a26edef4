"""Commits on a local branch; the work tree follows only if the branch is checked out.

A person may work in the same clone meanwhile. The branch moves by compare-and-swap. Git's lock of the index is held
while branch, files and index change, so that no `git commit` or `git switch` comes in between. Files and entries of
the index that a person has changed stay as they are.
"""

import os
import re
import shutil
import time
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from sweepledger import storage
from sweepledger.errors import RepositoryError
from sweepledger.repo.git.commit import Change, create_commit
from sweepledger.repo.git.remote import LOST_RACE, fetch
from sweepledger.repo.git.repository import Repository
from sweepledger.repo.git.work_tree import TreeStep, apply_step, is_shown, left_out_paths, list_steps, stage
from sweepledger.safe_open import read_regular
from sweepledger.storage import storage_errors

LOCK_SECONDS = 10.0
"""Longer than git holds the lock of the index to commit or to switch; an editor's commit does not hold it."""
LOCK_PAUSE = 0.02
OWN_FOLDER = "sweepledger"
"""Folder in git's own, where no commit can write."""
BUSY_MARKS: Mapping[str, str] = {
    "MERGE_HEAD": "merge",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
}
"""What git leaves in its folder until an operation is completed or aborted."""


def operation_in_progress(repository: Repository) -> str | None:
    """Return the operation that git has begun here and not completed, such as `merge`."""
    folder = repository.git_path("HEAD").parent
    return next((name for mark, name in BUSY_MARKS.items() if os.path.lexists(folder / mark)), None)


def rebased_commit(repository: Repository) -> str | None:
    """Return the tip of the branch that is being rebased; None without a rebase."""
    for mark in ("rebase-merge", "rebase-apply"):
        with suppress(OSError):
            path = repository.git_path("HEAD").parent / mark / "orig-head"
            return repository.commit(path.read_text().strip())
    return None


def commit_on_branch(
    repository: Repository, branch: str, *makes: Callable[[str], Change | None]
) -> str | None:
    """Commit the changes that functions compute, each from the previous commit; recompute them if the branch moves.

    The branch gets all commits at once. Return the last one; None if there is nothing to change. Raises
    RepositoryError if there is no such branch, or another git process holds the index; StorageError. After a crash,
    `finish_update` completes the work tree.
    """
    ref = f"refs/heads/{branch}"
    while True:
        base = repository.commit(ref)
        if base is None:
            raise RepositoryError(
                f"branch {branch} does not exist any more", hint="restore it: `git reflog` lists its commits"
            )
        made, index_only = base, frozenset[str]()
        for make in makes:
            change = make(made)
            made = (create_commit(repository, made, change) if change else None) or made
            index_only |= frozenset(change.entries) if change else frozenset()
        if made == base:
            return None
        if _move_branch(repository, ref, base, made, index_only):
            return made


def finish_update(repository: Repository, branch: str) -> None:
    """Update the work tree to a commit after a process was killed in between. Raises as `commit_on_branch` does."""
    own = repository.git_path(OWN_FOLDER)
    _remove_own_lock(repository, own)
    with storage_errors(own):
        pending = read_regular(own / "update", 256)
    if pending is None:
        return
    base, _, made = pending.decode("ascii", "replace").strip().partition(" ")
    tip = repository.commit(f"refs/heads/{branch}")
    if tip is not None and repository.commit(made) and repository.contains(tip, made):
        with _locked_index(repository, own) as index:
            steps = list_steps(repository, base, made)
            _follow(repository, f"refs/heads/{branch}", index, steps, frozenset())
    storage.remove_file(own / "update")


def _move_branch(repository: Repository, ref: str, base: str, made: str, index_only: frozenset[str]) -> bool:
    """Move the branch from `base` to `made`, and its work tree with it; return False if it has moved already."""
    own = repository.git_path(OWN_FOLDER)
    steps = list_steps(repository, base, made)
    with _locked_index(repository, own) as index:
        storage.write_file(own / "update", f"{base} {made}\n".encode())
        try:
            repository.run("update-ref", "-m", "sweep", ref, made, base)
        except RepositoryError:
            storage.remove_file(own / "update")
            if repository.commit(ref) == base:
                raise
            return False
        _follow(repository, ref, index, steps, index_only)
    storage.remove_file(own / "update")
    return True


@contextmanager
def _locked_index(repository: Repository, own: Path) -> Iterator[Path]:
    """Hold git's lock of the index for the block, and yield the path of a copy to change.

    Raises RepositoryError if another git process holds it.
    """
    index = repository.git_path("index")
    lock, mark = index.with_name("index.lock"), own / "lock"
    _remove_own_lock(repository, own)
    with storage_errors(mark):
        own.mkdir(exist_ok=True)
        mark.touch()
        deadline = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                os.link(mark, lock)
                break
            except FileExistsError as error:
                if time.monotonic() >= deadline:
                    raise RepositoryError(
                        f"{lock} exists: another git is running here", hint=repository.lock_hint(lock)
                    ) from error
                time.sleep(LOCK_PAUSE)
    try:
        yield own / "index"
    finally:
        with suppress(OSError):
            lock.unlink()


def _remove_own_lock(repository: Repository, own: Path) -> None:
    """Remove a lock of the index that a killed process of this program left, but no lock of git."""
    lock = repository.git_path("index").with_name("index.lock")
    with suppress(OSError):
        if lock.samefile(own / "lock"):
            lock.unlink()


def _follow(
    repository: Repository,
    ref: str,
    copy: Path,
    steps: tuple[TreeStep, ...],
    index_only: frozenset[str],
) -> None:
    """Bring files and index to the new commit, if the branch is checked out, except where a person changed them."""
    if repository.head_ref() != ref or not steps:
        return
    entries = repository.index()
    unstaged = [step for step in steps if entries.get(step.path) in (step.old, step.new)]
    contents = repository.blobs(entry.id for step in unstaged for entry in (step.old, step.new) if entry)
    left_out = left_out_paths(repository, unstaged)
    for step in unstaged:
        if step.path not in index_only and is_shown(repository.folder, step.path, step.old, contents):
            apply_step(repository.folder, step, contents)
    index = repository.git_path("index")
    with storage_errors(copy):
        # Left by a git that was killed: nobody else uses the copy while the lock of the index is held.
        copy.with_name(f"{copy.name}.lock").unlink(missing_ok=True)
        shutil.copyfile(index, copy)
    stage(repository, unstaged, left_out, {"GIT_INDEX_FILE": str(copy)})
    with storage_errors(index):
        copy.replace(index)


HEADS = "refs/heads/"
BASE_DIGITS = 12
PROPOSAL_BRANCH = re.compile(rf".+/[0-9a-f]{{{BASE_DIGITS}}}")


def proposals(repository: Repository, remote: str, below: str) -> Mapping[str, str]:
    """Return the proposals of a remote below a branch folder, by branch name. Raises RepositoryError."""
    branches = remote_branches(repository, remote, below)
    return {name: commit for name, commit in branches.items() if PROPOSAL_BRANCH.fullmatch(name)}


def remote_branches(repository: Repository, remote: str, below: str) -> Mapping[str, str]:
    """Return the commits of all branches of a remote below a branch folder. Raises RepositoryError."""
    listed = repository.run("ls-remote", "--heads", "--end-of-options", remote, f"{HEADS}{below}/*")
    words = (line.partition("\t") for line in listed.splitlines())
    return {ref.removeprefix(HEADS): commit for commit, _, ref in words}


def proposal_branch(below: str, base: str) -> str:
    """Return the branch name of a proposal on top of a commit."""
    return f"{below}/{base[:BASE_DIGITS]}"


def propose(
    repository: Repository, remote: str, branch: str, below: str, make: Callable[[str], Change | None]
) -> str | None:
    """Make a change to the current commit of `branch`, and push it as a branch in the folder `below`.

    Return the commit; None if there is nothing to change, or the proposal exists. Raises RepositoryError.
    """
    base = fetch(repository, remote, branch)
    name = proposal_branch(below, base)
    change = None if name in proposals(repository, remote, below) else make(base)
    return None if change is None else push_proposal(repository, remote, name, base, change)


def push_proposal(repository: Repository, remote: str, name: str, base: str, change: Change) -> str | None:
    """Push a commit on top of another as a new branch, and return it.

    Return None if it changes nothing, or another writer has pushed the branch. Raises RepositoryError.
    """
    commit = create_commit(repository, base, change)
    if commit is None:
        return None
    try:
        repository.run("push", "--porcelain", "--no-follow-tags", remote, f"{commit}:{HEADS}{name}")
    except RepositoryError as error:
        if LOST_RACE.search(error.output) is None:
            raise
        return None  # another writer has just pushed the same proposal
    return commit


def superseded_proposals(
    branches: Mapping[str, str], base: str, *, pending: Container[str]
) -> Mapping[str, str]:
    """Return the obsolete branches: nothing is pending in their folder, or a proposal on `base` exists."""
    return {
        name: tip
        for name, tip in branches.items()
        for below in [name.rpartition("/")[0]]
        if below not in pending
        or (proposal_branch(below, base) in branches and name != proposal_branch(below, base))
    }


def delete_branches(repository: Repository, remote: str, branches: Mapping[str, str]) -> None:
    """Delete branches that are still at these commits. Raises RepositoryError if a branch remains."""
    if not branches:
        return
    leases = [f"--force-with-lease={HEADS}{name}:{tip}" for name, tip in branches.items()]
    try:
        gone = (f":{HEADS}{name}" for name in branches)
        repository.run("push", "--porcelain", "--no-follow-tags", *leases, remote, *gone)
    except RepositoryError:
        below = {name.rpartition("/")[0] for name in branches}
        left = {pair for folder in below for pair in remote_branches(repository, remote, folder).items()}
        if left & set(branches.items()):
            raise
