"""Rules for security: the Pod Security level "restricted" and hardening beyond it, for keys that pods may have.

Whatever else Pod Security forbids, such as `hostNetwork` or a hostPath, is no key of a batch's pods (`batch_rules`).
Pod Security is evaluated as the oldest supported API server does:
https://kubernetes.io/docs/concepts/security/pod-security-standards/
"""

from collections.abc import Iterator
from typing import Any

from sweepledger.policy.objects import Container, Finding, Object, Pod
from sweepledger.reader.messages import safe_repr

RESTRICTED_CODE = "pod-not-restricted"
SECCOMP = ("RuntimeDefault", "Localhost")


def check_restricted(obj: Object) -> Iterator[Finding]:
    """Yield the violations of "restricted" in every pod that an object is or would start."""
    for pod in obj.pods:
        at = (*pod.at, "securityContext")
        profile = pod.security.get("seccompProfile")
        if profile is None:
            yield Finding(at, "must have a seccompProfile of RuntimeDefault", RESTRICTED_CODE)
        elif profile.get("type") not in SECCOMP:
            message = f"must be one of {', '.join(SECCOMP)}, got {safe_repr(profile.get('type'))}"
            yield Finding((*at, "seccompProfile", "type"), message, RESTRICTED_CODE)
        if pod.security.get("runAsUser") == 0:
            yield Finding((*at, "runAsUser"), "must not be 0, which is root", RESTRICTED_CODE)
        if pod.security.get("runAsNonRoot") is False:
            yield Finding((*at, "runAsNonRoot"), "must not be false", RESTRICTED_CODE)
        for container in pod.containers:
            yield from _container(container, pod.security.get("runAsNonRoot"))


def _container(container: Container, non_root: Any) -> Iterator[Finding]:
    context = container.data.get("securityContext") or {}
    at = (*container.path, "securityContext")
    if context.get("privileged"):
        yield Finding((*at, "privileged"), "must be absent or false, got true", RESTRICTED_CODE)
    if context.get("allowPrivilegeEscalation") is not False:
        value = safe_repr(context.get("allowPrivilegeEscalation"))
        yield Finding((*at, "allowPrivilegeEscalation"), f"must be false, got {value}", RESTRICTED_CODE)
    value = context.get("runAsNonRoot", non_root)
    if value is not True:
        message = f"must be true here or in the pod's context, got {safe_repr(value)}"
        yield Finding((*at, "runAsNonRoot"), message, RESTRICTED_CODE)
    capabilities = context.get("capabilities") or {}
    if "ALL" not in (capabilities.get("drop") or ()):
        message = f"must hold 'ALL', got {capabilities.get('drop')!r}"
        yield Finding((*at, "capabilities", "drop"), message, RESTRICTED_CODE)
    for name in capabilities.get("add") or ():
        if name != "NET_BIND_SERVICE":
            message = f"must hold NET_BIND_SERVICE at most, got {safe_repr(name)}"
            yield Finding((*at, "capabilities", "add"), message, RESTRICTED_CODE)


HARDENING_CODE = "pod-not-hardened"

LOWEST_USER = 10_000
"""Lower numbers may belong to a user of the node."""
KNOWN_USER = {"MPIJob": 1000}
"""sshd needs a user that the image has, and images for MPI have this user."""


def check_hardening(obj: Object) -> Iterator[Finding]:
    """Yield the hardening that is missing in every pod that an object is or would start."""
    for pod in obj.pods:
        for key in ("automountServiceAccountToken", "enableServiceLinks"):
            if pod.spec.get(key) is not False:
                message = f"must be false, got {safe_repr(pod.spec.get(key))}"
                yield Finding((*pod.at, key), message, HARDENING_CODE)
        account = pod.spec.get("serviceAccountName")
        if account in {None, "", "default"}:
            message = f"must be an account of its own, got {safe_repr(account)}"
            hint = "the default one is everybody's"
            yield Finding((*pod.at, "serviceAccountName"), message, HARDENING_CODE, hint)
        lowest, user = KNOWN_USER.get(obj.kind, LOWEST_USER), pod.security.get("runAsUser")
        if user is None or 0 < user < lowest:  # 0 is refused elsewhere
            message = f"must be at least {lowest}, got {safe_repr(user)}"
            yield Finding((*pod.at, "securityContext", "runAsUser"), message, HARDENING_CODE)
        yield from _root_file_systems(pod)


def _root_file_systems(pod: Pod) -> Iterator[Finding]:
    for container in pod.containers:
        value = (container.data.get("securityContext") or {}).get("readOnlyRootFilesystem")
        if value is not True:
            message, hint = f"must be true, got {safe_repr(value)}", "mount an emptyDir where it must write"
            path = (*container.path, "securityContext", "readOnlyRootFilesystem")
            yield Finding(path, message, HARDENING_CODE, hint)
