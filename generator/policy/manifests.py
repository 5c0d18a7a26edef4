"""Ours: what an overlay of a batch may render. `sweep check`, `sweep submit` and `sweep local` ask here.

Only how the rules come together and where their findings stand. What holds for anybody's is in `rules/` and
called here; what makes an object a batch's is in `ours/`; `anybodys.py` asks nothing of ours.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from generator.policy import ours, rules, schema
from generator.policy.findings import Finding
from generator.policy.ours import form
from generator.policy.ours.form import MALFORMED, Form, compare
from generator.policy.ours.labels import CODE as LABEL
from generator.policy.ours.trials import Trials, index
from generator.policy.rules import references
from generator.policy.workloads import Manifest, Object
from generator.problems import Problem, Severity
from generator.reader.paths import Path, dotted
from generator.reader.shown import shown
from generator.structs.labels import INDEX_LABEL, TRIAL_ACCOUNT
from generator.structs.settings import Settings

ALLOWED = "kind-not-allowed"
NOBODYS: Mapping[int, str] = MappingProxyType({})
WITHOUT_TRIAL = frozenset({"ConfigMap", "TrainingRuntime"})


@dataclass(frozen=True, slots=True)
class _Looked:
    """What was found in an object, and the object if others may rely on it."""

    findings: tuple[Finding, ...]
    sound: Object | None = None


def check(
    batch: str,
    settings: Settings,
    manifests: tuple[Manifest, ...],
    *,
    place: str,
    image: str | None = None,
    parent_folders: Mapping[int, str] = NOBODYS,
) -> tuple[Problem, ...]:
    """Hold what a batch renders against the rules; `place` is what the problems name as file.

    `image` is what its containers must run, by its lock; None leaves that to who compares with the lock.
    `parent_folders` are those whose checkpoints its trials may read, by their rows.
    """
    things = tuple(map(Object, manifests))
    config_maps = frozenset(thing.name for thing in things if thing.kind == "ConfigMap")
    forms, pods = form.objects(settings), form.template(settings, distributed=True)
    trials = Trials(batch, settings, config_maps, image, parent_folders)
    problems: list[Problem] = []
    sound: list[Object] = []
    for thing in things:
        looked = _look(thing, forms.get((thing.api, thing.kind)), pods, trials)
        problems += [_problem(place, thing, finding) for finding in looked.findings]
        sound += [looked.sound] if looked.sound is not None else []
    known = {("ServiceAccount", TRIAL_ACCOUNT)}
    together = references.check(sound, known=known, severity=Severity.ERROR)
    problems += [_problem(place, sound[number], finding) for number, finding in together]
    problems += [_problem(place, thing, finding) for thing, finding in _twice(sound)]
    return tuple(dict.fromkeys(problems))


def _problem(place: str, thing: Object, finding: Finding) -> Problem:
    where = ".".join(part for part in (thing.title, dotted(finding.path)) if part)
    return Problem(place, 0, 0, where, finding.message, finding.code, finding.hint)


def _twice(things: list[Object]) -> Iterator[tuple[Object, Finding]]:
    """Two objects of one trial would write into one folder."""
    first: dict[str, str] = {}
    for thing in things:
        number = None if thing.kind in WITHOUT_TRIAL else index(thing)
        if number is not None and first.setdefault(number, thing.name) != thing.name:
            message = f"must be a trial of its own, got {shown(number)} as {first[number]} has it"
            yield thing, Finding(("metadata", "labels", INDEX_LABEL), message, LABEL)


def _look(thing: Object, known: Form, pods: Form, trials: Trials) -> _Looked:
    """Ask the form, then the schema, then the rules: each relies on those before it."""
    if known is None:
        message = f"must be a kind that batches have, got {shown(thing.kind)} of {shown(thing.api)}"
        hint = "ConfigMaps, Jobs, and the kinds of distributed trials"
        return _Looked((Finding((), message, ALLOWED, hint),))
    compared = (*compare(thing.data, known), *_metadata(thing, trials))
    if any(finding.code == MALFORMED for finding in compared):
        return _Looked(compared)
    told = {finding.path for finding in compared}
    malformed = tuple(schema.findings(thing.api, thing.kind, thing.data))
    found = (*compared, *(finding for finding in malformed if finding.path not in told))
    if malformed:
        thing = Object(schema.without(thing.data, (each for each in malformed if each.is_surplus)))
        if any(schema.findings(thing.api, thing.kind, thing.data)):
            return _Looked(found)
    strange = tuple(_strange(thing, pods))
    found = (*found, *strange)
    if any(finding.code == MALFORMED for finding in strange):
        return _Looked(found)
    told_why = tuple(rules.findings(thing))  # no place is told twice, and these say more
    told = {finding.path for finding in told_why}
    others = (*found, *ours.findings(thing, trials))
    return _Looked((*told_why, *(finding for finding in others if finding.path not in told)), thing)


def _strange(thing: Object, pods: Form) -> Iterator[Finding]:
    """Look at the pods of kinds around which only a schema knows the form."""
    for pod in thing.pods if thing.kind != "Job" else ():
        for finding in compare({"metadata": pod.metadata, "spec": pod.spec}, pods):
            yield _below(pod.path, finding)


def _below(path: Path, finding: Finding) -> Finding:
    code = "pod-not-restricted" if finding.code == "key-not-allowed" else finding.code
    return Finding((*path, *finding.path), finding.message, code, finding.hint)


def _metadata(thing: Object, trials: Trials) -> Iterator[Finding]:
    name, batch, namespace = thing.name, trials.batch, trials.settings.namespace
    if name != batch and not name.startswith(f"{batch}-"):
        message = f"must begin with the batch's name {batch!r}, got {shown(name)}"
        yield Finding(("metadata", "name"), message, "name-not-ours")
    found = thing.metadata.get("namespace")
    if found != namespace:
        message = f"must be {namespace!r}, got {shown(found)}"
        yield Finding(("metadata", "namespace"), message, "namespace-wrong")
