"""With Flux each active batch has a file that has it applied; nothing else has one, whoever controls."""

from collections.abc import Iterator

from generator.commands import controller
from generator.commands.checks.scene import Scene
from generator.problems import Problem, Severity
from generator.render.platform import flux
from generator.repo import files
from generator.repo.batches import StoredBatch
from generator.repo.contents import blob_id
from generator.structs.settings import Controller, Settings

CODE = "flux-file"


def check(scene: Scene) -> Iterator[Problem]:
    """Compare `clusters/flux/active/` with the active batches. What stands as it was merged is right."""
    root = scene.workspace.root
    is_flux = scene.workspace.settings.controller is Controller.FLUX
    wanted = {
        path: content
        for batch in scene.present
        if batch.is_active
        for path, content in controller.wanted(_settings(scene, batch), batch.name).items()
    }
    found = {f"{flux.ACTIVE}/{name}" for name in files.list_folder(root / flux.ACTIVE)}
    for path in sorted(wanted.keys() - found):
        message = "is missing: Flux would not apply this batch"
        yield Problem(path, 0, 0, "", message, CODE, "run `sweep generate`")
    belonged = {flux.batch_file(batch.name) for batch in scene.standing if batch.is_active}
    for path in sorted(found - wanted.keys() - {f"{flux.ACTIVE}/.gitkeep"}):
        # Whoever merged one past the check must stop no other change.
        is_left = is_flux and path in belonged
        is_new = is_left or not _stood(scene, path, files.read_file(root / path))
        if is_flux or is_new:
            severity = Severity.ERROR if is_new else Severity.WARNING
            yield Problem(path, 0, 0, "", "belongs to no active batch", CODE, "remove it", severity)
    for path in sorted(found & wanted.keys()):
        content = files.read_file(root / path)
        if content != wanted[path] and not _stood(scene, path, content):
            hint = "remove it and run `sweep generate`"
            yield Problem(path, 0, 0, "", "is not what the generator writes", CODE, hint)


def _settings(scene: Scene, batch: StoredBatch) -> Settings:
    """What was announced stays so, whatever new settings say; a new controller is told by the new ones."""
    now, stood = scene.workspace.settings, scene.settings_of(batch)
    return stood if now.controller is stood.controller is Controller.FLUX else now


def _stood(scene: Scene, path: str, content: bytes) -> bool:
    stood = scene.entries.get(path)
    return stood is not None and stood.id == blob_id(content, like=stood.id)
