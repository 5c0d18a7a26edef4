"""The workload of a trial: resources, timeout, shape, pool, priority, and the pod that it shares with others."""

from collections.abc import Iterator
from dataclasses import replace

from sweepledger.problems import Problem
from sweepledger.reader import DocumentPath, safe_repr
from sweepledger.spec.draft import Draft
from sweepledger.spec.rules.methods import RESOURCE_METHODS
from sweepledger.spec.rules.names import entry_name
from sweepledger.spec.rules.program import effective_image
from sweepledger.spec.suggestions import quoted_names
from sweepledger.spec.sweep_builder import build_run
from sweepledger.structs import node_pool, quantities
from sweepledger.structs.kubernetes import (
    BAD_HYPERPARAMETERS,
    BAD_SWEEP,
    DISRUPTED,
    STORAGE_FAILED,
    TIMED_OUT,
    WORKLOAD_KINDS,
)
from sweepledger.structs.node_pool import Pool
from sweepledger.structs.program import LOCAL_IMAGE
from sweepledger.structs.quantities import is_memory
from sweepledger.structs.run_config import Resources, RunConfig, Shape
from sweepledger.structs.settings import Controller, ResultsSettings, ResultsStore

RESOURCES = ("run", "resources")


def shared_memory(draft: Draft) -> Iterator[Problem]:
    """Shared memory is at most the memory, which contains it, and of one trial at a time."""
    place = (*RESOURCES, "shared_memory")
    shared = draft.get(*place, kind=str)
    whole = draft.get(*RESOURCES, "memory", kind=str) or Resources().memory
    if shared is not None and (draft.number(*PACK, "at_once") or 1) > 1:
        message = (
            "must be absent with pack.at_once above 1: trials that run at once would share the files there"
        )
        hint = "write pack.at_once: 1, or delete one of the keys"
        yield draft.problem(place, message, code="shared-memory", hint=hint, at_key=True)
    if shared is None or not (is_memory(shared) and is_memory(whole)):
        return
    if quantities.parse_quantity(shared) > quantities.parse_quantity(whole):
        message = f"must be at most the memory ({whole}), which contains it, got {safe_repr(shared)}"
        yield draft.problem(place, message, code="shared-memory", hint="raise run.resources.memory as well")


def chosen_shape(draft: Draft) -> Shape | None:
    """Return the shape of a spec; None if it names none, or an unknown one."""
    name = draft.get("run", "shape", kind=str)
    return Shape(name) if name in set(Shape) else None


def shape_keys(draft: Draft) -> Iterator[Problem]:
    """`nodes` and `processes` need a shape with several pods; `max_failed` and `max_disruptions` Indexed Jobs."""
    written, shape = draft.names("run"), chosen_shape(draft)
    if "shape" in written and shape is None:
        return
    found = f"got {str(shape)!r}" if shape else "got no shape"
    for key in ("nodes", "processes"):
        if key in written and not (shape and shape.is_distributed):
            message = f"needs a shape with several pods, {found}"
            hint = "delete the key, or choose a shape such as train-job or mpi-job"
            yield draft.problem(("run", key), message, code="shape-key", hint=hint, at_key=True)
    if "max_failed" in written and shape not in {None, Shape.INDEXED}:
        message = f"needs shape 'indexed', {found}"
        yield draft.problem(
            ("run", "max_failed"), message, code="shape-key", hint="delete the key", at_key=True
        )
    if "max_disruptions" in written and shape and shape.is_distributed:
        message = f"needs shape 'jobs' or 'indexed', which count disruptions, {found}"
        yield draft.problem(
            ("run", "max_disruptions"), message, code="shape-key", hint="delete the key", at_key=True
        )


def shape_retries(draft: Draft) -> Iterator[Problem]:
    """Warn of retries with shapes whose trials run once: their kinds cannot restart a single trial."""
    shape = chosen_shape(draft)
    written = "retries" in draft.names("run")
    retries = draft.number("run", "retries") if written else draft.settings.trials.defaults.retries
    if shape is not None and not WORKLOAD_KINDS[shape].has_retries and retries:
        message = f"shape {str(shape)!r} runs each trial once, so its retries ({retries}) have no effect"
        shapes = " and ".join(
            each for each in Shape if each.is_distributed and WORKLOAD_KINDS[each].has_retries
        )
        hint = f"`sweep retry` requests failed trials again; {shapes} support retries"
        place = ("run", "retries" if written else "shape")
        yield draft.warning(place, message, code="retries-unused", hint=hint, at_key=written)


