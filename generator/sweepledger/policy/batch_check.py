"""Check of the manifests that a batch's overlay renders, for `sweep check`, `submit` and `local`.

Applies in this order: allowed keys, schema, the general rules in `rules/`, those for batches in
`batch_rules/`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType

from sweepledger.policy import schema
from sweepledger.policy.batch_rules import allowed_keys, identity, placement, volumes, workloads
from sweepledger.policy.batch_rules.allowed_keys import Form, compare, compare_pods
from sweepledger.policy.batch_rules.identity import BatchContext, check_duplicates, check_metadata
from sweepledger.policy.objects import BATCH_MANIFEST, Finding, Object, to_problem
from sweepledger.policy.rules import containers, gitops, jobs, references, resources, security, storage
from sweepledger.policy.schema import MALFORMED
from sweepledger.problems import Problem
from sweepledger.reader.messages import safe_repr
from sweepledger.structs.kubernetes import Manifest
from sweepledger.structs.settings import Settings

NO_PARENTS: Mapping[int, str] = MappingProxyType({})
RULES: tuple[Callable[[Object], Iterator[Finding]], ...] = (
    resources.check,
    containers.check_environment,
    gitops.check,
    security.check_hardening,
    containers.check_images,
    jobs.check,
    security.check_restricted,
    storage.check_volumes,
)
"""The general rules that need no other object."""


def check_batch(
    batch: str,
    settings: Settings,
    manifests: tuple[Manifest, ...],
    *,
    file: str,
    image: str | None = None,
    parent_folders: Mapping[int, str] = NO_PARENTS,
) -> tuple[Problem, ...]:
    """Return the problems of the manifests that a batch renders; problems name `file`.

    `image` is the image that its containers must run; None if the caller compares images with the lock.
    `parent_folders` are the folders whose checkpoints trials may read, by index.
    """
    objects = tuple(map(Object, manifests))
    config_maps = frozenset(obj.name for obj in objects if obj.kind == "ConfigMap")
    forms, pods = allowed_keys.objects(settings), allowed_keys.template(settings, distributed=True)
    trials = BatchContext(batch, settings, config_maps, image, parent_folders)
    problems: list[Problem] = []
    usable: list[Object] = []
    for obj in objects:
        findings, rest = _inspect(obj, forms.get((obj.api, obj.kind)), pods, trials)
        problems += [to_problem(obj, finding, file) for finding in findings]
        usable += [] if rest is None else [rest]
    trusted = settings.network.authorities
    named = {("ServiceAccount", account) for account in settings.trials.trial_accounts}
    named |= set() if trusted is None else {("ConfigMap", trusted.config_map)}
    together = references.check_references(usable, known=named)
    problems += [to_problem(usable[number], finding, file) for number, finding in together]
    problems += [to_problem(obj, finding, file) for obj, finding in check_duplicates(usable)]
    return tuple(dict.fromkeys(problems))


def _inspect(
    obj: Object, form: Form, pods: Form, trials: BatchContext
) -> tuple[tuple[Finding, ...], Object | None]:
    """Return the findings in an object, and what later rules can rely on: it without surplus fields, if that is valid.

    The findings are those of allowed keys, schema and rules, each of which relies on those before it.
    """
    if form is None:
        message = f"must be a kind that batches have, got {safe_repr(obj.kind)} of {safe_repr(obj.api)}"
        hint = "ConfigMaps, Jobs, and the kinds of distributed trials"
        return (Finding((), message, BATCH_MANIFEST, hint),), None
    compared = (*compare(obj.data, form), *check_metadata(obj, trials))
    if any(finding.code == MALFORMED for finding in compared):
        return compared, None

    def check(obj: Object) -> Iterator[Finding]:
        return schema.findings(obj.api, obj.kind, obj.data, since=trials.settings.platform.kubernetes)

    malformed = tuple(check(obj))
    findings = (*compared, *_at_other_paths(malformed, compared))
    usable = schema.usable_part(obj, malformed, check) if malformed else obj
    if usable is None:
        return findings, None
    # Of a Job, they have been compared with its own keys.
    in_pods = tuple(compare_pods(usable, pods)) if usable.kind != "Job" else ()
    findings = (*findings, *in_pods)
    if any(finding.code == MALFORMED for finding in in_pods):
        return findings, None
    general = tuple(finding for rule in RULES for finding in rule(usable))
    # One finding per path; those of the general rules explain more.
    others = _at_other_paths((*findings, *batch_findings(usable, trials)), general)
    return (*general, *others), usable


def _at_other_paths(findings: Iterable[Finding], known: Iterable[Finding]) -> Iterator[Finding]:
    paths = {finding.path for finding in known}
    yield from (finding for finding in findings if finding.path not in paths)


def batch_findings(obj: Object, trials: BatchContext) -> Iterator[Finding]:
    """Yield the findings of the rules for objects of a batch."""
    if obj.kind == "ConfigMap" and obj.data.get("immutable") is not True:
        yield Finding(("immutable",), "must be true: a running Job reads it", BATCH_MANIFEST)
    if obj.kind == "Job":
        yield from workloads.check_job(obj.data)
    yield from identity.check_labels(obj, trials)
    yield from placement.check(obj, trials)
    yield from workloads.check_pods(obj, trials)
    yield from volumes.check(obj, trials)
