"""Roles: no wildcard, no way to read secrets, start pods or gain more; and no use of what others own."""

from collections.abc import Iterator, Mapping
from typing import Any

from generator.policy.findings import Finding
from generator.policy.workloads import Object
from generator.reader.shown import shown

CODE = "rights-too-wide"

ESCALATING = frozenset({"bind", "escalate", "impersonate"})
SENSITIVE = {
    "secrets": frozenset({"get", "list", "watch"}),
    "pods": frozenset({"create", "patch", "update"}),
    "pods/attach": frozenset({"create", "get"}),
    "pods/exec": frozenset({"create", "get"}),
    "nodes/proxy": frozenset({"create", "get"}),
    "serviceaccounts/token": frozenset({"create"}),
}
BORROWED = frozenset({"admin", "cluster-admin", "edit"})
EVERYBODY = frozenset(
    {"system:anonymous", "system:authenticated", "system:masters", "system:unauthenticated"}
)


def check(thing: Object) -> Iterator[Finding]:
    """Check a role's rules, or whom a binding gives what."""
    if thing.kind in {"ClusterRole", "Role"}:
        for index, rule in enumerate(thing.data.get("rules") or ()):
            yield from _rule(rule, index)
    if thing.kind in {"ClusterRoleBinding", "RoleBinding"}:
        role = (thing.data.get("roleRef") or {}).get("name")
        if role in BORROWED:
            message = f"must give a role of its own, got {shown(role)}"
            yield Finding(("roleRef", "name"), message, CODE)
        for index, subject in enumerate(thing.data.get("subjects") or ()):
            if subject.get("name") in EVERYBODY or subject.get("name") == "default":
                message = f"must be an account of its own, got {shown(subject.get('name'))}"
                yield Finding(("subjects", index, "name"), message, CODE)


def _rule(rule: Mapping[str, Any], index: int) -> Iterator[Finding]:
    verbs = set(rule.get("verbs") or ())
    for key in ("apiGroups", "resources", "verbs"):
        if "*" in (rule.get(key) or ()):
            yield Finding(("rules", index, key), "must name what it allows, got '*'", CODE)
    if verbs & ESCALATING:
        message = (
            f"must not be {', '.join(sorted(verbs & ESCALATING))}: it gives rights that its holder lacks"
        )
        yield Finding(("rules", index, "verbs"), message, CODE)
    if rule.get("resourceNames"):
        return
    for resource in sorted(set(rule.get("resources") or ()) & SENSITIVE.keys()):
        found = verbs & SENSITIVE[resource]
        if found:
            message = f"must not allow {', '.join(sorted(found))} on {resource} without resourceNames"
            yield Finding(("rules", index, "resources"), message, CODE)
