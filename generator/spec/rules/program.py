"""What runs: image, interpreter, code and data."""

import re
from collections.abc import Iterator

from generator.problems import Problem
from generator.reader import Path, shown
from generator.spec.draft import Draft
from generator.spec.nearest import did_you_mean
from generator.structs.program import LOCAL_IMAGE

LONGEST_IMAGE = 512
_HOST = r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::[0-9]{1,5})?"
_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
IMAGE = re.compile(
    rf"(?:{_HOST}/)?{_COMPONENT}(?:/{_COMPONENT})*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}})?@sha256:[0-9a-f]{{64}}",
    re.ASCII,
)
INTERPRETER = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./+-]{0,254}", re.ASCII)
CODE_PART = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.-]{0,254}", re.ASCII)
GENERATED = frozenset({".git", "overlays", "results"})
"""Folders whose content follows from the sweep's own batches: as code they would make every batch new."""


def image(draft: Draft) -> Iterator[Problem]:
    """A tag can be moved, a digest cannot."""
    yield from _image(draft, ("run", "image"))


def settings_image(draft: Draft) -> Iterator[Problem]:
    """The default image is held to the same rule."""
    yield from _image(draft, ("image",))


def _image(draft: Draft, place: Path) -> Iterator[Problem]:
    text = draft.get(*place, kind=str)
    if text is None or text == LOCAL_IMAGE or (len(text) <= LONGEST_IMAGE and IMAGE.fullmatch(text)):
        return
    message = f"must be 'local' or name[:tag]@sha256:<64 hex digits>, got {shown(text)}"
    hint = None if "@sha256:" in text else "a tag can be moved: add the image's digest"
    yield draft.problem(place, message, code="image-reference", hint=hint)


def interpreter(draft: Draft) -> Iterator[Problem]:
    """It is started by itself: a name or a path, no arguments."""
    text = draft.get("run", "interpreter", kind=str)
    if text is not None and not INTERPRETER.fullmatch(text):
        message = f"must be the name or path of a Python, without arguments, got {shown(text)}"
        hint = "for example python3"
        yield draft.problem(("run", "interpreter"), message, code="interpreter", hint=hint)


def code_path(draft: Draft) -> Iterator[Problem]:
    """The code is a folder inside the repository."""
    text = draft.get("run", "code", "path", kind=str)
    if text is None:
        return
    path = text.removesuffix("/")
    if not _is_inside(path):
        message = f"must be a folder inside the repository, relative to it, got {shown(text)}"
        hint = "for example trainer; without .. and with letters, digits and _ . - only"
        yield draft.problem(("run", "code", "path"), message, code="code-path", hint=hint)
    elif path.split("/")[0] in GENERATED:
        message = f"must not be in {path.split('/')[0]}, which changes with every batch, got {shown(text)}"
        yield draft.problem(("run", "code", "path"), message, code="code-path")


def program_path(draft: Draft) -> Iterator[Problem]:
    """The program is a file of the code."""
    text = draft.get("program", kind=str)
    if text is None or _is_inside(text):
        return
    message = f"must be a file inside the code's folder, relative to it, got {shown(text)}"
    mended = text.removeprefix("./").lstrip("/")
    hint = f"for example {mended if _is_inside(mended) else 'train.py'}"
    hint += "; arguments belong into command" if " " in text else ""
    yield draft.problem(("program",), message, code="program-path", hint=hint)


def _is_inside(path: str) -> bool:
    return all(CODE_PART.fullmatch(part) and part not in {".", ".."} for part in path.split("/"))


def dataset(draft: Draft) -> Iterator[Problem]:
    """Data are asked for by the names that the settings give them."""
    name, known = draft.get("run", "data", kind=str), draft.settings.datasets
    if name is not None and name not in known:
        message = f"must be a dataset of the settings, got {shown(name)}"
        hint = did_you_mean(name, known) or "the settings name none: add it to datasets in sweepledger.yaml"
        yield draft.problem(("run", "data"), message, code="unknown-dataset", hint=hint)
