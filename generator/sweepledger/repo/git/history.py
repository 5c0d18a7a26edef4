"""The history of a branch: commits with paths, times and signatures. A function runs one or two git processes."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from sweepledger.repo.git.repository import FILE_MODES, LITERAL_PATHS, Entry, Repository


def reachable_trees(repository: Repository, revisions: Iterable[str | None], path: str) -> frozenset[str]:
    """Return the ids of all versions of a path in the history of some commits."""
    tips = repository.existing(revisions)
    if not tips:
        return frozenset()
    # Without --full-history git omits a branch if its merge took the other side's folder.
    listed = repository.run("rev-list", "--full-history", *tips, "--", path, env=LITERAL_PATHS)
    return frozenset(repository.ids(f"{commit}:{path}" for commit in (*listed.split(), *tips)).values())


def changed_lines(repository: Repository, old: str, new: str) -> dict[str, tuple[int, int] | None]:
    """Return how many lines each file of a tree gained and lost, by path; None for a file that is not text.

    Raises RepositoryError if a tree is missing, as in a shallow clone.
    """
    listed = repository.run("diff-tree", "-r", "-z", "--numstat", "--no-renames", old, new).split("\0")
    counts = (entry.split("\t", 2) for entry in listed if entry)
    return {
        path: (int(added), int(removed)) if added.isdecimal() else None for added, removed, path in counts
    }


def tree_patch(repository: Repository, old: str, new: str) -> str:
    """Return the difference between two trees as a patch; for files that are not text, only their names.

    No command of the clone's configuration or attributes is run. Raises RepositoryError if a tree is missing.
    """
    options = ("--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--unified=2")
    return repository.run("diff-tree", "-r", "--patch", *options, old, new)


def remote_contains(repository: Repository, remote: str, branch: str, tip: str, before: str) -> bool:
    """Return whether the branch of a remote, with its commit `tip`, contains an earlier commit.

    A shallow clone fetches more history, in growing steps. Raises RepositoryError.
    """
    for options in ((), ("--deepen=100",), ("--deepen=2000",), ("--unshallow",)):
        if options:
            if not repository.is_shallow:
                return False
            repository.run(
                *("fetch", "--quiet", "--no-tags", *options, "--end-of-options"),
                remote,
                f"refs/heads/{branch}",
            )
        if repository.commit(before) is not None and repository.contains(tip, before):
            return True
    return False


def present_since(repository: Repository, tip: str, path: str) -> int | None:
    """Return the time when a path got its present content, or a later time, in seconds by the committer's clock.

    The merge counts, not the merged commit. In a shallow clone the oldest commit seems to have added everything.
    """
    listed = repository.run(
        *("rev-list", "--first-parent", "--max-count=1", "--timestamp", tip, "--", path), env=LITERAL_PATHS
    )
    return int(listed.split()[0]) if listed.strip() else None


def commit_time(repository: Repository, commit: str) -> int:
    """Return the time of a commit, in seconds by the committer's clock."""
    return int(repository.run("rev-list", "--max-count=1", "--timestamp", commit).split()[0])


def addition_times(repository: Repository, tip: str, folder: str, *, since: float) -> Mapping[str, int]:
    """Return the time when a branch got each file added below a folder since a time, by the committer's clock.

    A merge adds what it merges. In a shallow clone the oldest commit seems to have added everything. Authors choose the
    times of their commits, which a host may keep: an older one hides no earlier commit, unlike with `--since`. For a
    file that was removed and added again, the last addition counts.
    """
    listed = repository.run("rev-list", "--first-parent", "--timestamp", tip)
    commits = [commit for seconds, commit in map(str.split, listed.splitlines()) if int(seconds) >= since]
    if not commits:
        return MappingProxyType({})
    times = _additions(repository, "%ct", "--no-walk=unsorted", "--stdin", "--", folder, tips=commits)
    return MappingProxyType({path: int(seconds) for path, seconds in times.items()})


def addition_subjects(repository: Repository, tip: str, *below: str) -> Mapping[str, str]:
    """Return the subject of the commit that added each file that a branch ever added below some paths.

    A merge adds what it merges. In a shallow clone the oldest commit seems to have added everything.
    """
    subjects = _additions(repository, "%s", "--encoding=UTF-8", tip, "--", *below)
    return MappingProxyType({path: _printable(subject) for path, subject in subjects.items()})


