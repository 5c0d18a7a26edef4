"""What a trial's pod must be, in every shape: one launcher, its own folders, only what the settings list.

Its shape has been compared before: every key is known and every value of its kind.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from generator.policy.findings import Finding
from generator.policy.workloads import Container, Pod
from generator.reader.paths import Path
from generator.structs.settings import Settings

LAUNCHER = "/sweep/launcher/launch.py"
ACCOUNT = "sweep-trial"
NAMES = {"PyTorchJob": "pytorch", "TFJob": "tensorflow", "TrainingRuntime": "node"}
"""What operators demand that the container be called; elsewhere it is `trial`."""
CLONE = "code"
"""The init container that gets the code."""
WAITING = ["/usr/sbin/sshd"], ["-De", "-f", "/home/mpiuser/.sshd_config"]
"""What an MPI worker runs until rank 0 starts its part in it."""

PLAIN = frozenset({"clone", "code", "launcher", "scratch", "shared-memory", "table"})
WRITABLE = frozenset({"artifacts", "checkpoints", "results"})
CREDENTIALS = "clone-credentials"
SECRET = "secret-"  # noqa: S105 - how the volume of a secret is called
SOURCES = ("configMap", "emptyDir", "persistentVolumeClaim", "projected", "secret")

RESTRICTED_POD = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
RESTRICTED_CONTAINER = {
    "allowPrivilegeEscalation": False,
    "privileged": False,
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
}
NOT_ROOT = ("runAsUser", "runAsGroup", "fsGroup")

CONTAINER, PODS, VOLUMES = "container-not-ours", "pod-not-restricted", "volume-not-allowed"
UNEQUAL, JOB = "resources-unequal", "job-not-ours"


@dataclass(frozen=True, slots=True)
class Trials:
    """The rules for the pods of one batch."""

    batch: str
    settings: Settings
    config_maps: frozenset[str]
    """Those that are rendered beside it."""

    def rules(self, kind: str, pod: Pod) -> Iterator[Finding]:
        """Find what is wrong with a pod of an object of a kind."""
        yield from _pod(pod)
        yield from self._volumes(pod)
        yield from self._containers(kind, pod)
        volumes = {volume.get("name"): volume for volume in pod.volumes}
        for container in pod.containers:
            for index, mount in enumerate(container.data.get("volumeMounts", [])):
                yield from self._mount(mount, volumes, (*container.path, "volumeMounts", index))

    def _containers(self, kind: str, pod: Pod) -> Iterator[Finding]:
        wanted = NAMES.get(kind, "trial")
        found = [each.data.get("name") for each in pod.containers if each.sort == "containers"]
        if found != [wanted]:
            message = f"must be the one container {wanted!r}, got {found!r}"
            yield Finding((*pod.at, "containers"), message, CONTAINER)
        for container in pod.containers:
            yield from _hardened(container, kind)
            if container.sort == "containers":
                yield from _command(container, kind)
            else:
                yield from self._clone(container)

    def _clone(self, container: Container) -> Iterator[Finding]:
        code = self.settings.code
        image = None if code is None else self.settings.image_of(code.image)
        name, found = container.data.get("name"), container.data.get("image")
        if name != CLONE or found != image:
            message = (
                f"must be {CLONE!r} with the image of code.image ({image!r}), got {name!r} with {found!r}"
            )
            yield Finding(container.path, message, CONTAINER)

    def _volumes(self, pod: Pod) -> Iterator[Finding]:
        names = [volume.get("name") for volume in pod.volumes]
        if len(set(names)) < len(names):
            message = f"must have different names, got {names!r}"
            yield Finding((*pod.at, "volumes"), message, VOLUMES)
        for index, volume in enumerate(pod.volumes):
            at = (*pod.at, "volumes", index)
            sources = sorted(volume.keys() & set(SOURCES))
            if len(sources) != 1:
                yield Finding(at, f"must have one of {', '.join(SOURCES)}, got {sources!r}", VOLUMES)
                continue
            yield from self._source(volume, sources[0], at)

    def _source(self, volume: Mapping[str, Any], source: str, at: Path) -> Iterator[Finding]:
        name, found = str(volume.get("name")), volume[source]
        is_known = name in PLAIN | WRITABLE | {CREDENTIALS, "data"} or name.startswith(SECRET)
        if not is_known:
            yield Finding(at, f"must be a volume of a trial, got {name!r}", VOLUMES)
        for named in sorted(map(str, _config_maps(volume))):
            if named not in self.config_maps:
                yield Finding(at, f"must be a ConfigMap of the batch, got {named!r}", VOLUMES)
        if source == "persistentVolumeClaim" and found.get("claimName") not in self._claims(name):
            message = f"must be a claim that the settings give to {name!r}, got {found.get('claimName')!r}"
            yield Finding((*at, source), message, VOLUMES)
        if source == "secret" and not self._is_listed(name, found):
            message = f"must be a key of a Secret that the settings list, got {found.get('secretName')!r}"
            yield Finding((*at, source), message, VOLUMES, "list it under secrets in sweepledger.yaml")
        if source == "emptyDir" and "medium" in found and name != "shared-memory":
            yield Finding((*at, source, "medium"), f"must be absent, got {found['medium']!r}", VOLUMES)

    def _claims(self, volume: str) -> set[str]:
        results = self.settings.results
        if volume == "data":
            return {dataset.claim for dataset in self.settings.datasets.values()}
        owned = {"artifacts": results.artifacts, "checkpoints": results.checkpoints, "results": results.claim}
        claim = owned.get(volume)
        return set() if claim is None else {claim}

    def _is_listed(self, volume: str, source: Mapping[str, Any]) -> bool:
        if volume == CREDENTIALS:
            code = self.settings.code
            return code is not None and code.secret is not None and source.get("secretName") == code.secret
        asked = self.settings.secrets.get(volume.removeprefix(SECRET))
        if asked is None or not volume.startswith(SECRET):
            return False
        only = [{"key": asked.key, "path": asked.key}]
        return source.get("secretName") == asked.secret and source.get("items") == only

    def _mount(self, mount: Mapping[str, Any], volumes: Mapping[Any, Any], at: Path) -> Iterator[Finding]:
        volume = volumes.get(mount.get("name"))
        if volume is None:
            yield Finding(at, f"must name one of {sorted(map(str, volumes))}", VOLUMES)
            return
        path = str(mount.get("subPathExpr") or mount.get("subPath") or "")
        is_own = path.startswith(f"{self.batch}/") and ".." not in path.split("/")
        if "persistentVolumeClaim" in volume and mount.get("readOnly") is not True and not is_own:
            message = f"must be read-only or lie in the batch's folder {self.batch}/, got {path!r}"
            yield Finding(at, message, VOLUMES)


def _pod(pod: Pod) -> Iterator[Finding]:
    wanted = {"restartPolicy": "Never", "automountServiceAccountToken": False, "serviceAccountName": ACCOUNT}
    for key, value in wanted.items():
        if pod.spec.get(key) != value:
            yield Finding((*pod.at, key), f"must be {value!r}, got {pod.spec.get(key)!r}", PODS)
    for key in ("activeDeadlineSeconds", "terminationGracePeriodSeconds"):
        value = pod.spec.get(key)
        if type(value) is not int or value < 1:  # True is an int, too
            yield Finding((*pod.at, key), f"must be a whole number of at least 1, got {value!r}", JOB)
    at = (*pod.at, "securityContext")
    yield from _context(pod.security, RESTRICTED_POD, at)
    for key in NOT_ROOT:
        value = pod.security.get(key)
        if key in pod.security and not (type(value) is int and value > 0):
            yield Finding((*at, key), f"must not be root's, got {value!r}", PODS)


def _config_maps(volume: Mapping[str, Any]) -> Iterator[Any]:
    places = [volume, *volume.get("projected", {}).get("sources", [])]
    yield from (place["configMap"].get("name") for place in places if "configMap" in place)


def _command(container: Container, kind: str) -> Iterator[Finding]:
    command, arguments = container.data.get("command", []), container.data.get("args")
    if kind == "MPIJob" and "Worker" in container.path and (command, arguments) == WAITING:
        return
    if command[1:] != [LAUNCHER] or len(command) != len(["interpreter", LAUNCHER]):
        message = f"must start the launcher {LAUNCHER}, got {command!r}"
        yield Finding((*container.path, "command"), message, CONTAINER)
    if arguments is not None and arguments[:1] != ["--"]:
        message = f"must be -- and the command, which the launcher compares, got {arguments!r}"
        yield Finding((*container.path, "args"), message, CONTAINER)


def trainer(container: Container) -> Iterator[Finding]:
    """Find what is wrong with what a TrainJob says of its runtime's containers."""
    arguments = container.data.get("args")
    if "command" in container.data:
        message = f"must be absent: the runtime starts the launcher, got {container.data['command']!r}"
        yield Finding((*container.path, "command"), message, CONTAINER)
    if arguments is not None and arguments[:1] != ["--"]:
        message = f"must be -- and the command, which the launcher compares, got {arguments!r}"
        yield Finding((*container.path, "args"), message, CONTAINER)
    resources = container.data.get("resourcesPerNode", {})
    if resources.get("limits") != resources.get("requests"):
        message = "must have requests equal to the limits"
        yield Finding((*container.path, "resourcesPerNode"), message, UNEQUAL)


def _hardened(container: Container, kind: str) -> Iterator[Finding]:
    context, at = container.data.get("securityContext", {}), (*container.path, "securityContext")
    yield from _context(context, RESTRICTED_CONTAINER, at)
    if context.get("capabilities", {}).get("drop") != ["ALL"]:
        message = f"must drop ['ALL'], got {context.get('capabilities')!r}"
        yield Finding((*at, "capabilities"), message, PODS)
    resources = container.data.get("resources", {})
    limits = resources.get("limits", {})
    if not {"cpu", "memory"} <= limits.keys() or limits != resources.get("requests"):
        if kind == "TrainingRuntime" and not resources:
            return  # its TrainJobs say it
        message = "must limit cpu and memory, with requests equal to the limits"
        yield Finding((*container.path, "resources"), message, UNEQUAL)


def _context(found: Mapping[str, Any], wanted: Mapping[str, Any], at: Path) -> Iterator[Finding]:
    for key, value in wanted.items():
        if found.get(key) != value:
            yield Finding((*at, key), f"must be {value!r}, got {found.get(key)!r}", PODS)
