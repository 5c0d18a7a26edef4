"""`sweep init`: a complete repository of sweeps, all of it or nothing."""

import re
from dataclasses import dataclass
from pathlib import Path

from generator.commands.first_files import EXAMPLE, first_files
from generator.commands.workspace import SPECS
from generator.errors import RepositoryError, UsageError
from generator.repo import files
from generator.repo.bases import base_folder, workflows_folder
from generator.repo.batches import ACTIVE, ARCHIVE
from generator.repo.git import Repository, create
from generator.spec.schemas import schema_text
from generator.spec.starter import SCHEMA_FILE, starter
from generator.structs.settings import Controller, Generate, Next
from generator.structs.tree import FileTree

BRANCH = "main"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
"""It stands in prose; a name of a hosting service fits."""

ON_MERGE = ".github/workflows/generate.yaml"
BY_WORKFLOW = ".github/workflows/next.yaml"
"""The two workflows that write to the branch: only where that was chosen."""

BASES = re.compile(r"(?:trial|jobs|launcher|components/[a-z0-9-]+)/v[1-9][0-9]*/", re.ASCII)
"""What any batch may build on. Shapes of several pods bring theirs with their first batch, as `sweep
bootstrap` brings what the platform is made from."""


@dataclass(frozen=True)
class Made:
    """A new repository."""

    folder: Path
    commit: str
    files: tuple[str, ...]
    example: str = EXAMPLE


def init(
    folder: Path,
    *,
    name: str | None = None,
    controller: str = "none",
    generate: str = Generate.IN_PULL_REQUEST,
    next_: str = Next.REVIEW,
) -> Made:
    """Make a repository in a new or empty folder, with its first commit on `main`.

    Raises UsageError for a folder that holds something, RepositoryError inside another repository,
    StorageError; nothing is left then.
    """
    called = name or folder.resolve().name
    if not NAME.fullmatch(called):
        raise UsageError(
            f"{called!r} is no name for a repository", hint="letters, digits, dashes and points: --name"
        )
    if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise UsageError(f"{folder} is not an empty folder", hint="choose another, or empty it")
    around = _repository_around(folder.resolve())
    if around is not None:
        raise RepositoryError(
            f"{folder} would lie inside the repository {around}", hint="choose a folder outside of it"
        )
    tree = first_tree(called, Controller(controller), Generate(generate), Next(next_))
    commit = ""

    def finish(made: Path) -> None:
        nonlocal commit
        commit = create(made, BRANCH, "Start a repository of sweeps\n")

    files.make_folder(folder.resolve(), tree, finish)
    return Made(folder, commit, tuple(path for path, _ in tree))


def first_tree(name: str, controller: Controller, generate: Generate, next_: Next) -> FileTree:
    """Give every file of a new repository; `sweep bootstrap`, which knows its address, adds `clusters/`."""
    unasked = {
        path
        for path, chosen in (
            (ON_MERGE, generate is Generate.ON_MERGE),
            (BY_WORKFLOW, next_ is Next.WORKFLOW),
        )
        if not chosen
    }
    return FileTree(
        {
            **first_files(name, controller, generate, next_),
            **{
                path: content
                for path, content in files.read_sources(workflows_folder())
                if path not in unasked
            },
            f"{SPECS}/{SCHEMA_FILE}": schema_text("sweep").encode(),
            f"{SPECS}/{EXAMPLE}.yaml": starter(EXAMPLE).encode(),
            # Controllers prune only while the folder they watch exists.
            f"{ACTIVE}/.gitkeep": b"",
            f"{ARCHIVE}/.gitkeep": b"",
            **{
                f"base/{path}": content
                for path, content in files.read_sources(base_folder())
                if BASES.match(path)
            },
        }
    )


def _repository_around(folder: Path) -> Path | None:
    there = next(place for place in (folder, *folder.parents) if place.is_dir())
    try:
        return Repository.find(there).folder
    except RepositoryError:
        return None
