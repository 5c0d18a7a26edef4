"""The rendered and checked manifests of a merged batch, and its dataset."""

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from sweepledger import policy
from sweepledger.commands.repository import batch_builder
from sweepledger.engine import datasets
from sweepledger.engine.local import manifests
from sweepledger.engine.local.code_clone import CodeClone
from sweepledger.engine.local.job_spec import BatchSpec
from sweepledger.errors import RepositoryError, SpecError
from sweepledger.problems import Problem
from sweepledger.render.base_files import Bases, clone_pods
from sweepledger.render.pod import locked_code
from sweepledger.repo import batches, files, kustomize
from sweepledger.repo.batches import ACTIVE, StoredBatch
from sweepledger.repo.git import Repository
from sweepledger.repo.package_data import base_folder
from sweepledger.structs.batch import BatchLock
from sweepledger.structs.file_tree import FileTree
from sweepledger.structs.settings import Settings

Manifests = tuple[Mapping[str, Any], ...]


def render_at(repository: Repository, commit: str, batch: StoredBatch, settings: Settings) -> Manifests:
    """Build a batch from a commit and check it against policy.

    Raises SpecError with every problem, ToolError. An overlay that renders nothing is a problem.
    """
    base = repository.read(commit, "base")
    bases = {path.removeprefix("base/"): content for path, content in base.items()}
    folders = batch_builder.parent_folders_of(
        batch, batches.in_commit(repository, commit) if batch.lock.parents else ()
    )
    rendered = render_tree(batch.lock, batch.tree, bases, settings, parent_folders=folders)
    problems = [item for item in rendered if isinstance(item, Problem)]
    if problems:
        raise SpecError(problems)
    return tuple(item for item in rendered if not isinstance(item, Problem))


def parse_at(repository: Repository, commit: str, batch: StoredBatch, settings: Settings) -> BatchSpec:
    """Build a batch from a commit and parse its Jobs for the local engine. Raises as render_at does."""
    rendered = render_at(repository, commit, batch, settings)
    clone = _code_clone(batch.lock) if any(map(_has_init_container, rendered)) else None
    parsed = manifests.parse_batch(batch.name, rendered, clone=clone)
    if not isinstance(parsed, BatchSpec):
        raise SpecError(parsed)
    return parsed


def _has_init_container(manifest: Mapping[str, Any]) -> bool:
    return manifest["kind"] == "Job" and "initContainers" in manifest["spec"]["template"]["spec"]


def _code_clone(lock: BatchLock) -> CodeClone:
    """Return how pods may clone the code of a batch.

    The components are the package's own: those of a commit may say that a cluster fetches something else.
    """
    known = Bases(files.read_sources(base_folder()).files)
    return CodeClone(clone_pods(known), locked_code(lock.program.code))


def locked_data(
    batch: StoredBatch, settings: Iterable[Settings], cache: Path, *, code: Path
) -> datasets.VerifiedData | None:
    """Return the verified data that a batch locked; None if it locked none.

    The first of several settings that has the data at its digest is used; `cache` is where fetched
    datasets are kept. Raises RepositoryError if none has it, StorageError for wrong data.
    """
    data = batch.lock.program.data
    if data is None:
        return None
    known = (candidate.dataset_named(data.name) for candidate in settings)
    dataset = next((entry for entry in known if entry is not None and entry.identity == data.digest), None)
    if dataset is None:
        keys = " and ".join(f"datasets.{name}.digest" for name in data.names)
        raise RepositoryError(
            f"{batch.name} locked dataset {data.name} at {data.digest[:19]}, which the settings do not contain",
            hint=f"restore {keys}, or request the trials with the current dataset: "
            f"`sweep generate {batch.lock.sweep} --update`",
        )
    return datasets.verified_data(dataset, cache, code=code)


def render_tree(
    lock: BatchLock,
    tree: FileTree,
    bases: Mapping[str, bytes],
    settings: Settings,
    *,
    parent_folders: Mapping[int, str],
) -> Manifests | tuple[Problem, ...]:
    """Build an overlay that may not be written yet; return its manifests, or every problem. Raises ToolError."""
    name, folder = lock.name, f"{ACTIVE}/{lock.name}"
    unsafe = policy.check_kustomization(tree.files, bases, place=folder)
    if unsafe:
        return unsafe
    with tempfile.TemporaryDirectory(prefix="sweep-build-") as scratch:
        files.write_folder(Path(scratch) / folder, tree)
        files.write_folder(Path(scratch) / "base", FileTree(bases))
        built = kustomize.build(Path(scratch) / folder)
    image = lock.program.container_image
    problems = policy.check_batch(
        name, settings, built, file=folder, image=image, parent_folders=parent_folders
    )
    return problems or built
