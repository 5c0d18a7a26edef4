"""Fields with which a controller or a substitution does something else than git declares."""

import json
from collections.abc import Iterator
from typing import Any

from sweepledger.policy.objects import Finding, Object
from sweepledger.reader.document import DocumentPath
from sweepledger.reader.messages import safe_repr
from sweepledger.structs.kubernetes import SYNC_WAVE, WORKLOAD_KINDS_BY_NAME

CODE, TOO_LARGE = "gitops-unsafe", "object-too-large"

OBJECT_BYTES = 1024 * 1024
ORDERED = ("argocd.argoproj.io/hook", SYNC_WAVE, "helm.sh/hook", "kustomize.toolkit.fluxcd.io/force")
"""Beginnings of the keys of hooks, waves and force."""
FIRST = ("TrainingRuntime", SYNC_WAVE, "-1")
"""Kind, key and value of the only wave: the TrainJobs of a runtime cannot be deleted once it is gone."""
OPTIONS = "argocd.argoproj.io/sync-options"
REWRITING = ("Force=true", "Replace=true")
LIFETIME = "ttlSecondsAfterFinished"
MARKS = {"${": "Flux replaces it where substitution is on", "{{": "templates replace it"}


def check(obj: Object) -> Iterator[Finding]:
    """Yield the fields of an object that change what controllers do."""
    if "generateName" in obj.metadata:
        name = safe_repr(obj.metadata["generateName"])
        message = f"must be absent: each sync would make another object, got {name}"
        yield Finding(("metadata", "generateName"), message, CODE, "write a name")
    for key, value in (obj.metadata.get("annotations") or {}).items():
        rewrites = key == OPTIONS and any(option in str(value) for option in REWRITING)
        if rewrites or (key.startswith(ORDERED) and (obj.kind, key, value) != FIRST):
            message = f"must be absent: what is merged is applied as it is, got {safe_repr(value)}"
            yield Finding(("metadata", "annotations", key), message, CODE)
    kind = WORKLOAD_KINDS_BY_NAME.get(obj.kind)
    if kind is not None and kind.has_ttl:
        below: Any = obj.data
        for key in kind.policy:
            below = below.get(key) or {}
        if LIFETIME in below:
            message = "must be absent: a controller would make the deleted Job anew and run it again"
            yield Finding((*kind.policy, LIFETIME), message, CODE)
    yield from _text(obj)


def _text(obj: Object) -> Iterator[Finding]:
    text = json.dumps(obj.data, ensure_ascii=False, separators=(",", ":"))
    # No shorter text has too many bytes; encoding a table of megabytes only to count it takes a while.
    if len(text) * 4 > OBJECT_BYTES and len(text.encode()) > OBJECT_BYTES and obj.kind != "ConfigMap":
        yield Finding((), f"must be at most {OBJECT_BYTES} bytes, got {len(text.encode())}", TOO_LARGE)
    if obj.kind == "ConfigMap":
        return
    for mark, why in MARKS.items():
        if mark in text:
            for path, value in _texts(obj.data, ()):
                if mark in value:
                    yield Finding(path, f"must not hold {mark!r}: {why}, got {safe_repr(value)}", CODE)


def _texts(value: Any, path: DocumentPath) -> Iterator[tuple[DocumentPath, str]]:
    if isinstance(value, str):
        yield path, value
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in pairs:
        yield from _texts(below, (*path, key))
