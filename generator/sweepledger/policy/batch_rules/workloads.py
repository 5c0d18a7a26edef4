"""Jobs and pods of a batch, in every shape: retries, the failure policy, one launcher, the locked image."""

from collections.abc import Iterator
from typing import Any

from sweepledger.formats.launch_json import LAUNCHER_PATH, LAUNCHER_PATHS
from sweepledger.policy.batch_rules.identity import RUNTIME_KIND, BatchContext, runs_all_trials, trial_index
from sweepledger.policy.objects import BATCH_MANIFEST, Container, Finding, Object, Pod
from sweepledger.reader.messages import safe_json, safe_repr
from sweepledger.structs.kubernetes import (
    BAD_HYPERPARAMETERS,
    BAD_SWEEP,
    CODE_CONTAINER,
    COMPLETION_INDEX_VARIABLE,
    DISRUPTED,
    INDEX_LABEL,
    INDEX_VARIABLE,
    MPI_WORKER_COMMAND,
    PARENT_FOLDER_VARIABLE,
    RECORD_FINALIZER,
    STORE_COMMAND,
    STORE_CONTAINER,
    STORE_READY_COMMAND,
    STORE_VARIABLES,
    Manifest,
)
from sweepledger.structs.settings import COLLECTOR_IMAGE

JOB_COUNTS = {"completions": 1, "parallelism": 1, "backoffLimitPerIndex": 0, "maxFailedIndexes": 1}
"""The counts that a Job must have, each with the least that it may be."""


def check_job(manifest: Manifest) -> Iterator[Finding]:
    """Yield the findings in a Job, except for its pod."""
    spec = manifest.get("spec") or {}
    labels = (manifest.get("metadata") or {}).get("labels") or {}
    yield from _counts(spec, is_single=INDEX_LABEL in labels)
    lost = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    wanted = [lost, _on_exit("FailIndex", BAD_HYPERPARAMETERS, DISRUPTED), _on_exit("FailJob", BAD_SWEEP)]
    rules = (spec.get("podFailurePolicy") or {}).get("rules")
    if rules != wanted:
        message = f"must be {safe_json(wanted)}, got {safe_json(rules)}"
        yield Finding(("spec", "podFailurePolicy", "rules"), message, BATCH_MANIFEST)
    deadline = spec.get("activeDeadlineSeconds")
    if type(deadline) is not int:
        message = f"must be a whole number: it bounds disrupted attempts, got {safe_repr(deadline)}"
        yield Finding(("spec", "activeDeadlineSeconds"), message, BATCH_MANIFEST)
    replaced = spec.get("podReplacementPolicy")
    if replaced != "Failed":  # two pods of one trial would run side by side
        message = f"must be 'Failed', got {safe_repr(replaced)}"
        yield Finding(("spec", "podReplacementPolicy"), message, BATCH_MANIFEST)


def _counts(spec: Manifest, *, is_single: bool) -> Iterator[Finding]:
    """Yield missing and invalid counts, which Kubernetes reads as one, none or no limit."""
    if (mode := spec.get("completionMode")) != "Indexed":
        yield Finding(("spec", "completionMode"), f"must be 'Indexed', got {safe_repr(mode)}", BATCH_MANIFEST)
    for key, least in JOB_COUNTS.items():
        value = spec.get(key)
        if type(value) is not int or value < least:  # True is an int, too
            yield Finding(
                ("spec", key),
                f"must be a whole number of at least {least}, got {safe_repr(value)}",
                BATCH_MANIFEST,
            )
    if is_single and spec.get("completions") != 1:
        completions = spec.get("completions")
        message = f"must be 1 in the Job of one trial, got {safe_repr(completions)}"
        yield Finding(("spec", "completions"), message, BATCH_MANIFEST)


def _on_exit(action: str, *codes: int) -> dict[str, Any]:
    return {"action": action, "onExitCodes": {"containerName": "trial", "operator": "In", "values": [*codes]}}


CONTAINER_NAMES = {"PyTorchJob": "pytorch", "TFJob": "tensorflow", RUNTIME_KIND: "node"}
"""Container names that operators require; otherwise it is `trial`."""

UNEQUAL = "resources-unequal"