LAUNCHER_CODES = frozenset({1, BAD_HYPERPARAMETERS, BAD_SWEEP, DISRUPTED, STORAGE_FAILED, TIMED_OUT})
"""Exit codes of the launcher with a meaning of their own, and the one of every Python program that fails."""


def infrastructure_codes(draft: Draft) -> Iterator[Problem]:
    """An exit code that means broken infrastructure must mean nothing else."""
    place = ("run", "infrastructure", "exit_codes")
    for number, code in enumerate(draft.get(*place, kind=list) or ()):
        if code in LAUNCHER_CODES:
            listed = ", ".join(map(str, sorted(LAUNCHER_CODES)))
            message = f"must be a code with no other meaning (not {listed}), got {safe_repr(code)}"
            hint = "let the program exit with another code, such as 91, where it finds its GPU broken"
            yield draft.problem((*place, number), message, code="exit-code-taken", hint=hint)


def shape_store(draft: Draft) -> Iterator[Problem]:
    """A store that reads pods needs a shape whose pods are kept until they are read."""
    shape, store = chosen_shape(draft), draft.settings.results.store
    if shape is None or not store.facts.holds_pods:
        return
    written = "retries" in draft.names("run")
    retries = draft.number("run", "retries") if written else draft.settings.trials.defaults.retries
    kind = WORKLOAD_KINDS[shape]
    hint = kind.unsupported.get(store) or kind.unsupported.get("pods")
    if hint is not None:
        message = f"must be another shape with results.store: {store}, got {str(shape)!r}"
        yield draft.problem(("run", "shape"), message, code="store-unsupported", hint=hint)
    elif kind.recreates_pods and retries:
        message = f"must be 0 with shape {str(shape)!r} and results.store: {store}, got {safe_repr(retries)}"
        hint = "a retry would wait for pods that are kept for their records; `sweep retry` requests failed trials again"
        place = ("run", "retries" if written else "shape")
        yield draft.problem(place, message, code="store-unsupported", hint=hint, at_key=written)


def shape_claims(draft: Draft) -> Iterator[Problem]:
    """A pool with claims of devices needs a shape of Jobs: other kinds have pod templates of older versions."""
    shape, pool = chosen_shape(draft), chosen_pool(draft)
    if shape in {None, Shape.INDEXED, Shape.JOBS} or pool is None or not pool.pod.claims:
        return
    message = f"must be indexed or jobs in pool {pool.name!r}, whose pods claim devices, got {str(shape)!r}"
    hint = "the controller of this shape knows no resourceClaimTemplateName; choose another pool"
    yield draft.problem(("run", "shape"), message, code="shape-claims", hint=hint)


def gpu_share(draft: Draft) -> Iterator[Problem]:
    """A pod has at most one share of a GPU: several could be those of one GPU, and are never one device."""
    pool, gpus = chosen_pool(draft), draft.number(*RESOURCES, "gpu")
    if pool is None or pool.gpu_shares is None or gpus is None or gpus <= 1:
        return
    shares = pool.gpu_shares
    message = (
        f"must be at most 1 in pool {pool.name!r}, whose GPUs have {shares.count} shares each, got {gpus}"
    )
    hint = "choose a pool of whole GPUs: shares of one device, or of several, do not add up"
    yield draft.problem((*RESOURCES, "gpu"), message, code="gpu-share", hint=hint)


def shape_image(draft: Draft) -> Iterator[Problem]:
    """A shape with several pods needs an image."""
    shape = chosen_shape(draft)
    if shape and shape.is_distributed and effective_image(draft) == LOCAL_IMAGE:
        message = f"must be 'jobs' or 'indexed' if image is 'local', got {safe_repr(str(shape))}"
        hint = "name an image by run.image"
        yield draft.problem(("run", "shape"), message, code="image-missing", hint=hint)


def cluster_image(draft: Draft) -> Iterator[Problem]:
    """A sweep in a cluster needs an image."""
    controller, shape = draft.settings.platform.controller, chosen_shape(draft)
    if (
        controller is Controller.NONE
        or (shape and shape.is_distributed)
        or effective_image(draft) != LOCAL_IMAGE
    ):
        return
    is_written = "image" in draft.names("run")
    message = f"must be a container image if controller is {str(controller)!r}, got {LOCAL_IMAGE!r}"
    hint = "name one by run.image, or for every sweep by defaults.image in sweepledger.yaml"
    yield draft.problem(("run", "image"), message, code="image-missing", hint=hint, at_key=not is_written)


