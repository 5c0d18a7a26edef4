"""Pod fields that schedule pods on the nodes of a pool, and the pool's other fields."""

from collections.abc import Mapping
from typing import Any

from sweepledger.structs.kubernetes import BATCH_LABEL, GPU_PRODUCT_LABEL, SWEEP_LABEL
from sweepledger.structs.node_pool import Pool, ServiceToken
from sweepledger.structs.pod_fields import decided

REQUIRED_TOPOLOGY = "kueue.x-k8s.io/podset-required-topology"
PREFERRED_TOPOLOGY = "kueue.x-k8s.io/podset-preferred-topology"
"""Annotations of a pod template: Kueue must, or should, place its pods in one domain of a level."""
POD_SET_GROUP = "kueue.x-k8s.io/podset-group-name"
"""Annotation of two pod templates whose pods Kueue places in one domain."""
SPOT_TAINTS = (("cloud.google.com/gke-spot", "true"), ("kubernetes.azure.com/scalesetpriority", "spot"))
"""Taints that providers put on spot nodes, tolerated in addition to the pool's tolerations."""
OF_NODES = ("runtimeClassName", "schedulerName")
"""Fields that all pods on the nodes of a pool have, those of the platform, too."""
TOKENS_VOLUME = "tokens"
"""The volume with the tokens of a pool's pods, and the folder below `/sweep/` where it is mounted."""


def scheduling_fields(pool: Pool, *, has_gpus: bool) -> dict[str, Any]:
    """Return the pod fields that choose nodes, scheduler and runtime.

    With a queue, Kueue adds the selector and the tolerations of its flavor; it also reads the affinity.
    """
    fields = {key: value for key, value in decided(pool.pod).items() if key in OF_NODES}
    if pool.gpu_type is not None and has_gpus:
        expression = {"key": GPU_PRODUCT_LABEL, "operator": "In", "values": [pool.gpu_type]}
        required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
        fields["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    if pool.queue is None and pool.selector:
        fields["nodeSelector"] = dict(sorted(pool.selector.items()))
    tolerations = tolerations_of(pool)
    if pool.queue is None and tolerations:
        fields["tolerations"] = tolerations
    return fields


def trial_fields(pool: Pool, *, has_gpus: bool) -> dict[str, Any]:
    """Return scheduling fields and those that only trial pods have: claims of devices, and the spread of a batch."""
    fields = scheduling_fields(pool, has_gpus=has_gpus)
    if pool.pod.claims:
        fields["resourceClaims"] = [
            {"name": name, "resourceClaimTemplateName": template}
            for name, template in sorted(pool.pod.claims.items())
        ]
    if pool.pod.spread:
        # Pods of one batch count together: the scheduler takes the value of its label from the pod.
        trials = {"matchExpressions": [{"key": SWEEP_LABEL, "operator": "Exists"}]}
        fields["topologySpreadConstraints"] = [
            {
                "topologyKey": key,
                "maxSkew": skew,
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": trials,
                "matchLabelKeys": [BATCH_LABEL],
            }
            for key, skew in sorted(pool.pod.spread.items())
        ]
    return fields


def topology_annotations(pool: Pool, templates: int) -> dict[str, str]:
    """Return the topology annotations for Kueue on the pod templates of a distributed trial, given their number.

    Independent trials have none: their pods do not communicate, and in a queue with a topology Kueue places pods
    without these annotations wherever a domain has room.
    """
    topology = pool.topology
    if topology is None:
        return {}
    levels = {REQUIRED_TOPOLOGY: topology.require, PREFERRED_TOPOLOGY: topology.prefer}
    asked = {key: level for key, level in levels.items() if level is not None}
    # Without a group, each of two templates could be in a domain of its own.
    return asked | ({POD_SET_GROUP: "trial"} if asked and templates > 1 else {})


def tolerations_of(pool: Pool) -> list[dict[str, Any]]:
    """Return the tolerations of a pool, with those of spot nodes."""
    tolerations: list[dict[str, Any]] = []
    for each in pool.tolerations:
        value = {"operator": "Exists"} if each.value is None else {"operator": "Equal", "value": each.value}
        tolerations.append({"key": each.key, **value, "effect": each.effect})
    if pool.spot:
        known = {toleration.key for toleration in pool.tolerations}
        tolerations += [
            {"key": key, "operator": "Equal", "value": value, "effect": "NoSchedule"}
            for key, value in SPOT_TAINTS
            if key not in known
        ]
    return tolerations


def token_volumes(tokens: Mapping[str, ServiceToken]) -> list[dict[str, Any]]:
    """Return the volume with tokens of pods, if there are any."""
    sources = [
        {
            "serviceAccountToken": {
                "audience": token.audience,
                "expirationSeconds": token.expires_seconds,
                "path": name,
            }
        }
        for name, token in sorted(tokens.items())
    ]
    volume = {"name": TOKENS_VOLUME, "projected": {"defaultMode": 0o440, "sources": sources}}
    return [volume] if sources else []
