"""The workload of a trial: resources, timeout, shape, pool, priority, and the pod that it shares with others."""

from collections.abc import Iterator
from contextlib import suppress

from msgspec.structs import replace

from sweepledger.model.keys import decode
from sweepledger.problems import Problem
from sweepledger.reader import DocumentPath, safe_repr
from sweepledger.spec.draft import Draft
from sweepledger.spec.rules.methods import RESOURCE_METHODS
from sweepledger.spec.rules.names import entry_name
from sweepledger.spec.rules.program import effective_image
from sweepledger.spec.suggestions import quoted_names
from sweepledger.structs import node_pool, quantities
from sweepledger.structs.kubernetes import (
    BAD_HYPERPARAMETERS,
    BAD_SWEEP,
    DISRUPTED,
    STORAGE_FAILED,
    TIMED_OUT,
)
from sweepledger.structs.node_pool import Pool
from sweepledger.structs.program import LOCAL_IMAGE
from sweepledger.structs.run_config import Resources, RunConfig, Shape
from sweepledger.structs.settings import Controller, ResultsSettings, ResultsStore

RESOURCES, SHAPE, POOL, PACK = ("run", "resources"), ("run", "shape"), ("run", "pool"), ("run", "pack")
RUN_CLUSTER: DocumentPath = ("run", "cluster")


def shared_memory(draft: Draft) -> Iterator[Problem]:
    """Shared memory is at most the memory, which includes it, and only for one trial at a time."""
    place = (*RESOURCES, "shared_memory")
    if not draft.has(*place):
        return
    if (draft.number(*PACK, "at_once") or 1) > 1:
        message = "must be absent with pack.at_once above 1: "
        message += "trials that run at once would share the files there"
        hint = "write pack.at_once: 1, or delete one of the keys"
        yield draft.at_key(place, message, "shared-memory", hint)
    shared = draft.meaning(quantities.memory, *place, default=None)
    whole = draft.meaning(quantities.memory, *RESOURCES, "memory", default=Resources().memory)
    if shared and whole and quantities.parse_quantity(shared) > quantities.parse_quantity(whole):
        message = f"must be at most the memory ({whole}), which contains it"
        yield draft.wrong(place, message, "shared-memory", "raise run.resources.memory as well")


def chosen_shape(draft: Draft) -> Shape | None:
    """Return the shape of a spec; None if it is absent or unknown."""
    return draft.meaning(Shape, *SHAPE, default=None)


def shape_keys(draft: Draft) -> Iterator[Problem]:
    """`nodes` and `processes` need a shape with several pods; `max_failed` and `max_disruptions` Indexed Jobs."""
    shape = chosen_shape(draft)
    if draft.has(*SHAPE) and shape is None:
        return
    is_distributed = shape is not None and shape.is_distributed
    several = "a shape with several pods", "delete the key, or choose a shape such as train-job or mpi-job"
    counting = "shape 'jobs' or 'indexed', which count disruptions", "delete the key"
    for key, is_suited, (needed, hint) in (
        ("nodes", is_distributed, several),
        ("processes", is_distributed, several),
        ("max_failed", shape in {None, Shape.INDEXED}, ("shape 'indexed'", "delete the key")),
        ("max_disruptions", not is_distributed, counting),
    ):
        if draft.has("run", key) and not is_suited:
            message = f"needs {needed}, got {repr(str(shape)) if shape else 'no shape'}"
            yield draft.at_key(("run", key), message, "shape-key", hint)


def shape_retries(draft: Draft) -> Iterator[Problem]:
    """A store that reads pods needs a shape that keeps pods until they are read; retries would not wait for that."""
    shape, store, place = chosen_shape(draft), draft.settings.results.store, ("run", "retries")
    if shape is None:
        return
    kind, is_written = shape.kind, draft.has(*place)
    retries = draft.number(*place) if is_written else draft.settings.trials.defaults.retries
    place = place if is_written else SHAPE
    hint = kind.unsupported.get(store) or kind.unsupported.get("pods")
    if not kind.has_retries and retries:  # the kind cannot restart a single trial
        message = f"shape {str(shape)!r} runs each trial once, so its retries ({retries}) have no effect"
        able = (each for each in Shape if each.is_distributed and each.kind.has_retries)
        way = f"`sweep retry` requests failed trials again; {' and '.join(able)} support retries"
        yield draft.warning(place, message, "retries-unused", way, at_key=is_written)
    if store.facts.holds_pods and hint is not None:
        yield draft.wrong(
            SHAPE, f"must be another shape with results.store: {store}", "store-unsupported", hint
        )
    elif store.facts.holds_pods and kind.recreates_pods and retries:
        message = f"must be 0 with shape {str(shape)!r} and results.store: {store}, got {safe_repr(retries)}"
        hint = "a retry would wait for pods that are kept for their records; `sweep retry` requests failed trials again"
        yield draft.problem(place, message, "store-unsupported", hint, at_key=is_written)


