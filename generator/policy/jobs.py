"""Rules for a rendered Job and its pod: what its keys must say, and say together.

Its shape has been compared before: every key is known and every value of its kind.
"""

from collections.abc import Iterator
from typing import Any

from generator.policy.shape import Finding, Manifest

LAUNCHER = "/sweep/launcher/launch.py"
BAD_HYPERPARAMETERS, BAD_SWEEP = 42, 43
"""Exit codes of the launcher that no other attempt would change."""

POD = ".spec.template.spec"
SOURCES = frozenset({"configMap", "projected", "persistentVolumeClaim", "emptyDir"})
RESTRICTED_POD = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
RESTRICTED_CONTAINER = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "privileged": False,
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
}
NOT_ROOT = ("runAsUser", "runAsGroup", "fsGroup")
COUNTS = {
    "backoffLimit",
    "backoffLimitPerIndex",
    "completionMode",
    "completions",
    "maxFailedIndexes",
    "parallelism",
}


def rules(batch: str, manifest: Manifest, config_maps: frozenset[str]) -> Iterator[Finding]:
    """Find what is wrong with a Job; `config_maps` are those that are rendered beside it."""
    spec = manifest.get("spec", {})
    is_indexed = spec.get("completionMode") == "Indexed"
    yield from _counts(spec, is_indexed=is_indexed)
    yield from _failures(spec, is_indexed=is_indexed)
    pod = spec.get("template", {}).get("spec", {})
    yield from _pod(pod)
    yield from _volumes(pod, config_maps)
    containers = pod.get("containers", [])
    if [container.get("name") for container in containers] != ["trial"]:
        yield f"{POD}.containers", "must be the one container 'trial'", "container-not-ours"
    volumes = {volume.get("name"): volume for volume in pod.get("volumes", [])}
    for container in containers:
        where = f"{POD}.containers[{container.get('name')}]"
        yield from _container(container, where)
        for mount in container.get("volumeMounts", []):
            yield from _mount(batch, mount, volumes, f"{where}.volumeMounts[{mount.get('name')}]")


def _counts(spec: Manifest, *, is_indexed: bool) -> Iterator[Finding]:
    """Kubernetes reads a missing or zero count as: once, never, or as often as it takes."""
    least = {"completions": 1, "parallelism": 1}
    least |= {"backoffLimitPerIndex": 0, "maxFailedIndexes": 1} if is_indexed else {"backoffLimit": 0}
    for key, bound in least.items():
        yield from _at_least(bound, spec.get(key), f".spec.{key}")
    known = {*least, "completionMode"} if is_indexed else {*least}
    for key in sorted(COUNTS & spec.keys() - known):
        yield f".spec.{key}", f"must be absent in this shape, got {spec[key]!r}", "job-not-ours"
    if not is_indexed and spec.get("completions") != 1:
        yield (
            ".spec.completions",
            f"must be 1 without an index, got {spec.get('completions')!r}",
            "job-not-ours",
        )


def _failures(spec: Manifest, *, is_indexed: bool) -> Iterator[Finding]:
    lost = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    if is_indexed:
        wanted = [lost, _on_exit("FailIndex", BAD_HYPERPARAMETERS), _on_exit("FailJob", BAD_SWEEP)]
    else:
        wanted = [lost, _on_exit("FailJob", BAD_HYPERPARAMETERS, BAD_SWEEP)]
    found = spec.get("podFailurePolicy", {}).get("rules")
    if found != wanted:
        yield ".spec.podFailurePolicy.rules", f"must be {wanted!r}, got {found!r}", "job-not-ours"
    replaced = spec.get("podReplacementPolicy")
    if replaced != "Failed":  # two pods of one trial would run side by side
        yield ".spec.podReplacementPolicy", f"must be 'Failed', got {replaced!r}", "job-not-ours"


def _on_exit(action: str, *codes: int) -> Manifest:
    return {"action": action, "onExitCodes": {"containerName": "trial", "operator": "In", "values": [*codes]}}


def _pod(pod: Manifest) -> Iterator[Finding]:
    for key, wanted in (("restartPolicy", "Never"), ("automountServiceAccountToken", False)):
        if pod.get(key) != wanted:
            yield f"{POD}.{key}", f"must be {wanted!r}, got {pod.get(key)!r}", "pod-not-restricted"
    for key in ("activeDeadlineSeconds", "terminationGracePeriodSeconds"):
        yield from _at_least(1, pod.get(key), f"{POD}.{key}")
    context, where = pod.get("securityContext", {}), f"{POD}.securityContext"
    yield from _context(context, RESTRICTED_POD, where)
    for key in NOT_ROOT:
        value = context.get(key)
        if key in context and not (type(value) is int and value > 0):
            yield f"{where}.{key}", f"must not be root's, got {value!r}", "pod-not-restricted"


def _volumes(pod: Manifest, config_maps: frozenset[str]) -> Iterator[Finding]:
    names = [volume.get("name") for volume in pod.get("volumes", [])]
    if len(set(names)) < len(names):
        yield f"{POD}.volumes", f"must have different names, got {names!r}", "volume-not-allowed"
    for volume in pod.get("volumes", []):
        where = f"{POD}.volumes[{volume.get('name')}]"
        sources = sorted(volume.keys() & SOURCES)
        if len(sources) != 1:
            yield where, f"must have one of {sorted(SOURCES)}, got {sources!r}", "volume-not-allowed"
        for name in sorted(map(str, _config_map_names(volume))):
            if name not in config_maps:
                yield where, f"must be a ConfigMap of the batch, got {name!r}", "volume-not-allowed"


def _config_map_names(volume: Manifest) -> Iterator[Any]:
    places = [volume, *volume.get("projected", {}).get("sources", [])]
    yield from (place["configMap"].get("name") for place in places if "configMap" in place)


def _mount(batch: str, mount: Manifest, volumes: dict[Any, Manifest], where: str) -> Iterator[Finding]:
    volume = volumes.get(mount.get("name"))
    if volume is None:
        yield where, f"must name one of {sorted(map(str, volumes))}", "volume-not-allowed"
        return
    path = str(mount.get("subPathExpr") or mount.get("subPath") or "")
    is_own = path.startswith(f"{batch}/") and ".." not in path.split("/")
    if "persistentVolumeClaim" in volume and mount.get("readOnly") is not True and not is_own:
        message = f"must be read-only or lie in the batch's folder {batch}/, got {path!r}"
        yield where, message, "volume-not-allowed"


def _container(container: Manifest, where: str) -> Iterator[Finding]:
    command = container.get("command", [])
    if command[1:] != [LAUNCHER] or "args" in container:
        yield f"{where}.command", f"must start the launcher {LAUNCHER}, got {command!r}", "container-not-ours"
    yield from _context(
        container.get("securityContext", {}), RESTRICTED_CONTAINER, f"{where}.securityContext"
    )
    resources = container.get("resources", {})
    limits = resources.get("limits", {})
    if not {"cpu", "memory"} <= limits.keys() or limits != resources.get("requests"):
        message = "must limit cpu and memory, with requests equal to the limits"
        yield f"{where}.resources", message, "resources-unequal"


def _context(found: Manifest, wanted: Manifest, where: str) -> Iterator[Finding]:
    for key, value in wanted.items():
        if found.get(key) != value:
            yield f"{where}.{key}", f"must be {value!r}, got {found.get(key)!r}", "pod-not-restricted"


def _at_least(bound: int, value: Any, path: str) -> Iterator[Finding]:
    if type(value) is not int or value < bound:  # True is an int, too
        yield path, f"must be a whole number of at least {bound}, got {value!r}", "job-not-ours"
