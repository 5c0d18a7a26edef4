"""Admission policies: the files of `base/platform/admission`, filled in from the settings of one team."""

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from sweepledger.controllers import GITOPS
from sweepledger.render.manifest import Manifest
from sweepledger.render.platform.objects import from_base
from sweepledger.structs.platform import Names

ADMISSION = "platform/admission/v1"
"""The folder of the policies below `base/`."""
REGISTRATION = "admissionregistration.k8s.io/v1"


def batch_policies(
    names: Names, lists: Mapping[str, Any], of_workloads: Mapping[str, Any] | None, bases: Mapping[str, bytes]
) -> list[Manifest]:
    """Return the policies for Jobs and pods, and for distributed trials if the cluster runs them, with bindings."""
    made = policy("trials", names, bases, lists)
    return made if of_workloads is None else [*made, *policy("workloads", names, bases, of_workloads)]


def owner_policy_name(namespace: str) -> str:
    """Return the name of the policy that keeps the owner of objects, and of its binding."""
    return f"{namespace}-owner"


def owner_policy(names: Names, objects: Sequence[Manifest], bases: Mapping[str, bytes]) -> list[Manifest]:
    """Return the policy that forbids changing the owner of a platform's objects, with its binding."""
    suffixes = (one.namespace_suffix for one in GITOPS.values())
    own = (names.trials, names.collector, *(f"{names.trials}{suffix}" for suffix in suffixes if suffix))
    judged = [one for one in objects if one["apiVersion"] != REGISTRATION]
    kinds: dict[str, set[str]] = {}
    for one in judged:
        kinds.setdefault(one["apiVersion"].rpartition("/")[0], set()).add(_plural(one["kind"]))
    spaces = [(one["metadata"].get("namespace", ""), one["metadata"]["name"]) for one in judged]
    outside = sorted({f"{space}/{name}" for space, name in spaces if space not in own})
    made = policy("owner", names, bases, {"namespaces": own, "outside": outside})
    made[0]["spec"]["matchConstraints"]["resourceRules"] = [
        {"apiGroups": [group], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": sorted(plurals)}
        for group, plurals in sorted(kinds.items())
    ]
    return made


def _plural(kind: str) -> str:
    """Return the name of a kind's resource: the plural, as Kubernetes forms it."""
    name = kind.lower()
    return f"{name.removesuffix('y')}ies" if name.endswith("y") else f"{name}s"


def policy(
    name: str,
    names: Names,
    bases: Mapping[str, bytes],
    values: Mapping[str, Any],
    words: Mapping[str, Any] = MappingProxyType({}),
) -> list[Manifest]:
    """Return the policy of a file and its binding for one team, with values for its first variables.

    A JSON value is a literal of CEL. Raises LookupError for a value that the file has no variable for.
    """
    made = from_base(bases[f"{ADMISSION}/{name}.yaml"], names, words)
    variables = {variable["name"]: variable for variable in made[0]["spec"]["variables"]}
    for variable, value in values.items():
        variables[variable]["expression"] = json.dumps(value)
    return made
