"""Questions about many commits, each answered with one or two git processes."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from generator.errors import RepositoryError
from generator.repo.git.door import Repository

FIELDS = "%H%x00%an%x00%aI%x00%s"
"""Parted by the one character that no name, subject or path can hold."""

LITERAL = {"GIT_LITERAL_PATHSPECS": "1"}
"""Paths come from lock files: `:(glob)**` is the name of a file, if anything."""

REGULAR = frozenset({"100644", "100755"})


def reachable_trees(repository: Repository, revisions: Iterable[str | None], path: str) -> frozenset[str]:
    """Give the ids that the folder at a path ever had in the history of some commits."""
    tips = [tip for tip in (repository.commit(revision) for revision in revisions if revision) if tip]
    if not tips:
        return frozenset()
    # Else git leaves out a branch where its merge took the other side's folder.
    listed = repository.run("rev-list", "--full-history", *dict.fromkeys(tips), "--", path, env=LITERAL)
    asked = "".join(f"{commit}:{path}\n" for commit in (*listed.split(), *tips))
    answers = repository.run("cat-file", "--batch-check=%(objecttype) %(objectname)", content=asked.encode())
    return frozenset(line.split(" ")[1] for line in answers.splitlines() if line.startswith("tree "))


def follows(repository: Repository, remote: str, branch: str, tip: str, before: str) -> bool:
    """Tell whether a branch of a remote has an earlier commit in its history.

    What a shallow clone lacks of it is fetched, a little first. Raises RepositoryError.
    """
    for more in ((), ("--deepen=100",), ("--unshallow",)):
        if more:
            if repository.run("rev-parse", "--is-shallow-repository").strip() == "false":
                return False
            repository.run(
                *("fetch", "--quiet", "--no-tags", *more, "--end-of-options"), remote, f"refs/heads/{branch}"
            )
        if repository.commit(before) is not None and repository.holds(tip, before):
            return True
    return False


def last_change(repository: Repository, tip: str, path: str) -> int | None:
    """Give when a file came to a branch as it is there, in seconds by the committer's clock.

    A merge counts, not what it merged: only then it was on the branch. Raises RepositoryError for a shallow
    clone, whose oldest commit seems to have brought everything.
    """
    if repository.run("rev-parse", "--is-shallow-repository").strip() != "false":
        raise RepositoryError(
            "this clone is shallow: nobody can tell when something came", hint="`git fetch --unshallow`"
        )
    return is_there_since(repository, tip, path)


def is_there_since(repository: Repository, tip: str, path: str) -> int | None:
    """Give when what lies at a path came to a branch, or a later time, in seconds by the committer's clock.

    Unlike `last_change` it answers in a shallow clone, whose oldest commit seems to have brought all.
    """
    listed = repository.run(
        *("rev-list", "--first-parent", "--max-count=1", "--timestamp", tip, "--", path), env=LITERAL
    )
    return int(listed.split()[0]) if listed.strip() else None


def committed_at(repository: Repository, commit: str) -> int:
    """Give when a commit was made, in seconds by the committer's clock."""
    return int(repository.run("rev-list", "--max-count=1", "--timestamp", commit).split()[0])


def arrivals(repository: Repository, tip: str, *below: str) -> Mapping[str, str]:
    """Give for each file that a branch ever added below some paths the subject of the commit that brought it.

    A merge brings what it merges. In a shallow clone the oldest commit seems to have brought all.
    """
    output = repository.run(
        *("log", "--first-parent", "-m", "--no-renames", "--diff-filter=A", "--name-only", "-z"),
        *("--no-show-signature", "--no-color", "--encoding=UTF-8", "--format=%x00%s", tip, "--", *below),
        env=LITERAL,
    )
    found: dict[str, str] = {}
    for block in output.split("\0\0"):
        subject, *paths = block.strip("\0").split("\0")
        for path in paths:
            found.setdefault(path.lstrip("\n"), _text(subject))
    return MappingProxyType(found)


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit with the regular files that it added or changed."""

    id: str
    author: str
    date: str
    """Of the author, ISO 8601 with offset. To show, never to order by: clocks lie."""
    subject: str
    files: Mapping[str, str]
    """The blob's id, by path."""


def commits(repository: Repository, *below: str, revision: str = "HEAD") -> tuple[Commit, ...]:
    """List the commits that touched some paths, oldest first. Deleted files are not listed."""
    if repository.commit(revision) is None:
        return ()
    output = repository.run(
        "log",
        *("--reverse", "--topo-order", "--encoding=UTF-8"),
        # A person's configuration must change nothing.
        *("--no-show-signature", "--no-follow", "--no-color"),
        *("--no-renames", "--diff-filter=AM", "--raw", "--no-abbrev", "-z"),
        f"--format={FIELDS}",
        revision,
        "--",
        *below,
        env=LITERAL,
    )
    return tuple(_commits(iter(output.split("\0"))))


def _commits(fields: Iterator[str]) -> Iterator[Commit]:
    """Take git's answer apart: four fields begin a commit; then two a file, the first led by a colon."""
    head: tuple[str, str, str, str] | None = None
    files: dict[str, str] = {}
    for field in fields:
        first = field.lstrip("\n")
        if first.startswith(":"):
            _, mode, _, identity, _ = first.split(" ")
            path = next(fields)
            if mode in REGULAR:
                files[path] = identity
        elif first:
            if head:
                yield Commit(*head, MappingProxyType(files))
            head, files = (first, _text(next(fields)), next(fields), _text(next(fields))), {}
    if head:
        yield Commit(*head, MappingProxyType(files))


def _text(said: str) -> str:
    """Replace bytes that are no UTF-8: this is to be shown, and nothing could print them."""
    return said.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
