"""Node pools: capacity of their nodes, and the pod fields that schedule on them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from sweepledger.structs import quantities
from sweepledger.structs.kubernetes import (
    BATCH_LABEL,
    GPU_PRODUCT_LABEL,
    POD_SET_GROUP,
    PREFERRED_TOPOLOGY,
    REQUIRED_TOPOLOGY,
    SWEEP_LABEL,
)
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


class GpuSharing(StrEnum):
    """By what several pods share a GPU, each with one of its shares."""

    TIME_SLICING = "time-slicing"
    """In turns, in one memory."""
    MPS = "mps"
    """At the same time, through the server of CUDA, which limits the memory of each process."""
    MIG = "mig"
    """In slices, each with a memory of its own."""


@dataclass(frozen=True, slots=True)
class GpuShares:
    """How the GPUs of a pool are divided."""

    by: GpuSharing
    count: int
    """Shares of one GPU; the nodes of the pool offer that many for each."""


TOKENS_VOLUME = "tokens"
"""The volume with the tokens of a pool's pods, and the folder below `/sweep/` where it is mounted."""
TOKENS_MODE = 0o440


@dataclass(frozen=True, slots=True)
class ServiceToken:
    """A token of a pod's service account for one service, which the kubelet renews."""

    audience: str
    """Whom it is for; no other service should accept it."""
    expires_seconds: int = 3600


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
    claims: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """ResourceClaimTemplates of devices (DRA), by the name of the claim in the pod."""
    spread: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Largest difference in the number of pods of a batch between two domains, by the label of nodes that has these."""
    tokens: Mapping[str, ServiceToken] = field(default_factory=lambda: MappingProxyType({}))
    """Tokens of the service account, by the name of the file in the trial's container."""
    grace_seconds: int | None = None
    """Time from the end's announcement to the kill of a pod; None: `GRACE_SECONDS`."""

    @property
    def token_volume(self) -> dict[str, Any] | None:
        """The volume with the tokens; None: there are none."""
        if not self.tokens:
            return None
        sources = [
            {
                "serviceAccountToken": {
                    "audience": token.audience,
                    "expirationSeconds": token.expires_seconds,
                    "path": name,
                }
            }
            for name, token in sorted(self.tokens.items())
        ]
        return {"name": TOKENS_VOLUME, "projected": {"defaultMode": TOKENS_MODE, "sources": sources}}


@dataclass(frozen=True, slots=True)
class Topology:
    """How the nodes of a queue are connected, by labels of nodes; Kueue then counts the room in each domain."""

    levels: tuple[str, ...]
    """Labels from the largest domains to the smallest, such as block, rack and host."""
    required: str | None = None
    """The level whose domains must contain all pods of a distributed trial."""
    preferred: str | None = None
    """The level whose domains should contain them; if none has room, one of the next larger level."""


@dataclass(frozen=True, slots=True)
class Provisioning:
    """A ProvisioningRequest of Kueue for each workload: the autoscaler confirms nodes before anything starts."""

    provisioning_class: str
    parameters: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Parameters of the class."""
    selector: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Labels of the provisioned nodes, each with the detail of the request that has its value."""
    retries: int | None = None
    """How often Kueue asks again after a failure; None: its default, 3."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Nodes of one type; with a Kueue queue, its flavor has the selector and the tolerations, and pods have none."""

    name: str
    node: NodeCapacity
    queue: str | None = None
    """A LocalQueue of Kueue, which adds its flavor's selector and tolerations to admitted pods."""
    min_parallelism: int | None = None
    """The fewest pods of a batch that the queue may admit together; None: all that may run at once."""
    flavor: str | None = None
    """A ResourceFlavor of the cluster that other teams use, too; None: the sample has one for the pool."""
    cohort: str | None = None
    """Queues that lend each other what they do not use."""
    topology: Topology | None = None
    """None: Kueue compares amounts with the quota alone, wherever nodes have room."""
    provisioning: Provisioning | None = None
    """None: a workload starts as soon as the quota allows it."""
    selector: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    tolerations: tuple[Toleration, ...] = ()
    gpu_resource: str = GPU_RESOURCE
    """Resource name of a GPU, for example `nvidia.com/mig-1g.5gb`."""
    gpu_shares: GpuShares | None = None
    """None: what pods request are whole GPUs."""
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


