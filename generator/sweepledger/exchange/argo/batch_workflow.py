"""A rendered batch as an Argo Workflow: a step for each trial, with the container of its Job. Pure.

Argo takes the parts of a pod as keys of a template. What it has no key for goes into a patch of the pod.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sweepledger.errors import UsageError
from sweepledger.exchange.conversion import Exported, Loss
from sweepledger.formats import yaml
from sweepledger.structs.kubernetes import (
    COMPLETION_INDEX_VARIABLE,
    CONFIG_MAP,
    JOB,
    QUEUE_LABEL,
    STORE_CONTAINER,
)

Manifest = Mapping[str, Any]

API_VERSION = "argoproj.io/v1alpha1"
EXECUTOR_ACCOUNT = "sweep-executor"
"""The service account by which Argo's own container reports; the trial's container gets no token."""
TEMPLATE_KEYS = (
    "initContainers", "volumes", "securityContext", "serviceAccountName", "automountServiceAccountToken",
    "activeDeadlineSeconds", "nodeSelector", "tolerations", "affinity", "schedulerName", "priorityClassName",
    "hostAliases",
)  # fmt: skip
"""Keys of a pod that are keys of a template, too."""
OWN_KEYS = frozenset({"containers", "restartPolicy", "imagePullSecrets", *TEMPLATE_KEYS})
COUNTED_VARIABLES = frozenset({"SWEEP_FAILURES", "SWEEP_DISRUPTIONS"})
"""Annotations of a Job's pods, which Argo's pods lack: the launcher then counts the records."""
FINAL_EXIT_CODES = (42, 43, 44)
"""Of the launcher: no further attempt could change the result."""
TAG = "{{"
"""Begins what Argo replaces in every text of a template; it has no escape."""


def write(batch: str, manifests: Sequence[Manifest]) -> Exported:
    """Return the ConfigMaps of a batch and its Workflow, for `kubectl create`. Raises UsageError if Argo cannot run it.

    The manifests are those that kustomize renders.
    """
    jobs = [each for each in manifests if each["kind"] == JOB.kind]
    maps = [each for each in manifests if each["kind"] == CONFIG_MAP.kind]
    if len(jobs) + len(maps) != len(manifests):
        kinds = sorted({each["kind"] for each in manifests} - {JOB.kind, CONFIG_MAP.kind})
        raise UsageError(
            f"{batch} has objects of the kind {', '.join(kinds)}, and a step of Argo is one pod",
            hint="export a sweep whose trials are single pods: run.shape indexed or jobs",
        )
    losses = tuple(_losses(jobs))
    banner = "\n".join(
        [
            f"Batch {batch} as an Argo Workflow. Do not edit: `sweep export` writes it again.",
            f"Start it with `kubectl create`. `sweep collect-by-pod --ended {batch}` records it when it has ended.",
            "Differences in Argo:",
            *(f"- {loss.what}: {loss.why}" for loss in losses),
        ]
    )
    return Exported(yaml.dump(*maps, _workflow(batch, jobs), banner=banner), losses)


def _workflow(batch: str, jobs: Sequence[Manifest]) -> dict[str, Any]:
    first = jobs[0]
    names = {job["metadata"]["name"]: f"trial-{number}" for number, job in enumerate(jobs)}
    parallelism = sum(job["spec"].get("parallelism", 1) for job in jobs)
    pull_secrets = first["spec"]["template"]["spec"].get("imagePullSecrets")
    kept = {key: first["metadata"][key] for key in ("namespace",) if key in first["metadata"]}
    labels = _shared([job["metadata"].get("labels", {}) for job in jobs])
    return {
        "apiVersion": API_VERSION,
        "kind": "Workflow",
        "metadata": {
            "name": batch,
            **kept,
            "labels": {name: value for name, value in labels.items() if name != QUEUE_LABEL},
            "annotations": _shared([job["metadata"].get("annotations", {}) for job in jobs]),
        },
        "spec": {
            "entrypoint": "batch",
            "serviceAccountName": EXECUTOR_ACCOUNT,
            **({"imagePullSecrets": pull_secrets} if pull_secrets else {}),
            "templates": [
                {
                    "name": "batch",
                    "parallelism": parallelism,
                    "failFast": False,
                    "steps": [[_step(names[job["metadata"]["name"]], job) for job in jobs]],
                },
                *(_template(names[job["metadata"]["name"]], job) for job in jobs),
            ],
        },
    }


def _shared(mappings: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return what all mappings have alike."""
    first, *others = mappings
    return {key: value for key, value in first.items() if all(other.get(key) == value for other in others)}


