"""The pods of trials, in every shape: one launcher and its trial, the locked image, nobody else's rights."""

from collections.abc import Iterator

from generator.formats.launch import LAUNCHER_PATH
from generator.policy.findings import Finding
from generator.policy.ours.trials import COMPLETION_INDEX, SHARED, Trials, index, is_indexed
from generator.policy.workloads import Container, Object, Pod
from generator.reader.shown import shown, written
from generator.structs.labels import INDEX_VARIABLE, TRIAL_ACCOUNT

NAMES = {"PyTorchJob": "pytorch", "TFJob": "tensorflow", SHARED: "node"}
"""What operators demand that the container be called; elsewhere it is `trial`."""
CLONE = "code"
"""The init container that gets the code."""
WAITING = ["/usr/sbin/sshd"], ["-De", "-f", "/home/mpiuser/.sshd_config"]
"""What an MPI worker runs until rank 0 starts its part in it."""

CONTAINER, PODS, UNEQUAL = "container-not-ours", "pod-not-ours", "resources-unequal"


def check(thing: Object, trials: Trials) -> Iterator[Finding]:
    """Find what is wrong with the pods of an object, and with what it says of another's."""
    for pod in thing.pods:
        yield from _pod(pod)
        yield from _containers(thing, pod, trials)
    for container in thing.containers:
        if container.sort == "trainer":
            yield from _trainer(thing, container, trials)


def _pod(pod: Pod) -> Iterator[Finding]:
    for key, value in (("restartPolicy", "Never"), ("serviceAccountName", TRIAL_ACCOUNT)):
        if pod.spec.get(key) != value:
            yield Finding((*pod.at, key), f"must be {value!r}, got {shown(pod.spec.get(key))}", PODS)
    grace = pod.spec.get("terminationGracePeriodSeconds")
    if grace is None or grace < 1:
        message = f"must be at least 1, got {shown(grace)}"
        yield Finding((*pod.at, "terminationGracePeriodSeconds"), message, PODS)
    for key in ("runAsGroup", "fsGroup"):
        if pod.security.get(key) == 0:
            yield Finding((*pod.at, "securityContext", key), "must not be 0, which is root's", PODS)


def _containers(thing: Object, pod: Pod, trials: Trials) -> Iterator[Finding]:
    wanted = NAMES.get(thing.kind, "trial")
    found = [each.data.get("name") for each in pod.containers if each.sort == "containers"]
    if found != [wanted]:
        message = f"must be the one container {wanted!r}, got {written(found)}"
        yield Finding((*pod.at, "containers"), message, CONTAINER)
    for container in pod.containers:
        resources = container.data.get("resources") or {}
        if resources.get("limits") != resources.get("requests"):
            message = "must have requests equal to the limits"
            yield Finding((*container.path, "resources"), message, UNEQUAL)
        if container.sort == "containers":
            yield from _image(container, trials.image)
            yield from _command(thing, container)
        else:
            yield from _clone(container, trials)


def _clone(container: Container, trials: Trials) -> Iterator[Finding]:
    code = trials.settings.code
    image = None if code is None else trials.settings.image_of(code.image)
    name, found = container.data.get("name"), container.data.get("image")
    if name != CLONE or found != image:
        wanted = f"{CLONE!r} with the image of code.image ({shown(image)})"
        message = f"must be {wanted}, got {shown(name)} with {shown(found)}"
        yield Finding(container.path, message, CONTAINER)


def _image(container: Container, wanted: str | None) -> Iterator[Finding]:
    found = container.data.get("image")
    if wanted is not None and found != wanted:
        message = f"must be the image that the batch has locked, {shown(wanted)}, got {shown(found)}"
        yield Finding((*container.path, "image"), message, CONTAINER)


def _command(thing: Object, container: Container) -> Iterator[Finding]:
    command, arguments = container.data.get("command") or [], container.data.get("args")
    if thing.kind == "MPIJob" and "Worker" in container.path and (command, arguments) == WAITING:
        return
    if command[1:] != [LAUNCHER_PATH] or len(command) != len(["interpreter", LAUNCHER_PATH]):
        message = f"must start the launcher {LAUNCHER_PATH}, got {written(command)}"
        yield Finding((*container.path, "command"), message, CONTAINER)
    yield from _arguments(container)
    yield from _row(thing, container)


def _arguments(container: Container) -> Iterator[Finding]:
    arguments = container.data.get("args")
    if arguments is not None and arguments[:1] != ["--"]:
        message = f"must be -- and the command, which the launcher compares, got {written(arguments)}"
        yield Finding((*container.path, "args"), message, CONTAINER)


def _row(thing: Object, container: Container) -> Iterator[Finding]:
    """Two pods with one number would write into one folder."""
    variables = {each.get("name"): each.get("value") for each in container.data.get("env") or ()}
    shared = thing.kind == SHARED or is_indexed(thing)
    wanted = {COMPLETION_INDEX: None, INDEX_VARIABLE: None if shared else index(thing)}
    for name, value in wanted.items():
        if (name in variables, variables.get(name)) != (value is not None, value):
            found = shown(variables[name]) if name in variables else "none"
            must = f"must set {name} to {shown(value)}" if value is not None else f"must not set {name}"
            yield Finding((*container.path, "env"), f"{must}, got {found}", CONTAINER)


def _trainer(thing: Object, container: Container, trials: Trials) -> Iterator[Finding]:
    """What a TrainJob says of its runtime's containers."""
    if "command" in container.data:
        found = written(container.data["command"])
        message = f"must be absent: the runtime starts the launcher, got {found}"
        yield Finding((*container.path, "command"), message, CONTAINER)
    yield from _arguments(container)
    yield from _row(thing, container)
    if "image" in container.data:
        yield from _image(container, trials.image)
    resources = container.data.get("resourcesPerNode") or {}
    if resources.get("limits") != resources.get("requests"):
        message = "must have requests equal to the limits"
        yield Finding((*container.path, "resourcesPerNode"), message, UNEQUAL)