POOL = ("run", "pool")


def priority(draft: Draft) -> Iterator[Problem]:
    """A priority needs a pool with a queue."""
    place, pool = ("run", "priority"), chosen_pool(draft)
    if draft.get(*place, kind=str) is None:
        return
    has_no_queue = "pool" not in draft.names("run") if pool is None else pool.queue is None
    if has_no_queue:
        found = "no pool" if pool is None else f"{pool.name!r}, which has none"
        able = [pool.name for pool in draft.settings.trials.pools.values() if pool.queue is not None]
        hint = f"pools with a queue: {quoted_names(able)}" if able else "no pool has a queue: delete the key"
        message = f"needs a pool with a queue, got {found}"
        yield draft.problem(place, message, code="queue-priority", hint=hint, at_key=True)


def pool_fit(draft: Draft) -> Iterator[Problem]:
    """A trial fits on a node of its pool; otherwise it would be pending forever."""
    pool, run = chosen_pool(draft), _requested_run(draft)
    if pool is None or run is None:
        return
    pool = _beside_sidecar(draft.settings.results, pool)
    insufficient = tuple(node_pool.insufficient_resources(run, pool.node))
    for name in insufficient:
        unit = {"cpu": " CPU", "gpu": " GPU"}.get(name, "")
        requested, available = getattr(run.pod_resources, name), getattr(pool.node, name)
        message = (
            f"must fit on a node of pool {pool.name!r} with its {available}{unit}, got {requested}{unit}"
        )
        yield draft.problem(
            _written_path(draft, ("run", "resources", name)),
            message,
            code="pool-fit",
            hint=_fit_hint(draft, run),
        )
    if not insufficient and pool.max_nodes is not None and not node_pool.max_concurrent_trials(run, pool):
        needed = node_pool.required_nodes(replace(run, parallelism=1), pool, 1)
        message = (
            f"must fit on the {pool.max_nodes} nodes of pool {pool.name!r}, got a trial that needs {needed}"
        )
        yield draft.problem(
            _written_path(draft, ("run", "nodes")), message, code="pool-fit", hint=_fit_hint(draft, run)
        )


SIDECAR_MILLI_CPUS, SIDECAR_MEMORY = 100, 256 << 20
"""What the sidecar of a bucket requests, as base/components/bucket-store says."""


def _beside_sidecar(results: ResultsSettings, pool: Pool) -> Pool:
    """Return a pool with what its nodes offer to trials: less where a sidecar moves files to a bucket."""
    if results.bucket is None:
        return pool
    cpus = quantities.whole_quantity(pool.node.cpu, unit=1000) - SIDECAR_MILLI_CPUS
    memory = quantities.whole_quantity(pool.node.memory) - SIDECAR_MEMORY
    offered = replace(pool.node, cpu=quantities.format_cpus(cpus), memory=quantities.format_bytes(memory))
    return replace(pool, node=offered)


def chosen_pool(draft: Draft) -> Pool | None:
    """Return the pool of a spec, or the settings' default; None if there is none."""
    name = draft.get(*POOL, kind=str) if "pool" in draft.names("run") else draft.settings.trials.defaults.pool
    return draft.settings.trials.pool(name)


REQUESTED = ("nodes", "pack", "resources")
"""The keys of `run` that say what a pod requests."""


def _requested_run(draft: Draft) -> RunConfig | None:
    """Return the requested resources; None if they are invalid, which other rules report."""
    run = {key: draft.get("run", key, kind=object) for key in draft.names("run") if key in REQUESTED}
    if any(place[:2] in {("run", key) for key in REQUESTED} for place in draft.broken):
        return None
    try:
        return build_run(run, draft.settings.trials.defaults)
    except ValueError:
        return None


def _written_path(draft: Draft, place: DocumentPath) -> DocumentPath:
    """Return the path if it is written, else that of the pool: a default has no position."""
    written = place[-1] in draft.names(*place[:-1])
    return place if written else POOL if "pool" in draft.names("run") else ("run",)


