"""Every overlay builds, what it renders may run, and no two render the same object."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from generator import policy
from generator.commands import foundation, lineage, rendering
from generator.commands.checks.scene import Scene, bases_of, load_bases
from generator.errors import RepositoryError, ToolError
from generator.problems import Problem
from generator.render.overlay import Overlay
from generator.repo import batches, kustomize
from generator.repo.batches import ACTIVE, StoredBatch

Manifest: TypeAlias = Mapping[str, Any]


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
    held = {stood.folder: stood for stood in scene.standing}
    if scene.changed_bases:
        load_bases(stood for stood in scene.standing if stood.is_active)
    wanted = [batch for batch in active if everything or not _stands(scene, batch, held)]
    if wanted:
        kustomize.command()
    built = {batch.name: _build(scene, batch) for batch in wanted}
    problems = [problem for one in built.values() for problem in one.problems]
    rendered = {name: one.manifests for name, one in built.items()}
    return Builds(
        built=tuple(rendered),
        unchanged=tuple(batch.name for batch in active if batch.name not in rendered),
        problems=(*problems, *twice(rendered, [batch.name for batch in active])),
    )


def _stands(scene: Scene, batch: StoredBatch, held: Mapping[str, StoredBatch]) -> bool:
    """Tell whether every file the build reads is the base commit's: then the build is, too."""
    stood = held.get(batch.folder)
    if stood is None or batches.difference(stood, batch):
        return False
    # Most changes leave every base alone, and then no lock need be read to know it.
    return not any(path.startswith(f"{base}/") for path in scene.changed_bases for base in bases_of(stood))


@dataclass(frozen=True)
class _Built:
    problems: tuple[Problem, ...] = ()
    manifests: tuple[Manifest, ...] = ()


def _build(scene: Scene, batch: StoredBatch) -> _Built:
    unsafe = policy.vet(batch.tree.files, scene.bases.files, place=batch.folder)
    if unsafe:
        return _Built(unsafe)
    try:
        manifests = kustomize.build(scene.workspace.root / batch.folder)
    except ToolError as error:
        return _Built((Problem(batch.folder, 0, 0, "", str(error), "build-failed", error.hint),))
    image, settings = _image(batch), scene.settings_of(batch)
    folders = lineage.of_batch(batch, scene.present)
    found = policy.check(
        batch.name, settings, manifests, place=batch.folder, image=image, parent_folders=folders
    )
    return _Built(found, manifests)


def unwritten(scene: Scene, spec: str, made: Overlay) -> Iterator[Problem]:
    """Build what the merge of a spec will have written, and tell at the spec what is wrong with it."""
    bases = foundation.bases(scene.workspace.root).files
    settings = scene.workspace.settings
    folders = lineage.parent_folders(made.lock.parents, scene.present)
    try:
        found = rendering.judged(made.lock, made.tree, bases, settings, parent_folders=folders)
    except ToolError as error:
        yield Problem(spec, 0, 0, "", str(error), "build-failed", error.hint)
        return
    for one in found:
        if isinstance(one, Problem):
            yield replace(one, file=spec, line=0, column=0)


def _image(batch: StoredBatch) -> str | None:
    """Give the image that the lock says; a lock that cannot be read is told where hand edits are."""
    try:
        return batch.lock.program.container_image
    except RepositoryError:
        return None


def twice(rendered: Mapping[str, tuple[Manifest, ...]], active: Sequence[str]) -> Iterator[Problem]:
    """Find objects that two active overlays render: each would prune or refuse the other's.

    Every batch renders names that begin with its own, which policy sees to; so an overlay that was not built
    can share an object only if the object's name begins with the overlay's.
    """
    makers: dict[tuple[str, str], str] = {}
    for batch, manifests in rendered.items():
        for manifest in manifests:
            kind, name = str(manifest.get("kind")), _name(manifest)
            other = makers.setdefault((kind, name), batch)
            longer = [one for one in active if len(one) > len(batch) and f"{name}-".startswith(f"{one}-")]
            for shared in longer if other == batch else [other]:
                message = f"{kind} {name} is {shared}'s, too"
                yield Problem(
                    f"{ACTIVE}/{batch}", 0, 0, "", message, "object-twice", "rename one of the sweeps"
                )


def _name(manifest: Manifest) -> str:
    metadata = manifest.get("metadata")
    return str(metadata.get("name")) if isinstance(metadata, Mapping) else ""
