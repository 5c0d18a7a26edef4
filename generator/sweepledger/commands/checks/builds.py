"""Every overlay builds, passes policy, and renders no object of another overlay."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sweepledger import contract
from sweepledger.commands.checks import context as checked
from sweepledger.commands.repository import base_files, rendered_manifests
from sweepledger.errors import SpecError, ToolError, UnreadableError
from sweepledger.problems import Problem
from sweepledger.render.overlay import Overlay
from sweepledger.repo import batches, kustomize
from sweepledger.repo.batches import ACTIVE, StoredBatch
from sweepledger.structs.kubernetes import Manifest


@dataclass(frozen=True)
class Builds:
    """Which active overlays were rendered, which did not need to be, and their problems."""

    built: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


def check_builds(context: checked.CheckContext, *, everything: bool = False) -> Builds:
    """Build the active overlays whose input differs from the base commit, or all of them.

    Raises ToolError if kustomize cannot be found: a check that cannot run is not a pass.
    """
    active = [batch for batch in context.present if batch.is_active]
    merged = {stood.folder: stood for stood in context.merged}
    if context.changed_bases:
        merged_active = [stood for stood in context.merged if stood.is_active]
        if context.changed_versions:
            checked.load_references(merged_active)
        else:
            batches.prefetch(merged_active, checked.KUSTOMIZATION)
    to_build = [batch for batch in active if everything or not _is_as_merged(context, batch, merged)]
    if to_build:
        kustomize.command()
    built = {batch.name: _build(context, batch) for batch in to_build}
    problems = [problem for found, _ in built.values() for problem in found]
    rendered = {name: manifests for name, (_, manifests) in built.items()}
    return Builds(
        built=tuple(rendered),
        unchanged=tuple(batch.name for batch in active if batch.name not in rendered),
        problems=(*problems, *duplicate_objects(rendered, [batch.name for batch in active])),
    )


def _is_as_merged(
    context: checked.CheckContext, batch: StoredBatch, merged: Mapping[str, StoredBatch]
) -> bool:
    """Return whether every file that the build reads equals the base commit's: then the build is equal, too."""
    original = merged.get(batch.folder)
    if original is None:
        return False
    if batch.folder not in context.unchanged and batches.difference(original, batch):
        return False
    if batch.running_file != original.running_file:
        return False
    # Most changes do not touch any base; then nothing needs to be read, nor a lock if they only add versions.
    if context.changed_versions:
        bases = checked.referenced_bases(original)
        return not any(path.startswith(f"{base}/") for path in context.changed_bases for base in bases)
    if not context.added_versions or checked.KUSTOMIZATION not in original.contents.paths():
        return True
    content = original.contents.read(checked.KUSTOMIZATION)
    return not any(
        contract.may_build_on(content, version.removeprefix(checked.BASE))
        for version in context.added_versions
    )


def _build(
    context: checked.CheckContext, batch: StoredBatch
) -> tuple[tuple[Problem, ...], tuple[Manifest, ...]]:
    unsafe = contract.check_kustomization(batch.tree.files, context.bases.files, place=batch.folder)
    if unsafe:
        return tuple(unsafe), ()
    try:
        _ = batch.running  # kustomize reads it, too, so it must be as the generator writes it
    except UnreadableError as error:
        return error.problems, ()
    try:
        manifests = kustomize.build(context.workspace.root / batch.folder)
    except ToolError as error:
        return (Problem(batch.folder, 0, 0, "", str(error), "build-failed", error.hint),), ()
    bases, settings = context.bases.files, context.settings_of(batch)
    return rendered_manifests.check_built(batch, manifests, bases, settings, context.present), manifests


def check_unwritten(context: checked.CheckContext, spec: str, overlay: Overlay) -> Iterator[Problem]:
    """Build the batch that is written after a spec's merge, and report its problems at the spec."""
    bases = base_files.read_bases(context.workspace.root).files
    batch = StoredBatch(f"{ACTIVE}/{overlay.name}", overlay.tree)
    try:
        rendered_manifests.render(batch, bases, context.workspace.settings, context.present)
    except ToolError as error:
        yield Problem(spec, 0, 0, "", str(error), "build-failed", error.hint)
    except SpecError as error:
        for problem in error.problems:
            yield replace(problem, file=spec, line=0, column=0)


def duplicate_objects(
    rendered: Mapping[str, tuple[Manifest, ...]], active: Sequence[str]
) -> Iterator[Problem]:
    """Yield a problem for each object that two active overlays render: each would prune or refuse the other's.

    The contract ensures that the names of a batch's objects begin with the batch's name. Therefore, an overlay that
    was not built can share an object only if the object's name begins with the overlay's.
    """
    makers: dict[tuple[str, str], str] = {}
    for batch, manifests in rendered.items():
        for manifest in manifests:
            kind, name = str(manifest.get("kind")), _name(manifest)
            other = makers.setdefault((kind, name), batch)
            longer = [
                batch_name
                for batch_name in active
                if len(batch_name) > len(batch) and f"{name}-".startswith(f"{batch_name}-")
            ]
            for shared in longer if other == batch else [other]:
                message = f"{kind} {name} is {shared}'s, too"
                yield Problem(
                    f"{ACTIVE}/{batch}", 0, 0, "", message, "object-twice", "rename one of the sweeps"
                )


def _name(manifest: Manifest) -> str:
    metadata = manifest.get("metadata")
    return str(metadata.get("name")) if isinstance(metadata, Mapping) else ""
