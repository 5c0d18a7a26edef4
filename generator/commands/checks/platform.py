"""`clusters/` is what the settings give, and allows the shapes that are asked for."""

from collections.abc import Iterable, Iterator

from generator.commands import platform_files
from generator.commands.checks.scene import Scene
from generator.errors import RepositoryError
from generator.formats.bootstrap import BOOTSTRAP_FILE, Bootstrap
from generator.problems import Problem, Severity
from generator.render.platform import Source
from generator.structs.settings import Controller
from generator.structs.sweep import Sweep

CONTROLLERS = (Controller.ARGOCD, Controller.FLUX)


def check(scene: Scene, sweeps: Iterable[Sweep]) -> Iterator[Problem]:
    """Hold the files against settings and record; nothing where `sweep bootstrap` never was."""
    settings = scene.workspace.settings
    yield from settings.warnings
    way_out = f"run `sweep bootstrap {settings.controller}` and commit what it writes"
    try:
        before = platform_files.record(scene.workspace)
        source = (
            Source(before.url, before.branch, before.shapes, is_public=before.is_public) if before else None
        )
    except (RepositoryError, ValueError) as error:
        hint = error.hint if isinstance(error, RepositoryError) else way_out
        yield Problem(BOOTSTRAP_FILE, 0, 0, "", str(error), "drift", hint)
        return
    if before is None or source is None:
        if BOOTSTRAP_FILE in scene.entries and settings.controller in CONTROLLERS:
            yield Problem(BOOTSTRAP_FILE, 0, 0, "", "is missing", "drift", way_out)
        return
    if settings.controller not in CONTROLLERS:
        message = f"is for {before.controller}, but the settings say controller: {settings.controller}"
        hint = f"run `sweep bootstrap {before.controller}`, or remove what it wrote"
        yield Problem(BOOTSTRAP_FILE, 0, 0, "", message, "drift", hint)
        return
    if before.branch != settings.branch:
        message = f"follows branch {before.branch!r}, but the settings say {settings.branch!r}"
        hint = f"run `sweep bootstrap {settings.controller} --branch` with the one that is meant"
        yield Problem(BOOTSTRAP_FILE, 0, 0, "", message, "drift", hint)
    yield from _files(platform_files.compare(scene.workspace, settings, source, before), way_out)
    yield from _shapes(scene, sweeps, before, way_out)


def _files(compared: platform_files.Comparison, way_out: str) -> Iterator[Problem]:
    """Files of batches are looked at where batches are."""
    says = {
        "is missing": compared.missing,
        "is not what the settings give": compared.changed,
        "is what no setting gives any more": compared.stale,
    }
    for message, paths in says.items():
        for path in paths:
            if not platform_files.is_of_batch(path):
                yield Problem(path, 0, 0, "", message, "drift", way_out)
    for path in compared.edited:
        message = "was edited by hand: no setting reaches it any more"
        hint = "say it in sweepledger.yaml and run `sweep bootstrap` with --force, or look after it yourself"
        yield Problem(path, 0, 0, "", message, "platform-edited", hint, Severity.WARNING)


def _shapes(scene: Scene, sweeps: Iterable[Sweep], before: Bootstrap, way_out: str) -> Iterator[Problem]:
    """What the controller may not apply would wait for ever."""
    allowed = {None, *before.shapes}
    for sweep in sweeps:
        shape = sweep.run.shape
        if shape not in allowed and shape is not None and shape.is_distributed:
            message = f"is a shape that the files in clusters/ do not allow, got {str(shape)!r}"
            yield Problem.at(sweep.path, sweep.shape_place, message, code="shape-not-allowed", hint=way_out)
    stood = scene.entries.get(BOOTSTRAP_FILE)
    is_as_it_stood = stood is not None and scene.index.get(BOOTSTRAP_FILE) == stood
    for batch in scene.added if is_as_it_stood else scene.present:
        if batch.is_active and batch.lock.shape.is_distributed and batch.lock.shape not in allowed:
            message = f"is of shape {str(batch.lock.shape)!r}, which the files in clusters/ do not allow"
            yield Problem(batch.folder, 0, 0, "", message, "shape-not-allowed", way_out)