def _additions(
    repository: Repository, about: str, *arguments: str, tips: Iterable[str] = ()
) -> dict[str, str]:
    """Return a field of the newest commit in a log that added each file."""
    output = repository.run(
        *("log", "--first-parent", "-m", "--no-renames", "--diff-filter=A", "--name-only", "-z"),
        *("--no-show-signature", "--no-color", f"--format=%x00{about}", *arguments),
        content="".join(f"{commit}\n" for commit in tips).encode(),
        env=LITERAL_PATHS,
    )
    found: dict[str, str] = {}
    for block in output.split("\0\0"):
        text, *paths = block.strip("\0").split("\0")
        for path in filter(None, paths):
            found.setdefault(path.lstrip("\n"), text)
    return found


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit with the regular files that it added or changed."""

    id: str
    author: str
    date: str
    """The author's date, ISO 8601 with offset. For display only: clocks may be wrong."""
    subject: str
    files: Mapping[str, str]
    """Path → blob id."""


def commits(
    repository: Repository, *below: str, revision: str = "HEAD", last: int | None = None
) -> tuple[Commit, ...]:
    """Return the commits that changed some paths, oldest first, or only the last ones. Deleted files are not listed."""
    if repository.commit(revision) is None:
        return ()
    output = repository.run(
        *("log", "--reverse", "--topo-order", "--encoding=UTF-8"),
        # The user's configuration must not change the output.
        *("--no-show-signature", "--no-follow", "--no-color"),
        *("--no-renames", "--diff-filter=AM", "--raw", "--no-abbrev", "-z"),
        f"--format=%x00{COMMIT_MARK}%H%n%an%n%aI%n%s",
        *(() if last is None else (f"--max-count={last}",)),
        *(revision, "--", *below),
        env=LITERAL_PATHS,
    )
    return tuple(
        Commit(
            *(identity, _printable(author), date, _printable(subject)),
            MappingProxyType({path: meta[3] for path, meta in changes.items() if meta[1] in FILE_MODES}),
        )
        for head, changes in _parse_log(output)
        for identity, author, date, subject in [head.split("\n")]
    )


def _printable(text: str) -> str:
    """Replace bytes that are not UTF-8, because they cannot be printed."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


COMMIT_MARK = "commit:"
"""Begins the part of a commit; no path in the listed folders begins with it."""
GOOD_SIGNATURE = "G"
"""Git's letter for a valid signature of a trusted key; for SSH, of a listed one."""

LISTED_KEYS_ONLY = (
    "gpg.program=false",
    "gpg.x509.program=false",
    "gpg.ssh.program=ssh-keygen",
    "gpg.ssh.defaultKeyCommand=false",
    "gpg.minTrustLevel=fully",
    "log.showSignature=false",
)
"""Neither the user's keyring nor a program in the repository's configuration can add a trusted key."""


@dataclass(frozen=True, slots=True)
class CommitSignature:
    """A commit that changed some of the requested paths, and whether it is signed."""

    id: str
    is_signed: bool
    blobs: Mapping[str, str]
    """Path → blob id after the commit; zeros if it deleted the file."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The changed paths."""
        return tuple(self.blobs)

    def left(self, path: str, entry: Entry | None) -> bool:
        """Return whether a changed path has this entry after the commit; an entry of None is a deleted path."""
        blob = self.blobs[path]
        return not blob.strip("0") if entry is None else blob == entry.id


def commit_signatures(
    repository: Repository, since: str | None, until: str, below: Iterable[str], *, signers: Iterable[str]
) -> tuple[CommitSignature, ...]:
    """Return the commits after `since` that change some paths, newest first; `signers` are git's allowed signers.

    With `since` None the whole history is read. A merge changes only files that differ from those of all parents.
    """
    with tempfile.TemporaryDirectory(prefix="sweep-signers-") as folder:
        allowed = Path(folder) / "allowed"
        allowed.write_text("".join(f"{line}\n" for line in signers), encoding="utf-8")
        chosen = (*LISTED_KEYS_ONLY, f"gpg.ssh.allowedSignersFile={allowed}")
        output = repository.run(
            *(word for setting in chosen for word in ("-c", setting)),
            *("log", "--full-history", "--topo-order", "-c", "--raw", "--no-abbrev", "-z"),
            *("--no-renames", "--no-follow", "--no-color"),
            f"--format=%x00{COMMIT_MARK}%H %G?",
            *(until if since is None else f"{since}..{until}", "--", *below),
            env=LITERAL_PATHS,
        )
    return tuple(
        CommitSignature(
            *(head.split(" ")[0], head.endswith(f" {GOOD_SIGNATURE}")),
            MappingProxyType({path: meta[-2] for path, meta in changes.items()}),
        )
        for head, changes in _parse_log(output)
        if changes
    )


def _parse_log(output: str) -> Iterator[tuple[str, dict[str, list[str]]]]:
    """Parse a log: the fields of each commit, then two fields per path, after another separator for a merge.

    The first field begins with one colon per parent; the path may begin with any character.
    """
    for part in output.split(f"\0{COMMIT_MARK}")[1:]:
        head, *rest = part.split("\0")
        fields = (field for field in rest if field.lstrip("\n"))
        yield head, {next(fields): meta.lstrip("\n").split(" ") for meta in fields}
