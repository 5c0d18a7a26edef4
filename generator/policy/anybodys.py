"""Anybody's: rendered manifests of people who never met us. `sweep lint` asks here.

Only how the rules come together and where their findings stand in files. No rule, and nothing of a batch:
what holds for all is in `rules/`, what makes an object a batch's in `ours/`; `manifests.py` asks both.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any

from generator.policy import rules, schema
from generator.policy.findings import Finding
from generator.policy.rules import references
from generator.policy.schema import MALFORMED, SKIPPED, UNKNOWN, Standing
from generator.policy.workloads import Manifest, Object
from generator.problems import Problem, Severity
from generator.reader.document import TOP, Document
from generator.reader.nodes import Mark
from generator.reader.paths import Path, dotted
from generator.structs.labels import TRIAL_ACCOUNT
from generator.structs.settings import Settings

NOT_LISTED = "secret-not-listed"

SOURCES = "kustomize.config.k8s.io/"
"""Of what stands among manifests in a repository and never reaches a cluster."""

SIGNS = frozenset({"apiversion", "kind", "metadata", "spec"})
"""A document with none of these keys, however they are written, was never meant for a cluster."""
REST = "the other rules look at it when its fields are right"


@dataclass(frozen=True, slots=True)
class Manifests:
    """What was found in rendered manifests."""

    objects: tuple[str, ...]
    """Every object that was judged by all rules, by kind and name."""
    partly: tuple[str, ...]
    """Every object that only its schema was asked about: as it breaks that, no rule could read the rest."""
    skipped: tuple[str, ...]
    """Every object of a kind that has no schema here: only what it shares with others was looked at."""
    others: tuple[str, ...]
    """Every file with a document that is no manifest at all."""
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class _Placed:
    """An object, and where in a file it stands."""

    thing: Object
    document: Document
    path: Path
    """Within the document: not its top for the items of a list."""

    def problem(self, finding: Finding) -> Problem | None:
        """Give a finding its place; None where the place could not even be read."""
        path = (*self.path, *finding.path)
        if any(path[:length] in self.document.unread for length in range(len(path) + 1)):
            return None
        mark = self._mark(path)
        where = ".".join(part for part in (self.thing.title, dotted(finding.path)) if part)
        message = finding.message
        return Problem(
            self.document.file, *mark, where, message, finding.code, finding.hint, finding.severity
        )

    def _mark(self, path: Path) -> Mark:
        """Find the nearest place: what is missing has none of its own."""
        for length in range(len(path), 0, -1):
            found = self.document.key_mark(path[:length])
            if found != TOP:
                return found
        return self.document.mark(())


class _Group(Enum):
    """What may be said of a document when it has been looked at."""

    JUDGED = auto()
    PARTLY = auto()
    SKIPPED = auto()
    OTHER = auto()
    REFUSED = auto()
    """No object that a cluster would take, so nothing was asked about it."""


@dataclass(frozen=True, slots=True)
class _Looked:
    """What was found in an object, and the object if others may rely on it."""

    group: _Group
    findings: tuple[Finding, ...]
    sound: Object | None = None


def lint(documents: Sequence[Document], settings: Settings | None = None) -> Manifests:
    """Hold documents against every rule that asks for nothing of ours; they are one rendered set."""
    groups: dict[_Group, list[str]] = {group: [] for group in _Group}
    problems: list[Problem | None] = []
    sound: list[tuple[_Placed, Object]] = []
    for each in (each for document in documents for each in _objects(document)):
        looked = _look(each.thing)
        groups[looked.group].append(each.document.file if looked.group is _Group.OTHER else each.thing.title)
        problems += map(each.problem, looked.findings)
        if looked.sound is not None:
            sound.append((each, looked.sound))
            problems += map(each.problem, _listed(looked.sound, settings))
    known = {("ServiceAccount", TRIAL_ACCOUNT)}
    things = [thing for _, thing in sound]
    for index, finding in references.check(things, known=known, severity=Severity.WARNING):
        problems.append(sound[index][0].problem(finding))
    return Manifests(
        objects=tuple(groups[_Group.JUDGED]),
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
    found = data if isinstance(data, dict) else {"items": data}
    standing = schema.standing(str(found.get("apiVersion")), str(found.get("kind")))
    return Object(found, is_known=standing is not Standing.SKIPPED)


def _look(thing: Object) -> _Looked:
    """Say what an object is, hold it against its schema, and what is left of it against the rules."""
    if not isinstance(thing.data.get("apiVersion"), str) or not isinstance(thing.data.get("kind"), str):
        return _nameless(thing)
    if thing.api.startswith(SOURCES):
        message = "skipped: a source; build it and check what it renders"
        return _Looked(_Group.SKIPPED, (_warning(message, ("kind",)),))
    kind = str(thing.data["kind"])
    match schema.standing(thing.api, kind):
        case Standing.UNKNOWN:
            message = f"must be a kind of a supported Kubernetes, got {kind!r} of {thing.api!r}"
            return _Looked(_Group.REFUSED, (Finding(("apiVersion",), message, UNKNOWN),))
        case Standing.SKIPPED:
            told = (_warning(f"skipped: no schema for {kind} of {thing.api}", ("kind",)),)
            return _judged(thing, _Group.SKIPPED, told)
        case Standing.KNOWN:
            return _judged(thing, _Group.JUDGED, ())


def _nameless(thing: Object) -> _Looked:
    if _is_meant(thing.data):
        hint = "rendered manifests only: kustomize build, helm template"
        message = "must be an object with apiVersion and kind"
        return _Looked(_Group.REFUSED, (Finding((), message, MALFORMED, hint),))
    return _Looked(
        _Group.OTHER, (_warning("skipped: no manifest, as it has neither apiVersion nor kind", ()),)
    )


def _is_meant(data: Any) -> bool:
    """Tell a manifest with something missing or misspelt from a file that was never meant to be one."""
    if isinstance(data, dict):
        return any(str(key).casefold() in SIGNS for key in data) or _is_meant(data.get("items"))
    return isinstance(data, list) and any(isinstance(item, dict) and _is_meant(item) for item in data)


def _warning(message: str, path: Path) -> Finding:
    return Finding(path, message, SKIPPED, severity=Severity.WARNING)


def _judged(thing: Object, group: _Group, told: tuple[Finding, ...]) -> _Looked:
    malformed = _malformed(thing)
    if malformed:
        told = (*told, *malformed)
        left = schema.without(thing.data, (finding for finding in malformed if finding.is_surplus))
        thing = Object(left, is_known=thing.is_known)
        if _malformed(thing):
            first = next(finding for finding in malformed if not finding.is_surplus)
            said = first.hint or ""
            hint = f"{said}; {REST}" if said else REST
            told = tuple(replace(each, hint=hint) if each is first else each for each in told)
            return _Looked(_Group.PARTLY if group is _Group.JUDGED else group, told)
    return _Looked(group, (*told, *rules.findings(thing)), thing)


def _malformed(thing: Object) -> tuple[Finding, ...]:
    if thing.is_known:
        return tuple(schema.findings(thing.api, thing.kind, thing.data))
    return (*schema.metadata_findings(thing.data), *_strange_pods(thing))


def _strange_pods(thing: Object) -> Iterator[Finding]:
    for pod in thing.pods:
        for finding in schema.template_findings({"metadata": pod.metadata, "spec": pod.spec}):
            yield replace(finding, path=(*pod.path, *finding.path))


def _listed(thing: Object, settings: Settings | None) -> Iterator[Finding]:
    """Beside the trials of a repository, pods mount the Secrets that its settings list, and no other."""
    if settings is None or thing.metadata.get("namespace") != settings.namespace:
        return
    allowed = {secret.secret for secret in settings.secrets.values()}
    allowed |= {settings.code.secret} if settings.code is not None and settings.code.secret else set()
    for pod in thing.pods:
        for index, volume in enumerate(pod.volumes):
            for path, name in _secrets(volume):
                if name not in allowed:
                    message = f"must be a Secret that sweepledger.yaml lists, got {name!r}"
                    yield Finding((*pod.at, "volumes", index, *path), message, NOT_LISTED)


def _secrets(volume: Manifest) -> Iterator[tuple[Path, Any]]:
    if volume.get("secret"):
        yield ("secret", "secretName"), volume["secret"].get("secretName")
    for index, source in enumerate((volume.get("projected") or {}).get("sources") or ()):
        if source.get("secret"):
            yield ("projected", "sources", index, "secret"), source["secret"].get("name")
