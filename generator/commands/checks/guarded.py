"""What only the collector writes: results and the archive. A person's change there is signed, or refused."""

from collections.abc import Iterable, Iterator

from generator.commands.checks.scene import Scene
from generator.problems import Problem
from generator.repo import batches
from generator.repo.batches import ARCHIVE
from generator.repo.git import touches, uncommitted
from generator.results.tree import RESULTS
from generator.structs.sweep import Sweep

CODE = "history-unsigned"
RECORDED = (f"{RESULTS}/",)
PLACES = (*RECORDED, f"{ARCHIVE}/")
KEPT = f"{ARCHIVE}/.gitkeep"
WAY_OUT = "leave it to the collector; else sign every such commit with a key that `signers` lists at the base"


def check(scene: Scene, sweeps: Iterable[Sweep], *, places: tuple[str, ...] = PLACES) -> Iterator[Problem]:
    """Refuse changes of recorded history, unless each commit that makes them is signed by a listed key.

    The unchanged move of a batch that its spec cancels is free: `sweep cancel` makes it.
    """
    if scene.base is None:
        return
    repository = scene.workspace.repository
    edited = set(uncommitted(repository, *places))
    changed = (_changed(scene, places) | edited) - {KEPT, *_cancelled(scene, sweeps)}
    if not changed:
        return
    made = set(_left_behind(scene, changed)) if scene.is_behind else set()
    seen: set[str] = set()
    for touch in touches(repository, scene.base, "HEAD", places, signers=scene.settings.signers):
        paths = sorted(changed.intersection(touch.paths))
        newest = repository.files(touch.id, *places) if touch.is_signed and paths else {}
        # A merge may take an older version, and no commit shows that as a change.
        made.update(
            path
            for path in paths
            if not touch.is_signed or (path not in seen and newest.get(path) == scene.index.get(path))
        )
        seen.update(paths)
        if paths and not touch.is_signed:
            more = f" (and {len(paths) - 1} more)" if len(paths) > 1 else ""
            message = f"commit {touch.id[:12]} changes recorded history{more}, and no listed key signed it"
            yield Problem(paths[0], 0, 0, "", message, CODE, WAY_OUT)
    for path in sorted(changed):
        if path in edited or path not in made:
            yield Problem(path, 0, 0, "", "recorded history is changed by no signed commit", CODE, WAY_OUT)


def _left_behind(scene: Scene, changed: Iterable[str]) -> Iterator[str]:
    """Choose the paths that are as they were where this branch left the base: only the base has moved on."""
    repository = scene.workspace.repository
    left = repository.merge_bases(scene.base or "HEAD", "HEAD")
    if len(left) == 1:
        then = repository.files(left[0], *PLACES)
        yield from (path for path in changed if then.get(path) == scene.index.get(path))


def _changed(scene: Scene, places: tuple[str, ...]) -> set[str]:
    """List the paths that the next commit holds otherwise than the one that stands."""
    stood = {path: entry for path, entry in scene.entries.items() if path.startswith(places)}
    comes = {path: entry for path, entry in scene.index.items() if path.startswith(places)}
    return {path for path in stood.keys() | comes.keys() if stood.get(path) != comes.get(path)}


def _cancelled(scene: Scene, sweeps: Iterable[Sweep]) -> Iterator[str]:
    cancelled = {name for sweep in sweeps for name in sweep.cancel}
    if not cancelled:
        return
    stood = {batch.name: batch for batch in scene.standing if batch.is_active and batch.name in cancelled}
    for batch in scene.present:
        if batch.is_active or batch.name not in stood:
            continue
        if not batches.difference(stood[batch.name], batch):
            yield from (f"{batch.folder}/{path}" for path in batch.contents.paths())
