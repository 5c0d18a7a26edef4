"""Container images: by name among the settings' images, or by a reference that cannot be moved."""

import re
from collections.abc import Collection, Iterator

from generator.problems import Problem
from generator.reader import Path, shown
from generator.spec.draft import Draft
from generator.spec.nearest import did_you_mean
from generator.spec.rules.cluster import DIGEST, LABEL
from generator.structs.program import LOCAL_IMAGE

LONGEST_IMAGE = 512
_HOST = r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::[0-9]{1,5})?"
_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
REPOSITORY = re.compile(rf"(?:{_HOST}/)?{_COMPONENT}(?:/{_COMPONENT})*", re.ASCII)
TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", re.ASCII)
IMAGE = re.compile(rf"{REPOSITORY.pattern}(?::{TAG.pattern})?@{DIGEST.pattern}", re.ASCII)


def image(draft: Draft) -> Iterator[Problem]:
    """A tag can be moved, a digest cannot; and what runs is of a repository that the platform team listed."""
    place, listed = ("run", "image"), draft.settings.images
    found = list(_image(draft, place, listed))
    yield from found
    text = draft.get(*place, kind=str)
    if found or not listed or text is None or text == LOCAL_IMAGE or text in listed:
        return
    repository = text.partition("@")[0]
    repository = repository if ":" not in repository.rpartition("/")[2] else repository.rpartition(":")[0]
    known = sorted({image.repository for image in listed.values()})
    if repository not in known:
        message = f"must be of a repository that images in sweepledger.yaml list, got {shown(text)}"
        yield draft.problem(place, message, code="image-not-listed", hint=f"listed: {', '.join(known)}")


def settings_image(draft: Draft) -> Iterator[Problem]:
    """The default image is held to the same rule."""
    yield from _image(draft, ("defaults", "image"), draft.names("images"))


def code_image(draft: Draft) -> Iterator[Problem]:
    """The image that clones is one of the platform's own."""
    place, known = ("code", "image"), draft.names("images")
    name = draft.get(*place, kind=str)
    if name is not None and name not in known:
        hint = did_you_mean(name, known) or "there is none: add one with git to images"
        message = f"must be one of the images, got {shown(name)}"
        yield draft.problem(place, message, code="image-reference", hint=hint)


def named(draft: Draft) -> Iterator[Problem]:
    """A name stands for one repository at one digest."""
    for name in draft.names("images"):
        place: Path = ("images", name)
        if name == LOCAL_IMAGE:
            message = f"must not be {LOCAL_IMAGE!r}, which stands for no image"
            yield draft.problem(place, message, code="image-reference", at_key=True)
        yield from _repository(draft, (*place, "repository"))
        for key, form, rule in (
            ("tag", TAG, "must be a tag such as 1.4"),
            ("digest", DIGEST, "must be sha256: and 64 lower-case hex digits"),
        ):
            text = draft.get(*place, key, kind=str)
            if text is not None and not form.fullmatch(text):
                yield draft.problem((*place, key), f"{rule}, got {shown(text)}", code="image-reference")


def pinned(draft: Draft) -> Iterator[Problem]:
    """That digest is given: `sweep pin` alone goes on without it."""
    for name in draft.names("images"):
        place: Path = ("images", name)
        if draft.get(*place, kind=dict) is not None and "digest" not in draft.names(*place):
            tagged = "" if "tag" in draft.names(*place) else " --tag TAG"
            hint = f"`sweep pin {name}{tagged}` finds the digest of its tag"
            yield draft.problem(
                (*place, "digest"), "must be given", code="missing-key", hint=hint, at_key=True
            )


def _repository(draft: Draft, place: Path) -> Iterator[Problem]:
    text = draft.get(*place, kind=str)
    if text is None or (len(text) <= LONGEST_IMAGE // 2 and REPOSITORY.fullmatch(text)):
        return
    hint = "tag and digest have keys of their own" if re.search(r"@|:[^/]*$", text) else None
    message = f"must be a repository such as registry.example.org/team/train, got {shown(text)}"
    yield draft.problem(place, message, code="image-reference", hint=hint)


def _image(draft: Draft, place: Path, known: Collection[str]) -> Iterator[Problem]:
    text = draft.get(*place, kind=str)
    if text is None or text == LOCAL_IMAGE or text in known:
        return
    if len(text) <= LONGEST_IMAGE and IMAGE.fullmatch(text):
        return
    message = (
        f"must be 'local', a name among the images or name[:tag]@sha256:<64 hex digits>, got {shown(text)}"
    )
    yield draft.problem(place, message, code="image-reference", hint=_hint(text, known))


def _hint(text: str, known: Collection[str]) -> str | None:
    if "@sha256:" in text:
        return None
    if known and LABEL.fullmatch(text):
        return did_you_mean(text, known)
    return "a tag can be moved: add the image's digest"