def check_pods(obj: Object, trials: BatchContext) -> Iterator[Finding]:
    """Yield the findings in the pods of an object, and in a TrainJob's changes to the pods of its runtime."""
    for pod in obj.pods:
        yield from _pod(pod)
        wanted = [RECORD_FINALIZER] if trials.settings.results.store.holds_pods else []
        actual = pod.metadata.get("finalizers") or []
        if actual != wanted:
            store = str(trials.settings.results.store)
            message = f"must be {safe_json(wanted)} as results.store is {store!r}, got {safe_json(actual)}"
            yield Finding((*pod.path, "metadata", "finalizers"), message, BATCH_MANIFEST)
        yield from _containers(obj, pod, trials)
    for container in obj.containers:
        if container.sort == "trainer":
            yield from _trainer(obj, container, trials)


def _pod(pod: Pod) -> Iterator[Finding]:
    if (policy := pod.spec.get("restartPolicy")) != "Never":
        yield Finding((*pod.at, "restartPolicy"), f"must be 'Never', got {safe_repr(policy)}", BATCH_MANIFEST)
    grace = pod.spec.get("terminationGracePeriodSeconds")
    if grace is None or grace < 1:
        message = f"must be at least 1, got {safe_repr(grace)}"
        yield Finding((*pod.at, "terminationGracePeriodSeconds"), message, BATCH_MANIFEST)
    for key in ("runAsGroup", "fsGroup"):
        if pod.security.get(key) == 0:
            yield Finding((*pod.at, "securityContext", key), "must not be 0, which is root's", BATCH_MANIFEST)


def _containers(obj: Object, pod: Pod, trials: BatchContext) -> Iterator[Finding]:
    wanted = CONTAINER_NAMES.get(obj.kind, "trial")
    names = [each.data.get("name") for each in pod.containers if each.sort == "containers"]
    if names != [wanted]:
        message = f"must be the one container {wanted!r}, got {safe_json(names)}"
        yield Finding((*pod.at, "containers"), message, BATCH_MANIFEST)
    for container in pod.containers:
        if container.sort == "initContainers" and container.data.get("name") == STORE_CONTAINER:
            yield from _sidecar(obj, container, trials)
            continue
        for key in ("restartPolicy", "lifecycle"):
            if key in container.data:
                message = f"must be absent, got {safe_json(container.data[key])}"
                yield Finding((*container.path, key), message, BATCH_MANIFEST)
        resources = container.data.get("resources") or {}
        if resources.get("limits") != resources.get("requests"):
            message = "must have requests equal to the limits"
            yield Finding((*container.path, "resources"), message, UNEQUAL)
        if container.sort == "containers":
            yield from _image(container, trials.image)
            yield from _command(obj, container)
        else:
            yield from _clone(container, trials)


def _sidecar(obj: Object, container: Container, trials: BatchContext) -> Iterator[Finding]:
    """Yield how the sidecar of a bucket differs from that of the base and the settings: it holds a credential."""
    bucket, data = trials.settings.results.bucket, container.data
    if bucket is None:
        yield Finding(container.path, "must be absent unless results.store is 'bucket'", BATCH_MANIFEST)
        return
    variables = {each.get("name"): each.get("value") for each in data.get("env") or ()}
    mounted = {each.get("name"): each.get("mountPath") for each in data.get("volumeMounts") or ()}
    parents = {str(row): folder for row, folder in trials.parent_folders.items()}
    clients = trials.settings.network.client_variables(trials.settings.network.egress)
    ready = {"postStart": {"exec": {"command": [*STORE_READY_COMMAND]}}}
    wanted: dict[str, tuple[Any, Any]] = {
        "image": (trials.settings.trials.image_of(COLLECTOR_IMAGE), data.get("image")),
        "command": ([*STORE_COMMAND], data.get("command")),
        "args": (None, data.get("args")),
        "restartPolicy": ("Always", data.get("restartPolicy")),
        "lifecycle": (ready, data.get("lifecycle")),
        "SWEEP_BATCH": (trials.batch, variables.get("SWEEP_BATCH")),
        "SWEEP_STORE_URL": (bucket.url, variables.get("SWEEP_STORE_URL")),
        PARENT_FOLDER_VARIABLE: (parents.get(trial_index(obj) or ""), variables.get(PARENT_FOLDER_VARIABLE)),
        "volumeMounts": ({name: f"/sweep/{name}" for name in mounted}, mounted),
        "variables": (
            [],
            sorted(map(str, variables.keys() - {*STORE_VARIABLES, *bucket.variables, *clients})),
        ),
    }
    folders = variables.get("SWEEP_STORE_DATA")
    if folders is not None and not trials.settings.trials.may_copy(str(folders)):
        message = f"must copy datasets of sweepledger.yaml, got {safe_repr(folders)} as SWEEP_STORE_DATA"
        yield Finding(container.path, message, BATCH_MANIFEST)
    for key, (must, actual) in wanted.items():
        if must != actual:
            message = f"must have {safe_json(must)} as {key}, got {safe_json(actual)}"
            yield Finding(container.path, message, BATCH_MANIFEST)


