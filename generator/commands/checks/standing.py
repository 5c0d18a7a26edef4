"""Merged batches never change, and what they build on is frozen."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from generator.commands.checks.scene import Scene, bases_of
from generator.problems import Problem
from generator.repo import files
from generator.repo.batches import ACTIVE, ARCHIVE, StoredBatch
from generator.results import records_path, results_folder

RESTORE = "restore it from the base commit; to ask for other trials, change the spec"


def check(scene: Scene) -> Iterator[Problem]:
    """Compare every batch and base that stands with the work tree."""
    for batch in scene.standing:
        yield from _batch(scene, batch)
    for batch in scene.added:
        if not batch.is_active:
            yield _problem(batch.folder, "a batch that never ran is no history", "batch-moved")
    for name, count in Counter(batch.name for batch in scene.present).items():
        if count > 1:
            yield _problem(f"{ACTIVE}/{name}", "stands in the archive as well", "batch-active-twice")
    for folder in sorted({base for batch in scene.standing for base in bases_of(batch)}):
        yield from _base(scene, folder)
    yield from _layout(scene)


def _batch(scene: Scene, batch: StoredBatch) -> Iterator[Problem]:
    places = [found for found in scene.present if found.name == batch.name]
    if not places:
        yield _problem(batch.folder, "a merged batch has vanished", "batch-vanished")
        return
    for found in places:
        drift = files.difference(batch.tree, found.tree)
        for path in (*drift.added, *drift.changed, *drift.stale):
            yield _problem(f"{found.folder}/{path}", "a merged batch never changes", "batch-edited")
        if found.folder == batch.folder:
            continue
        if found.is_active:
            yield _problem(found.folder, "what is recorded never runs again", "batch-moved")
        elif not _records(scene, batch).is_file():
            yield _problem(found.folder, "a batch moves only together with its results", "batch-moved")


def _records(scene: Scene, batch: StoredBatch) -> Path:
    return scene.workspace.root / results_folder(batch.lock.sweep) / records_path(batch.name)


def _base(scene: Scene, folder: str) -> Iterator[Problem]:
    held = scene.base_files(folder)
    tree = files.read_folder(scene.workspace.root / folder)
    found = {f"{folder}/{path}": content for path, content in tree}
    for path in sorted(held.keys() | found.keys()):
        if held.get(path) != found.get(path):
            message = f"{folder} is frozen: merged overlays refer to it"
            yield Problem(path, 0, 0, "", message, "base-changed", "add a new version folder beside it")


def _layout(scene: Scene) -> Iterator[Problem]:
    """Allow only batch folders and .gitkeep under overlays: controllers read whatever lies there."""
    for place in (ACTIVE, ARCHIVE):
        folder = scene.workspace.root / place
        if scene.present and not (folder / ".gitkeep").is_file():
            message = "must stay: a controller prunes only while the folder exists"
            yield _problem(f"{place}/.gitkeep", message, "overlay-layout")
        known = {batch.name for batch in scene.present} | {".gitkeep"}
        for entry in sorted(folder.iterdir()) if folder.is_dir() else ():
            if entry.name not in known:
                yield Problem(
                    f"{place}/{entry.name}",
                    0,
                    0,
                    "",
                    "is no batch",
                    "overlay-layout",
                    "remove it from overlays/",
                )


def _problem(file: str, message: str, code: str) -> Problem:
    return Problem(file, 0, 0, "", message, code, RESTORE)
