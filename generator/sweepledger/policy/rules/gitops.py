"""What makes a controller, or a substitution on the way, do something else than git says."""

import json
from collections.abc import Iterator
from typing import Any

from generator.policy.findings import Finding
from generator.policy.workloads import Object
from generator.reader.paths import Path
from generator.reader.shown import shown
from generator.structs.kinds import RUNNING

CODE, TOO_LARGE = "gitops-unsafe", "object-too-large"

OBJECT_BYTES = 1024 * 1024
ORDERED = (
    "argocd.argoproj.io/hook",
    "argocd.argoproj.io/sync-wave",
    "helm.sh/hook",
    "kustomize.toolkit.fluxcd.io/force",
)
"""Beginnings of the keys of hooks, waves and force."""
OPTIONS = "argocd.argoproj.io/sync-options"
REWRITING = ("Force=true", "Replace=true")
LIFETIME = "ttlSecondsAfterFinished"
MARKS = {"${": "Flux replaces it where substitution is on", "{{": "templates replace it"}
TEMPLATES = frozenset({"ApplicationSet", "ConfigMap", "Receiver"})
"""Kinds whose texts may hold anything, or are templates themselves."""


def check(thing: Object) -> Iterator[Finding]:
    """Check one object for what controllers act upon."""
    if "generateName" in thing.metadata:
        found = shown(thing.metadata["generateName"])
        message = f"must be absent: each sync would make another object, got {found}"
        yield Finding(("metadata", "generateName"), message, CODE, "write a name")
    for key, value in (thing.metadata.get("annotations") or {}).items():
        rewrites = key == OPTIONS and any(option in str(value) for option in REWRITING)
        if rewrites or key.startswith(ORDERED):
            message = f"must be absent: what is merged is applied as it is, got {shown(value)}"
            yield Finding(("metadata", "annotations", key), message, CODE)
    kind = RUNNING.get(thing.kind)
    if kind is not None and kind.has_ttl:
        below: Any = thing.data
        for key in kind.policy:
            below = below.get(key) or {}
        if LIFETIME in below:
            message = "must be absent: a controller would make the deleted Job anew and run it again"
            yield Finding((*kind.policy, LIFETIME), message, CODE)
    yield from _text(thing)


def _text(thing: Object) -> Iterator[Finding]:
    text = json.dumps(thing.data, ensure_ascii=False, separators=(",", ":"))
    # No shorter text has too many bytes; encoding a table of megabytes only to count it takes a while.
    if len(text) * 4 > OBJECT_BYTES and len(text.encode()) > OBJECT_BYTES and thing.kind != "ConfigMap":
        yield Finding((), f"must be at most {OBJECT_BYTES} bytes, got {len(text.encode())}", TOO_LARGE)
    if thing.kind in TEMPLATES:
        return
    for mark, why in MARKS.items():
        if mark in text:
            for path, found in _texts(thing.data, ()):
                if mark in found:
                    yield Finding(path, f"must not hold {mark!r}: {why}, got {shown(found)}", CODE)


def _texts(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, str):
        yield path, value
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in pairs:
        yield from _texts(below, (*path, key))
