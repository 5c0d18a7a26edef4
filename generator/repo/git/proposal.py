"""One commit on a branch of its own, for a person to merge; what stands there already stays as it is."""

from collections.abc import Callable

from generator.repo.git.door import Repository
from generator.repo.git.publish import Change, commit, fetch

HEADS = "refs/heads/"


def proposals(repository: Repository, remote: str, below: str) -> frozenset[str]:
    """Name the branches of a remote below a folder of branches. Raises RepositoryError."""
    listed = repository.run("ls-remote", "--heads", "--end-of-options", remote, f"{HEADS}{below}/*")
    return frozenset(line.partition("\t")[2].removeprefix(HEADS) for line in listed.splitlines())


def propose(
    repository: Repository, remote: str, branch: str, proposal: str, make: Callable[[str], Change | None]
) -> str | None:
    """Make the change for what stands on `branch` now, and push it as the new branch `proposal`.

    Gives the commit, or None when there was nothing to change.
    Raises RepositoryError, also where the branch is there already: it is never forced.
    """
    base = fetch(repository, remote, branch)
    change = make(base)
    made = commit(repository, base, change) if change else None
    if made is not None:
        repository.run("push", "--porcelain", remote, f"{made}:{HEADS}{proposal}")
    return made
