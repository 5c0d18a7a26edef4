"""What the settings say of data and volumes."""

import re
from collections.abc import Iterator

from generator.problems import Problem
from generator.reader import Path, shown
from generator.spec import units
from generator.spec.draft import Draft
from generator.spec.rules.amounts import duration
from generator.spec.rules.cluster import DIGEST
from generator.spec.rules.program import is_inside
from generator.structs.settings import Results

VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,62}", re.ASCII)
SERVER = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|[0-9a-fA-F:]{2,39}", re.ASCII)
EXPORT = re.compile(r"/|(?:/[A-Za-z0-9_.-]{1,255})+", re.ASCII)


def identities(draft: Draft) -> Iterator[Problem]:
    """Data are what their digest says, or a version where they are too large for one."""
    for name in draft.names("datasets"):
        place: Path = ("datasets", name)
        keys = draft.names(*place)
        if draft.get(*place, kind=dict) is None:
            continue
        if not {"digest", "version"} & {*keys}:
            message, hint = "must be given, or version", "`sweep data digest PATH` computes it"
            yield draft.problem((*place, "digest"), message, code="missing-key", hint=hint, at_key=True)
        if {"digest", "version"} <= {*keys}:
            message, hint = "must not stand beside digest", "the digest says more: delete the version"
            yield draft.problem((*place, "version"), message, code="data-digest", hint=hint, at_key=True)
        for key, form, rule in (
            ("digest", DIGEST, "must be sha256: and 64 lower-case hex digits"),
            ("version", VERSION, "must be at most 63 letters, digits and any of . _ + -"),
        ):
            text = draft.get(*place, key, kind=str)
            if text is not None and not form.fullmatch(text):
                yield draft.problem((*place, key), f"{rule}, got {shown(text)}", code="data-digest")


def data_paths(draft: Draft) -> Iterator[Problem]:
    """Data lie inside their volume."""
    for name in draft.names("datasets"):
        place: Path = ("datasets", name, "path")
        text = draft.get(*place, kind=str)
        if text is not None and not is_inside(text.removesuffix("/")):
            message = f"must be a folder inside the volume, relative to it, got {shown(text)}"
            hint = "for example mnist/v1; for all of the volume delete the key"
            yield draft.problem(place, message, code="data-path", hint=hint)


def exports(draft: Draft) -> Iterator[Problem]:
    """An export is a server and a folder, in no other notation."""
    places: list[Path] = [
        ("results", "nfs"),
        *(("datasets", name, "nfs") for name in draft.names("datasets")),
    ]
    for place in places:
        server, path = (draft.get(*place, key, kind=str) for key in ("server", "path"))
        if server is not None and not SERVER.fullmatch(server):
            message = f"must be the name or address of a server, got {shown(server)}"
            yield draft.problem((*place, "server"), message, code="nfs")
        if path is not None and (not EXPORT.fullmatch(path) or ".." in path.split("/")):
            message = f"must be an absolute path without .., got {shown(path)}"
            yield draft.problem((*place, "path"), message, code="nfs", hint="for example /export/sweeps")


def times(draft: Draft) -> Iterator[Problem]:
    """What is collected and deleted is so after times that clocks can tell."""
    yield from duration(draft, ("defaults", "timeout"), units.seconds)
    yield from duration(draft, ("results", "every"), units.minutes)
    yield from duration(draft, ("results", "progress"), units.minutes)
    yield from duration(draft, ("results", "keep"), units.days)
    yield from duration(draft, ("submit", "ttl"), units.seconds)


def collected_in_time(draft: Draft) -> Iterator[Problem]:
    """A Job that is deleted before anybody looked leaves nothing to collect."""
    ttl, every = draft.get("submit", "ttl", kind=str), draft.get("results", "every", kind=str)
    try:
        lives = None if ttl is None else units.seconds(ttl)
        minutes = Results().every_minutes if every is None else units.minutes(every)
    except ValueError:
        return
    if lives is not None and lives <= minutes * units.TIME_UNITS["m"]:
        message = f"must be longer than results.every ({minutes}m), got {shown(ttl)}"
        yield draft.problem(("submit", "ttl"), message, code="duration", hint="for example 7d")
