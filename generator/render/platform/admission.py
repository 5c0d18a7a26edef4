"""Admission policies: what a cluster refuses to run as a trial even if it was merged, and why."""

from collections.abc import Mapping, Sequence

from generator.render.platform import admission_objects, admission_pods, admission_rules, expiry, kinds
from generator.render.platform.admission_rules import Rule
from generator.render.platform.names import NAMESPACE_LABEL, Manifest, Names, manifest
from generator.render.platform.source import Source
from generator.structs.kinds import JOB, Kind
from generator.structs.settings import Settings

REGISTRATION = "admissionregistration.k8s.io/v1"
KUSTOMIZATION = Kind("kustomize.toolkit.fluxcd.io", "v1", "Kustomization", "kustomizations")
POD = Kind("", "v1", "Pod", "pods")

LABELS = "(has({0}.metadata.labels) ? {0}.metadata.labels : {{}})"
ASKS = (
    "request.operation == 'CREATE' || object.spec != oldObject.spec"
    f" || {LABELS.format('object')} != {LABELS.format('oldObject')}"
)
"""An update that asks for nothing is let through: what stands since other settings must come to its end,
and a finalizer is taken off by an update."""


def trials(settings: Settings, source: Source, bases: Mapping[str, bytes]) -> list[Manifest]:
    """Judge Jobs, where a person reads the refusal, and pods, whoever makes them.

    Custom kinds are judged by themselves alone: the Jobs and pods that they start are judged as any other.
    """
    names = Names.of(settings)
    jobs = (
        *admission_pods.in_jobs(settings, source, bases),
        *admission_objects.of_jobs(settings, source),
    )
    pods = admission_pods.in_pods(settings, source, bases)
    made = [
        _made(f"{names.trials}-trial-jobs", JOB, jobs, settings, "object.spec.template"),
        _made(f"{names.trials}-trial-pods", POD, pods, settings, "object"),
    ]
    if settings.results.keep_days is not None:
        for policy, is_pod in zip(made, (False, True), strict=True):
            own = expiry.is_expiry(settings, source, bases, is_pod=is_pod)
            policy["spec"]["matchConditions"].append({"name": "is-a-trials", "expression": f"!({own})"})
    for kind in kinds.chosen(source):
        rules = admission_objects.of_kind(kind, settings)
        made.append(_made(f"{names.trials}-{kind.plural}", kind, rules, settings))
    return [one for policy in made for one in (policy, _binding(policy, names.trials, settings))]


def kustomizations(settings: Settings) -> list[Manifest]:
    """Judge what Flux is asked for: one without a service account would be applied with Flux's own rights."""
    names = Names.of(settings)
    rules = admission_objects.of_kustomizations()
    policy = _made(f"{names.trials}-flux-batches", KUSTOMIZATION, rules, settings)
    return [policy, _binding(policy, names.flux, settings)]


def _made(
    name: str, kind: Kind, rules: Sequence[Rule], settings: Settings, template: str | None = None
) -> Manifest:
    matched = {
        "apiGroups": [kind.group],
        # A custom kind has versions that come and go; beware: the server checks no types then.
        "apiVersions": ["*" if template is None else "v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": [kind.plural],
    }
    named = {} if template is None else {"variables": admission_rules.variables(template)}
    return manifest(
        f"{REGISTRATION}/ValidatingAdmissionPolicy",
        name,
        settings,
        spec={
            "failurePolicy": "Fail",
            "matchConstraints": {"matchPolicy": "Equivalent", "resourceRules": [matched]},
            "matchConditions": [{"name": "asks-for-something", "expression": ASKS}],
            **named,
            "validations": [
                {"expression": rule.expression, "message": rule.message, "reason": "Forbidden"}
                for rule in rules
            ],
        },
    )


def _binding(policy: Manifest, namespace: str, settings: Settings) -> Manifest:
    name = policy["metadata"]["name"]
    selected = {"namespaceSelector": {"matchLabels": {NAMESPACE_LABEL: namespace}}}
    return manifest(
        f"{REGISTRATION}/ValidatingAdmissionPolicyBinding",
        name,
        settings,
        spec={"policyName": name, "validationActions": ["Deny"], "matchResources": selected},
    )