LAUNCHER_CODES = frozenset({1, BAD_HYPERPARAMETERS, BAD_SWEEP, DISRUPTED, STORAGE_FAILED, TIMED_OUT})
"""Exit codes of the launcher with a meaning of their own, and the one of every Python program that fails."""


def infrastructure_codes(draft: Draft) -> Iterator[Problem]:
    """An exit code that means broken infrastructure must mean nothing else."""
    for place, code in draft.items("run", "infrastructure", "exit_codes"):
        if code in LAUNCHER_CODES:
            listed = ", ".join(map(str, sorted(LAUNCHER_CODES)))
            hint = "let the program exit with another code, such as 91, where it finds its GPU broken"
            message = f"must be a code with no other meaning (not {listed})"
            yield draft.wrong(place, message, "exit-code-taken", hint)


def pool_devices(draft: Draft) -> Iterator[Problem]:
    """A pool with claims of devices needs a shape of Jobs: other kinds have pod templates of older versions."""
    pool, gpus = chosen_pool(draft), draft.number(*RESOURCES, "gpu")
    if pool is None:
        return
    if chosen_shape(draft) not in {None, Shape.INDEXED, Shape.JOBS} and pool.pod.claims:
        hint = "the controller of this shape knows no resourceClaimTemplateName; choose another pool"
        message = f"must be indexed or jobs in pool {pool.name!r}, whose pods claim devices"
        yield draft.wrong(SHAPE, message, "shape-claims", hint)
    # Several shares could be of the same GPU, and are never one device.
    if pool.gpu_shares is not None and gpus is not None and gpus > 1:
        hint = "choose a pool of whole GPUs: shares of one device, or of several, do not add up"
        message = f"must be at most 1 in pool {pool.name!r}, "
        message += f"whose GPUs have {pool.gpu_shares.count} shares each"
        yield draft.wrong((*RESOURCES, "gpu"), message, "gpu-share", hint)


def needed_image(draft: Draft) -> Iterator[Problem]:
    """A shape with several pods needs an image, and so does a sweep in a cluster."""
    controller, shape, place = draft.settings.platform.controller, chosen_shape(draft), ("run", "image")
    if effective_image(draft) != LOCAL_IMAGE:
        return
    if shape and shape.is_distributed:
        message = "must be 'jobs' or 'indexed' if image is 'local'"
        yield draft.wrong(SHAPE, message, "image-missing", "name an image by run.image")
    elif controller is not Controller.NONE:
        message = f"must be a container image if controller is {str(controller)!r}, got {LOCAL_IMAGE!r}"
        hint = "name one by run.image, or for every sweep by defaults.image in sweepledger.yaml"
        yield draft.problem(place, message, "image-missing", hint, at_key=not draft.has(*place))


def priority(draft: Draft) -> Iterator[Problem]:
    """A priority needs a pool with a queue."""
    place, pool = ("run", "priority"), chosen_pool(draft)
    has_no_queue = not draft.has(*POOL) if pool is None else pool.queue is None
    if draft.text(*place) is not None and has_no_queue:
        found = "no pool" if pool is None else f"{pool.name!r}, which has none"
        able = [pool.name for pool in draft.settings.trials.pools.values() if pool.queue is not None]
        hint = f"pools with a queue: {quoted_names(able)}" if able else "no pool has a queue: delete the key"
        yield draft.at_key(place, f"needs a pool with a queue, got {found}", "queue-priority", hint)


def pool_fit(draft: Draft) -> Iterator[Problem]:
    """A trial fits on a node of its pool; otherwise it would be pending forever."""
    pool, run = chosen_pool(draft), _requested_run(draft)
    if pool is None or run is None:
        return
    results, pools = draft.settings.results, draft.settings.trials.pools.values()
    able = [each.name for each in pools if not any(_lacking(run, results, each))]
    hint = f"it fits in {quoted_names(able)}" if able else "it fits in no pool of the settings: request less"
    for place, message in _lacking(run, results, pool):
        # A default has no position of its own.
        written = place if draft.has(*place) else POOL if draft.has(*POOL) else ("run",)
        yield draft.problem(written, message, "pool-fit", hint)


SIDECAR_MILLI_CPUS, SIDECAR_MEMORY = 100, 256 << 20
"""What the sidecar of a bucket requests, as base/components/bucket-store says."""


def _lacking(run: RunConfig, results: ResultsSettings, pool: Pool) -> Iterator[tuple[DocumentPath, str]]:
    """Yield the resources of which a pool has too little for one trial: the key of the request, and a message."""
    if results.bucket is not None:
        cpus = quantities.whole_quantity(pool.node.cpu, unit=1000) - SIDECAR_MILLI_CPUS
        memory = quantities.whole_quantity(pool.node.memory) - SIDECAR_MEMORY
        offered = replace(pool.node, cpu=quantities.format_cpus(cpus), memory=quantities.format_bytes(memory))
        pool = replace(pool, node=offered)
    amounts = node_pool.amounts(run, pool.node)
    insufficient = [name for name, required, offered in amounts if required > offered]
    for name in insufficient:
        unit = {"cpu": " CPU", "gpu": " GPU"}.get(name, "")
        requested, available = getattr(run.pod_resources, name), getattr(pool.node, name)
        message = f"must fit on a node of pool {pool.name!r} with its {available}{unit}, "
        yield (*RESOURCES, name), message + f"got {requested}{unit}"
    if not insufficient and node_pool.max_concurrent_trials(run, pool) == 0:
        needed = node_pool.required_nodes(replace(run, parallelism=1), pool, 1)
        message = f"must fit on the {pool.max_nodes} nodes of pool {pool.name!r}, "
        yield ("run", "nodes"), message + f"got a trial that needs {needed}"


