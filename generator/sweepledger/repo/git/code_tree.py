"""The git tree of the code that a selection takes from a commit, and the commits that have it.

The tree is a function of the commit: it is computed again wherever it is needed. Objects in the local store are only a
cache, since git removes what no commit contains.
"""

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, repeat
from pathlib import PurePosixPath

from sweepledger.errors import RepositoryError
from sweepledger.repo.git.repository import LITERAL_PATHS, SUBMODULE_MODE, Entry, Repository
from sweepledger.repo.git.work_tree import uncommitted_paths
from sweepledger.structs.program import SWEEP_NAMES, Code, CodeSelection

TREE = "40000"
"""Its mode in a tree object."""
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""The code of an installed program in a repository without other files; git knows it without storing it."""
ID_BYTES = 20
MAX_DEPTH = 200
MAX_VERSIONS = 20_000
"""Commits in which a tree is looked for, newest first."""
CHUNKS = (1, 50, 500)
"""Commits that are read at once; the last number repeats. The newest commits have the code nearly always."""


def code_tree(repository: Repository, commit: str, path: str, selection: CodeSelection | None) -> str | None:
    """Return the tree of a commit's code: a whole folder, or the selected files; None if it has no such files."""
    if selection is None:
        return repository.tree_id(commit, path)
    return _Trees(repository, selection).selected(commit)


@dataclass(frozen=True, slots=True)
class CommittedCode:
    """The code of a program at a commit."""

    commit: str
    tree: str | None
    """None if the commit has none of the files."""
    disk: int
    """Bytes that it takes on a disk."""
    texts: Mapping[str, bytes]
    """The files that were asked for by name, as far as the commit has them."""
    uncommitted: tuple[str, ...]
    """The paths in which the work tree differs from HEAD, untracked ones included, if it was compared."""


def committed_code(
    repository: Repository,
    revision: str,
    code: Code,
    named: Collection[str],
    *,
    is_compared: bool = False,
) -> CommittedCode | None:
    """Return some code at a revision, with the tree that it has there; None if there is no such commit.

    With `is_compared` the work tree is compared with HEAD. Raises RepositoryError.
    """
    commit = repository.commit(revision)
    if commit is None:
        return None
    is_chosen = bool if code.selection is None else code.selection.selector()
    files = {path: entry for path, entry in repository.files(commit, *code.roots).items() if is_chosen(path)}
    return CommittedCode(
        commit,
        code_tree(repository, commit, code.path, code.selection),
        sum(disk_by_file(repository, files).values()),
        repository.read(commit, *named) if named else {},
        uncommitted_code(repository, code) if is_compared else (),
    )


def uncommitted_code(repository: Repository, code: Code) -> tuple[str, ...]:
    """Return the paths of some code that differ from HEAD, including untracked paths."""
    is_chosen = bool if code.selection is None else code.selection.selector()
    return tuple(filter(is_chosen, uncommitted_paths(repository, *code.roots)))


BLOCK = 1 << 12
"""Bytes that a small file, a link or a folder takes."""


