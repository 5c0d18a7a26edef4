"""Datasets, volumes and stores of results in the settings."""

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from sweepledger.problems import Problem
from sweepledger.reader import DocumentPath, safe_repr
from sweepledger.spec import units
from sweepledger.spec.draft import Draft
from sweepledger.spec.rules.program import DIGEST, is_inside
from sweepledger.spec.suggestions import did_you_mean
from sweepledger.spec.units import duration_problems
from sweepledger.structs.settings import API_SERVER_EGRESS, ResultsSettings, ResultsStore

VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,62}", re.ASCII)
SERVER = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?|[0-9a-fA-F:]{2,39}", re.ASCII)
EXPORT = re.compile(r"/|(?:/[A-Za-z0-9_.-]{1,255})+", re.ASCII)


def identities(draft: Draft) -> Iterator[Problem]:
    """A dataset has a digest, or a version if it is too large for one."""
    for name in draft.names("datasets"):
        place: DocumentPath = ("datasets", name)
        keys = draft.names(*place)
        if draft.get(*place, kind=dict) is None:
            continue
        if not {"digest", "version"} & {*keys}:
            message, hint = "must be given unless version is", "`sweep data digest PATH` computes it"
            yield draft.problem((*place, "digest"), message, code="missing-key", hint=hint, at_key=True)
        if {"digest", "version"} <= {*keys}:
            message, hint = "must not be given with digest", "the digest is more exact: delete the version"
            yield draft.problem((*place, "version"), message, code="data-digest", hint=hint, at_key=True)
        for key, form, rule in (
            ("digest", DIGEST, "must be sha256: and 64 lower-case hex digits"),
            ("version", VERSION, "must be at most 63 letters, digits and any of . _ + -"),
        ):
            text = draft.get(*place, key, kind=str)
            if text is not None and not form.fullmatch(text):
                yield draft.problem((*place, key), f"{rule}, got {safe_repr(text)}", code="data-digest")


def data_paths(draft: Draft) -> Iterator[Problem]:
    """The path of a dataset is inside its volume."""
    for name in draft.names("datasets"):
        place: DocumentPath = ("datasets", name, "path")
        text = draft.get(*place, kind=str)
        if text is not None and not is_inside(text.removesuffix("/")):
            message = f"must be a folder inside the volume, relative to it, got {safe_repr(text)}"
            hint = "for example mnist/v1; for all of the volume delete the key"
            yield draft.problem(place, message, code="data-path", hint=hint)


def exports(draft: Draft) -> Iterator[Problem]:
    """An NFS export is a server and an absolute path."""
    places: list[DocumentPath] = [
        ("results", "nfs"),
        *(("datasets", name, "nfs") for name in draft.names("datasets")),
    ]
    for place in places:
        server, path = (draft.get(*place, key, kind=str) for key in ("server", "path"))
        if server is not None and not SERVER.fullmatch(server):
            message = f"must be the name or address of a server, got {safe_repr(server)}"
            yield draft.problem((*place, "server"), message, code="nfs")
        if path is not None and (not EXPORT.fullmatch(path) or ".." in path.split("/")):
            message = f"must be an absolute path without .., got {safe_repr(path)}"
            yield draft.problem((*place, "path"), message, code="nfs", hint="for example /export/sweeps")


STORE_SCHEMES = {"mlflow": ("https", "http"), "optuna": ("postgresql", "mysql")}
"""Schemes of addresses; Optuna's may name a driver after a plus sign."""
MAX_ADDRESS = 2000


def stores(draft: Draft) -> Iterator[Problem]:
    """A store of results has the address of a server, without credentials, and an egress of the settings."""
    known = [name for name in draft.names("egress") if name != API_SERVER_EGRESS]
    for name in draft.names("results", "sync"):
        place: DocumentPath = ("results", "sync", name)
        text, egress = draft.get(*place, "to", kind=str), draft.get(*place, "egress", kind=str)
        schemes = STORE_SCHEMES.get(name, ())
        if text is not None and not _is_server(text, schemes):
            listed = " or ".join(f"{scheme}://" for scheme in schemes)
            message = f"must begin with {listed} and a host without credentials, got {safe_repr(text)}"
            hint = "credentials are variables of `secret`"
            yield draft.problem((*place, "to"), message, code="store-address", hint=hint)
        if egress is not None and egress not in known:
            hint = did_you_mean(egress, known) or "there is none: add it to egress"
            message = f"must be an egress of the settings, got {safe_repr(egress)}"
            yield draft.problem((*place, "egress"), message, code="unknown-egress", hint=hint)


def _is_server(text: str, schemes: tuple[str, ...]) -> bool:
    if len(text) > MAX_ADDRESS or not text.isascii() or not text.isprintable() or " " in text:
        return False
    try:
        parts = urlsplit(text)
        host = parts.hostname
    except ValueError:
        return False
    # A password may also be a part of the query.
    is_bare = "@" not in text and "password" not in parts.query
    return bool(host) and is_bare and parts.scheme.partition("+")[0] in schemes


FILE_KEYS = ("claim", "checkpoints", "artifacts", "keep", "progress", "nfs")


def store_keys(draft: Draft) -> Iterator[Problem]:
    """Without files there are no claims for them, nothing to expire, and no folders of running batches."""
    if draft.get("results", "store", kind=str) != ResultsStore.API:
        return
    for key in FILE_KEYS:
        if key in draft.names("results"):
            message = f"must not be given with results.store: {ResultsStore.API}, got {key}"
            hint = "the API server keeps records and no files; delete the key, or choose store: volume"
            yield draft.problem(("results", key), message, code="store-key", hint=hint, at_key=True)


def times(draft: Draft) -> Iterator[Problem]:
    """Times in the settings are valid."""
    yield from duration_problems(draft, ("defaults", "timeout"), units.seconds)
    yield from duration_problems(draft, ("results", "every"), units.minutes)
    yield from duration_problems(draft, ("results", "progress"), units.minutes)
    yield from duration_problems(draft, ("results", "keep"), units.days)
    yield from duration_problems(draft, ("submit", "ttl"), units.seconds)


def collected_in_time(draft: Draft) -> Iterator[Problem]:
    """A Job must not be deleted before the collector has read its records."""
    ttl, every = draft.get("submit", "ttl", kind=str), draft.get("results", "every", kind=str)
    try:
        lives = None if ttl is None else units.seconds(ttl)
        minutes = ResultsSettings().every_minutes if every is None else units.minutes(every)
    except ValueError:
        return
    if lives is not None and lives <= minutes * units.TIME_UNITS["m"]:
        message = f"must be longer than results.every ({minutes}m), got {safe_repr(ttl)}"
        yield draft.problem(("submit", "ttl"), message, code="duration", hint="for example 7d")
