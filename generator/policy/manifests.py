"""Rules for what an overlay of a batch may render: all that holds for anybody's, and what makes it ours."""

from collections.abc import Iterator

from generator.policy import jobs, rules, schema, shape
from generator.policy.findings import Finding
from generator.policy.rules import references
from generator.policy.shape import MALFORMED, Manifest, Shape, compare
from generator.policy.trials import ACCOUNT, Trials, trainer
from generator.policy.workloads import Object
from generator.problems import Problem, Severity
from generator.reader.paths import Path, dotted
from generator.structs.settings import Settings

ALLOWED = "kind-not-allowed"


def check(
    batch: str, settings: Settings, manifests: tuple[Manifest, ...], *, place: str
) -> tuple[Problem, ...]:
    """Hold what a batch renders against the rules; `place` is what the problems name as file."""
    things = tuple(map(Object, manifests))
    config_maps = frozenset(thing.name for thing in things if thing.kind == "ConfigMap")
    shapes, pods = shape.objects(settings), shape.template(settings, distributed=True)
    trials = Trials(batch, settings, config_maps)
    problems: list[Problem] = []
    sound: list[Object] = []
    for thing in things:
        found = tuple(_findings(thing, shapes.get((thing.api, thing.kind)), pods, trials))
        problems += [_problem(place, thing, finding) for finding in found]
        if not {finding.code for finding in found} & {MALFORMED, ALLOWED}:
            sound.append(thing)
    known = {("ServiceAccount", ACCOUNT)}
    for index, finding in references.check(sound, known=known, severity=Severity.ERROR):
        problems.append(_problem(place, sound[index], finding))
    return tuple(dict.fromkeys(problems))


def _problem(place: str, thing: Object, finding: Finding) -> Problem:
    where = f"{thing.title}.{dotted(finding.path)}" if finding.path else thing.title
    return Problem(place, 0, 0, where, finding.message, finding.code, finding.hint)


def _findings(thing: Object, known: Shape, pods: Shape, trials: Trials) -> Iterator[Finding]:
    if known is None:
        message = f"must be a kind that batches have, got {thing.kind!r} of {thing.api!r}"
        yield Finding((), message, ALLOWED, "ConfigMaps, Jobs, and the kinds of distributed trials")
        return
    compared = tuple(compare(thing.data, known))
    yield from compared
    if any(finding.code == MALFORMED for finding in compared):
        return  # the other rules rely on mappings being mappings
    yield from _metadata(thing, trials)
    malformed = tuple(schema.findings(thing.api, thing.kind, thing.data))
    yield from malformed
    if malformed:
        return
    yield from rules.findings(thing)
    yield from _ours(thing, pods, trials)


def _ours(thing: Object, pods: Shape, trials: Trials) -> Iterator[Finding]:
    if thing.kind == "ConfigMap" and thing.data.get("immutable") is not True:
        yield Finding(("immutable",), "must be true: a running Job reads it", "config-map-mutable")
    if thing.kind == "Job":
        yield from jobs.rules(thing.data)
    if thing.kind == "TrainJob":
        for container in thing.containers:
            yield from trainer(container)
    for pod in thing.pods:
        if thing.kind != "Job":
            strange = tuple(compare({"metadata": pod.metadata, "spec": pod.spec}, pods))
            yield from (_below(pod.path, finding) for finding in strange)
            if any(finding.code == MALFORMED for finding in strange):
                continue
        yield from trials.rules(thing.kind, pod)


def _below(path: Path, finding: Finding) -> Finding:
    code = "pod-not-restricted" if finding.code == "key-not-allowed" else finding.code
    return Finding((*path, *finding.path), finding.message, code, finding.hint)


def _metadata(thing: Object, trials: Trials) -> Iterator[Finding]:
    name, batch, namespace = thing.name, trials.batch, trials.settings.namespace
    if name != batch and not name.startswith(f"{batch}-"):
        message = f"must begin with the batch's name {batch!r}, got {name!r}"
        yield Finding(("metadata", "name"), message, "name-not-ours")
    found = thing.metadata.get("namespace")
    if found != namespace:
        yield Finding(("metadata", "namespace"), f"must be {namespace!r}, got {found!r}", "namespace-wrong")
