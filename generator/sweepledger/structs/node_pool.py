"""Node pools: capacity of their nodes, and the pod fields that schedule on them."""

from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct

from sweepledger.model import text_forms
from sweepledger.model.keys import EMPTY, NAME, EntryName, Key, some
from sweepledger.structs import quantities
from sweepledger.structs.pod_fields import PodField, PodPriority
from sweepledger.structs.quantities import Cores, Memory, Seconds, seconds_between
from sweepledger.structs.run_config import RunConfig

GPU_RESOURCE = "nvidia.com/gpu"
RACK, ZONE = "cloud.provider.com/topology-rack", "topology.kubernetes.io/zone"

EFFECTS = ["NoExecute", "NoSchedule", "PreferNoSchedule"]
GRACE_SECONDS = 30
"""Termination grace period of a pod, in seconds, unless its pool has another; the default of Kubernetes."""
BUCKET_GRACE_SECONDS = 300
"""The same of a pod whose sidecar saves files in a bucket."""
END_SECONDS = 10
"""Time of a pod's grace period that is left to the launcher, for its record."""
PROGRAM_GRACE_SECONDS = GRACE_SECONDS - END_SECONDS


class Toleration(Struct, frozen=True):
    """A taint that the pods of a pool tolerate."""

    key: Annotated[text_forms.LabelKey, Meta(examples=["nvidia.com/gpu"])]
    """Key of the taint."""
    value: Annotated[text_forms.LabelValue | None, Meta(examples=["present"])] = None
    """Value of the taint. Default: any."""
    effect: Annotated[str, Meta(extra_json_schema={"enum": EFFECTS}, examples=["NoSchedule"])] = "NoSchedule"
    """Its effect."""


class NodeCapacity(Struct, frozen=True):
    """Resources that one node can give to pods: its allocatable amounts less the requests of system pods."""

    cpu: Annotated[Cores, Meta(examples=[7.5, "7500m"])]
    """Cores: a number, or thousandths with `m`."""
    memory: Annotated[Memory, Meta(examples=["28Gi"])]
    """Memory with its unit: Ki, Mi, Gi, Ti, or k, M, G, T."""
    gpu: Annotated[int, Meta(ge=0, le=64, examples=[8])] = 0
    """Number of GPUs."""


class GpuSharing(StrEnum):
    """By what several pods share a GPU, each with one of its shares."""

    TIME_SLICING = "time-slicing"
    MPS = "mps"
    MIG = "mig"


class GpuShares(Struct, frozen=True):
    """How several pods share one GPU of this pool. `node.gpu` and `run.resources.gpu` then count shares."""

    by: Annotated[GpuSharing, Meta(examples=["mps"])]
    """`time-slicing`: in turns, in one memory; `mps`: at the same time, through the MPS server of the device plugin;
    `mig`: in slices with a memory of their own."""
    count: Annotated[int, Meta(ge=2, le=100, examples=[4])]
    """Number of shares of one GPU."""


class ServiceToken(Struct, frozen=True):
    """A token of a pod's service account for one service, which the kubelet renews."""

    audience: Annotated[str, text_forms.AUDIENCE, some(256), Meta(examples=["https://vault.example.org"])]
    """Whom the token is for, as the service that checks it knows itself; never the API server."""
    expires_seconds: Annotated[int, seconds_between("10m", "24h"), Meta(examples=["30m"])] = 3600
    """Lifetime of a token, 10m to 24h."""


