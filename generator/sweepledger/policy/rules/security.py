"""Pod Security's level "restricted", baseline included, as the oldest supported API server evaluates it.

https://kubernetes.io/docs/concepts/security/pod-security-standards/
"""

from collections.abc import Iterator, Mapping
from typing import Any

from generator.policy.findings import Finding
from generator.policy.workloads import Container, Object, Pod
from generator.reader.paths import Path
from generator.reader.shown import shown

CODE, VOLUME = "pod-not-restricted", "volume-not-allowed"

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
"""Those that the oldest supported Kubernetes takes for safe."""
APPARMOR = "container.apparmor.security.beta.kubernetes.io/"
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
WINDOWS = "windows"


def check(thing: Object) -> Iterator[Finding]:
    """Evaluate every pod that an object is or would start."""
    for pod in thing.pods:
        yield from _host(pod)
        yield from _volumes(pod)
        yield from _profiles(pod.security, (*pod.at, "securityContext"))
        yield from _apparmor_annotations(pod)
        for index, sysctl in enumerate(pod.security.get("sysctls") or ()):
            if sysctl.get("name") not in SYSCTLS:
                message = f"must be a safe sysctl, got {shown(sysctl.get('name'))}"
                yield Finding((*pod.at, "securityContext", "sysctls", index), message, CODE)
        for container in pod.containers:
            yield from _container(container, is_windows=_is_windows(pod))
        yield from _either(pod)


def _is_windows(pod: Pod) -> bool:
    found = (pod.spec.get("os") or {}).get("name")
    return bool(found == WINDOWS)


def _host(pod: Pod) -> Iterator[Finding]:
    for key in ("hostNetwork", "hostPID", "hostIPC"):
        if pod.spec.get(key):
            yield Finding((*pod.at, key), "must be absent: the node's own belongs to nobody's pod", CODE)


def _volumes(pod: Pod) -> Iterator[Finding]:
    for index, volume in enumerate(pod.volumes):
        for source in sorted(volume.keys() - {"name"} - VOLUMES):
            hint = "wrap it in a PersistentVolume and claim that" if source == "nfs" else None
            message = f"must be absent: pods get no {source} volumes"
            yield Finding((*pod.at, "volumes", index, source), message, VOLUME, hint)


def _apparmor_annotations(pod: Pod) -> Iterator[Finding]:
    for key, value in (pod.metadata.get("annotations") or {}).items():
        allowed = value in {"", "runtime/default"} or str(value).startswith("localhost/")
        if key.startswith(APPARMOR) and not allowed:
            message = f"must be runtime/default or a localhost profile, got {shown(value)}"
            yield Finding((*pod.path, "metadata", "annotations", key), message, CODE)


def _profiles(context: Mapping[str, Any], at: Path) -> Iterator[Finding]:
    """Check what pods and containers may both say."""
    for key in ("appArmorProfile", "seccompProfile"):
        profile = context.get(key)
        if profile is not None and profile.get("type") not in SECCOMP:
            message = f"must be one of {', '.join(SECCOMP)}, got {shown(profile.get('type'))}"
            yield Finding((*at, key, "type"), message, CODE)
    options = context.get("seLinuxOptions") or {}
    if options.get("type", "") not in SELINUX or options.get("user") or options.get("role"):
        yield Finding((*at, "seLinuxOptions"), "must name no user, no role and no unusual type", CODE)
    if (context.get("windowsOptions") or {}).get("hostProcess"):
        yield Finding((*at, "windowsOptions", "hostProcess"), "must be absent", CODE)
    if context.get("runAsUser") == 0:
        yield Finding((*at, "runAsUser"), "must not be 0, which is root", CODE)


def _container(container: Container, *, is_windows: bool) -> Iterator[Finding]:
    context = container.data.get("securityContext") or {}
    at = (*container.path, "securityContext")
    yield from _profiles(context, at)
    if context.get("privileged"):
        yield Finding((*at, "privileged"), "must be absent or false, got true", CODE)
    if context.get("procMount", "Default") != "Default":
        message = f"must be absent or 'Default', got {shown(context['procMount'])}"
        yield Finding((*at, "procMount"), message, CODE)
    if not is_windows:
        if context.get("allowPrivilegeEscalation") is not False:
            found = shown(context.get("allowPrivilegeEscalation"))
            yield Finding((*at, "allowPrivilegeEscalation"), f"must be false, got {found}", CODE)
        yield from _capabilities(context.get("capabilities") or {}, (*at, "capabilities"))
    for index, port in enumerate(container.data.get("ports") or ()):
        if port.get("hostPort"):
            message = f"must be absent, got {port['hostPort']}"
            yield Finding((*container.path, "ports", index, "hostPort"), message, CODE)
    yield from _handlers(container)


def _capabilities(found: Mapping[str, Any], at: Path) -> Iterator[Finding]:
    if "ALL" not in (found.get("drop") or ()):
        yield Finding((*at, "drop"), f"must hold 'ALL', got {found.get('drop')!r}", CODE)
    for name in found.get("add") or ():
        if name != "NET_BIND_SERVICE":
            yield Finding((*at, "add"), f"must hold NET_BIND_SERVICE at most, got {shown(name)}", CODE)


def _handlers(container: Container) -> Iterator[Finding]:
    """A probe or hook with a host lets the node ask anyone."""
    found = [((*container.path, key), container.data.get(key)) for key in PROBES]
    hooks = container.data.get("lifecycle") or {}
    found += [((*container.path, "lifecycle", key), hooks.get(key)) for key in ("postStart", "preStop")]
    for path, handler in found:
        for key in ("httpGet", "tcpSocket"):
            host = ((handler or {}).get(key) or {}).get("host")
            if host:
                yield Finding((*path, key, "host"), f"must be absent, got {shown(host)}", CODE)


def _either(pod: Pod) -> Iterator[Finding]:
    """Check what the pod may say for all containers, or each for itself."""
    contexts = [(each.path, each.data.get("securityContext") or {}) for each in pod.containers]
    default = pod.security.get("runAsNonRoot")
    for path, context in contexts:
        said = context.get("runAsNonRoot", default)
        if said is not True:
            at = (*path, "securityContext", "runAsNonRoot")
            yield Finding(at, f"must be true here or in the pod's context, got {shown(said)}", CODE)
        if not _is_windows(pod) and "seccompProfile" not in context and "seccompProfile" not in pod.security:
            message = "must have a seccompProfile of RuntimeDefault here or in the pod's context"
            yield Finding((*path, "securityContext"), message, CODE)
    if default is False:
        yield Finding((*pod.at, "securityContext", "runAsNonRoot"), "must not be false", CODE)
