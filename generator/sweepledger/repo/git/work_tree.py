"""The work tree: its uncommitted and untracked files, and commits on HEAD that update it.

`git merge` writes files in place and does not record its progress. Here each file changes atomically, the
index changes after all files, and the branch last, so that the same command completes the work after a crash.
"""

import os
import re
from bisect import bisect_left
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Self

from sweepledger import storage
from sweepledger.errors import RepositoryError
from sweepledger.repo import files
from sweepledger.repo.git.commit import NO_OBJECT, Change, create_commit
from sweepledger.repo.git.repository import (
    EXECUTABLE_MODE,
    FILE_MODES,
    LITERAL_PATHS,
    REPOSITORY_SCOPES,
    Entry,
    Repository,
    staged_entries,
)
from sweepledger.structs.values import blob_id

FILTERS = frozenset({"clean", "process", "smudge", "required"})


def uncommitted_paths(repository: Repository, *below: str) -> tuple[str, ...]:
    """Return the paths below some folders that differ from HEAD, including untracked paths."""
    return tuple(sorted(path for _, path in _status(repository, below, "--ignore-submodules=dirty")))


def _status(repository: Repository, below: Iterable[str], *options: str) -> Iterator[tuple[str, str]]:
    """Yield git's two letters about each path that differs from HEAD or the index, or is untracked, and the path."""
    listed = repository.run(
        *(*without_repository_filters(repository), "status", "--porcelain", "-z", "--untracked-files=all"),
        *("--no-renames", *options, "--", *below),
        env=LITERAL_PATHS,
    )
    yield from ((line[:2], line[3:]) for line in listed.split("\0") if line)


def untracked_paths(repository: Repository, *paths: str) -> frozenset[str]:
    """Return those of some paths that git does not track."""
    listed = repository.run("ls-files", "-z", "--others", "--", *paths, env=LITERAL_PATHS)
    return frozenset(listed.split("\0")[:-1])


@dataclass(frozen=True)
class WorkTreeChanges:
    """The changes that git sees below some folders of the work tree, and the paths that git was told to ignore."""

    uncommitted: frozenset[str]
    """Paths that differ from HEAD, untracked ones included."""
    untracked: frozenset[str]
    ignored: frozenset[str]
    """Untracked paths that no commit would contain."""
    unwatched: frozenset[str]
    """Tracked paths that git does not compare, because the index says so (`assume-unchanged`, `skip-worktree`)."""

    @classmethod
    def read(cls, repository: Repository, *below: str) -> Self:
        """Find the changes in one walk through the folders. Raises RepositoryError."""
        paths: dict[str, set[str]] = {}
        for state, path in _status(repository, below, "--ignored", "--ignore-submodules=dirty"):
            paths.setdefault(state, set()).add(path)
        ignored, untracked = (frozenset(paths.pop(state, ())) for state in (IGNORED, UNTRACKED))
        marked = repository.run("ls-files", "-v", "-z", "--", *below, env=LITERAL_PATHS)
        return cls(
            untracked.union(*paths.values()), untracked, ignored, frozenset(UNWATCHED.findall(f"\0{marked}"))
        )

    def whole_folders(self, tracked: Iterable[str]) -> tuple[str, ...]:
        """Return the untracked paths; a folder without tracked files represents its content."""
        known = sorted(tracked) if self.untracked else []
        return tuple(sorted({_topmost(path, known) for path in self.untracked}))


IGNORED, UNTRACKED = "!!", "??"
UNWATCHED = re.compile(r"\0[^H\0] ([^\0]+)")
"""A path with another mark than that of a file that is compared as usual."""


def _topmost(path: str, tracked: Sequence[str]) -> str:
    """Return the topmost folder of a path that contains no tracked file, with a slash; else the path."""
    for at in (match.end() for match in re.finditer("/", path)):
        folder = path[:at]
        next_path = bisect_left(tracked, folder)
        if next_path == len(tracked) or not tracked[next_path].startswith(folder):
            return folder
    return path


