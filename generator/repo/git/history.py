"""Questions about many commits, each answered with one or two git processes."""

from collections.abc import Iterable
from dataclasses import dataclass

from generator.repo.git.door import Repository

START = "\x1e"
"""Begins a commit in git's output: no name, subject or path of a text holds this control character."""


def reachable_trees(repository: Repository, revisions: Iterable[str | None], path: str) -> frozenset[str]:
    """Give the ids that the folder at a path ever had in the history of some commits."""
    tips = [tip for tip in (repository.commit(revision) for revision in revisions if revision) if tip]
    if not tips:
        return frozenset()
    commits = repository.run("log", "--format=%H", *dict.fromkeys(tips), "--", path).split()
    asked = "".join(f"{commit}:{path}\n" for commit in (*commits, *tips))
    answers = repository.run("cat-file", "--batch-check=%(objecttype) %(objectname)", content=asked.encode())
    return frozenset(line.split(" ")[1] for line in answers.splitlines() if line.startswith("tree "))


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit with the files that it added or changed."""

    id: str
    author: str
    date: str
    """Of the author, ISO 8601 with offset. To show, never to order by: clocks lie."""
    subject: str
    files: tuple[str, ...]


def commits(repository: Repository, *below: str, revision: str = "HEAD") -> tuple[Commit, ...]:
    """List the commits that touched some paths, oldest first. Deleted files are not listed."""
    if repository.commit(revision) is None:
        return ()
    text = repository.run(
        "log",
        "--reverse",
        "--topo-order",
        "--no-renames",
        "--diff-filter=AM",
        "--name-only",
        "-z",
        f"--format={START}%H%x1f%an%x1f%aI%x1f%s%x1f",
        revision,
        "--",
        *below,
    )
    found = []
    for part in text.split(START)[1:]:
        identity, author, date, subject, names = part.split("\x1f")
        files = tuple(name for name in names.strip("\n\0").split("\0") if name.strip("\n"))
        found.append(Commit(identity, author, date, subject, tuple(name.lstrip("\n") for name in files)))
    return tuple(found)
