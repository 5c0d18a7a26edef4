"""What a batch of a commit renders, whatever lies in the work tree; policy first, and policy after."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from generator import policy
from generator.commands import lineage
from generator.problems import Problem
from generator.repo import batches, files, kustomize
from generator.repo.batches import StoredBatch
from generator.repo.git import Repository
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
    unsafe = policy.vet(batch.tree.files, bases, place=batch.folder)
    if unsafe:
        return unsafe
    with tempfile.TemporaryDirectory(prefix="sweep-build-") as scratch:
        files.write_folder(Path(scratch) / batch.folder, batch.tree)
        files.write_folder(Path(scratch) / "base", FileTree(bases))
        built = kustomize.build(Path(scratch) / batch.folder)
    image = batch.lock.program.container_image
    folders = lineage.of_batch(batch, batches.in_commit(repository, commit) if batch.lock.parents else ())
    found = policy.check(batch.name, settings, built, place=batch.folder, image=image, parent_folders=folders)
    return found or built
