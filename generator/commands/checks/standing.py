"""Merged batches never change, and what they build on is frozen."""

from collections.abc import Iterator

from generator.commands.checks.scene import Scene, bases_of
from generator.problems import Problem
from generator.repo import files
from generator.repo.batches import ACTIVE, ARCHIVE, StoredBatch

RESTORE = "restore it from the base commit; to ask for other trials, change the spec"


def check(scene: Scene) -> Iterator[Problem]:
    """Compare every batch and base that stands with the work tree."""
    for batch in scene.standing:
        yield from _batch(scene, batch)
    for batch in scene.added:
        if not batch.is_active:
            yield _problem(batch.folder, "a batch that never ran is no history", "batch-moved")
    for folder in sorted({base for batch in scene.standing for base in bases_of(batch)}):
        yield from _base(scene, folder)
    yield from _layout(scene)


def _batch(scene: Scene, batch: StoredBatch) -> Iterator[Problem]:
    found = scene.present.get(batch.name)
    if found is None:
        yield _problem(batch.folder, "a merged batch has vanished", "batch-vanished")
        return
    drift = files.difference(batch.tree, found.tree)
    for path in (*drift.added, *drift.changed, *drift.stale):
        yield _problem(f"{found.folder}/{path}", "a merged batch never changes", "batch-edited")
    records = scene.workspace.root / "results" / batch.lock.sweep / "records" / f"{batch.name}.jsonl"
    if found.folder != batch.folder and not records.is_file():
        yield _problem(found.folder, "a batch moves only together with its results", "batch-moved")


def _base(scene: Scene, folder: str) -> Iterator[Problem]:
    held = scene.workspace.repository.read(scene.base, folder)
    tree = files.read_folder(scene.workspace.root / folder)
    found = {f"{folder}/{path}": content for path, content in tree if "__pycache__" not in path}
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
        for entry in sorted(folder.iterdir()) if folder.is_dir() else ():
            if entry.name != ".gitkeep" and entry.name not in scene.present:
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
