"""Admission policies: the files of `base/platform/admission` for one team, with what its settings say."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sweepledger.formats import yaml
from sweepledger.render.manifest import Manifest
from sweepledger.render.platform import admission_lists, cron_jobs
from sweepledger.render.platform.flux import active_folder
from sweepledger.render.platform.objects import NAMESPACE_LABEL, Names, labels, manifest
from sweepledger.render.platform.source import GitSource
from sweepledger.structs.kubernetes import COLLECTOR_ACCOUNT
from sweepledger.structs.run_config import Shape
from sweepledger.structs.settings import Settings

ADMISSION = "platform/admission/v1"
"""The folder of the policies below `base/`."""
REGISTRATION = "admissionregistration.k8s.io/v1"


def batch_policies(
    settings: Settings, shapes: Collection[Shape], bases: Mapping[str, bytes]
) -> tuple[Manifest, Manifest]:
    """Return the policies for Jobs and pods, and for distributed trials, of a team whose cluster runs some shapes."""
    lists = admission_lists.of_trials(settings, shapes, bases)
    return (
        _policy("trials", settings, bases, lists),
        _policy("workloads", settings, bases, admission_lists.of_workloads(settings)),
    )


def trial_policies(settings: Settings, source: GitSource, bases: Mapping[str, bytes]) -> list[Manifest]:
    """Return the policies for Jobs and pods, and for distributed trials where the cluster runs any."""
    space = Names.of(settings).trials
    trials, workloads = batch_policies(settings, source.shapes, bases)
    if settings.results.keep_days is not None:
        job, pod = (
            cron_jobs.expiry_expression(settings, source, bases, is_pod=is_pod) for is_pod in (False, True)
        )
        expiry = f"!(object.kind == 'Pod' ? ({pod}) : ({job}))"
        trials["spec"]["matchConditions"].append({"name": "is-a-trials", "expression": expiry})
    made = [trials, _binding(trials, settings, space)]
    if source.shapes:
        made += [workloads, _binding(workloads, settings, space)]
    return made


def release_policies(settings: Settings, bases: Mapping[str, bytes]) -> list[Manifest]:
    """Return the policy for what the collector changes of pods, where it may change any: our finalizer alone."""
    if not settings.results.store.holds_pods:
        return []
    names = Names.of(settings)
    collector = f"system:serviceaccount:{names.collector}:{COLLECTOR_ACCOUNT}"
    policy = _policy("releases", settings, bases, {"collectors": [collector]})
    return [policy, _binding(policy, settings, names.trials)]


def kustomization_policies(settings: Settings, bases: Mapping[str, bytes]) -> list[Manifest]:
    """Return the policy for Kustomizations: one without a service account is applied with Flux's own rights."""
    policy = _policy("flux-batches", settings, bases, {"active": [f"./{active_folder(settings.cluster)}"]})
    return [policy, _binding(policy, settings, Names.of(settings).flux)]


def owner_policy_name(settings: Settings) -> str:
    """Return the name of the policy, and of its binding, by which objects keep their owner."""
    return f"{Names.of(settings).trials}-owner"


def owner_policy(
    settings: Settings, objects: Sequence[Manifest], bases: Mapping[str, bytes]
) -> list[Manifest]:
    """Return the policy that no object of a platform changes its owner, with its binding."""
    names = Names.of(settings)
    own = (names.trials, names.collector, names.flux)
    judged = [made for made in objects if made["apiVersion"] != REGISTRATION]
    kinds: dict[str, set[str]] = {}
    for made in judged:
        kinds.setdefault(made["apiVersion"].rpartition("/")[0], set()).add(_plural(made["kind"]))
    spaces = [(made["metadata"].get("namespace", ""), made["metadata"]["name"]) for made in judged]
    outside = sorted({f"{space}/{name}" for space, name in spaces if space not in own})
    policy = _policy("owner", settings, bases, {"namespaces": own, "outside": outside})
    policy["spec"]["matchConstraints"]["resourceRules"] = [
        {"apiGroups": [group], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": sorted(plurals)}
        for group, plurals in sorted(kinds.items())
    ]
    return [policy, _binding(policy, settings)]


def _plural(kind: str) -> str:
    """Return the name of a resource by its kind, as Kubernetes forms it."""
    name = kind.lower()
    return f"{name.removesuffix('y')}ies" if name.endswith("y") else f"{name}s"


def _policy(name: str, settings: Settings, bases: Mapping[str, bytes], values: Mapping[str, Any]) -> Manifest:
    """Return the policy of a file for one team: its name, its labels, and values for its first variables.

    A JSON value is a literal of CEL. Raises LookupError for a value that the file has no variable for.
    """
    policy: Manifest = yaml.load(bases[f"{ADMISSION}/{name}.yaml"])
    policy["metadata"] = {"name": f"{Names.of(settings).trials}-{name}", "labels": labels(settings)}
    variables = {variable["name"]: variable for variable in policy["spec"]["variables"]}
    for variable, value in values.items():
        variables[variable]["expression"] = json.dumps(value)
    return policy


def _binding(policy: Manifest, settings: Settings, namespace: str | None = None) -> Manifest:
    """Return what applies a policy in a namespace; None: wherever it matches."""
    name = policy["metadata"]["name"]
    spec: dict[str, Any] = {"policyName": name, "validationActions": ["Deny"]}
    if namespace is not None:
        spec["matchResources"] = {"namespaceSelector": {"matchLabels": {NAMESPACE_LABEL: namespace}}}
    return manifest(f"{REGISTRATION}/ValidatingAdmissionPolicyBinding", name, settings, spec=spec)
