"""Commits for a person to merge: a branch on top of what stands, and another one when that has moved.

Such a branch is called by the commit that it stands on, so it is never forced; who has made the next one
deletes it.
"""

import re
from collections.abc import Callable, Container, Mapping

from generator.errors import RepositoryError
from generator.repo.git.door import Repository
from generator.repo.git.publish import LOST_RACE, Change, commit, fetch

HEADS = "refs/heads/"
DIGITS = 12
OURS = re.compile(rf".+/[0-9a-f]{{{DIGITS}}}")


def proposals(repository: Repository, remote: str, below: str) -> Mapping[str, str]:
    """Give the commits of such branches of a remote below a folder of branches. Raises RepositoryError."""
    found = heads(repository, remote, below)
    return {name: commit for name, commit in found.items() if OURS.fullmatch(name)}


def heads(repository: Repository, remote: str, below: str) -> Mapping[str, str]:
    """Give the commits of all branches of a remote below a folder of branches. Raises RepositoryError."""
    listed = repository.run("ls-remote", "--heads", "--end-of-options", remote, f"{HEADS}{below}/*")
    words = (line.partition("\t") for line in listed.splitlines())
    return {ref.removeprefix(HEADS): commit for commit, _, ref in words}


def named(below: str, base: str) -> str:
    """Name the branch of what is proposed on top of a commit."""
    return f"{below}/{base[:DIGITS]}"


def propose(
    repository: Repository, remote: str, branch: str, below: str, make: Callable[[str], Change | None]
) -> str | None:
    """Make the change for what stands on `branch` now, and push it as a branch `below` a folder.

    Gives the commit, or None when there was nothing to change, or it is proposed already. Raises
    RepositoryError.
    """
    base = fetch(repository, remote, branch)
    name = named(below, base)
    change = None if name in proposals(repository, remote, below) else make(base)
    return None if change is None else offer(repository, remote, name, base, change)


def offer(repository: Repository, remote: str, name: str, base: str, change: Change) -> str | None:
    """Push a commit on top of another as a branch, or give up where somebody else was faster.

    Gives the commit, if it is there. Raises RepositoryError.
    """
    made = commit(repository, base, change)
    if made is None:
        return None
    try:
        repository.run("push", "--porcelain", remote, f"{made}:{HEADS}{name}")
    except RepositoryError as error:
        if LOST_RACE.search(error.output) is None:
            raise
        return None  # somebody else has just made it: of two writers one has to
    return made


def superseded(standing: Mapping[str, str], base: str, *, waiting: Container[str]) -> Mapping[str, str]:
    """Choose the branches that are of no use: nothing waits below their folder, or one on `base` is there."""
    return {
        name: tip
        for name, tip in standing.items()
        for below in [name.rpartition("/")[0]]
        if below not in waiting or (named(below, base) in standing and name != named(below, base))
    }


def withdraw(repository: Repository, remote: str, gone: Mapping[str, str]) -> None:
    """Delete branches that still are at these commits. Raises RepositoryError where one of them stays."""
    if not gone:
        return
    leases = [f"--force-with-lease={HEADS}{name}:{tip}" for name, tip in gone.items()]
    try:
        repository.run("push", "--porcelain", *leases, remote, *(f":{HEADS}{name}" for name in gone))
    except RepositoryError:
        below = {name.rpartition("/")[0] for name in gone}
        left = {pair for folder in below for pair in heads(repository, remote, folder).items()}
        if left & set(gone.items()):
            raise
