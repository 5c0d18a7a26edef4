"""Node pools: capacity of their nodes, and the pod fields that schedule on them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from sweepledger.structs import quantities
from sweepledger.structs.kubernetes import GPU_PRODUCT_LABEL
from sweepledger.structs.run_config import RunConfig

GPU_RESOURCE = "nvidia.com/gpu"

GRACE_SECONDS = 30
"""Termination grace period of a pod, in seconds, unless its pool has another; the default of Kubernetes."""
BUCKET_GRACE_SECONDS = 300
"""The same of a pod whose sidecar saves files in a bucket."""


@dataclass(frozen=True, slots=True)
class Toleration:
    """A taint that the pods of a pool tolerate."""

    key: str
    value: str | None = None
    """None: any value."""
    effect: str = "NoSchedule"


@dataclass(frozen=True, slots=True)
class NodeCapacity:
    """Resources that one node offers to pods."""

    cpu: str
    memory: str
    gpu: int = 0


@dataclass(frozen=True, slots=True)
class PodSettings:
    """What else the pods of a pool need: the platform team's decision, never that of a spec."""

    runtime_class: str | None = None
    scheduler: str | None = None
    """Name of the scheduler that places the pods; None: the cluster's default."""
    priority_class: str | None = None
    """None: that of the settings."""
    service_account: str | None = None
    """Account with the workload identity of trials; None: `TRIAL_ACCOUNT`, which has no rights."""
    labels: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    annotations: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    resources: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Extended resources of the trial's container, such as `rdma/ib`."""
    grace_seconds: int | None = None
    """Time from the end's announcement to the kill of a pod; None: `GRACE_SECONDS`."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Nodes of one type; with a Kueue queue, its flavor has the selector and the tolerations, and pods have none."""

    name: str
    node: NodeCapacity
    queue: str | None = None
    """A LocalQueue of Kueue, which adds its flavor's selector and tolerations to admitted pods."""
    selector: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    tolerations: tuple[Toleration, ...] = ()
    gpu_resource: str = GPU_RESOURCE
    """Resource name of a GPU, for example `nvidia.com/mig-1g.5gb`."""
    gpu_type: str | None = None
    """Value of the node label `nvidia.com/gpu.product`, required by affinity, which Kueue reads, too."""
    max_nodes: int | None = None
    price: float | None = None
    """Price per node and hour, in the currency of the settings."""
    startup_seconds: int = 300
    """Time from no node to a running container, image pull included."""
    spot: bool = False
    """Whether the provider may take the nodes away at any time."""
    pod: PodSettings = field(default_factory=PodSettings)

    @property
    def devices(self) -> frozenset[str]:
        """The extended resources that its pods may request."""
        return frozenset({self.gpu_resource, *self.pod.resources})

    @property
    def grace_seconds(self) -> int:
        """The termination grace period of the pool's pods, in seconds."""
        return GRACE_SECONDS if self.pod.grace_seconds is None else self.pod.grace_seconds


def pods_per_node(run: RunConfig, node: NodeCapacity) -> int:
    """Return the number of pods that fit on one node."""
    return min(int(offered // required) for _, required, offered in _amounts(run, node) if required)


def insufficient_resources(run: RunConfig, node: NodeCapacity) -> Iterator[str]:
    """Yield the resources of which a node has too little for one pod: `cpu`, `memory` or `gpu`."""
    return (name for name, required, offered in _amounts(run, node) if required > offered)


def required_nodes(run: RunConfig, pool: Pool, trials: int) -> int:
    """Return the number of nodes that trials fill at full parallelism, whatever the size of the pool."""
    pods = min(trials, run.parallelism) * run.nodes
    return -(-pods // pods_per_node(run, pool.node))


def max_concurrent_trials(run: RunConfig, pool: Pool) -> int | None:
    """Return how many trials fit in the whole pool at once; None if the pool has no `max_nodes`."""
    return None if pool.max_nodes is None else pool.max_nodes * pods_per_node(run, pool.node) // run.nodes


def _amounts(run: RunConfig, node: NodeCapacity) -> tuple[tuple[str, Decimal, Decimal], ...]:
    resources = run.resources
    return (
        ("cpu", quantities.parse_quantity(resources.cpu), quantities.parse_quantity(node.cpu)),
        ("memory", quantities.parse_quantity(resources.memory), quantities.parse_quantity(node.memory)),
        ("gpu", quantities.parse_quantity(resources.gpu), quantities.parse_quantity(node.gpu)),
    )


SPOT_TAINTS = (
    ("cloud.google.com/gke-spot", "true"),
    ("kubernetes.azure.com/scalesetpriority", "spot"),
)
"""Taints that providers put on spot nodes, tolerated in addition to the pool's tolerations."""


def scheduling_fields(pool: Pool, *, has_gpus: bool) -> dict[str, Any]:
    """Return the pod fields that choose nodes, scheduler and runtime.

    With a queue, Kueue adds selector and tolerations of its flavor; the affinity it reads, too.
    """
    choices = {"runtimeClassName": pool.pod.runtime_class, "schedulerName": pool.pod.scheduler}
    fields: dict[str, Any] = {key: value for key, value in choices.items() if value is not None}
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


def tolerations_of(pool: Pool) -> list[dict[str, Any]]:
    """Return the tolerations of a pool, with those of spot nodes."""
    tolerations: list[dict[str, Any]] = []
    for toleration in pool.tolerations:
        any_value = toleration.value is None
        value = {} if any_value else {"value": toleration.value}
        operator = "Exists" if any_value else "Equal"
        tolerations.append(
            {"key": toleration.key, "operator": operator, **value, "effect": toleration.effect}
        )
    if pool.spot:
        known = {toleration.key for toleration in pool.tolerations}
        tolerations += [
            {"key": key, "operator": "Equal", "value": value, "effect": "NoSchedule"}
            for key, value in SPOT_TAINTS
            if key not in known
        ]
    return tolerations
