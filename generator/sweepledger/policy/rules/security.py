"""Rules for security: the Pod Security level "restricted" and hardening beyond it.

Pod Security is evaluated as the oldest supported API server does:
https://kubernetes.io/docs/concepts/security/pod-security-standards/
"""

from collections.abc import Iterator, Mapping
from typing import Any

from sweepledger.policy.objects import Container, Finding, Object, Pod
from sweepledger.reader.document import DocumentPath
from sweepledger.reader.messages import safe_repr

RESTRICTED_CODE, VOLUME_CODE = "pod-not-restricted", "volume-not-allowed"

VOLUMES = frozenset(
    {
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "persistentVolumeClaim",
        "projected",
        "secret",
    }
)
SECCOMP = ("RuntimeDefault", "Localhost")
SELINUX = frozenset({"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"})
SYSCTLS = frozenset(
    {
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_syncookies",
    }
)
"""Sysctls that the oldest supported Kubernetes allows as safe."""
APPARMOR = "container.apparmor.security.beta.kubernetes.io/"
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
WINDOWS = "windows"


def check_restricted(obj: Object) -> Iterator[Finding]:
    """Yield the violations of "restricted" in every pod that an object is or would start."""
    for pod in obj.pods:
        for key in ("hostNetwork", "hostPID", "hostIPC"):
            if pod.spec.get(key):
                yield Finding(
                    (*pod.at, key), "must be absent: the node's own belongs to nobody's pod", RESTRICTED_CODE
                )
        yield from _volumes(pod)
        yield from _profiles(pod.security, (*pod.at, "securityContext"))
        yield from _apparmor_annotations(pod)
        for index, sysctl in enumerate(pod.security.get("sysctls") or ()):
            if sysctl.get("name") not in SYSCTLS:
                message = f"must be a safe sysctl, got {safe_repr(sysctl.get('name'))}"
                yield Finding((*pod.at, "securityContext", "sysctls", index), message, RESTRICTED_CODE)
        for container in pod.containers:
            yield from _container(container, is_windows=_is_windows(pod))
        yield from _either(pod)


def _is_windows(pod: Pod) -> bool:
    name = (pod.spec.get("os") or {}).get("name")
    return bool(name == WINDOWS)


def _volumes(pod: Pod) -> Iterator[Finding]:
    for index, volume in enumerate(pod.volumes):
        for source in sorted(volume.keys() - {"name"} - VOLUMES):
            hint = "wrap it in a PersistentVolume and claim that" if source == "nfs" else None
            message = f"must be absent: pods get no {source} volumes"
            yield Finding((*pod.at, "volumes", index, source), message, VOLUME_CODE, hint)


def _apparmor_annotations(pod: Pod) -> Iterator[Finding]:
    for key, value in (pod.metadata.get("annotations") or {}).items():
        allowed = value in {"", "runtime/default"} or str(value).startswith("localhost/")
        if key.startswith(APPARMOR) and not allowed:
            message = f"must be runtime/default or a localhost profile, got {safe_repr(value)}"
            yield Finding((*pod.path, "metadata", "annotations", key), message, RESTRICTED_CODE)


def _profiles(context: Mapping[str, Any], at: DocumentPath) -> Iterator[Finding]:
    """Yield the findings in fields that pods and containers have in common."""
    for key in ("appArmorProfile", "seccompProfile"):
        profile = context.get(key)
        if profile is not None and profile.get("type") not in SECCOMP:
            message = f"must be one of {', '.join(SECCOMP)}, got {safe_repr(profile.get('type'))}"
            yield Finding((*at, key, "type"), message, RESTRICTED_CODE)
    options = context.get("seLinuxOptions") or {}
    if options.get("type", "") not in SELINUX or options.get("user") or options.get("role"):
        yield Finding(
            (*at, "seLinuxOptions"), "must name no user, no role and no unusual type", RESTRICTED_CODE
        )
    if (context.get("windowsOptions") or {}).get("hostProcess"):
        yield Finding((*at, "windowsOptions", "hostProcess"), "must be absent", RESTRICTED_CODE)
    if context.get("runAsUser") == 0:
        yield Finding((*at, "runAsUser"), "must not be 0, which is root", RESTRICTED_CODE)