def _fit_hint(draft: Draft, run: RunConfig) -> str:
    able = [
        pool.name
        for pool in (
            _beside_sidecar(draft.settings.results, each) for each in draft.settings.trials.pools.values()
        )
        if not any(node_pool.insufficient_resources(run, pool.node))
        and node_pool.max_concurrent_trials(run, pool) != 0
    ]
    return f"it fits in {quoted_names(able)}" if able else "it fits in no pool of the settings: request less"


PACK = ("run", "pack")


def pack_bounds(draft: Draft) -> Iterator[Problem]:
    """A pod runs at most its trials at once, and as many pods run as `parallelism` has room for."""
    trials, at_once = draft.number(*PACK, "trials"), draft.number(*PACK, "at_once") or 1
    if trials is not None and at_once > trials:
        message = f"must be at most pack.trials ({trials}), got {at_once}"
        yield draft.problem((*PACK, "at_once"), message, code="pack-bounds", hint="a pod has no other trials")
    parallelism = draft.number("run", "parallelism")
    if trials is not None and parallelism is not None and parallelism % at_once:
        below = int(parallelism // at_once * at_once)
        hint = " or ".join(str(number) for number in (below, below + at_once) if number)
        message = f"must be a multiple of pack.at_once ({at_once}), got {parallelism}"
        yield draft.problem(("run", "parallelism"), message, code="pack-bounds", hint=f"write {hint}")


def pack_shape(draft: Draft) -> Iterator[Problem]:
    """Only an Indexed Job of all trials has pods with several rows, and it counts their failures by pod."""
    if "pack" not in draft.names("run"):
        return
    shape, method = chosen_shape(draft), draft.get("method", kind=str)
    if shape not in {None, Shape.INDEXED}:
        message = f"needs shape 'indexed', got {str(shape)!r}"
        yield draft.problem(PACK, message, code="shape-key", hint="delete one of both keys", at_key=True)
    if method in RESOURCE_METHODS:
        message = f"needs a method whose trials mount no other trial's checkpoints, got {safe_repr(method)}"
        hint = "delete the key: each trial of this method has a pod of its own"
        yield draft.problem(PACK, message, code="shape-key", hint=hint, at_key=True)
    if "max_failed" in draft.names("run"):
        message = "must be absent with pack: the Job would count pods, not trials"
        place = ("run", "max_failed")
        yield draft.problem(place, message, code="shape-key", hint="delete one of both keys", at_key=True)


def pack_store(draft: Draft) -> Iterator[Problem]:
    """Pods of several trials need a store that has the records of all of them, and what earlier pods have begun."""
    store = draft.settings.results.store
    if "pack" not in draft.names("run"):
        return
    if store.facts.against_packs:
        able = " or ".join(other for other in ResultsStore if not other.facts.against_packs)
        message = f"needs results.store: {able}, got {store}"
        hint = f"delete the key, or choose another store in sweepledger.yaml: {store.facts.against_packs}"
        yield draft.problem(PACK, message, code="store-unsupported", hint=hint, at_key=True)


RUN_CLUSTER: DocumentPath = ("run", "cluster")


def run_cluster(draft: Draft) -> Iterator[Problem]:
    """`run.cluster` names a cluster that has the pool and was not given up; without it, one can be chosen."""
    settings, name, pool = draft.settings, draft.get(*RUN_CLUSTER, kind=str), chosen_pool(draft)
    having = settings.fleet.eligible_clusters(pool.name if pool else None)
    listed = ", ".join(having)
    if name is None:
        # It is no error: a sweep that has run goes on where it ran.
        if having and not any(cluster.weight for cluster in having.values()):
            message = f"should be one of the clusters that could run it, which have weight 0: {listed}"
            hint = "with weight 0, a cluster runs only sweeps that name it or ran there"
            yield draft.warning(RUN_CLUSTER, message, code="not-in-settings", hint=hint, at_key=True)
    elif name not in settings.fleet.clusters:
        yield from entry_name(draft, RUN_CLUSTER, "clusters")
    elif settings.fleet.clusters[name].is_lost:
        message = f"must be a cluster that was not given up, got {safe_repr(name)}"
        yield draft.problem(RUN_CLUSTER, message, code="not-in-settings", hint="remove it, or name another")
    elif pool is not None and not settings.fleet.clusters[name].has_pool(pool.name):
        message = f"must be a cluster with pool {pool.name!r}, got {safe_repr(name)}"
        hint = f"these have it: {listed}" if listed else "no cluster has it"
        yield draft.problem(RUN_CLUSTER, message, code="not-in-settings", hint=hint)
