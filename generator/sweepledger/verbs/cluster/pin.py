"""Write the digest of an image's tag to sweepledger.yaml."""

from dataclasses import dataclass

from sweepledger import storage
from sweepledger.cli import completion
from sweepledger.cli.options import argument, option
from sweepledger.cli.response import Response, current_folder
from sweepledger.errors import UsageError
from sweepledger.operations.repository.spec_edit import SettingsEdit, edit_settings
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.repo import image_registry, inputs
from sweepledger.structs.names import SETTINGS_FILE
from sweepledger.structs.settings import Image

UNKNOWN_DIGEST = f"sha256:{'0' * 64}"
"""A placeholder for the digest while the rest of an image reference is checked."""


def pin(
    name: str = argument("NAME", "Name of an image in sweepledger.yaml.", autocompletion=completion.images),
    tag: str | None = option("--tag TAG", "Resolve this tag; default: the tag in the settings."),
    repository: str | None = option(
        "--repository REPO", "Read from this repository; adds the image to the settings, or changes it."
    ),
) -> Response:
    workspace = Workspace.find(current_folder(), unpinned=True)
    pinned = pin_image(workspace, name, repository=repository, tag=tag)
    lines = [f"{name}: {pinned.reference}" + ("" if pinned.changed else " (unchanged)")]
    if pinned.changed:
        lines.append(
            "next: commit sweepledger.yaml; `sweep generate NAME --update` updates a sweep to the new image"
        )
    return Response(pinned, tuple(lines))


@dataclass(frozen=True)
class Pinned:
    """An image with the digest of its content."""

    image: str
    reference: str
    digest: str
    previous: str
    """The previous digest; empty if there was none."""
    changed: bool


def pin_image(
    workspace: Workspace, name: str, *, repository: str | None = None, tag: str | None = None
) -> Pinned:
    """Resolve an image's tag at its registry, and write tag and digest to the settings.

    With `repository`, an image is added or moved there. Images of the workspace need no digest. Sweeps use the new
    digest after `sweep generate --update`; merged batches keep theirs. Raises UsageError for an unknown image or tag,
    SpecError for an invalid name or repository, ToolError if the registry cannot be asked; nothing is written then.
    """
    image = workspace.settings.trials.images.get(name)
    registry_repository = repository or (image.repository if image else None)
    if registry_repository is None:
        names = ", ".join(sorted(workspace.settings.trials.images)) or "none yet"
        hint = f"images: {names}; `sweep cluster pin {name} --repository R --tag T` adds it"
        raise UsageError(f"{SETTINGS_FILE} has no image {name!r}", hint=hint)
    requested_tag = tag or (image.tag if image else None)
    if requested_tag is None:
        raise UsageError(f"image {name} has no tag to resolve", hint="give one: --tag v1")
    path = workspace.root / SETTINGS_FILE
    content = inputs.read_settings(workspace.root)
    _set_image(
        content, Image(name, registry_repository, UNKNOWN_DIGEST)
    )  # reports a wrong name before asking the registry
    digest = image_registry.resolve_digest(registry_repository, requested_tag)
    edit = _set_image(content, Image(name, registry_repository, digest, requested_tag))
    storage.write_file(path, edit.text.encode())
    reference = edit.settings.trials.images[name].reference
    return Pinned(
        name, reference, digest, image.digest if image else "", changed=edit.text.encode() != content
    )


def _set_image(content: bytes, image: Image) -> SettingsEdit:
    current = edit_settings(content, {}, unpinned=True).settings.trials.images.get(image.name)
    is_new = current != image
    return edit_settings(content, {("images", image.name): image.reference} if is_new else {}, unpinned=True)
