"""The keys that a batch's objects may have: those that the bases and the renderer write.

Allowed keys are listed, because a list of forbidden keys would miss what Kubernetes adds later.
"""

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from sweepledger.policy.objects import BATCH_MANIFEST, Finding, Object
from sweepledger.policy.schema import MALFORMED
from sweepledger.reader.document import DocumentPath
from sweepledger.reader.messages import safe_json
from sweepledger.structs import kubernetes
from sweepledger.structs.kubernetes import (
    BATCH_LABEL,
    EGRESS_LABEL,
    GENERATOR_LABELS,
    INDEX_LABEL,
    MIN_PARALLELISM,
    POD_SET_GROUP,
    PREFERRED_TOPOLOGY,
    PRIORITY_LABEL,
    QUEUE_LABEL,
    REQUIRED_TOPOLOGY,
    SOURCE_ANNOTATIONS,
    SWEEP_LABEL,
    SYNC_WAVE,
    TRIAL_LABEL,
)
from sweepledger.structs.node_pool import GPU_RESOURCE
from sweepledger.structs.settings import PEERS_EGRESS, Settings


class Anything:
    """A value that only the schema checks."""


Form: TypeAlias = "Mapping[str, Form] | tuple[Form] | Anything | None"
"""A mapping with these keys, a list of items of one form, anything, or (None) a plain value."""

ANY_KEY = "*"
ANYTHING = Anything()


def _plain(*keys: str) -> dict[str, Form]:
    """Return the form of a mapping of plain values."""
    return dict.fromkeys(keys)


PEERS = f"{EGRESS_LABEL}{PEERS_EGRESS}"
"""The pods of one distributed trial may reach each other."""

LABELS = (
    *sorted(GENERATOR_LABELS),
    BATCH_LABEL,
    INDEX_LABEL,
    SWEEP_LABEL,
    TRIAL_LABEL,
    "trainer.kubeflow.org/framework",
)
QUEUE = (PRIORITY_LABEL, QUEUE_LABEL)
ANNOTATIONS = _plain(
    *(*SOURCE_ANNOTATIONS, TRIAL_LABEL, MIN_PARALLELISM),
)
TOPOLOGY = (POD_SET_GROUP, PREFERRED_TOPOLOGY, REQUIRED_TOPOLOGY)
"""What pods of a distributed trial may ask Kueue for; another rule compares it with their pool."""
STEADY = _plain("cluster-autoscaler.kubernetes.io/safe-to-evict", "karpenter.sh/do-not-disrupt")

DISTRIBUTED = tuple(
    (kind.api_version, kind.kind)
    for kind in (
        kubernetes.JOB_SET,
        kubernetes.PYTORCH_JOB,
        kubernetes.TF_JOB,
        kubernetes.MPI_JOB,
        kubernetes.TRAINING_RUNTIME,
    )
)
"""Kinds whose pods are checked against allowed keys; a schema checks everything around the pods."""

TRAIN_JOB = (kubernetes.TRAIN_JOB.api_version, kubernetes.TRAIN_JOB.kind)
_TRAIN_JOB: Form = {
    "runtimeRef": _plain("apiGroup", "kind", "name"),
    "suspend": None,
    "trainer": ANYTHING,
}
"""Contains no key that could weaken the restrictions of the runtime's pods."""

_VOLUME: Form = {
    "name": None,
    "configMap": _plain("name", "defaultMode"),
    "projected": {
        "defaultMode": None,
        # Another rule compares the tokens with those of the pool.
        "sources": ({"configMap": _plain("name"), "serviceAccountToken": ANYTHING},),
    },
    "persistentVolumeClaim": _plain("claimName", "readOnly"),
    "emptyDir": _plain("sizeLimit", "medium"),
    "secret": {**_plain("secretName", "defaultMode"), "items": (_plain("key", "path"),)},
}
_SIDECAR: Mapping[str, Form] = {
    "restartPolicy": None,
    "lifecycle": {"postStart": {"exec": {"command": (None,)}}},
}
"""What only the sidecar of a bucket has; another rule compares it."""
_RULE: Form = {
    "action": None,
    "onExitCodes": {**_plain("containerName", "operator"), "values": (None,)},
    "onPodConditions": (_plain("type", "status"),),
}


def labels(settings: Settings) -> Mapping[str, Form]:
    """Return the labels that objects may have: those of the generator and of the settings."""
    return _plain(*LABELS, *QUEUE, *settings.trials.labels)


def _pod_labels(settings: Settings, *, distributed: bool) -> Mapping[str, Form]:
    """Return the labels that pods may have: NetworkPolicies select by them, queues by labels of the pods' owners."""
    egress = (f"{EGRESS_LABEL}{name}" for name in settings.network.egress)
    of_pools = (name for pool in settings.trials.pools.values() for name in pool.pod.labels)
    bucket = settings.results.bucket
    own = settings.trials.labels if bucket is None else (*bucket.pod_labels, *settings.trials.labels)
    return _plain(*LABELS, *egress, *((PEERS,) if distributed else ()), *own, *of_pools)


