"""Images: references that a registry can read, pinned to what was reviewed."""

import re
from collections.abc import Iterator

from generator.policy.findings import Finding
from generator.policy.workloads import Object
from generator.reader.shown import shown

CODE = "image-not-pinned"

PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
HOST = (
    r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*(?::[0-9]+)?)"
)
REFERENCE = re.compile(
    rf"(?:{HOST}/)?{PART}(?:/{PART})*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}})?(?P<digest>@sha256:[0-9a-f]{{64}})?",
    re.ASCII,
)
NOWHERE = ".invalid/"
"""No registry can ever answer to this: it stands where a program has no image."""


def check(thing: Object) -> Iterator[Finding]:
    """Check the image of every container."""
    for container in thing.containers:
        if "image" in container.data or container.sort != "trainer":
            yield from _image((*container.path, "image"), container.data.get("image"))


def _image(path: tuple[str | int, ...], image: object) -> Iterator[Finding]:
    found = REFERENCE.fullmatch(image) if isinstance(image, str) else None
    if found is None:
        yield Finding(path, f"must be an image's reference, got {shown(image)}", CODE)
    elif found["digest"] is None and NOWHERE not in found[0]:
        hint = "write name@sha256:…; a tag may be another image tomorrow"
        yield Finding(path, f"must have a digest, got {shown(image)}", CODE, hint)
