"""Admission policies: the files of `base/platform/admission` for one team, with what its settings say."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sweepledger.formats import yaml
from sweepledger.render.manifest import Manifest
from sweepledger.render.platform.flux import active_folder
from sweepledger.render.platform.objects import NAMESPACE_LABEL, Names, labels, manifest
from sweepledger.structs.kubernetes import COLLECTOR_ACCOUNT
from sweepledger.structs.settings import ResultsStore

ADMISSION = "platform/admission/v1"
"""The folder of the policies below `base/`."""
REGISTRATION = "admissionregistration.k8s.io/v1"


def batch_policies(
    names: Names, lists: Mapping[str, Any], of_workloads: Mapping[str, Any] | None, bases: Mapping[str, bytes]
) -> list[Manifest]:
    """Return the policies for Jobs and pods, and for distributed trials where the cluster runs any."""
    made = [_policy("trials", names, bases, lists)]
    return made if of_workloads is None else [*made, _policy("workloads", names, bases, of_workloads)]


def trial_policies(
    names: Names,
    lists: Mapping[str, Any],
    of_workloads: Mapping[str, Any] | None,
    expiry: Sequence[Manifest],
    bases: Mapping[str, bytes],
) -> list[Manifest]:
    """Return these policies with their bindings.

    `expiry` has the CronJob that deletes old results, if there is any: its Jobs are no trials.
    """
    policies = batch_policies(names, lists, of_workloads, bases)
    for cron_job in expiry:
        job, pod = (expiry_expression(cron_job, is_pod=is_pod) for is_pod in (False, True))
        is_trial = f"!(object.kind == 'Pod' ? ({pod}) : ({job}))"
        policies[0]["spec"]["matchConditions"].append({"name": "is-a-trials", "expression": is_trial})
    return [made for policy in policies for made in (policy, _binding(policy, names, names.trials))]


def release_policies(names: Names, store: ResultsStore, bases: Mapping[str, bytes]) -> list[Manifest]:
    """Return the policy for what the collector changes of pods, where it may change any: our finalizer alone."""
    if not store.holds_pods:
        return []
    collector = f"system:serviceaccount:{names.collector}:{COLLECTOR_ACCOUNT}"
    policy = _policy("releases", names, bases, {"collectors": [collector]})
    return [policy, _binding(policy, names, names.trials)]


def kustomization_policies(names: Names, bases: Mapping[str, bytes]) -> list[Manifest]:
    """Return the policy for Kustomizations: one without a service account is applied with Flux's own rights."""
    policy = _policy("flux-batches", names, bases, {"active": [f"./{active_folder(names.cluster)}"]})
    return [policy, _binding(policy, names, names.flux)]


def owner_policy_name(namespace: str) -> str:
    """Return the name of the policy, and of its binding, by which objects keep their owner."""
    return f"{namespace}-owner"


