"""A commit on top of what is checked out, and the work tree moved along, so that a crash can be gone on from.

`git merge` would write files in place and remember nothing of how far it came. Here each file changes at
once, the index after all files, the branch last: whoever is killed in between only has to run again.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from generator.errors import RepositoryError
from generator.repo import files
from generator.repo.git.door import Repository
from generator.repo.git.publish import ABSENT, Change, commit
from generator.repo.git.work_tree import uncommitted

EXECUTABLE = "100755"


@dataclass(frozen=True, slots=True)
class _Step:
    """What becomes of one path."""

    path: str
    mode: str
    id: str

    @property
    def is_removal(self) -> bool:
        return self.id == ABSENT


def commit_here(repository: Repository, make: Callable[[str], Change | None]) -> str | None:
    """Put the change on top of what is checked out, and move the work tree along.

    Gives the new commit, or None when there was nothing to change. Raises RepositoryError where nothing
    is committed yet, where the work tree has changes of its own in the same files, or where another git is
    at work; StorageError. Run again after a crash it goes on.
    """
    base = repository.commit("HEAD")
    if base is None:
        raise RepositoryError("nothing is committed yet, so there is nothing to record")
    change = make(base)
    made = commit(repository, base, change) if change else None
    if made is None:
        return None
    _refuse_lock(repository)
    steps = _steps(repository, base, made)
    contents = repository.blobs(step.id for step in steps if not step.is_removal)
    _refuse_edits(repository, steps, contents)
    for step in steps:
        _take(repository.folder, step, contents)
    lines = (f"{step.mode} {step.id}\t{step.path}\0" for step in steps)
    repository.run(
        "update-index",
        "-z",
        "--add",
        "--index-info",
        content="".join(lines).encode("utf-8", "surrogateescape"),
    )
    repository.run("update-ref", "-m", "sweep", "HEAD", made, base)
    return made


def _refuse_lock(repository: Repository) -> None:
    """Be told of another git before any file has changed."""
    lock = repository.folder / repository.run("rev-parse", "--git-path", "index.lock").strip()
    if lock.exists():
        raise RepositoryError(f"{lock} exists: another git is at work here", hint=repository.lock_hint(lock))


def _steps(repository: Repository, base: str, made: str) -> tuple[_Step, ...]:
    """List the paths that differ; removals first, as a file can become a folder."""
    words = repository.run("diff-tree", "-r", "-z", "--no-renames", base, made).split("\0")
    steps = []
    for meta, path in zip(words[::2], words[1::2], strict=False):
        _, mode, _, identity, _ = meta.split(" ")
        steps.append(_Step(path, mode if identity != ABSENT else "0", identity))
    return tuple(sorted(steps, key=lambda step: (not step.is_removal, step.path)))


def _refuse_edits(repository: Repository, steps: Iterable[_Step], contents: dict[str, bytes]) -> None:
    """Let nothing be lost: what differs from the commit here is what it shall be, or a person's."""
    by_path = {step.path: step for step in steps}
    edited = [
        path
        for path in uncommitted(repository, *by_path)
        if path not in by_path or not _is_taken(repository.folder, by_path[path], contents)
    ]
    if edited:
        raise RepositoryError(
            f"local changes would be overwritten: {', '.join(edited)}", hint="commit them or put them away"
        )


def _is_taken(root: Path, step: _Step, contents: dict[str, bytes]) -> bool:
    path = root / step.path
    if step.is_removal:
        return not path.is_symlink() and not path.exists()
    return path.is_file() and not path.is_symlink() and files.read_file(path) == contents[step.id]


def _take(root: Path, step: _Step, contents: dict[str, bytes]) -> None:
    files.refuse_links(root, step.path)
    path = root / step.path
    if not step.is_removal:
        files.write_file(path, contents[step.id])
        if step.mode == EXECUTABLE:
            with files.storage(path):
                path.chmod(0o755)
        return
    files.remove_file(path)
    with suppress(OSError):  # not empty
        for folder in path.parents:
            if folder == root:
                break
            folder.rmdir()