def _step(template: str, job: Manifest) -> dict[str, Any]:
    return {
        "name": template,
        "template": template,
        "arguments": {"parameters": [{"name": "row", "value": "{{item}}"}]},
        "withSequence": {"count": str(job["spec"].get("completions", 1))},
        # A failed trial stops no other, and is a result as any other.
        "continueOn": {"failed": True, "error": True},
    }


def _template(name: str, job: Manifest) -> dict[str, Any]:
    """Return the template of a Job's pods. Raises UsageError for text that Argo would change."""
    spec, template = job["spec"], job["spec"]["template"]
    pod = template["spec"]
    _refuse_tags(template, job["metadata"]["name"])
    if any(container["name"] == STORE_CONTAINER for container in pod.get("initContainers", ())):
        raise UsageError(
            f"{job['metadata']['name']} has results in a bucket, whose pods must stay until they are read",
            hint="Argo keeps no pod for that: choose results.store: volume for such a sweep",
        )
    patch = {key: value for key, value in pod.items() if key not in OWN_KEYS}
    return {
        "name": name,
        "inputs": {"parameters": [{"name": "row"}]},
        "metadata": {key: value for key, value in template.get("metadata", {}).items() if value},
        "retryStrategy": _retries(spec),
        **{key: pod[key] for key in TEMPLATE_KEYS if key in pod},
        "executor": {"serviceAccountName": EXECUTOR_ACCOUNT},
        **({"podSpecPatch": json.dumps(patch, sort_keys=True)} if patch else {}),
        "container": _container(pod, job["metadata"]["name"]),
    }


def _retries(spec: Mapping[str, Any]) -> dict[str, Any]:
    codes = ", ".join(f'"{code}"' for code in FINAL_EXIT_CODES)
    return {
        "limit": str(spec.get("backoffLimitPerIndex", spec.get("backoffLimit", 0))),
        "retryPolicy": "Always",
        "expression": f"lastRetry.exitCode not in [{codes}]",
    }


def _container(pod: Mapping[str, Any], job: str) -> dict[str, Any]:
    if len(pod["containers"]) != 1:
        raise UsageError(f"{job} must have pods of one container, got {len(pod['containers'])}")
    container = {key: value for key, value in pod["containers"][0].items() if key != "name"}
    variables = [each for each in container.get("env", ()) if each["name"] not in COUNTED_VARIABLES]
    # First, because the paths of volumes may refer to it.
    row = {"name": COMPLETION_INDEX_VARIABLE, "value": "{{inputs.parameters.row}}"}
    return {**container, "env": [row, *variables]}


def _refuse_tags(data: Any, job: str) -> None:
    match data:
        case str() if TAG in data:
            raise UsageError(
                f"{job} has the text {data!r}, in which Argo would replace {TAG}",
                hint="choose another text, or `sweep export shell` or slurm",
            )
        case Mapping():
            for key, value in data.items():
                _refuse_tags(key, job)
                _refuse_tags(value, job)
        case list() | tuple():
            for item in data:
                _refuse_tags(item, job)
        case _:
            pass


def _losses(jobs: Sequence[Manifest]) -> Iterator[Loss]:
    first = jobs[0]
    spec = first["spec"]
    yield Loss(
        "max_disruptions",
        "a pod that the cluster ends counts as one of run.retries: Argo does not tell them apart",
    )
    if "activeDeadlineSeconds" in spec:
        yield Loss("deadline of the Job", "only each pod has one; end a Workflow with `argo stop`")
    completions = spec.get("completions", 1)
    if spec.get("maxFailedIndexes", completions) < completions:
        yield Loss(f"max_failed: {spec['maxFailedIndexes']}", "failed trials stop no others")
    if queue := first["metadata"].get("labels", {}).get(QUEUE_LABEL):
        yield Loss(f"queue: {queue}", "Kueue starts Jobs; Argo starts its pods at once")