def gpus_per_trial(run: RunConfig, pool: Pool | None) -> float:
    """Return the GPUs of one trial, on all its nodes: less than one if trials share a pod, or pods a GPU."""
    shares = 1 if pool is None or pool.gpu_shares is None else pool.gpu_shares.count
    return run.gpus_per_trial / shares


def gpu_memory_fraction(run: RunConfig, pool: Pool | None) -> float:
    """Return which part of the memory of a device that it sees a trial may use; 1 if it shares none."""
    shares = None if pool is None else pool.gpu_shares
    if not run.resources.gpu:
        return 1.0
    # A slice of MIG is a device of its own. Trials of a pod share all of its devices.
    others = 1 if shares is None or shares.by is GpuSharing.MIG else shares.count
    return 1.0 / (others * run.trials_per_pod)


def gpu_memory_variables(run: RunConfig, pool: Pool | None) -> dict[str, str]:
    """Return how much of the memory of a shared GPU a trial may use, as this trainer, JAX and TensorFlow read it."""
    fraction = gpu_memory_fraction(run, pool)
    if fraction == 1:
        return {}
    return {
        "SWEEP_GPU_FRACTION": f"{fraction:.6f}",
        "TF_FORCE_GPU_ALLOW_GROWTH": "true",
        # JAX leaves a quarter of a GPU to other needs, by default.
        "XLA_PYTHON_CLIENT_MEM_FRACTION": f"{0.75 * fraction:.6f}",
    }


def pods_per_node(run: RunConfig, node: NodeCapacity) -> int:
    """Return the number of pods that fit on one node."""
    return min(int(offered // required) for _, required, offered in _amounts(run, node) if required)


def trials_per_node(run: RunConfig, node: NodeCapacity) -> int:
    """Return the number of trials of one pod each that run on one node at the same time."""
    return pods_per_node(run, node) * run.trials_per_pod


def insufficient_resources(run: RunConfig, node: NodeCapacity) -> Iterator[str]:
    """Yield the resources of which a node has too little for one pod: `cpu`, `memory` or `gpu`."""
    return (name for name, required, offered in _amounts(run, node) if required > offered)


def required_nodes(run: RunConfig, pool: Pool, trials: int) -> int:
    """Return the number of nodes that trials fill at full parallelism, whatever the size of the pool."""
    return -(-run.pods_at_once(trials) * run.nodes // pods_per_node(run, pool.node))


def max_concurrent_trials(run: RunConfig, pool: Pool) -> int | None:
    """Return how many trials fit in the whole pool at once; None if the pool has no `max_nodes`."""
    if pool.max_nodes is None:
        return None
    return pool.max_nodes * pods_per_node(run, pool.node) // run.nodes * run.trials_per_pod


def _amounts(run: RunConfig, node: NodeCapacity) -> tuple[tuple[str, Decimal, Decimal], ...]:
    resources = run.pod_resources
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


def trial_fields(pool: Pool, *, has_gpus: bool) -> dict[str, Any]:
    """Return the same with the fields that only pods of trials have: claims of devices, and how a batch is spread."""
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
    """Return what the pod templates of a distributed trial ask Kueue for, given their number in its object.

    Independent trials ask for nothing: their pods do not communicate, and in a queue with a topology Kueue places pods
    that ask for nothing wherever a domain has room.
    """
    topology = pool.topology
    if topology is None:
        return {}
    levels = {REQUIRED_TOPOLOGY: topology.required, PREFERRED_TOPOLOGY: topology.preferred}
    asked = {key: level for key, level in levels.items() if level is not None}
    # Without a group, each of two templates could be in a domain of its own.
    return asked | ({POD_SET_GROUP: "trial"} if asked and templates > 1 else {})


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