def work_tree_entries(repository: Repository, paths: Iterable[str]) -> dict[str, Entry]:
    """Return the entries that `git add` would make of some paths, and write their blobs; the index stays as it is.

    Removed paths have no entry.
    """
    names = "".join(f"{path}\0" for path in paths).encode("utf-8", "surrogateescape")
    with storage.scratch_folder() as scratch:
        environment = {"GIT_INDEX_FILE": str(scratch / "index"), **LITERAL_PATHS}
        repository.run("read-tree", "HEAD", env=environment)
        repository.run(
            *(*without_repository_filters(repository), "add", "--all"),
            *("--pathspec-from-file=-", "--pathspec-file-nul"),
            env=environment,
            content=names,
        )
        staged = repository.run("ls-files", "--stage", "-z", env=environment)
    wanted = frozenset(paths)
    return {path: entry for path, entry in staged_entries(staged).items() if path in wanted}


class Checkout:
    """The files of the index below some folders; files in the work tree may have other bytes or be missing.

    A check-out may change line endings and encodings, filters may change all bytes, and a sparse one omits files.
    """

    def __init__(self, repository: Repository, *below: str) -> None:
        self._repository, self._below = repository, below

    @cached_property
    def _marked(self) -> Mapping[str, tuple[str, Entry]]:
        """The entries with git's tag: `H` is compared as usual, `S` is omitted."""
        listed = self._repository.run(
            "ls-files", "-v", "--stage", "-z", "--", *self._below, env=LITERAL_PATHS
        )
        marks = (line.partition(" ")[::2] for line in filter(None, listed.split("\0")))
        return {path: (mark, entry) for mark, rest in marks for path, entry in staged_entries(rest).items()}

    @cached_property
    def _edited(self) -> frozenset[str]:
        """The paths whose files differ from the index, including untracked files."""
        states = _status(self._repository, self._below, "--ignore-submodules=all")
        return frozenset(path for state, path in states if state[1] != " ")

    @property
    def entries(self) -> Mapping[str, Entry]:
        """All entries, by path."""
        return {path: entry for path, (_, entry) in self._marked.items()}

    @cached_property
    def hidden(self) -> Mapping[str, Entry]:
        """The entries that a sparse check-out omits."""
        if not self._repository.may_configure(b"sparse"):
            return {}
        root = self._repository.folder
        left_out = {path: entry for path, (mark, entry) in self._marked.items() if mark == LEFT_OUT}
        return {path: entry for path, entry in left_out.items() if not os.path.lexists(root / path)}

    @cached_property
    def unwatched(self) -> frozenset[str]:
        """The files that differ from the index although the index tells git not to compare them."""
        edited = set()
        marked = ((path, entry) for path, (mark, entry) in self._marked.items() if mark in UNWATCHED_MARKS)
        for path, entry in marked:
            file = self._repository.folder / path
            if file.is_file() and not file.is_symlink():
                content = files.read_file(file)
                if entry.id not in {blob_id(content), blob_id(content.replace(CARRIAGE_RETURN, b"\n"))}:
                    edited.add(path)
        return frozenset(edited)

    def content(self, path: str, content: bytes) -> bytes:
        """Return git's content of a file, or the given content if the file was edited. Raises RepositoryError."""
        mark, entry = self._marked.get(path, ("", None))
        if entry is None or mark != "H" or entry.mode not in FILE_MODES:
            return content
        if blob_id(content) == entry.id or path in self._edited:
            return content
        return self._repository.blobs([entry.id])[entry.id]

    def read(self, path: str, known: str | None = None) -> bytes | None:
        """Return a file's content in git, or on disk if it was edited; None without a file. Raises StorageError.

        A file on disk with the `known` blob id is as in git; the index is not read for it.
        """
        root = self._repository.folder
        files.refuse_links(root, path)
        if (root / path).is_file():
            content = files.read_file(root / path)
            return content if blob_id(content) == known else self.content(path, content)
        entry = None if os.path.lexists(root / path) else self.hidden.get(path)
        return None if entry is None else self._repository.blobs([entry.id])[entry.id]

    def hidden_below(self, folder: str) -> tuple[str, ...]:
        """Return the paths below a folder, relative to it, that a sparse check-out omits."""
        return tuple(path.removeprefix(f"{folder}/") for path in self.hidden if path.startswith(f"{folder}/"))

    def rewritten(self, paths: Iterable[str]) -> dict[str, tuple[Entry, bytes]]:
        """Return the content that a commit would have for each file whose content here differs from that.

        Raises RepositoryError, StorageError.
        """
        made: dict[str, tuple[Entry, bytes]] = {}
        added = []
        for path in paths:
            file = self._repository.folder / path
            if path in self.hidden:
                entry = self.hidden[path]
                made[path] = entry, self._repository.blobs([entry.id])[entry.id]
            elif file.is_file() and not file.is_symlink():
                with storage.storage_errors(file):
                    content = file.read_bytes()
                _, marked = self._marked.get(path, ("", None))
                committed = self.content(path, content)
                if committed is not content and marked is not None:
                    made[path] = marked, committed
                elif CARRIAGE_RETURN in content and (marked is None or path in self._edited):
                    added.append(path)
        entries = work_tree_entries(self._repository, added) if added else {}
        contents = self._repository.blobs(entry.id for entry in entries.values())
        return made | {path: (entry, contents[entry.id]) for path, entry in entries.items()}