def owner_policy(names: Names, objects: Sequence[Manifest], bases: Mapping[str, bytes]) -> list[Manifest]:
    """Return the policy that no object of a platform changes its owner, with its binding."""
    own = (names.trials, names.collector, names.flux)
    judged = [made for made in objects if made["apiVersion"] != REGISTRATION]
    kinds: dict[str, set[str]] = {}
    for made in judged:
        kinds.setdefault(made["apiVersion"].rpartition("/")[0], set()).add(_plural(made["kind"]))
    spaces = [(made["metadata"].get("namespace", ""), made["metadata"]["name"]) for made in judged]
    outside = sorted({f"{space}/{name}" for space, name in spaces if space not in own})
    policy = _policy("owner", names, bases, {"namespaces": own, "outside": outside})
    policy["spec"]["matchConstraints"]["resourceRules"] = [
        {"apiGroups": [group], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": sorted(plurals)}
        for group, plurals in sorted(kinds.items())
    ]
    return [policy, _binding(policy, names)]


def _plural(kind: str) -> str:
    """Return the name of a resource by its kind, as Kubernetes forms it."""
    name = kind.lower()
    return f"{name.removesuffix('y')}ies" if name.endswith("y") else f"{name}s"


def _policy(name: str, names: Names, bases: Mapping[str, bytes], values: Mapping[str, Any]) -> Manifest:
    """Return the policy of a file for one team: its name, its labels, and values for its first variables.

    A JSON value is a literal of CEL. Raises LookupError for a value that the file has no variable for.
    """
    policy: Manifest = yaml.load(bases[f"{ADMISSION}/{name}.yaml"])
    policy["metadata"] = {"name": f"{names.trials}-{name}", "labels": labels(names)}
    variables = {variable["name"]: variable for variable in policy["spec"]["variables"]}
    for variable, value in values.items():
        variables[variable]["expression"] = json.dumps(value)
    return policy


def _binding(policy: Manifest, names: Names, namespace: str | None = None) -> Manifest:
    """Return what applies a policy in a namespace; None: wherever it matches."""
    name = policy["metadata"]["name"]
    spec: dict[str, Any] = {"policyName": name, "validationActions": ["Deny"]}
    if namespace is not None:
        spec["matchResources"] = {"namespaceSelector": {"matchLabels": {NAMESPACE_LABEL: namespace}}}
    return manifest(f"{REGISTRATION}/ValidatingAdmissionPolicyBinding", name, names, spec=spec)


ABSENT_FROM_CONTAINERS = ("args", "envFrom", "lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
"""Fields that none of its containers has."""
ABSENT_FROM_JOB = ("nodeSelector", "tolerations", "priorityClassName", "affinity")
"""What its Job says only where the settings place it; to its pod the API server may add some."""
UNTYPED = frozenset({"resources", "emptyDir"})
"""Of these only the presence is compared: they hold quantities, which have many notations."""


def expiry_expression(made: Manifest, *, is_pod: bool) -> str:
    """Write in CEL that a Job, or a pod, is what the CronJob of expiry makes, to the last mount: no trial.

    Who made it is not enough, and what it is called even less: it may read a Secret, and write all results.
    """
    spec = made["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    at = "object.spec" if is_pod else "object.spec.template.spec"
    absent = [f"{at}.{key}" for key in ("hostAliases", "dnsConfig", "ephemeralContainers")]
    absent += [] if is_pod else [f"{at}.{key}" for key in ABSENT_FROM_JOB if key not in spec]
    if is_pod:  # the API server adds tolerations of nodes that are lost
        spec = {key: value for key, value in spec.items() if key != "tolerations"}
    owner = "Job" if is_pod else "CronJob"
    # Git cannot name an owner: its identifier is the cluster's, and what names a wrong one is deleted.
    owned = (
        "has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(o,"
        f" o.kind == '{owner}' && has(o.controller) && o.controller)"
    )
    holds = [owned, *_equal(at, spec)]
    for sort in ("initContainers", "containers"):
        absent += [f"{at}.{sort}[0].{key}" for key in ABSENT_FROM_CONTAINERS]
    return " && ".join([*holds, *(f"!has({path})" for path in absent)])


def _equal(path: str, value: Any) -> Iterator[str]:
    """Compare field by field: the API server adds its defaults, and types are no maps to it."""
    match value:
        case dict() if not path.endswith(".nodeSelector"):  # a map, whose keys are no fields
            for key, inner in value.items():
                yield f"has({path}.{key})"
                if key not in UNTYPED:
                    yield from _equal(f"{path}.{key}", inner)
            if "mountPath" in value:
                yield f"!has({path}.subPath) && !has({path}.subPathExpr)"
        case [] | [dict(), *_]:
            yield f"{path}.size() == {len(value)}"
            for number, inner in enumerate(value):
                yield from _equal(f"{path}[{number}]", inner)
        case _:
            yield f"{path} == {json.dumps(value)}"
