"""The patch that would mend a change: what `sweep generate` would write and remove, without writing it."""

from collections.abc import Iterable, Mapping

from generator.commands import foundation, generate
from generator.commands.batching import files_of
from generator.commands.checks import proven
from generator.commands.checks.scene import Scene
from generator.commands.edits import EditedError
from generator.commands.generate import Generated, Stored
from generator.commands.workspace import Workspace
from generator.errors import RepositoryError
from generator.formats.patch import patch
from generator.problems import Problem, Severity
from generator.render.platform import flux
from generator.repo import files
from generator.repo.batches import ACTIVE, ARCHIVE, StoredBatch

KEPT = (f"{ACTIVE}/.gitkeep", f"{ARCHIVE}/.gitkeep")
MENDED = frozenset({"drift", "pending", "batch-forged", "flux-file"})
"""Codes of problems that generating anew could end."""


def mend(workspace: Workspace, problems: Iterable[Problem], *, base: str | None = None) -> bytes:
    """Give the patch after which no batch is missing, stale or edited; empty where none would mend anything.

    Raises as `generate.plan` does for specs, which were read before problems of batches could be found.
    """
    wrong = {one.code for one in problems if one.severity is Severity.ERROR}
    if not wrong & MENDED:
        return b""
    scene = Scene(workspace, workspace.standing(base))
    held = {batch.name for batch in scene.standing}
    unsound = tuple(one for one in scene.present if one.name not in held and not _is_sound(one))
    kept = tuple(one for one in scene.present if one not in unsound)
    sweeps = workspace.read(proven.unproven(scene, workspace.spec_paths()))
    try:
        planned = generate.plan(
            workspace, sweeps, base=scene.base, stored=Stored(scene.base, scene.standing, kept)
        )
    except EditedError:  # of what is merged: that is mended by restoring it
        return b""
    return patch(*_difference(workspace, planned, unsound))


def _is_sound(batch: StoredBatch) -> bool:
    try:
        return not batch.hand_edits()
    except RepositoryError:  # it does not even say what it should be
        return False


def _difference(
    workspace: Workspace, planned: Iterable[Generated], unsound: tuple[StoredBatch, ...]
) -> tuple[Mapping[str, bytes], Mapping[str, bytes]]:
    before: dict[str, bytes] = {}
    after: dict[str, bytes] = {}
    made = [one for one in planned if one.batch]
    gone = [*unsound, *(stale for one in planned for stale in one.stale)]
    for batch in gone:
        before |= {f"{batch.folder}/{path}": content for path, content in batch.tree}
        before |= _there(workspace, [flux.batch_file(batch.name)])
    for one in made:
        assert one.batch is not None
        after |= written(workspace, one)
    return before | _there(workspace, after), after


def written(workspace: Workspace, generated: Generated) -> dict[str, bytes]:
    """Give the files of a batch and all that comes with it, by path in the repository."""
    overlay = generated.batch
    if overlay is None:
        return {}
    return {
        **foundation.lacking(workspace.root, overlay.lock.bases),
        **{path: b"" for path in KEPT if not (workspace.root / path).exists()},
        **files_of(overlay, workspace.settings),
    }


def _there(workspace: Workspace, paths: Iterable[str]) -> dict[str, bytes]:
    found = {}
    for path in paths:
        files.refuse_links(workspace.root, path)
        if (workspace.root / path).is_file():
            found[path] = files.read_file(workspace.root / path)
    return found