def objects(settings: Settings) -> Mapping[tuple[str, str], Form]:
    """Return the kinds of objects that a batch may have, and the keys of each kind."""
    metadata = {**_plain("name", "namespace"), "labels": labels(settings), "annotations": ANNOTATIONS}
    common: Mapping[str, Form] = {**_plain("apiVersion", "kind"), "metadata": metadata}
    in_a_wave: Form = {**metadata, "annotations": {**ANNOTATIONS, SYNC_WAVE: None}}
    runtime = (kubernetes.TRAINING_RUNTIME.api_version, kubernetes.TRAINING_RUNTIME.kind)
    job: Form = {
        **_plain("activeDeadlineSeconds", "backoffLimitPerIndex", "completionMode", "completions"),
        **_plain("maxFailedIndexes", "parallelism", "podReplacementPolicy", "suspend"),
        "podFailurePolicy": {"rules": (_RULE,)},
        "template": template(settings),
    }
    return {
        ("v1", "ConfigMap"): {**common, "immutable": None, "data": {ANY_KEY: None}},
        ("batch/v1", "Job"): {**common, "spec": job},
        **{kind: {**common, "spec": ANYTHING} for kind in DISTRIBUTED},
        runtime: {**common, "metadata": in_a_wave, "spec": ANYTHING},
        TRAIN_JOB: {**common, "spec": _TRAIN_JOB},
    }


def template(settings: Settings, *, distributed: bool = False) -> Form:
    """Return the keys that a pod template may have."""
    of_pools = (name for pool in settings.trials.pools.values() for name in pool.pod.annotations)
    bucket = settings.results.bucket
    own = () if bucket is None else bucket.pod_annotations
    metadata: Form = {
        "labels": _pod_labels(settings, distributed=distributed),
        "annotations": _plain(*of_pools, *STEADY, *own, *(TOPOLOGY if distributed else ())),
        "finalizers": (None,),
    }
    return {"metadata": metadata, "spec": _pod(settings, distributed=distributed)}


def _pod(settings: Settings, *, distributed: bool) -> Form:
    container = _container(settings, distributed=distributed)
    return {
        **_plain("activeDeadlineSeconds", "automountServiceAccountToken", "enableServiceLinks"),
        **_plain("priorityClassName", "restartPolicy", "runtimeClassName", "schedulerName"),
        **_plain("serviceAccountName", "terminationGracePeriodSeconds"),
        "affinity": ANYTHING,
        "containers": (container,),
        "imagePullSecrets": (_plain("name"),),
        "initContainers": ({**container, **_SIDECAR},),
        "nodeSelector": _plain(ANY_KEY),
        "resourceClaims": (_plain("name", "resourceClaimTemplateName"),),
        "securityContext": {
            **_plain("fsGroup", "fsGroupChangePolicy", "runAsGroup", "runAsNonRoot", "runAsUser"),
            "seccompProfile": _plain("type"),
        },
        "tolerations": (_plain("key", "operator", "value", "effect"),),
        "topologySpreadConstraints": ANYTHING,
        "volumes": (_VOLUME,),
    }


def _container(settings: Settings, *, distributed: bool) -> Mapping[str, Form]:
    devices = {GPU_RESOURCE, *(name for pool in settings.trials.pools.values() for name in pool.devices)}
    amounts = _plain("cpu", "memory", "ephemeral-storage", *devices)
    capabilities: Form = {"add": (None,), "drop": (None,)} if distributed else {"drop": (None,)}
    ports: Mapping[str, Form] = {"ports": (_plain("name", "containerPort", "protocol"),)}
    source: Form = {"fieldRef": _plain("apiVersion", "fieldPath")}
    return {
        **_plain("name", "image", "workingDir", "terminationMessagePath", "terminationMessagePolicy"),
        "args": (None,),
        "command": (None,),
        "env": ({**_plain("name", "value"), "valueFrom": source},),
        **(ports if distributed else {}),
        "resources": {"claims": (_plain("name"),), "limits": amounts, "requests": amounts},
        "securityContext": {
            **_plain("allowPrivilegeEscalation", "privileged", "readOnlyRootFilesystem", "runAsNonRoot"),
            "capabilities": capabilities,
        },
        "volumeMounts": (_plain("name", "mountPath", "readOnly", "subPath", "subPathExpr"),),
    }


def compare(data: Any, form: Form, path: DocumentPath = ()) -> Iterator[Finding]:
    """Yield keys that are not allowed, and values of another type."""
    if isinstance(form, Anything):
        return
    if isinstance(form, Mapping):
        if not isinstance(data, Mapping):
            yield Finding(path, f"must be a mapping, got {safe_json(data)}", MALFORMED)
            return
        for key, value in data.items():
            if key in form or ANY_KEY in form:
                yield from compare(value, form.get(key), (*path, key))
            else:
                yield Finding((*path, key), f"must be absent, got {safe_json(value)}", _code((*path, key)))
    elif isinstance(form, tuple):
        if not isinstance(data, list):
            yield Finding(path, f"must be a list, got {safe_json(data)}", MALFORMED)
            return
        for index, item in enumerate(data):
            yield from compare(item, form[0], (*path, index))
    elif data is None or isinstance(data, Mapping | list):
        yield Finding(path, f"must be a plain value, got {safe_json(data)}", MALFORMED)


def compare_pods(obj: Object, form: Form) -> Iterator[Finding]:
    """Yield keys that are not allowed in the pods of an object."""
    for pod in obj.pods:
        yield from compare({"metadata": pod.metadata, "spec": pod.spec}, form, pod.path)


def _code(path: DocumentPath) -> str:
    if "template" not in path:
        return BATCH_MANIFEST
    return "volume-not-allowed" if "volumes" in path else "pod-not-restricted"
