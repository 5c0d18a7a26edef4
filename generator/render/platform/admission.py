"""Admission policies: what a cluster refuses to run as a trial even if it was merged, and why."""

from generator.render.platform import admission_rules
from generator.render.platform.admission_rules import Rule
from generator.render.platform.names import NAMESPACE_LABEL, Manifest, Names, manifest
from generator.render.platform.source import Source
from generator.structs.settings import Settings

REGISTRATION = "admissionregistration.k8s.io/v1"


def trials(settings: Settings, source: Source) -> list[Manifest]:
    """Judge Jobs, where a person reads the refusal, and pods, whoever makes them."""
    names = Names.of(settings)
    pods = admission_rules.of_pods(settings, source)
    jobs = (*pods, *admission_rules.of_jobs(settings, source))
    return [
        *_policy(f"{names.trials}-trial-jobs", "jobs", "object.spec.template.spec", jobs, settings),
        *_policy(f"{names.trials}-trial-pods", "pods", "object.spec", pods, settings),
    ]


def kustomizations(settings: Settings) -> list[Manifest]:
    """Judge what Flux is asked for: one without a service account would be applied with Flux's own rights."""
    name = f"{Names.of(settings).trials}-flux-batches"
    group = ("kustomize.toolkit.fluxcd.io", "kustomizations")
    policy = _made(name, group, admission_rules.of_kustomizations(), settings)
    return [policy, _binding(name, Names.of(settings).flux, settings)]


def _policy(
    name: str, resource: str, pod: str, rules: tuple[Rule, ...], settings: Settings
) -> list[Manifest]:
    group = ("batch" if resource == "jobs" else "", resource)
    policy = _made(name, group, rules, settings)
    policy["spec"]["variables"] = admission_rules.variables(pod)
    return [policy, _binding(name, Names.of(settings).trials, settings)]


def _made(name: str, resource: tuple[str, str], rules: tuple[Rule, ...], settings: Settings) -> Manifest:
    group, plural = resource
    version = "v1"
    matched = {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": ["CREATE", "UPDATE"],
        "resources": [plural],
    }
    return manifest(
        f"{REGISTRATION}/ValidatingAdmissionPolicy",
        name,
        settings,
        spec={
            "failurePolicy": "Fail",
            "matchConstraints": {"matchPolicy": "Equivalent", "resourceRules": [matched]},
            "validations": [
                {"expression": rule.expression, "message": rule.message, "reason": "Forbidden"}
                for rule in rules
            ],
        },
    )


def _binding(name: str, namespace: str, settings: Settings) -> Manifest:
    selected = {"namespaceSelector": {"matchLabels": {NAMESPACE_LABEL: namespace}}}
    return manifest(
        f"{REGISTRATION}/ValidatingAdmissionPolicyBinding",
        name,
        settings,
        spec={"policyName": name, "validationActions": ["Deny"], "matchResources": selected},
    )
