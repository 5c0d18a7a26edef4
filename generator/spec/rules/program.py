"""What runs: interpreter, code and data."""

import re
from collections.abc import Iterator

from generator.problems import Problem
from generator.reader import shown
from generator.spec.draft import Draft
from generator.spec.nearest import did_you_mean
from generator.structs.program import LOCAL_IMAGE
from generator.structs.sweep import CodeMode

INTERPRETER = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./+-]{0,254}", re.ASCII)
CODE_PART = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.-]{0,254}", re.ASCII)
GENERATED = frozenset({".git", "overlays", "results"})
"""Folders whose content follows from the sweep's own batches: as code they would make every batch new."""


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
    if not is_inside(path):
        message = f"must be a folder inside the repository, relative to it, got {shown(text)}"
        hint = "for example trainer; without .. and with letters, digits and _ . - only"
        yield draft.problem(("run", "code", "path"), message, code="code-path", hint=hint)
    elif path.split("/")[0] in GENERATED:
        message = f"must not be in {path.split('/')[0]}, which changes with every batch, got {shown(text)}"
        yield draft.problem(("run", "code", "path"), message, code="code-path")


def program_path(draft: Draft) -> Iterator[Problem]:
    """The program is a file of the code."""
    text = draft.get("program", kind=str)
    if text is None or is_inside(text):
        return
    message = f"must be a file inside the code's folder, relative to it, got {shown(text)}"
    mended = text.removeprefix("./").lstrip("/")
    hint = f"for example {mended if is_inside(mended) else 'train.py'}"
    hint += "; arguments belong into command" if " " in text else ""
    yield draft.problem(("program",), message, code="program-path", hint=hint)


def is_inside(path: str) -> bool:
    """Tell whether a path stays where it starts, in plain letters."""
    return all(CODE_PART.fullmatch(part) and part not in {".", ".."} for part in path.split("/"))


def dataset(draft: Draft) -> Iterator[Problem]:
    """Data are asked for by the names that the settings give them."""
    name, known = draft.get("run", "data", kind=str), draft.settings.datasets
    if name is not None and name not in known:
        message = f"must be a dataset of the settings, got {shown(name)}"
        hint = did_you_mean(name, known) or "the settings name none: add it to datasets in sweepledger.yaml"
        yield draft.problem(("run", "data"), message, code="unknown-dataset", hint=hint)


def code_mode(draft: Draft) -> Iterator[Problem]:
    """Code is cloned from where the settings say, into an image."""
    place = ("run", "code", "mode")
    if draft.get(*place, kind=str) != CodeMode.CLONE:
        return
    if draft.settings.code is None:
        message = "must be 'image' as long as the settings do not say where code is cloned from, got 'clone'"
        hint = "add code, with url and image, to sweepledger.yaml"
        yield draft.problem(place, message, code="code-mode", hint=hint)
    if asked_image(draft) == LOCAL_IMAGE:
        message = "must be left out where image is 'local', which runs the locked code as it is, got 'clone'"
        yield draft.problem(place, message, code="code-mode", hint="name an image by run.image")


def asked_image(draft: Draft) -> str | None:
    """Tell what image is asked for, by the spec or else by the settings; None if that cannot be told."""
    if "image" in draft.names("run"):
        return draft.get("run", "image", kind=str)
    return draft.settings.defaults.image
