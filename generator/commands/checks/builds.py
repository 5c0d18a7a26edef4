"""Every overlay builds, and what it renders may run."""

from dataclasses import dataclass

from generator import policy
from generator.commands.checks.scene import Scene, bases_of
from generator.errors import ToolError
from generator.problems import Problem
from generator.repo import files, kustomize
from generator.repo.batches import StoredBatch


@dataclass(frozen=True)
class Builds:
    """Which active overlays were rendered, which need not be, and what was found."""

    built: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


def check(scene: Scene, *, everything: bool = False) -> Builds:
    """Build the active overlays whose closure differs from the base commit, or all of them.

    Raises ToolError if kustomize cannot be found: what cannot be checked is no pass.
    """
    active = [batch for batch in scene.present.values() if batch.is_active]
    wanted = [batch for batch in active if everything or not _stands(scene, batch)]
    if wanted:
        kustomize.command()
    problems = [problem for batch in wanted for problem in _build(scene, batch)]
    return Builds(
        built=tuple(batch.name for batch in wanted),
        unchanged=tuple(batch.name for batch in active if batch not in wanted),
        problems=tuple(problems),
    )


def _stands(scene: Scene, batch: StoredBatch) -> bool:
    """Tell whether every file the build reads is the base commit's: then the build is, too."""
    held = {stood.folder: stood.tree for stood in scene.standing}
    if held.get(batch.folder) != batch.tree:
        return False
    repository, root = scene.workspace.repository, scene.workspace.root
    return all(
        repository.read(scene.base, folder)
        == {f"{folder}/{path}": content for path, content in files.read_folder(root / folder)}
        for folder in bases_of(batch)
    )


def _build(scene: Scene, batch: StoredBatch) -> tuple[Problem, ...]:
    try:
        manifests = kustomize.build(scene.workspace.root / batch.folder)
    except ToolError as error:
        return (Problem(batch.folder, 0, 0, "", str(error), "build-failed", error.hint),)
    return policy.check(batch.name, scene.workspace.settings.namespace, manifests, place=batch.folder)