def chosen_pool(draft: Draft) -> Pool | None:
    """Return the pool of a spec, or the settings' default; None if there is none."""
    trials = draft.settings.trials
    return trials.pool(draft.text(*POOL) if draft.has(*POOL) else trials.defaults.pool)


REQUESTED = ("nodes", "pack", "resources")
"""The keys of `run` that say what a pod requests."""


def _requested_run(draft: Draft) -> RunConfig | None:
    """Return the requested resources; None if they are invalid, which other rules report."""
    run = {key: draft.get("run", key, kind=object) for key in draft.names("run") if key in REQUESTED}
    is_complete = draft.has(*PACK, "trials") or not draft.has(*PACK)
    if not is_complete or not all(draft.is_sound("run", key) for key in REQUESTED):
        return None
    with suppress(ValueError):
        requested: RunConfig = decode(RunConfig, run)
        return requested
    return None


def pack_bounds(draft: Draft) -> Iterator[Problem]:
    """A pod runs at most all of its trials at once, and `parallelism` is a multiple of `pack.at_once`."""
    trials, at_once = draft.number(*PACK, "trials"), draft.number(*PACK, "at_once") or 1
    parallelism = draft.number("run", "parallelism")
    if trials is not None and at_once > trials:
        message = f"must be at most pack.trials ({trials}), got {at_once}"
        yield draft.problem((*PACK, "at_once"), message, "pack-bounds", "a pod has no other trials")
    if trials is not None and parallelism is not None and parallelism % at_once:
        below = int(parallelism // at_once * at_once)
        hint = f"write {' or '.join(str(number) for number in (below, below + at_once) if number)}"
        message = f"must be a multiple of pack.at_once ({at_once}), got {parallelism}"
        yield draft.problem(("run", "parallelism"), message, "pack-bounds", hint)


def pack_needs(draft: Draft) -> Iterator[Problem]:
    """Only an Indexed Job of all trials has pods with several rows, and it counts their failures by pod."""
    shape, method, store = chosen_shape(draft), draft.method, draft.settings.results.store
    if not draft.has(*PACK):
        return
    if shape not in {None, Shape.INDEXED}:
        message = f"needs shape 'indexed', got {str(shape)!r}"
        yield draft.at_key(PACK, message, "shape-key", "delete one of both keys")
    if method in RESOURCE_METHODS:
        message = f"needs a method whose trials mount no other trial's checkpoints, got {safe_repr(method)}"
        hint = "delete the key: each trial of this method has a pod of its own"
        yield draft.at_key(PACK, message, "shape-key", hint)
    if draft.has("run", "max_failed"):
        message = "must be absent with pack: the Job would count pods, not trials"
        yield draft.at_key(("run", "max_failed"), message, "shape-key", "delete one of both keys")
    # The store must have the records of all trials of a pod, and the journals of earlier pods.
    if why := store.facts.against_packs:
        able = " or ".join(other for other in ResultsStore if not other.facts.against_packs)
        hint = f"delete the key, or choose another store in sweepledger.yaml: {why}"
        message = f"needs results.store: {able}, got {store}"
        yield draft.at_key(PACK, message, "store-unsupported", hint)


def run_cluster(draft: Draft) -> Iterator[Problem]:
    """`run.cluster` names a cluster that has the pool and was not given up; without it, one can be chosen."""
    fleet, name, pool = draft.settings.fleet, draft.text(*RUN_CLUSTER), chosen_pool(draft)
    having = fleet.eligible_clusters(pool.name if pool else None)
    listed = ", ".join(having)
    if name is None:
        # It is no error: a sweep that has run goes on where it ran.
        if having and not any(cluster.weight for cluster in having.values()):
            message = f"should be one of the clusters that could run it, which have weight 0: {listed}"
            hint = "with weight 0, a cluster runs only sweeps that name it or ran there"
            yield draft.warning(RUN_CLUSTER, message, "not-in-settings", hint, at_key=True)
    elif name not in fleet.clusters:
        yield from entry_name(draft, RUN_CLUSTER, "clusters")
    elif fleet.clusters[name].is_lost:
        message = "must be a cluster that was not given up"
        yield draft.wrong(RUN_CLUSTER, message, "not-in-settings", "remove it, or name another")
    elif pool is not None and not fleet.clusters[name].has_pool(pool.name):
        hint = f"these have it: {listed}" if listed else "no cluster has it"
        yield draft.wrong(RUN_CLUSTER, f"must be a cluster with pool {pool.name!r}", "not-in-settings", hint)
