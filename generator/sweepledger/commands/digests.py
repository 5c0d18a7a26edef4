"""`sweep cluster pin` and `sweep cluster data`: images and data by content, for the settings."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sweepledger import storage
from sweepledger.commands.repository.settings_edit import SettingsEdit, edit_settings, read_settings_text
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.engine import registry
from sweepledger.engine.datasets import FolderDigest, ReadProgress, digest_folder
from sweepledger.errors import StorageError, UsageError
from sweepledger.storage import storage_errors
from sweepledger.structs.names import SETTINGS_FILE
from sweepledger.structs.settings import Image

UNKNOWN_DIGEST = f"sha256:{'0' * 64}"
"""A placeholder for the digest while the rest of an image reference is checked."""


@dataclass(frozen=True)
class Pinned:
    """An image with the digest of its content."""

    name: str
    reference: str
    digest: str
    before: str
    """The previous digest; empty if there was none."""
    is_new: bool
    """Whether the settings changed."""


def pin(workspace: Workspace, name: str, *, repository: str | None = None, tag: str | None = None) -> Pinned:
    """Resolve an image's tag at its registry, and write tag and digest to the settings.

    With `repository` the image may be new, or moves there. Images of the workspace need no digest. Sweeps use the new
    digest after `sweep generate --update`; merged batches keep theirs. Raises UsageError for an unknown image or tag,
    SpecError for an invalid name or repository, ToolError if the registry cannot be asked; nothing is written then.
    """
    image = workspace.settings.images.get(name)
    registry_repository = repository or (image.repository if image else None)
    if registry_repository is None:
        names = ", ".join(sorted(workspace.settings.images)) or "none yet"
        hint = f"images: {names}; `sweep cluster pin {name} --repository R --tag T` adds it"
        raise UsageError(f"{SETTINGS_FILE} has no image {name!r}", hint=hint)
    requested_tag = tag or (image.tag if image else None)
    if requested_tag is None:
        raise UsageError(f"image {name} has no tag to resolve", hint="give one: --tag v1")
    path = workspace.root / SETTINGS_FILE
    text = read_settings_text(workspace.root)
    _set_image(
        text, Image(name, registry_repository, UNKNOWN_DIGEST)
    )  # reports a wrong name before asking the registry
    digest = registry.resolve_digest(registry_repository, requested_tag)
    edit = _set_image(text, Image(name, registry_repository, digest, requested_tag))
    storage.write_file(path, edit.text.encode())
    reference = edit.settings.images[name].reference
    return Pinned(name, reference, digest, image.digest if image else "", is_new=edit.text != text)


def _set_image(text: str, image: Image) -> SettingsEdit:
    """Set an image of the settings in this text, if it is another there."""
    current = edit_settings(text, {}, unpinned=True).settings.images.get(image.name)
    is_new = current != image
    return edit_settings(text, {("images", image.name): image.reference} if is_new else {}, unpinned=True)


def folder_digest(folder: Path, *, progress: Callable[[ReadProgress], None] | None = None) -> FolderDigest:
    """Return the digest of a folder for the settings; `progress` is called about twice a second.

    Raises UsageError if the folder does not exist, StorageError for links, devices and unreadable files.
    """
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder", hint="name the folder that trials will read")
    with storage_errors(folder):
        result = digest_folder(folder, progress=progress)
    if not result.files:
        raise StorageError(f"{folder} contains no file", hint="a dataset has at least one")
    return result
