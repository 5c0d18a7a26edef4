"""Checks manifests that this project did not generate, or that are checked without their batch.

Applies the general rules in `rules/` and locates their findings in files. What a batch requires in addition
is in `batch_rules/` and is not checked here.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from functools import partial
from typing import Any

from sweepledger.policy import schema
from sweepledger.policy.objects import Finding, Inspection, Object, to_problem
from sweepledger.policy.rules import references, registry
from sweepledger.policy.rules.security import RBAC_CODE
from sweepledger.policy.schema import MALFORMED, SKIPPED, UNKNOWN, KindStatus
from sweepledger.problems import Problem, Severity
from sweepledger.reader.document import DOCUMENT_START, Document, DocumentPath, Mark
from sweepledger.structs.kubernetes import (
    COLLECTOR_READS,
    EXPIRY_ACCOUNT,
    GIT_READ_SECRET,
    OLDEST_VERSION,
    Manifest,
)
from sweepledger.structs.settings import Settings

NOT_LISTED = "secret-not-listed"

SOURCES = "kustomize.config.k8s.io/"
"""API group of files that are next to manifests in a repository and never reach a cluster."""

MANIFEST_KEYS = frozenset({"apiversion", "kind", "metadata", "spec"})
"""A document with none of these keys, in upper or lower case, is not a manifest."""
CONFIGURATIONS = frozenset({"CustomResourceStateMetrics"})
"""Kinds of files that programs read themselves: they look like manifests, and no API server knows them."""
REST = "the other rules are applied once its fields are valid"


@dataclass(frozen=True, slots=True)
class LintReport:
    """The result of linting rendered manifests."""

    objects: tuple[str, ...]
    """Kind and name of every object that all rules were applied to."""
    partly: tuple[str, ...]
    """Every object that breaks its schema, so that no other rule was applied."""
    skipped: tuple[str, ...]
    """Every object of a kind without a schema: only metadata and pods were checked."""
    others: tuple[str, ...]
    """Every file with a document that is not a manifest."""
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class _Placed:
    """An object and its position in a file."""

    obj: Object
    document: Document
    path: DocumentPath
    """Path within the document; empty except for the items of a list."""

    def problem(self, finding: Finding) -> Problem | None:
        """Return a finding with its position; None if the file could not be read there."""
        path = (*self.path, *finding.path)
        if any(path[:length] in self.document.unread for length in range(len(path) + 1)):
            return None
        return to_problem(self.obj, finding, self.document.file, self._mark(path))

    def _mark(self, path: DocumentPath) -> Mark:
        """Return the nearest position: a missing field has none."""
        for length in range(len(path), 0, -1):
            mark = self.document.key_mark(path[:length])
            if mark != DOCUMENT_START:
                return mark
        return self.document.mark(())


class _Group(Enum):
    """How far a document was checked."""

    CHECKED = auto()
    PARTLY = auto()
    SKIPPED = auto()
    OTHER = auto()
    REFUSED = auto()
    """Not an object that a cluster would accept, so no rule was applied."""


def lint(documents: Sequence[Document], settings: Settings | None = None) -> LintReport:
    """Return the result of all general rules for documents, which are one set of rendered manifests."""
    groups: dict[_Group, list[str]] = {group: [] for group in _Group}
    problems: list[Problem | None] = []
    usable: list[tuple[_Placed, Object]] = []
    for placed in (placed for document in documents for placed in _objects(document)):
        group, inspection = _inspect(placed.obj, settings.kubernetes if settings else OLDEST_VERSION)
        groups[group].append(placed.document.file if group is _Group.OTHER else placed.obj.title)
        problems += (
            placed.problem(finding)
            for finding in inspection.findings
            if not _is_restrained(finding, placed.obj, settings)
        )
        if inspection.usable is not None:
            usable.append((placed, inspection.usable))
            problems += map(placed.problem, _unlisted_secrets(inspection.usable, settings))
    known = (settings or Settings()).named_objects
    objects = [obj for _, obj in usable]
    for index, finding in references.check_references(objects, known=known, severity=Severity.WARNING):
        problems.append(usable[index][0].problem(finding))
    return LintReport(
        objects=tuple(groups[_Group.CHECKED]),
        partly=tuple(groups[_Group.PARTLY]),
        skipped=tuple(groups[_Group.SKIPPED]),
        others=tuple(groups[_Group.OTHER]),
        problems=tuple(sorted({problem for problem in problems if problem})),
    )


def _objects(document: Document) -> Iterator[_Placed]:
    data = document.data
    if (
        isinstance(data, dict)
        and str(data.get("kind", "")).endswith("List")
        and isinstance(data.get("items"), list)
    ):
        for index, item in enumerate(data["items"]):
            yield _Placed(_object(item), document, ("items", index))
        return
    yield _Placed(_object(data), document, ())


def _object(data: Any) -> Object:
    manifest = without_sealed(data) if isinstance(data, dict) else {"items": data}
    status = schema.kind_status(str(manifest.get("apiVersion")), str(manifest.get("kind")))
    return Object(manifest, is_known=status is not KindStatus.SKIPPED)


def _inspect(obj: Object, since: tuple[int, int]) -> tuple[_Group, Inspection]:
    """Return how far an object was checked, and the findings of its schema and of the rules."""
    if not isinstance(obj.data.get("apiVersion"), str) or not isinstance(obj.data.get("kind"), str):
        return _nameless(obj)
    if obj.api.startswith(SOURCES):
        message = "skipped: a source; build it and check what it renders"
        return _Group.SKIPPED, Inspection((_warning(message, ("kind",)),))
    kind = str(obj.data["kind"])
    match schema.kind_status(obj.api, kind):
        case KindStatus.UNKNOWN:
            message = f"must be a kind of a supported Kubernetes, got {kind!r} of {obj.api!r}"
            return _Group.REFUSED, Inspection((Finding(("apiVersion",), message, UNKNOWN),))
        case KindStatus.SKIPPED:
            warning = _warning(f"skipped: no schema for {kind} of {obj.api}", ("kind",))
            return _apply_rules(obj, _Group.SKIPPED, (warning,), since)
        case KindStatus.KNOWN:
            return _apply_rules(obj, _Group.CHECKED, (), since)


def _nameless(obj: Object) -> tuple[_Group, Inspection]:
    if _is_meant(obj.data):
        hint = "rendered manifests only: kustomize build, helm template"
        message = "must be an object with apiVersion and kind"
        return _Group.REFUSED, Inspection((Finding((), message, MALFORMED, hint),))
    warning = _warning("skipped: not a manifest, it has neither apiVersion nor kind", ())
    return _Group.OTHER, Inspection((warning,))


def _is_meant(data: Any) -> bool:
    """Return whether a document is probably a manifest with a missing or misspelt key."""
    if isinstance(data, dict) and data.get("kind") in CONFIGURATIONS:
        return False
    if isinstance(data, dict):
        return any(str(key).casefold() in MANIFEST_KEYS for key in data) or _is_meant(data.get("items"))
    return isinstance(data, list) and any(isinstance(item, dict) and _is_meant(item) for item in data)


def _warning(message: str, path: DocumentPath) -> Finding:
    return Finding(path, message, SKIPPED, severity=Severity.WARNING)


def _apply_rules(
    obj: Object, group: _Group, findings: tuple[Finding, ...], since: tuple[int, int]
) -> tuple[_Group, Inspection]:
    check = partial(_malformed, since=since)
    malformed = check(obj)
    usable = schema.usable_part(obj, malformed, check) if malformed else obj
    if usable is None:
        return (_Group.PARTLY if group is _Group.CHECKED else group), Inspection(
            (*findings, *_with_rest_hint(malformed))
        )
    return group, Inspection((*findings, *malformed, *registry.findings(usable)), usable)


def _with_rest_hint(malformed: tuple[Finding, ...]) -> Iterator[Finding]:
    """Yield the findings; the hint of the first that prevents other checks explains that."""
    first = next(finding for finding in malformed if not finding.is_surplus)
    for finding in malformed:
        hint = "; ".join(part for part in (finding.hint, REST) if part)
        yield replace(finding, hint=hint) if finding is first else finding


def _malformed(obj: Object, since: tuple[int, int]) -> tuple[Finding, ...]:
    if obj.is_known:
        return tuple(schema.findings(obj.api, obj.kind, obj.data, since=since))
    return (*schema.metadata_findings(obj.data), *_malformed_pods(obj))


def _malformed_pods(obj: Object) -> Iterator[Finding]:
    for pod in obj.pods:
        for finding in schema.template_findings({"metadata": pod.metadata, "spec": pod.spec}):
            yield replace(finding, path=(*pod.path, *finding.path))


def _is_restrained(finding: Finding, obj: Object, settings: Settings | None) -> bool:
    """Return whether a finding is the collector's right to patch pods: a policy leaves of it one finalizer."""
    return (
        finding.code == RBAC_CODE
        and settings is not None
        and settings.results.store.holds_pods
        and (obj.kind, obj.name) == ("Role", COLLECTOR_READS)
        and obj.metadata.get("namespace") == settings.namespace
        and any(
            (rule.get("apiGroups"), rule.get("resources")) == ([""], ["pods"])
            and rule.get("verbs") == ["get", "list", "patch"]
            for rule in [obj.data["rules"][finding.path[1]]]
        )
    )


