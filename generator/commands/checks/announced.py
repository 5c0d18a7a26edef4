"""With Flux each active batch has a file that has it applied, and nothing else has one."""

from collections.abc import Iterator

from generator.commands import controller
from generator.commands.checks.scene import Scene
from generator.problems import Problem
from generator.render.platform import flux
from generator.repo import files
from generator.repo.contents import blob_id
from generator.structs.settings import Controller

CODE = "flux-file"


def check(scene: Scene) -> Iterator[Problem]:
    """Compare `clusters/flux/active/` with the active batches. What stands as it was merged is right."""
    settings = scene.workspace.settings
    if settings.controller is not Controller.FLUX:
        return
    root = scene.workspace.root
    wanted = {
        path: content
        for batch in scene.present
        if batch.is_active
        for path, content in controller.wanted(settings, batch.name).items()
    }
    found = {f"{flux.ACTIVE}/{name}" for name in files.list_folder(root / flux.ACTIVE)}
    for path in sorted(wanted.keys() - found):
        message = "is missing: Flux would not apply this batch"
        yield Problem(path, 0, 0, "", message, CODE, "run `sweep generate`")
    for path in sorted(found - wanted.keys() - {f"{flux.ACTIVE}/.gitkeep"}):
        yield Problem(path, 0, 0, "", "belongs to no active batch", CODE, "remove it")
    for path in sorted(found & wanted.keys()):
        content = files.read_file(root / path)
        stood = scene.entries.get(path)
        if content != wanted[path] and (stood is None or stood.id != blob_id(content, like=stood.id)):
            hint = "remove it and run `sweep generate`"
            yield Problem(path, 0, 0, "", "is not what the generator writes", CODE, hint)