LEFT_OUT = "S"
UNWATCHED_MARKS = frozenset("hsS")
"""Those of `assume-unchanged` and `skip-worktree`."""
CARRIAGE_RETURN = b"\r\n"
"""What git may change in a file that no filter concerns."""


def work_tree_files(repository: Repository, *below: str) -> tuple[str, ...]:
    """Return the tracked files, and the untracked files that are not ignored, below some paths."""
    options = ("--cached", "--others", "--exclude-standard", "-z")
    listed = repository.run("ls-files", *options, "--", *below, env=LITERAL_PATHS)
    return tuple(sorted({path for path in listed.split("\0") if path}))


def index_attributes(
    repository: Repository, paths: Iterable[str], *, with_unset: bool = False
) -> dict[str, tuple[tuple[str, str], ...]]:
    """Return the attributes that the index sets for some paths, as git reads them, and those that it unsets."""
    request = "".join(f"{path}\0" for path in paths).encode("utf-8", "surrogateescape")
    if not request:
        return {}
    words = repository.run(
        *("-c", "core.attributesFile=/dev/null", "check-attr", "--cached", "--all", "-z", "--stdin"),
        env={"GIT_ATTR_NOSYSTEM": "1"},
        content=request,
    ).split("\0")
    found: dict[str, tuple[tuple[str, str], ...]] = {}
    shared: dict[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]] = {}
    triples = zip(words[::3], words[1::3], words[2::3], strict=False)
    kept = (one for one in triples if with_unset or one[2] != "unset")
    # Git lists all attributes of a path together, and most paths have the same ones.
    for path, listed in groupby(kept, key=itemgetter(0)):
        attributes = tuple((name, value) for _, name, value in listed)
        found[path] = shared.setdefault(attributes, attributes)
    return found


def without_repository_filters(
    repository: Repository, scopes: Container[str] = REPOSITORY_SCOPES
) -> tuple[str, ...]:
    """Return options that disable filters in the repository's own configuration, which git would run to compare files.

    The user's own filters, such as Git LFS, remain, unless `scopes` has theirs. Raises RepositoryError for a name that
    no option can disable.
    """
    if scopes is REPOSITORY_SCOPES and not repository.may_configure(b"filter"):
        return ()
    named = repository.settings(r"^filter\.", scopes)
    own = [name for name, _ in named if name.rpartition(".")[2] in FILTERS]
    hidden = [name for name in own if "=" in name]
    if hidden:
        raise RepositoryError(
            f"the repository's configuration has {hidden[0]!r}",
            hint="remove the setting, because git would run its command",
        )
    return tuple(word for name in own for word in ("-c", f"{name}="))


@dataclass(frozen=True, slots=True)
class TreeStep:
    """The old and the new entry of one path."""

    path: str
    old: Entry | None
    """None if the path is added."""
    new: Entry | None
    """None if the path is removed."""