class PodSettings(Struct, frozen=True):
    """What else the pods of a pool need: the platform team's decision, never that of a spec."""

    runtime_class: (
        Annotated[text_forms.Name, PodField("runtimeClassName"), Meta(examples=["nvidia"])] | None
    ) = None
    """RuntimeClass of the pods."""
    scheduler: Annotated[text_forms.Name | None, PodField("schedulerName"), Meta(examples=["volcano"])] = None
    """Scheduler that places the pods."""
    priority_class: PodPriority | None = None
    """PriorityClass of the pods, instead of that of the settings."""
    service_account: (
        Annotated[text_forms.Name, PodField("serviceAccountName"), Meta(examples=["trainer"])] | None
    ) = None
    """ServiceAccount of the pods, for workload identity. Default: one without rights."""
    labels: Annotated[text_forms.Labels, some(50), Meta(examples=[{"example.org/mesh": "off"}])] = EMPTY
    """Additional labels of the pods."""
    annotations: Annotated[
        Mapping[Annotated[str, text_forms.ANNOTATION_KEY], text_forms.Text],
        *(some(50), Meta(examples=[{"sidecar.istio.io/inject": "false"}])),
    ] = EMPTY
    """Annotations of the pods."""
    resources: Annotated[
        Mapping[Annotated[str, text_forms.POD_RESOURCE], Annotated[int, Meta(ge=1, le=1000, examples=[1])]],
        *(some(10), EntryName("vpc.amazonaws.com/efa")),
    ] = EMPTY
    """Extended resources of each pod, in whole numbers."""
    claims: Annotated[
        Mapping[text_forms.PodName, Annotated[str, text_forms.CLAIM_TEMPLATE]], some(20), EntryName("gpu")
    ] = EMPTY
    """ResourceClaimTemplates of devices (DRA), by the name of the claim in a pod. Needs Kubernetes 1.34."""
    spread: Annotated[
        Mapping[text_forms.NodeLabel, Annotated[int, Meta(ge=1, le=100, examples=[1])]],
        some(5),
        EntryName(ZONE),
    ] = EMPTY
    """Spreads the pods of a batch, by labels of nodes, each with the largest difference between two of its values."""
    tokens: Annotated[Mapping[text_forms.PodName, ServiceToken], some(10), EntryName("vault")] = EMPTY
    """Tokens of the pool's service account for services outside of Kubernetes, by the name of the file in
    /sweep/tokens. Needs service_account."""
    grace_seconds: Annotated[int | None, seconds_between("30s", "1h"), Meta(examples=["2m"])] = None
    """Time from SIGTERM to SIGKILL of a pod, 30s to 1h; the program has ten seconds less. Default: 30s."""


class Topology(Struct, frozen=True):
    """How the nodes of the pool are connected, by which Kueue places the pods of a distributed trial together."""

    levels: Annotated[
        tuple[text_forms.NodeLabel, ...], some(16), Meta(examples=[[RACK, "kubernetes.io/hostname"]])
    ]
    """Labels of nodes, from the largest domains to the smallest."""
    require: Annotated[str | None, Meta(examples=[RACK])] = None
    """Level whose domains must contain all pods of a distributed trial."""
    prefer: Annotated[str | None, Meta(examples=[RACK])] = None
    """Level whose domains should contain them; if none has room, one of the next larger level."""


class Provisioning(Struct, frozen=True):
    """ProvisioningRequests: before a workload of the queue starts, Kueue asks the autoscaler for all of its nodes."""

    provisioning_class: Annotated[str, text_forms.PROVISIONING_CLASS, Key("class")]
    """Provisioning class of the autoscaler."""
    parameters: Annotated[
        Mapping[str, Annotated[str, Meta(max_length=255, examples=["600"])]],
        *(some(), EntryName("ValidUntilSeconds")),
    ] = EMPTY
    """Parameters of the class."""
    selector: Annotated[
        Mapping[text_forms.NodeLabel, Annotated[str, Meta(min_length=1, max_length=253)]],
        *(some(8), Meta(examples=[{"autoscaling.gke.io/provisioning-request": "ResizeRequestName"}])),
    ] = EMPTY
    """Labels of the provisioned nodes, each with the detail of the request that has its value."""
    retries: Annotated[int | None, Meta(ge=0, le=1000, examples=[1])] = None
    """How often Kueue asks again after a failure. Default: 3, as Kueue has it."""


class Pool(Struct, frozen=True):
    """Nodes of one type; with a Kueue queue, its flavor has the selector and the tolerations, and pods have none."""

    name: Annotated[str, NAME]
    node: NodeCapacity
    queue: Annotated[text_forms.Name | None, Meta(examples=["gpu-heavy"])] = None
    """LocalQueue of Kueue; selector and tolerations then are those of its ResourceFlavor."""
    min_parallelism: Annotated[int | None, Meta(ge=1, le=1_000_000, examples=[4])] = None
    """Fewest trials (with run.pack, pods) of a batch that the queue may admit together. Default: all that may run at
    once."""
    flavor: Annotated[str | None, text_forms.FLAVOR_NAME] = None
    """ResourceFlavor that exists in the cluster, for the sample of its queue; teams may share one."""
    cohort: Annotated[text_forms.Name | None, Meta(examples=["gpus"])] = None
    """Cohort of the sample of its queue, in which queues lend each other what they do not use."""
    topology: Topology | None = None
    provisioning: Provisioning | None = None
    selector: Annotated[
        text_forms.Labels, some(), Meta(examples=[{"node.example.org/pool": "cpu-small"}])
    ] = EMPTY
    """Labels of the nodes."""
    tolerations: Annotated[tuple[Toleration, ...], some()] = ()
    """Taints of the nodes."""
    gpu_resource: Annotated[str, text_forms.GPU_RESOURCE] = GPU_RESOURCE
    """Resource name of a GPU of this pool; MIG slices have other names."""
    gpu_shares: GpuShares | None = None
    gpu_type: Annotated[text_forms.LabelValue | None, Meta(examples=["NVIDIA-A100-SXM4-80GB"])] = None
    """Value of the node label `nvidia.com/gpu.product`."""
    max_nodes: Annotated[int | None, Meta(ge=1, le=100_000, examples=[100])] = None
    """Number of nodes that the pool has, or that its autoscaler may create."""
    price: Annotated[float | None, Meta(gt=0, examples=[2.48])] = None
    """Price of one node per hour, in `currency`."""
    startup_seconds: Annotated[Seconds, Meta(examples=["10m"])] = 300
    """Time to start a new node, including the image pull: a whole number and s, m, h or d."""
    spot: Annotated[bool, Meta(examples=[True])] = False
    """Whether nodes may be taken away at any time."""
    pod: Annotated[PodSettings, Meta(min_length=1)] = PodSettings()