def _container(container: Container, *, is_windows: bool) -> Iterator[Finding]:
    context = container.data.get("securityContext") or {}
    at = (*container.path, "securityContext")
    yield from _profiles(context, at)
    if context.get("privileged"):
        yield Finding((*at, "privileged"), "must be absent or false, got true", RESTRICTED_CODE)
    if context.get("procMount", "Default") != "Default":
        message = f"must be absent or 'Default', got {safe_repr(context['procMount'])}"
        yield Finding((*at, "procMount"), message, RESTRICTED_CODE)
    if not is_windows:
        if context.get("allowPrivilegeEscalation") is not False:
            value = safe_repr(context.get("allowPrivilegeEscalation"))
            yield Finding((*at, "allowPrivilegeEscalation"), f"must be false, got {value}", RESTRICTED_CODE)
        yield from _capabilities(context.get("capabilities") or {}, (*at, "capabilities"))
    for index, port in enumerate(container.data.get("ports") or ()):
        if port.get("hostPort"):
            message = f"must be absent, got {port['hostPort']}"
            yield Finding((*container.path, "ports", index, "hostPort"), message, RESTRICTED_CODE)
    yield from _handlers(container)


def _capabilities(capabilities: Mapping[str, Any], at: DocumentPath) -> Iterator[Finding]:
    if "ALL" not in (capabilities.get("drop") or ()):
        yield Finding((*at, "drop"), f"must hold 'ALL', got {capabilities.get('drop')!r}", RESTRICTED_CODE)
    for name in capabilities.get("add") or ():
        if name != "NET_BIND_SERVICE":
            yield Finding(
                (*at, "add"), f"must hold NET_BIND_SERVICE at most, got {safe_repr(name)}", RESTRICTED_CODE
            )


def _handlers(container: Container) -> Iterator[Finding]:
    """Yield the hosts of probes and hooks, with which a node would send requests anywhere."""
    handlers = [((*container.path, key), container.data.get(key)) for key in PROBES]
    hooks = container.data.get("lifecycle") or {}
    handlers += [((*container.path, "lifecycle", key), hooks.get(key)) for key in ("postStart", "preStop")]
    for path, handler in handlers:
        for key in ("httpGet", "tcpSocket"):
            host = ((handler or {}).get(key) or {}).get("host")
            if host:
                yield Finding((*path, key, "host"), f"must be absent, got {safe_repr(host)}", RESTRICTED_CODE)


def _either(pod: Pod) -> Iterator[Finding]:
    """Yield the findings in fields that the pod sets for all containers, or each container for itself."""
    contexts = [(container.path, container.data.get("securityContext") or {}) for container in pod.containers]
    default = pod.security.get("runAsNonRoot")
    for path, context in contexts:
        value = context.get("runAsNonRoot", default)
        if value is not True:
            at = (*path, "securityContext", "runAsNonRoot")
            yield Finding(
                at, f"must be true here or in the pod's context, got {safe_repr(value)}", RESTRICTED_CODE
            )
        if not _is_windows(pod) and "seccompProfile" not in context and "seccompProfile" not in pod.security:
            message = "must have a seccompProfile of RuntimeDefault here or in the pod's context"
            yield Finding((*path, "securityContext"), message, RESTRICTED_CODE)
    if default is False:
        yield Finding((*pod.at, "securityContext", "runAsNonRoot"), "must not be false", RESTRICTED_CODE)


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
            yield Finding(
                (*pod.at, "serviceAccountName"), message, HARDENING_CODE, "the default one is everybody's"
            )
        if "serviceAccount" in pod.spec:
            message = "must be absent: serviceAccountName has replaced it"
            yield Finding((*pod.at, "serviceAccount"), message, HARDENING_CODE)
        yield from _containers(pod, KNOWN_USER.get(obj.kind, LOWEST_USER))


def _containers(pod: Pod, lowest: int) -> Iterator[Finding]:
    for container in pod.containers:
        context = container.data.get("securityContext") or {}
        at = (*container.path, "securityContext")
        if context.get("readOnlyRootFilesystem") is not True:
            value = safe_repr(context.get("readOnlyRootFilesystem"))
            hint = "mount an emptyDir where it must write"
            yield Finding((*at, "readOnlyRootFilesystem"), f"must be true, got {value}", HARDENING_CODE, hint)
        user = context.get("runAsUser", pod.security.get("runAsUser"))
        if user is None or 0 < user < lowest:  # 0 is refused elsewhere
            message = f"must be at least {lowest}, here or in the pod's context, got {safe_repr(user)}"
            yield Finding((*at, "runAsUser"), message, HARDENING_CODE)
