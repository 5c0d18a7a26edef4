"""`sweep pin`: what a tag stands for today, written into the settings as a digest."""

from dataclasses import dataclass

from generator import spec
from generator.commands.workspace import SETTINGS_FILE, Workspace
from generator.engine import registry
from generator.errors import RepositoryError, SpecError, UsageError
from generator.reader.edits import with_value
from generator.repo import files
from generator.structs.settings import Image, Settings

EMPTY_SETTINGS = "version: 1\n"
UNKNOWN = f"sha256:{'0' * 64}"
"""Stands for a digest while the rest of an entry is looked at."""


@dataclass(frozen=True)
class Pinned:
    """An image by content."""

    name: str
    reference: str
    digest: str
    before: str
    """The digest until now; empty: none."""
    is_new: bool
    """Whether the settings said something else."""


def pin(workspace: Workspace, name: str, *, repository: str | None = None, tag: str | None = None) -> Pinned:
    """Ask the registry what the image's tag stands for, and write tag and digest into the settings.

    With a repository the image may be a new one, or moves there. The workspace may hold images without a
    digest. Sweeps take the new digest in by `sweep update`; merged batches keep theirs. Raises UsageError
    for an unknown image, no tag, or one that is not there; SpecError for a name or a repository that is
    none; ToolError where the registry cannot be asked; nothing is written then.
    """
    image = workspace.settings.images.get(name)
    place = repository or (image.repository if image else None)
    if place is None:
        known = ", ".join(sorted(workspace.settings.images)) or "none yet"
        hint = f"images: {known}; `sweep pin {name} --repository R --tag T` adds it"
        raise UsageError(f"{SETTINGS_FILE} names no image {name!r}", hint=hint)
    wanted = tag or (image.tag if image else None)
    if wanted is None:
        raise UsageError(f"image {name} has no tag to resolve", hint="give one: --tag v1")
    path = workspace.root / SETTINGS_FILE
    before = files.read_input(path).decode() if path.exists() else EMPTY_SETTINGS
    _written(before, Image(name, place, UNKNOWN))  # a wrong name is said before anybody is asked
    digest = registry.resolve(place, wanted)
    text, pinned = _written(before, Image(name, place, digest, wanted))
    files.write_file(path, text.encode())
    return Pinned(name, pinned.reference, digest, image.digest if image else "", is_new=text != before)


def _written(text: str, image: Image) -> tuple[str, Image]:
    """Change the settings in their text; give it, and the image as everybody will read it."""
    held = _read(text).images.get(image.name)
    tag = {"tag": image.tag} if image.tag else {}
    wanted = {"repository": image.repository, **tag, "digest": image.digest}
    try:
        if held is None:
            text = with_value(text, ("images", image.name), wanted)
        else:
            for key, value in wanted.items():
                if getattr(held, key) != value:
                    text = with_value(text, ("images", image.name, key), value)
    except ValueError as error:
        raise RepositoryError(
            f"{SETTINGS_FILE} cannot be changed by a program: {error}",
            hint=f"write it by hand: images.{image.name}.digest: {image.digest}",
        ) from error
    return text, _read(text).images[image.name]


def _read(text: str) -> Settings:
    found = spec.parse_settings(text.encode(), SETTINGS_FILE, unpinned=True)
    if isinstance(found, tuple):
        raise SpecError(found)
    return found