def grace_seconds(pool: Pool | None, *, has_sidecar: bool) -> tuple[int, int]:
    """Return the seconds from SIGTERM to SIGKILL of a pod, and those of its program."""
    chosen = None if pool is None else pool.pod.grace_seconds
    if chosen is None:
        return BUCKET_GRACE_SECONDS if has_sidecar else GRACE_SECONDS, PROGRAM_GRACE_SECONDS
    # The sidecar of a bucket has what is left of the pod's.
    return chosen, (chosen - END_SECONDS) // (2 if has_sidecar else 1)


def gpus_per_trial(run: RunConfig, pool: Pool | None) -> float:
    """Return the GPUs of one trial, on all its nodes: less than one if trials share a pod, or pods a GPU."""
    shares = 1 if pool is None or pool.gpu_shares is None else pool.gpu_shares.count
    return run.resources.gpu * run.nodes / (run.trials_per_pod * shares)


def gpu_memory_variables(run: RunConfig, pool: Pool | None) -> dict[str, str]:
    """Return how much of the memory of a shared GPU a trial may use, as this trainer, JAX and TensorFlow read it."""
    shares = None if pool is None else pool.gpu_shares
    # A slice of MIG is a device of its own. Trials of a pod share all of its devices.
    others = 1 if shares is None or shares.by is GpuSharing.MIG else shares.count
    fraction = 1.0 / (others * run.trials_per_pod)
    if not run.resources.gpu or fraction == 1:
        return {}
    return {
        "SWEEP_GPU_FRACTION": f"{fraction:.6f}",
        "TF_FORCE_GPU_ALLOW_GROWTH": "true",
        # JAX leaves a quarter of a GPU to other needs, by default.
        "XLA_PYTHON_CLIENT_MEM_FRACTION": f"{0.75 * fraction:.6f}",
    }


def capacity(*pools: Pool) -> dict[str, str]:
    """Return what all nodes of pools with `max_nodes` offer together, as requests of pods; nothing of no pool."""
    totals = Counter[str]()
    for pool in pools:
        nodes = pool.max_nodes or 0
        totals["cpu"] += quantities.whole_quantity(pool.node.cpu, unit=1000) * nodes
        totals["memory"] += quantities.whole_quantity(pool.node.memory) * nodes
        totals[pool.gpu_resource] += pool.node.gpu * nodes
    written = {"cpu": quantities.format_cpus, "memory": quantities.format_bytes}
    names = [*written, *sorted(totals.keys() - written.keys())] if pools else []
    return {name: written.get(name, str)(totals[name]) for name in names if totals[name] or name in written}


def pods_per_node(run: RunConfig, node: NodeCapacity) -> int:
    """Return the number of pods that fit on one node."""
    return min(int(offered // required) for _, required, offered in amounts(run, node) if required)


def required_nodes(run: RunConfig, pool: Pool, trials: int) -> int:
    """Return the number of nodes that trials fill at full parallelism, whatever the size of the pool."""
    return -(-run.pods_at_once(trials) * run.nodes // pods_per_node(run, pool.node))


def max_concurrent_trials(run: RunConfig, pool: Pool) -> int | None:
    """Return how many trials fit in the whole pool at once; None if the pool has no `max_nodes`."""
    if pool.max_nodes is None:
        return None
    return pool.max_nodes * pods_per_node(run, pool.node) // run.nodes * run.trials_per_pod


def amounts(run: RunConfig, node: NodeCapacity) -> tuple[tuple[str, Decimal, Decimal], ...]:
    """Return the name of each resource, how much of it a pod requires and a node offers."""
    read, required = quantities.parse_quantity, run.pod_resources
    return tuple(
        (name, read(getattr(required, name)), read(getattr(node, name))) for name in ("cpu", "memory", "gpu")
    )
