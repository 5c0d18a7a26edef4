"""`sweep pin`: what a tag stands for today, written into the settings as a digest."""

from dataclasses import dataclass

from generator.commands.workspace import SETTINGS_FILE, Workspace, parse_settings
from generator.engine import registry
from generator.errors import RepositoryError, UsageError
from generator.reader.edits import with_value
from generator.repo import files


@dataclass(frozen=True)
class Pinned:
    """An image by content."""

    name: str
    reference: str
    digest: str
    before: str
    is_new: bool
    """Whether the settings said something else."""


def pin(workspace: Workspace, name: str, *, tag: str | None = None) -> Pinned:
    """Ask the registry what the image's tag stands for, and write tag and digest into the settings.

    Sweeps take it in by `sweep update`; merged batches keep theirs. Raises UsageError for an unknown image,
    no tag, or one that is not there; ToolError where the registry cannot be asked; nothing is written then.
    """
    image = workspace.settings.images.get(name)
    if image is None:
        known = ", ".join(sorted(workspace.settings.images)) or "none yet"
        raise UsageError(f"{SETTINGS_FILE} names no image {name!r}", hint=f"images: {known}")
    wanted = tag or image.tag
    if wanted is None:
        raise UsageError(f"image {name} has no tag to resolve", hint="give one: --tag v1")
    digest = registry.resolve(image.repository, wanted)
    path = workspace.root / SETTINGS_FILE
    text = before = files.read_input(path).decode()
    try:
        for key, value in (("tag", wanted), ("digest", digest)):
            if getattr(image, key) != value:
                text = with_value(text, ("images", name, key), value)
    except ValueError as error:
        raise RepositoryError(
            f"{SETTINGS_FILE} cannot be changed by a program: {error}",
            hint=f"write it by hand: images.{name}.digest: {digest}",
        ) from error
    files.write_file(path, text.encode())
    pinned = parse_settings(path).images[name]
    return Pinned(name, pinned.reference, digest, image.digest, is_new=text != before)