def disk_by_file(repository: Repository, files: Mapping[str, Entry]) -> dict[str, int]:
    """Return the bytes that each file takes on a disk, and each folder by its path with a slash."""
    sizes = repository.sizes(entry.id for entry in files.values())
    folders = {f"{parent}/" for path in files for parent in PurePosixPath(path).parents}
    blocks = {path: max(1, -(-sizes.get(entry.id, 0) // BLOCK)) for path, entry in files.items()}
    return {path: BLOCK * count for path, count in (blocks | dict.fromkeys(folders, 1)).items()}


def store_code(repository: Repository, code: Code, revisions: Iterable[str | None]) -> bool:
    """Return whether the tree of some code can be read here, after computing it from history if it is missing.

    Raises RepositoryError, StorageError.
    """
    with suppress(OSError):
        if (repository.git_path("objects") / code.tree[:2] / code.tree[2:]).is_file():
            return True
    if repository.attempt("cat-file", "-e", code.tree) is not None:
        return True
    if code.selection is None:
        return False
    trees = _Trees(repository, code.selection)
    if trees.commit_with(code.tree, revisions) is None:
        return False
    trees.write(code.tree)
    return True


def commit_with_code(
    repository: Repository, code: Code, revisions: Iterable[str | None] | None = None
) -> str | None:
    """Return the newest commit with this code, in any branch or in some revisions' history; None if there is none."""
    if code.selection is not None:
        return _Trees(repository, code.selection).commit_with(code.tree, revisions)
    path = code.path.rstrip("/")
    root = path in {"", "."}
    names = [commit for commit, _ in _versions(repository, revisions, () if root else (code.path,))]
    trees = {f"{name}^{{tree}}" if root else f"{name}:{path}": name for name in names}
    found = repository.ids(trees)
    return next((name for query, name in trees.items() if found.get(query) == code.tree), None)


def _versions(
    repository: Repository, revisions: Iterable[str | None] | None, paths: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """Return the commits that changed some paths, newest first, with their root trees."""
    tips = ["--all", "HEAD"] if revisions is None else repository.existing(revisions)
    if not tips:
        return ()
    literal = LITERAL_PATHS if paths else {}
    limits = paths or (".", *(f":(top,exclude){name}" for name in sorted(SWEEP_NAMES)))
    options = ("--no-show-signature", "--no-color", f"--max-count={MAX_VERSIONS}", "--format=%H %T")
    # Without --full-history git omits a branch if its merge took the other side's files.
    listed = repository.run("log", "--full-history", *options, *tips, "--", *limits, env=literal)
    return tuple((commit, tree) for commit, tree in (line.split(" ") for line in listed.splitlines()))


@dataclass(frozen=True, slots=True)
class _Entry:
    mode: str
    name: bytes
    id: str

    @property
    def is_folder(self) -> bool:
        return self.mode == TREE


@dataclass
class _Trees:
    """Computes selected trees of commits. Each folder is read and filtered once, however many commits have it."""

    repository: Repository
    selection: CodeSelection
    _read: dict[str, tuple[_Entry, ...]] = field(default_factory=dict)
    _filtered: dict[tuple[str, str], str | None] = field(default_factory=dict)
    _made: dict[str, bytes] = field(default_factory=dict)
    """Contents of the trees that selecting files has changed."""

    def __post_init__(self) -> None:
        self._choose = self.selection.selector()

    def selected(self, commit: str) -> str | None:
        """Return the selected tree of a commit; None if it has none of the files."""
        root = self.repository.root_tree(commit)
        self._load([root])
        return self._selected(root)

    def commit_with(self, tree: str, revisions: Iterable[str | None] | None) -> str | None:
        """Return the newest commit in a history whose selected tree is this one; None if there is none."""
        versions = _versions(self.repository, revisions, self.selection.roots)
        start, sizes = 0, chain(CHUNKS, repeat(CHUNKS[-1]))
        while start < len(versions):
            chunk = versions[start : start + next(sizes)]
            start += len(chunk)
            self._load(root for _, root in chunk)
            for commit, root in chunk:
                if self._selected(root) == tree:
                    return commit
        return None

    def _selected(self, root: str) -> str | None:
        is_whole = not self.selection.roots and not self.selection.include
        return self._filter(root, "", 0) or (EMPTY_TREE if is_whole else None)

    def write(self, tree: str) -> None:
        """Write the objects of a tree that was computed."""
        needed, waiting = [], [tree]
        while waiting:
            content = self._made.get(waiting.pop())
            if content is not None:
                needed.append(content)
                waiting += [entry.id for entry in _parse(content) if entry.is_folder]
        self.repository.write_objects(needed, "tree")

    def _load(self, roots: Iterable[str]) -> None:
        """Read the folders that may contain selected files, with one process for each level of folders."""
        level = {(root, "") for root in roots}
        for _ in range(MAX_DEPTH):
            missing = {tree for tree, _ in level if tree not in self._read}
            for tree, content in self.repository.blobs(missing).items():
                self._read[tree] = _parse(content)
            level = {
                (entry.id, path)
                for tree, folder in level
                for entry in self._read[tree]
                if entry.is_folder and self._is_chosen(path := _join(folder, entry), entry)
            } - self._filtered.keys()
            if not level:
                return
        raise RepositoryError(
            f"the code has more than {MAX_DEPTH} folders inside each other", hint="exclude them from the code"
        )

    def _is_chosen(self, path: str, entry: _Entry) -> bool:
        return entry.mode != SUBMODULE_MODE and self._choose(path, is_folder=entry.is_folder)

    def _filter(self, tree: str, folder: str, depth: int) -> str | None:
        """Return the id of the selected part of a folder; None if the part is empty."""
        key = (tree, folder)
        if key not in self._filtered:
            kept = []
            for entry in self._read[tree]:
                path = _join(folder, entry)
                if not self._is_chosen(path, entry):
                    continue
                identity = self._filter(entry.id, path, depth + 1) if entry.is_folder else entry.id
                if identity is not None:
                    kept.append(_Entry(entry.mode, entry.name, identity))
            self._filtered[key] = self._make(kept) if kept else None
        return self._filtered[key]

    def _make(self, entries: Iterable[_Entry]) -> str:
        # In git's order, in which a folder has a slash after its name.
        ordered = sorted(entries, key=lambda entry: entry.name + b"/" * entry.is_folder)
        content = b"".join(b"%s %s\0%s" % (e.mode.encode(), e.name, bytes.fromhex(e.id)) for e in ordered)
        identity = hashlib.sha1(b"tree %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
        if identity not in self._read:
            self._made[identity] = content
        return identity


def _join(folder: str, entry: _Entry) -> str:
    name = entry.name.decode("utf-8", "surrogateescape")
    return f"{folder}/{name}" if folder else name


def _parse(content: bytes) -> tuple[_Entry, ...]:
    entries, at = [], 0
    while at < len(content):
        space, end = content.index(b" ", at), content.index(b"\0", at)
        identity = content[end + 1 : end + 1 + ID_BYTES].hex()
        entries.append(_Entry(content[at:space].decode(), content[space + 1 : end], identity))
        at = end + 1 + ID_BYTES
    return tuple(entries)