def _clone(container: Container, trials: BatchContext) -> Iterator[Finding]:
    code = trials.settings.git.code
    image = None if code is None else trials.settings.trials.image_of(code.image)
    name, actual = container.data.get("name"), container.data.get("image")
    if name != CODE_CONTAINER or actual != image:
        wanted = f"{CODE_CONTAINER!r} with the image of code.image ({safe_repr(image)})"
        message = f"must be {wanted}, got {safe_repr(name)} with {safe_repr(actual)}"
        yield Finding(container.path, message, BATCH_MANIFEST)


def _image(container: Container, wanted: str | None) -> Iterator[Finding]:
    image = container.data.get("image")
    if wanted is not None and image != wanted:
        message = f"must be the image that the batch has locked, {safe_repr(wanted)}, got {safe_repr(image)}"
        yield Finding((*container.path, "image"), message, BATCH_MANIFEST)


def _command(obj: Object, container: Container) -> Iterator[Finding]:
    command, arguments = container.data.get("command") or [], container.data.get("args")
    if (
        obj.kind == "MPIJob"
        and "Worker" in container.path
        and [command, arguments] == [list(part) for part in MPI_WORKER_COMMAND]
    ):
        return
    if len(command) != len(["interpreter", LAUNCHER_PATH]) or command[1] not in LAUNCHER_PATHS:
        message = f"must start the launcher {LAUNCHER_PATH}, got {safe_json(command)}"
        yield Finding((*container.path, "command"), message, BATCH_MANIFEST)
    yield from _arguments(container)
    yield from _row(obj, container)


def _arguments(container: Container) -> Iterator[Finding]:
    arguments = container.data.get("args")
    if arguments is not None and arguments[:1] != ["--"]:
        message = f"must be -- and the command, which the launcher compares, got {safe_json(arguments)}"
        yield Finding((*container.path, "args"), message, BATCH_MANIFEST)


def _row(obj: Object, container: Container) -> Iterator[Finding]:
    """Yield wrong index variables: two pods with the same index would write into the same folder."""
    variables = {each.get("name"): each.get("value") for each in container.data.get("env") or ()}
    shared = obj.kind == RUNTIME_KIND or runs_all_trials(obj)
    wanted = {COMPLETION_INDEX_VARIABLE: None, INDEX_VARIABLE: None if shared else trial_index(obj)}
    for name, value in wanted.items():
        if (name in variables, variables.get(name)) != (value is not None, value):
            actual = safe_repr(variables[name]) if name in variables else "none"
            must = f"must set {name} to {safe_repr(value)}" if value is not None else f"must not set {name}"
            yield Finding((*container.path, "env"), f"{must}, got {actual}", BATCH_MANIFEST)


def _trainer(obj: Object, container: Container, trials: BatchContext) -> Iterator[Finding]:
    """Yield the findings in a TrainJob's changes to its runtime's containers."""
    if "command" in container.data:
        command = safe_json(container.data["command"])
        message = f"must be absent: the runtime starts the launcher, got {command}"
        yield Finding((*container.path, "command"), message, BATCH_MANIFEST)
    yield from _arguments(container)
    yield from _row(obj, container)
    if "image" in container.data:
        yield from _image(container, trials.image)
    resources = container.data.get("resourcesPerNode") or {}
    if resources.get("limits") != resources.get("requests"):
        message = "must have requests equal to the limits"
        yield Finding((*container.path, "resourcesPerNode"), message, UNEQUAL)