def _unlisted_secrets(obj: Object, settings: Settings | None) -> Iterator[Finding]:
    """Yield Secrets that pods in the namespace of trials mount although the settings do not list them."""
    if settings is None or obj.metadata.get("namespace") != settings.namespace:
        return
    for pod in obj.pods:
        is_expiry = (
            settings.results.keep_days is not None and pod.spec.get("serviceAccountName") == EXPIRY_ACCOUNT
        )
        allowed = settings.mountable_secrets | ({GIT_READ_SECRET} if is_expiry else frozenset())
        for index, volume in enumerate(pod.volumes):
            for path, name in _secrets(volume):
                if name not in allowed:
                    message = f"must be a Secret that sweepledger.yaml lists, got {name!r}"
                    yield Finding((*pod.at, "volumes", index, *path), message, NOT_LISTED)


def _secrets(volume: Manifest) -> Iterator[tuple[DocumentPath, Any]]:
    if volume.get("secret"):
        yield ("secret", "secretName"), volume["secret"].get("secretName")
    for index, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
        if source.get("secret"):
            yield ("projected", "sources", index, "secret"), source["secret"].get("name")


ADDED = "sops"
"""The key with the recipients of the encrypted values, which is removed when these are decrypted."""
_LETTERS = r"[A-Za-z0-9+/]*={0,2}"
_SEALED = re.compile(rf"ENC\[AES256_GCM,data:{_LETTERS},iv:{_LETTERS},tag:{_LETTERS},type:str\]", re.ASCII)


def without_sealed(data: Manifest) -> Manifest:
    """Return a manifest without what SOPS has encrypted and added, if it is a Secret with no value in the clear."""
    if data.get("kind") != "Secret" or not _is_sealed(data):
        return data
    return {key: value for key, value in data.items() if key not in {ADDED, "data", "stringData"}}


def _is_sealed(data: Manifest) -> bool:
    added = data.get(ADDED)
    values = [value for key in ("data", "stringData") for value in _values(data.get(key))]
    return (
        isinstance(added, Mapping)
        and bool(values)
        and all(isinstance(value, str) and _SEALED.fullmatch(value) for value in [added.get("mac"), *values])
    )


def _values(table: Any) -> list[Any]:
    """Return the values of a table; anything else is a value itself, unless there is none."""
    return [*table.values()] if isinstance(table, Mapping) else [] if table is None else [table]
