"""Names of the sweep and of its metric."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from generator.problems import Problem
from generator.reader import Path, shown
from generator.spec.draft import Draft
from generator.structs.names import RESERVED_SWEEP_NAMES, SWEEP_NAME, SWEEP_NAME_LENGTH

METRIC_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_./@-]{0,62}", re.ASCII)


def sweep_name(draft: Draft) -> Iterator[Problem]:
    """Every object of the sweep begins with its name, so it must leave room and be a DNS label."""
    name = draft.get("name", kind=str)
    if name is None:
        return
    if name in RESERVED_SWEEP_NAMES:
        message = f"must not be a reserved name, got {shown(name)}"
        hint = f"reserved: {', '.join(sorted(RESERVED_SWEEP_NAMES))}"
        yield draft.problem(("name",), message, code="sweep-name", hint=hint)
    elif not SWEEP_NAME.fullmatch(name):
        message = (
            "must be lower-case letters, digits and inner hyphens, begin with a letter "
            f"and have at most {SWEEP_NAME_LENGTH} characters, got {shown(name)}"
        )
        yield draft.problem(("name",), message, code="sweep-name", hint=_mended(name))


def _mended(name: str) -> str | None:
    mended = re.sub(r"[^a-z0-9]+", "-", name.lower())[:SWEEP_NAME_LENGTH].strip("-")
    return f"for example {mended}" if SWEEP_NAME.fullmatch(mended) else None


def file_name(draft: Draft) -> Iterator[Problem]:
    """One file a sweep: whoever knows the name knows the file."""
    name, stem = draft.get("name", kind=str), PurePosixPath(draft.document.file).stem
    if name is not None and name != stem:
        message = f"must be the file's name {stem!r}, got {shown(name)}"
        hint = "rename the file or the sweep"
        yield draft.problem(("name",), message, code="name-mismatch", hint=hint)


def metric_name(draft: Draft) -> Iterator[Problem]:
    """A metric's name becomes a CSV column and stands in `name=value` lines."""
    places: list[Path] = [("metric",), *(place for place, _ in draft.items("metrics"))]
    for place in places:
        name = draft.get(*place, "name", kind=str)
        if name is not None and not METRIC_NAME.fullmatch(name):
            message = (
                "must begin with a letter and hold at most 63 letters, digits and any of _ . / @ -, "
                f"got {shown(name)}"
            )
            yield draft.problem((*place, "name"), message, code="metric-name")
