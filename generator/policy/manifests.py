"""Rules for what an overlay of a batch may render."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from generator.problems import Problem
from generator.structs.names import LABEL_LENGTH

Manifest = Mapping[str, Any]

KINDS = frozenset({("v1", "ConfigMap"), ("batch/v1", "Job")})
VOLUMES = frozenset({"configMap", "projected", "persistentVolumeClaim", "emptyDir"})
DNS_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?", re.ASCII)
CONFIG_MAP_BYTES = 1024 * 1024
LAUNCHER = "/sweep/launcher/launch.py"

RESTRICTED_POD = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
RESTRICTED_CONTAINER = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "privileged": False,
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
}


def check(batch: str, namespace: str, manifests: tuple[Manifest, ...], *, place: str) -> tuple[Problem, ...]:
    """Hold what a batch renders against the rules; `place` is what the problems name as file."""
    return tuple(
        Problem(place, 0, 0, f"{manifest.get('kind')}/{_name(manifest)}{path}", message, code)
        for manifest in manifests
        for path, message, code in _rules(batch, namespace, manifest)
    )


Finding = tuple[str, str, str]


def _rules(batch: str, namespace: str, manifest: Manifest) -> Iterator[Finding]:
    kind = (str(manifest.get("apiVersion")), str(manifest.get("kind")))
    if kind not in KINDS:
        allowed = ", ".join(sorted(name for _, name in KINDS))
        yield "", f"must be one of {allowed}, got {kind[1]!r} of {kind[0]!r}", "kind-not-allowed"
        return
    yield from _metadata(batch, namespace, manifest)
    if kind[1] == "ConfigMap":
        yield from _config_map(manifest)
    else:
        yield from _job(manifest)


def _metadata(batch: str, namespace: str, manifest: Manifest) -> Iterator[Finding]:
    name = _name(manifest)
    if name != batch and not name.startswith(f"{batch}-"):
        yield ".metadata.name", f"must begin with the batch's name {batch!r}, got {name!r}", "name-not-ours"
    if len(name) > LABEL_LENGTH or DNS_LABEL.fullmatch(name) is None:
        yield ".metadata.name", f"must be a DNS-1123 label, got {name!r}", "name-invalid"
    found = manifest.get("metadata", {}).get("namespace")
    if found != namespace:
        yield ".metadata.namespace", f"must be {namespace!r}, got {found!r}", "namespace-wrong"


def _config_map(manifest: Manifest) -> Iterator[Finding]:
    if manifest.get("immutable") is not True:
        yield ".immutable", "must be true: a running Job reads it", "config-map-mutable"
    size = sum(len(str(text).encode()) for text in (manifest.get("data") or {}).values())
    if size > CONFIG_MAP_BYTES:
        yield ".data", f"must be at most {CONFIG_MAP_BYTES} bytes, got {size}", "config-map-too-large"


def _job(manifest: Manifest) -> Iterator[Finding]:
    pod = manifest.get("spec", {}).get("template", {}).get("spec", {})
    where = ".spec.template.spec"
    for key, wanted in (("restartPolicy", "Never"), ("automountServiceAccountToken", False)):
        if pod.get(key) != wanted:
            yield f"{where}.{key}", f"must be {wanted!r}, got {pod.get(key)!r}", "pod-not-restricted"
    for key in ("hostNetwork", "hostPID", "hostIPC", "serviceAccountName", "initContainers"):
        if pod.get(key):
            yield f"{where}.{key}", f"must be absent, got {pod[key]!r}", "pod-not-restricted"
    yield from _context(pod.get("securityContext"), RESTRICTED_POD, f"{where}.securityContext")
    for volume in pod.get("volumes", ()):
        kinds = set(volume) - {"name"}
        if not kinds <= VOLUMES:
            yield (
                f"{where}.volumes",
                f"must be one of {sorted(VOLUMES)}, got {sorted(kinds)}",
                "volume-not-allowed",
            )
    containers = pod.get("containers", ())
    if [container.get("name") for container in containers] != ["trial"]:
        yield f"{where}.containers", "must be the one container 'trial'", "container-not-ours"
    for container in containers:
        yield from _container(container, f"{where}.containers[{container.get('name')}]")


def _container(container: Manifest, where: str) -> Iterator[Finding]:
    command = list(container.get("command", ()))
    if command[1:] != [LAUNCHER] or container.get("args"):
        yield f"{where}.command", f"must start the launcher {LAUNCHER}, got {command!r}", "container-not-ours"
    yield from _context(container.get("securityContext"), RESTRICTED_CONTAINER, f"{where}.securityContext")
    resources = container.get("resources", {})
    if not resources.get("limits") or resources.get("limits") != resources.get("requests"):
        yield f"{where}.resources", "must have limits, and requests equal to them", "resources-unequal"


def _context(found: Manifest | None, wanted: Manifest, where: str) -> Iterator[Finding]:
    for key, value in wanted.items():
        actual = (found or {}).get(key)
        if actual != value:
            yield f"{where}.{key}", f"must be {value!r}, got {actual!r}", "pod-not-restricted"


def _name(manifest: Manifest) -> str:
    return str(manifest.get("metadata", {}).get("name", ""))
