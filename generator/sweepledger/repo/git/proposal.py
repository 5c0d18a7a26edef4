"""Proposals: commits on separate branches for a person to merge, replaced when the base branch moves.

The name of such a branch ends with the commit that it is based on, so that no push is forced. The push of the
next proposal deletes it.
"""

import re
from collections.abc import Callable, Container, Mapping

from sweepledger.errors import RepositoryError
from sweepledger.repo.git.commit import Change, create_commit
from sweepledger.repo.git.remote import LOST_RACE, fetch
from sweepledger.repo.git.repository import Repository

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
    """Return the branches that are obsolete: nothing is pending in their folder, or one on `base` exists."""
    return {
        name: tip
        for name, tip in branches.items()
        for below in [name.rpartition("/")[0]]
        if below not in pending
        or (proposal_branch(below, base) in branches and name != proposal_branch(below, base))
    }


def delete_branches(repository: Repository, remote: str, branches: Mapping[str, str]) -> None:
    """Delete branches that are still at these commits. Raises RepositoryError if one of them remains."""
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
