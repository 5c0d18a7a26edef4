"""Anybody's rendered manifests: what holds for ours, as far as it can hold for those who never met us."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from generator.policy import rules, schema
from generator.policy.findings import Finding
from generator.policy.rules import references
from generator.policy.schema import MALFORMED, SKIPPED, UNKNOWN, Standing
from generator.policy.trials import ACCOUNT
from generator.policy.workloads import Manifest, Object
from generator.problems import Problem, Severity
from generator.reader.document import TOP, Document
from generator.reader.nodes import Mark
from generator.reader.paths import Path, dotted
from generator.structs.settings import Settings

NOT_LISTED = "secret-not-listed"

SOURCES = "kustomize.config.k8s.io/"
"""Of what stands among manifests in a repository and never reaches a cluster."""


@dataclass(frozen=True, slots=True)
class Manifests:
    """What was found in rendered manifests."""

    objects: tuple[str, ...]
    """Every object that was judged by its schema, by kind and name."""
    skipped: tuple[str, ...]
    """Every object of a kind that has no schema here: only what it shares with others was looked at."""
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
        where = f"{self.thing.title}.{dotted(finding.path)}" if finding.path else self.thing.title
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


def lint(documents: Sequence[Document], settings: Settings | None = None) -> Manifests:
    """Hold documents against every rule that asks for nothing of ours; they are one rendered set."""
    placed = [each for document in documents for each in _objects(document)]
    problems: list[Problem | None] = []
    sound: list[_Placed] = []
    judged, skipped = [], []
    for each in placed:
        found = tuple(_findings(each.thing))
        problems += map(each.problem, found)
        codes = {finding.code for finding in found}
        if SKIPPED in codes:
            skipped.append(each.thing.title)
        elif UNKNOWN not in codes:
            judged.append(each.thing.title)
        if not codes & {MALFORMED, UNKNOWN} and not each.thing.api.startswith(SOURCES):
            sound.append(each)
            problems += map(each.problem, _listed(each.thing, settings))
    known = {("ServiceAccount", ACCOUNT)}
    things = [each.thing for each in sound]
    for index, finding in references.check(things, known=known, severity=Severity.WARNING):
        problems.append(sound[index].problem(finding))
    return Manifests(
        tuple(judged), tuple(skipped), tuple(sorted({problem for problem in problems if problem}))
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
    found = data if isinstance(data, dict) else {}
    standing = schema.standing(str(found.get("apiVersion")), str(found.get("kind")))
    return Object(found, is_known=standing is not Standing.SKIPPED)


def _findings(thing: Object) -> Iterator[Finding]:
    if not isinstance(thing.data.get("apiVersion"), str) or not isinstance(thing.data.get("kind"), str):
        hint = "rendered manifests only: kustomize build, helm template"
        yield Finding((), "must be an object with apiVersion and kind", MALFORMED, hint)
        return
    if thing.api.startswith(SOURCES):
        message = "skipped: a source; build it and check what it renders"
        yield Finding(("kind",), message, SKIPPED, severity=Severity.WARNING)
        return
    kind = str(thing.data["kind"])
    match schema.standing(thing.api, kind):
        case Standing.UNKNOWN:
            message = f"must be a kind of a supported Kubernetes, got {kind!r} of {thing.api!r}"
            yield Finding(("apiVersion",), message, UNKNOWN)
            return
        case Standing.SKIPPED:
            message = f"skipped: no schema for {kind} of {thing.api}"
            yield Finding(("kind",), message, SKIPPED, severity=Severity.WARNING)
            malformed = (*schema.metadata_findings(thing.data), *_strange_pods(thing))
        case Standing.KNOWN:
            malformed = tuple(schema.findings(thing.api, kind, thing.data))
    yield from malformed
    if not malformed:
        yield from rules.findings(thing)


def _strange_pods(thing: Object) -> Iterator[Finding]:
    for pod in thing.pods:
        for finding in schema.template_findings({"metadata": pod.metadata, "spec": pod.spec}):
            yield Finding((*pod.path, *finding.path), finding.message, finding.code, finding.hint)


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
