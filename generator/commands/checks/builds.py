"""Every overlay builds, and what it renders may run."""

from collections.abc import Mapping
from dataclasses import dataclass

from generator import policy
from generator.commands.checks.scene import Scene, bases_of
from generator.errors import ToolError
from generator.problems import Problem
from generator.repo import files, kustomize
from generator.repo.batches import StoredBatch
from generator.structs.tree import FileTree


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
    active = [batch for batch in scene.present if batch.is_active]
    held = {stood.folder: stood.tree for stood in scene.standing}
    wanted = [batch for batch in active if everything or not _stands(scene, batch, held)]
    if wanted:
        kustomize.command()
    problems = [problem for batch in wanted for problem in _build(scene, batch)]
    return Builds(
        built=tuple(batch.name for batch in wanted),
        unchanged=tuple(batch.name for batch in active if batch not in wanted),
        problems=tuple(problems),
    )


def _stands(scene: Scene, batch: StoredBatch, held: Mapping[str, FileTree]) -> bool:
    """Tell whether every file the build reads is the base commit's: then the build is, too."""
    if held.get(batch.folder) != batch.tree:
        return False
    root = scene.workspace.root
    return all(
        scene.base_files(folder)
        == {f"{folder}/{path}": content for path, content in files.read_folder(root / folder)}
        for folder in bases_of(batch)
    )


def _build(scene: Scene, batch: StoredBatch) -> tuple[Problem, ...]:
    unsafe = policy.vet(batch.tree.files.get("kustomization.yaml", b""), batch.tree.files, place=batch.folder)
    if unsafe:
        return unsafe
    try:
        manifests = kustomize.build(scene.workspace.root / batch.folder)
    except ToolError as error:
        return (Problem(batch.folder, 0, 0, "", str(error), "build-failed", error.hint),)
    return policy.check(batch.name, scene.workspace.settings, manifests, place=batch.folder)
