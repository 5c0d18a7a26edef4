"""What a work tree holds that git does not: files changed since the last commit, and files it never had."""

from generator.errors import RepositoryError
from generator.repo.git.door import Repository

OWN_SCOPES = frozenset({"local", "worktree"})
FILTERS = frozenset({"clean", "process", "smudge", "required"})


def uncommitted(repository: Repository, *below: str) -> tuple[str, ...]:
    """List paths below some folders that differ from HEAD, those git never had included."""
    options = ("--porcelain", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=dirty")
    listed = repository.run(*_without_own_filters(repository), "status", *options, "--", *below)
    return tuple(sorted(line[3:] for line in listed.split("\0") if line))


def untracked(repository: Repository, *below: str) -> tuple[str, ...]:
    """List files and whole folders below some paths that git does not have, ignored ones left out."""
    options = ("--others", "--exclude-standard", "--directory", "--no-empty-directory", "-z")
    listed = repository.run("ls-files", *options, "--", *below)
    return tuple(sorted(path for path in listed.split("\0") if path))


def _without_own_filters(repository: Repository) -> tuple[str, ...]:
    """Switch off filters of the repository's own configuration: git would run them to compare a file.

    A person's own, such as those of large files, stay. Raises RepositoryError for one that hides.
    """
    try:
        listed = repository.run("config", "--show-scope", "-z", "--name-only", "--get-regexp", r"^filter\.")
    except RepositoryError:
        return ()  # there are none
    words = listed.split("\0")
    own = [
        name
        for scope, name in zip(words[::2], words[1::2], strict=False)
        if scope in OWN_SCOPES and name.rpartition(".")[2] in FILTERS
    ]
    hidden = [name for name in own if "=" in name]
    if hidden:
        raise RepositoryError(
            f"the repository's configuration has {hidden[0]!r}", hint="remove it: git would run it"
        )
    return tuple(word for name in own for word in ("-c", f"{name}="))