def commit_on_head(repository: Repository, make: Callable[[str], Change | None]) -> str | None:
    """Commit the change that `make` computes from HEAD, and update the work tree.

    The change is recomputed if HEAD moves meanwhile. Return the new commit; None if there is nothing to change. Raises
    StorageError, and RepositoryError if there is no commit yet, if the same files have uncommitted changes, or if
    another git process is running. After a crash, the same call completes the work.
    """
    while True:
        base = repository.commit("HEAD")
        if base is None:
            raise RepositoryError("the repository has no commit yet")
        change = make(base)
        made = create_commit(repository, base, change) if change else None
        if made is None:
            return None
        if repository.commit("HEAD") == base:  # computing can take minutes
            break
    # Another git is noticed before any file changes.
    lock = repository.git_path("index.lock")
    if lock.exists():
        raise RepositoryError(f"{lock} exists: another git is running here", hint=repository.lock_hint(lock))
    steps = list_steps(repository, base, made)
    contents = repository.blobs(step.new.id for step in steps if step.new)
    _refuse_edits(repository, steps, contents)
    left_out = left_out_paths(repository, steps)
    for step in steps:
        if step.path not in left_out:
            apply_step(repository.folder, step, contents)
    stage(repository, steps, left_out)
    repository.run("update-ref", "-m", "sweep", "HEAD", made, base)
    return made


def left_out_paths(repository: Repository, steps: Iterable[TreeStep]) -> frozenset[str]:
    """Return the changed paths that a sparse check-out omits before and after the change."""
    changed = frozenset(step.path for step in steps if step.new)
    return changed & Checkout(repository).hidden.keys()


def stage(
    repository: Repository,
    steps: Iterable[TreeStep],
    left_out: Iterable[str],
    env: Mapping[str, str] | None = None,
) -> None:
    """Update the index to a commit at some paths, and mark the paths that the work tree omits."""
    # Git compares files whose times are as new as the index, and runs filters to do so.
    update = (*without_repository_filters(repository), "update-index", "-z")
    listed = ((step.path, step.new or Entry("0", NO_OBJECT)) for step in steps)
    entries = "".join(f"{entry.mode} {entry.id}\t{path}\0" for path, entry in listed)
    for options, text in (
        (("--add", "--index-info"), entries),
        (("--skip-worktree", "--stdin"), "".join(f"{path}\0" for path in left_out)),
    ):
        if text:
            repository.run(*update, *options, env=env, content=text.encode("utf-8", "surrogateescape"))


def list_steps(repository: Repository, base: str, made: str) -> tuple[TreeStep, ...]:
    """Return the changed paths; removals first, because a folder can replace a file."""
    words = repository.run("diff-tree", "-r", "-z", "--no-renames", base, made).split("\0")
    steps = []
    for meta, path in zip(words[::2], words[1::2], strict=False):
        old_mode, mode, old_id, identity, _ = meta.removeprefix(":").split(" ")
        pairs = ((old_mode, old_id), (mode, identity))
        steps.append(TreeStep(path, *(None if pair[1] == NO_OBJECT else Entry(*pair) for pair in pairs)))
    return tuple(sorted(steps, key=lambda step: (step.new is not None, step.path)))


def _refuse_edits(repository: Repository, steps: Iterable[TreeStep], contents: dict[str, bytes]) -> None:
    """Raise RepositoryError if a file has uncommitted changes that the commit would overwrite."""
    by_path = {step.path: step for step in steps}
    edited = [
        path
        for path in uncommitted_paths(repository, *by_path)
        if path not in by_path or not is_shown(repository.folder, path, by_path[path].new, contents)
    ]
    if edited:
        raise RepositoryError(
            f"local changes would be overwritten: {', '.join(edited)}", hint="commit or stash them"
        )


def is_shown(root: Path, path: str, entry: Entry | None, contents: Mapping[str, bytes]) -> bool:
    """Return whether a file equals its entry, or is absent if there is no entry; False for links and folders."""
    file = root / path
    if entry is None or not os.path.lexists(file):
        return entry is None and not os.path.lexists(file)
    with storage.storage_errors(file):
        return file.is_file() and not file.is_symlink() and file.read_bytes() == contents[entry.id]


def apply_step(root: Path, step: TreeStep, contents: Mapping[str, bytes]) -> None:
    """Write or remove the file of a step, and remove folders that are then empty. Raises StorageError."""
    files.refuse_links(root, step.path)
    path = root / step.path
    if step.new is not None:
        storage.write_file(path, contents[step.new.id])
        if step.new.mode == EXECUTABLE_MODE:
            with storage.storage_errors(path):
                path.chmod(0o755)
        return
    storage.remove_file(path)
    with suppress(OSError):  # not empty
        for folder in path.parents:
            if folder == root:
                break
            folder.rmdir()
