"""What a batch of a commit renders, whatever lies in the work tree; policy first, and policy after."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from generator import policy
from generator.commands import lineage
from generator.problems import Problem
from generator.repo import batches, files, kustomize
from generator.repo.batches import ACTIVE, StoredBatch
from generator.repo.git import Repository
from generator.structs.batch import Lock
from generator.structs.settings import Settings
from generator.structs.tree import FileTree

Manifests = tuple[Mapping[str, Any], ...]


def rendered(
    repository: Repository, commit: str, batch: StoredBatch, settings: Settings
) -> Manifests | tuple[Problem, ...]:
    """Build a batch from its commit and hold it against policy: the manifests, or every problem.

    Raises ToolError. An overlay that renders nothing is one, so an empty tuple cannot be manifests.
    """
    base = repository.read(commit, "base")
    bases = {path.removeprefix("base/"): content for path, content in base.items()}
    folders = lineage.of_batch(batch, batches.in_commit(repository, commit) if batch.lock.parents else ())
    return judged(batch.lock, batch.tree, bases, settings, parent_folders=folders)


def judged(
    lock: Lock,
    tree: FileTree,
    bases: Mapping[str, bytes],
    settings: Settings,
    *,
    parent_folders: Mapping[int, str],
) -> Manifests | tuple[Problem, ...]:
    """Build an overlay that may lie nowhere yet, beside its bases, and hold it against policy likewise."""
    name, place = lock.name, f"{ACTIVE}/{lock.name}"
    unsafe = policy.vet(tree.files, bases, place=place)
    if unsafe:
        return unsafe
    with tempfile.TemporaryDirectory(prefix="sweep-build-") as scratch:
        files.write_folder(Path(scratch) / place, tree)
        files.write_folder(Path(scratch) / "base", FileTree(bases))
        built = kustomize.build(Path(scratch) / place)
    image = lock.program.container_image
    found = policy.check(name, settings, built, place=place, image=image, parent_folders=parent_folders)
    return found or built
