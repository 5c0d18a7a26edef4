"""Merged batches never change, and leave only with their results or because the spec cancels them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from generator.commands import committed
from generator.commands.checks.scene import Scene, is_broken
from generator.commands.workspace import SPECS, SUFFIX
from generator.problems import Problem, Severity
from generator.repo import batches
from generator.repo.batches import ACTIVE, ARCHIVE, StoredBatch
from generator.repo.git import Entry, uncommitted
from generator.results import records_path, results_folder
from generator.structs.sweep import Sweep

RESTORE = "restore it from the base commit; to ask for other trials, change the spec"
CATCH_UP = "the base has moved on: merge it into this branch, then check again"


def check(scene: Scene, sweeps: Sequence[Sweep]) -> Iterator[Problem]:
    """Compare every batch that stands with the work tree."""
    cancelled = {name: sweep for sweep in sweeps for name in sweep.cancel}
    places: dict[str, list[StoredBatch]] = {}
    for found in scene.present:
        places.setdefault(found.name, []).append(found)
    for batch in scene.standing:
        is_cancelled = batch.name in cancelled
        yield from _batch(scene, batch, places.get(batch.name, []), is_cancelled=is_cancelled)
    for batch in scene.added:
        if not batch.is_active:
            yield _problem(scene, batch.folder, "a batch that never ran is no history", "batch-moved")
    for name, count in Counter(batch.name for batch in scene.present).items():
        if count > 1:
            yield _problem(scene, f"{ACTIVE}/{name}", "stands in the archive as well", "batch-active-twice")
    yield from _cancelled(scene, cancelled)
    yield from _uncancelled(scene, sweeps)
    yield from _specless(scene)
    yield from _layout(scene)


def _batch(
    scene: Scene, batch: StoredBatch, places: list[StoredBatch], *, is_cancelled: bool
) -> Iterator[Problem]:
    if not places and not is_broken(batch):
        yield _problem(scene, batch.folder, "a merged batch has vanished", "batch-vanished")
    for found in places:
        drift = batches.difference(batch, found)
        for path in (*drift.added, *drift.changed, *drift.stale):
            yield _problem(scene, f"{found.folder}/{path}", "a merged batch never changes", "batch-edited")
        if found.folder == batch.folder:
            continue
        if found.is_active:
            yield _problem(scene, found.folder, "what is recorded never runs again", "batch-moved")
        elif not is_cancelled and not _records(scene, batch).is_file():
            message = "a batch moves only together with its results, or when its spec cancels it"
            yield _problem(scene, found.folder, message, "batch-moved")


def _records(scene: Scene, batch: StoredBatch) -> Path:
    return scene.workspace.root / results_folder(batch.lock.sweep) / records_path(batch.name)


def _cancelled(scene: Scene, cancelled: dict[str, Sweep]) -> Iterator[Problem]:
    active = {batch.name for batch in scene.present if batch.is_active}
    for name, sweep in sorted(cancelled.items()):
        if name in active:
            message = f"cancels {name}, which is in {ACTIVE}/ still"
            hint = f"run `sweep cancel {sweep.name}`: it moves the folder to {ARCHIVE}/"
            yield Problem(sweep.path, 0, 0, "cancel", message, "cancel-not-moved", hint)


def _uncancelled(scene: Scene, sweeps: Iterable[Sweep]) -> Iterator[Problem]:
    """What a sweep's summary calls cancelled is so by its spec: without the entry it would be missing."""
    archived = {batch.name for batch in scene.standing if not batch.is_active}
    for sweep in sweeps if archived else ():
        former = committed.sweep(scene.workspace.repository, scene.base, sweep.path, scene.settings)
        if not isinstance(former, Sweep):
            continue
        for name in former.cancel:
            if name in archived and name not in sweep.cancel:
                message = f"must name {name}, which was cancelled: its results say so by this entry"
                hint = f"put it back; `sweep retry {sweep.name}` asks for its trials again"
                yield Problem(sweep.path, 0, 0, "cancel", message, "cancel-removed", hint)


def _specless(scene: Scene) -> Iterator[Problem]:
    """What runs can be followed to the question that it answers, and cancelled there."""
    paths = {f"{SPECS}/{batch.sweep}{SUFFIX}" for batch in scene.present if batch.is_active}
    for path in sorted(paths & scene.entries.keys()):
        if not (scene.workspace.root / path).is_file():
            message = "must stay as long as a batch of it is active"
            hint = "put it back; to stop the batch name it under `cancel`, and merge that before the removal"
            yield Problem(path, 0, 0, "", message, "spec-removed", hint)


def _layout(scene: Scene) -> Iterator[Problem]:
    """Allow only batch folders and .gitkeep under overlays: controllers read whatever lies there."""
    known = {batch.folder for batch in scene.present}
    for place in (ACTIVE, ARCHIVE):
        folder = scene.workspace.root / place
        if scene.present and not (folder / ".gitkeep").is_file():
            message = "must stay: a controller prunes only while the folder exists"
            yield _problem(scene, f"{place}/.gitkeep", message, "overlay-layout")
        for entry in sorted(folder.iterdir()) if folder.is_dir() else ():
            path = f"{place}/{entry.name}"
            if entry.name != ".gitkeep" and path not in known:
                # Whoever merged it past the check must stop no other change, nor its own removal.
                severity = Severity.WARNING if _stands(scene, path) else Severity.ERROR
                hint = "remove it from overlays/"
                yield Problem(path, 0, 0, "", "is no batch", "overlay-layout", hint, severity)


def _stands(scene: Scene, place: str) -> bool:
    """Tell whether what lies at a place, or below it, is what the base has there."""
    stood = _below(scene.entries, place)
    is_same = bool(stood) and stood == _below(scene.index, place)
    return is_same and not uncommitted(scene.workspace.repository, place)


def _below(entries: Mapping[str, Entry], place: str) -> dict[str, Entry]:
    return {path: entry for path, entry in entries.items() if f"{path}/".startswith(f"{place}/")}


def _problem(scene: Scene, file: str, message: str, code: str) -> Problem:
    return Problem(file, 0, 0, "", message, code, CATCH_UP if scene.is_behind else RESTORE)
