"""Where a sweep's files lie, and by which pull request its batches came: from git alone."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from generator.commands.workspace import SPECS, SUFFIX, Workspace
from generator.formats.lock import LOCK_FILE
from generator.repo.batches import ACTIVE, StoredBatch
from generator.repo.git import arrivals
from generator.results import results_folder

NUMBER = re.compile(r"(?:\(#|[Pp]ull request #|!)([0-9]{1,9})\b", re.ASCII)
"""As GitHub, Gitea and GitLab write it into the subject of a merge."""
README = "README.md"


@dataclass(frozen=True)
class Origin:
    """Files that a person may want to open, relative to the repository."""

    spec: str | None
    batches: tuple[tuple[str, int | None], ...]
    """Folders, each with the number of its pull request where the merge's subject has one."""
    results: str | None


def origins(
    workspace: Workspace, tip: str | None, stored: Iterable[StoredBatch], sweeps: Iterable[str]
) -> Mapping[str, Origin]:
    """Find for each sweep its spec, its batches and its results."""
    subjects = arrivals(workspace.repository, tip, ACTIVE) if tip else {}
    folders: dict[str, list[tuple[str, int | None]]] = {}
    for batch in stored:
        told = NUMBER.search(subjects.get(f"{ACTIVE}/{batch.name}/{LOCK_FILE}", ""))
        folders.setdefault(batch.sweep, []).append((batch.folder, int(told[1]) if told else None))
    return {
        sweep: Origin(
            _there(workspace, f"{SPECS}/{sweep}{SUFFIX}"),
            tuple(folders.get(sweep, ())),
            _there(workspace, f"{results_folder(sweep)}/{README}"),
        )
        for sweep in sweeps
    }


def _there(workspace: Workspace, path: str) -> str | None:
    return path if (workspace.root / path).is_file() else None
