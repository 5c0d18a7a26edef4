"""Pools of nodes in the settings, and the budgets of teams."""

from collections.abc import Iterator
from contextlib import suppress

from sweepledger.problems import Problem
from sweepledger.reader import DocumentPath, safe_repr
from sweepledger.spec.draft import Draft
from sweepledger.spec.rules.cluster import RESERVED_DOMAINS, is_reserved_label
from sweepledger.spec.suggestions import did_you_mean
from sweepledger.structs import kubernetes
from sweepledger.structs.node_pool import GPU_RESOURCE
from sweepledger.structs.settings import Controller

MAX_FLAVOR_ITEMS = 8
"""Labels, and tolerations, of a ResourceFlavor (Kueue v1beta1)."""
OWN_DOMAINS = (kubernetes.DOMAIN, "batch.kubernetes.io")
"""Domains of annotations by which trials and their attempts are counted."""


def flavor_limits(draft: Draft) -> Iterator[Problem]:
    """Selector and tolerations of a pool with a queue fit in a ResourceFlavor, which allows eight of each."""
    for name in draft.names("pools"):
        if "queue" not in draft.names("pools", name):
            continue
        for key in ("selector", "tolerations"):
            written = draft.get("pools", name, key, kind=(dict if key == "selector" else list)) or ()
            if len(written) > MAX_FLAVOR_ITEMS:
                message = f"must have at most {MAX_FLAVOR_ITEMS} entries if the pool has a queue, got {len(written)}"
                yield draft.problem(("pools", name, key), message, code="pool-flavor", at_key=True)


def queue_keys(draft: Draft) -> Iterator[Problem]:
    """Keys of queues need a queue, and a controller that leaves alone what Kueue writes into a Job."""
    for name in draft.names("pools"):
        place = ("pools", name)
        for key in ("min_parallelism", "flavor", "cohort", "topology", "provisioning"):
            if key in draft.names(*place) and "queue" not in draft.names(*place):
                message = "needs a queue, which the pool does not have"
                yield draft.problem((*place, key), message, code="pool-queue", at_key=True)
        controller = draft.get("controller", kind=str)
        if "min_parallelism" in draft.names(*place) and controller == Controller.FLUX:
            message = (
                "needs another controller than flux, which would write the parallelism of a running Job back"
            )
            hint = "remove it: Kueue then admits all trials of a batch that may run at once, or none"
            yield draft.problem(
                (*place, "min_parallelism"), message, code="pool-queue", hint=hint, at_key=True
            )
        yield from _flavor(draft, name)
        yield from _topology(draft, name)
    yield from _shared_queues(draft)
    yield from _lenders(draft)


def _flavor(draft: Draft, pool: str) -> Iterator[Problem]:
    """A flavor that exists says itself which nodes it has."""
    flavor = draft.get("pools", pool, "flavor", kind=str)
    if flavor is None:
        return
    for key in ("selector", "tolerations"):
        if key in draft.names("pools", pool):
            message = f"must not be given with flavor ({safe_repr(flavor)}), which has the nodes of the pool"
            yield draft.problem(("pools", pool, key), message, code="pool-queue", at_key=True)


def _shared_queues(draft: Draft) -> Iterator[Problem]:
    """A queue that the platform makes, which is that of a pool with max_nodes, has the quota of one pool."""
    pools: dict[str, str] = {}
    for name in draft.names("pools"):
        queue = draft.get("pools", name, "queue", kind=str)
        if queue is None or "max_nodes" not in draft.names("pools", name):
            continue
        other = pools.setdefault(queue, name)
        if other != name:
            message = (
                f"must be the queue of one pool with max_nodes, got {safe_repr(queue)}, that of {other!r} too"
            )
            hint = "name another queue; a cohort lets queues share their quotas"
            yield draft.problem(("pools", name, "queue"), message, code="pool-queue", hint=hint)


def _topology(draft: Draft, pool: str) -> Iterator[Problem]:
    """Levels are labels of nodes, each once and hosts last, and a trial asks for one of them, once."""
    place: DocumentPath = ("pools", pool, "topology")
    levels = [level for level in draft.get(*place, "levels", kind=list) or () if isinstance(level, str)]
    for index, level in enumerate(levels):
        at = (*place, "levels", index)
        if level in levels[:index]:
            yield draft.problem(at, f"must be given once, got {safe_repr(level)} again", code="pool-queue")
        elif level == kubernetes.HOSTNAME_LABEL and index + 1 < len(levels):
            message = f"must be the last level, got {safe_repr(level)} before {safe_repr(levels[index + 1])}"
            hint = "order the levels from the largest domains to the smallest"
            yield draft.problem(at, message, code="pool-queue", hint=hint)
    for key in ("require", "prefer"):
        chosen = draft.get(*place, key, kind=str)
        if chosen is not None and levels and chosen not in levels:
            message = f"must be one of the levels, got {safe_repr(chosen)}"
            near = did_you_mean(chosen, levels)
            yield draft.problem((*place, key), message, code="pool-queue", hint=near)
    if {"require", "prefer"} <= {*draft.names(*place)}:
        message = "must not be given with require: Kueue takes one of them"
        yield draft.problem((*place, "prefer"), message, code="pool-queue", at_key=True)
    for key in draft.names("pools", pool, "pod", "annotations") if draft.names(*place) else ():
        if key.startswith(kubernetes.POD_SET_ANNOTATIONS):
            message = f"must not be given with topology, which writes it, got {safe_repr(key)}"
            hint = f"pools.{pool}.topology.require or prefer"
            at = ("pools", pool, "pod", "annotations", key)
            yield draft.problem(at, message, code="pool-queue", hint=hint, at_key=True)


NODES = {"selector": dict, "gpu_type": str, "tolerations": list, "spot": bool}
"""The keys of a pool that say which nodes are its own, and the types of their values."""


def _lenders(draft: Draft) -> Iterator[Problem]:
    """Queues of a cohort lend quota on the same nodes only; those of a flavor that exists, to other teams, too."""
    cohorts = {
        name: draft.get("pools", name, "cohort", kind=str)
        for name in draft.names("pools")
        if "flavor" not in draft.names("pools", name)
    }
    nodes: dict[str, dict[str, object]] = {
        name: {
            **{key: draft.get("pools", name, key, kind=kind) or None for key, kind in NODES.items()},
            "levels": draft.get("pools", name, "topology", "levels", kind=list),
        }
        for name in cohorts
    }
    for name, cohort in cohorts.items():
        others = [other for other in cohorts if other != name and cohorts[other] == cohort]
        is_named = nodes[name]["selector"] or nodes[name]["gpu_type"]
        if cohort is None or not others or (is_named and nodes[name] in [nodes[other] for other in others]):
            continue
        message = (
            "needs selector, gpu_type, tolerations, spot and topology.levels of another pool of the cohort"
        )
        hint = "queues lend quota of the same nodes, which selector or gpu_type name: make them equal, or remove cohort"
        yield draft.problem(("pools", name, "cohort"), message, code="pool-queue", hint=hint, at_key=True)


def pod_settings(draft: Draft) -> Iterator[Problem]:
    """Names and resources of a pool's pods are valid, and no key is one that programs act on."""
    for name in draft.names("pools"):
        place = ("pools", name, "pod")
        gpu = draft.get("pools", name, "gpu_resource", kind=str) or GPU_RESOURCE
        if gpu in draft.names(*place, "resources"):
            message, hint = "must not be the pool's GPU, of which specs say the number", "run.resources.gpu"
            at = (*place, "resources", gpu)
            yield draft.problem(at, message, code="pool-pod", hint=hint, at_key=True)
        for table, domains in (("labels", RESERVED_DOMAINS), ("annotations", OWN_DOMAINS)):
            for key in draft.names(*place, table):
                if is_reserved_label(key, domains):
                    message = f"must not be a key that a program acts on, got {safe_repr(key)}"
                    yield draft.problem((*place, table, key), message, code="label-reserved", at_key=True)
        yield from _claims(draft, name)
        yield from _tokens(draft, name)


def _claims(draft: Draft, pool: str) -> Iterator[Problem]:
    """Claims of devices need a Kubernetes that has them, and no queue, which would not count them."""
    place: DocumentPath = ("pools", pool, "pod", "claims")
    names = draft.names(*place)
    version = kubernetes.OLDEST_VERSION
    with suppress(ValueError):  # a text that is none has a problem of its own
        version = kubernetes.parse_version(draft.get("kubernetes", kind=str) or "")
    if names and version < kubernetes.CLAIMS_VERSION:
        needed = kubernetes.format_version(kubernetes.CLAIMS_VERSION)
        message = f"needs Kubernetes {needed} or newer, got {kubernetes.format_version(version)}"
        hint = f'kubernetes: "{needed}", if every cluster has it'
        yield draft.problem(place, message, code="pool-pod", hint=hint, at_key=True)
    if names and "queue" in draft.names("pools", pool):
        message = "must not be given with a queue: Kueue 0.15 does not count claimed devices"
        yield draft.problem(place, message, code="pool-pod", at_key=True)


def _tokens(draft: Draft, pool: str) -> Iterator[Problem]:
    """Tokens are those of an account that the pool names, and none is for the API server."""
    place: DocumentPath = ("pools", pool, "pod", "tokens")
    names = draft.names(*place)
    account = draft.get("pools", pool, "pod", "service_account", kind=str)
    if names and account in {None, kubernetes.TRIAL_ACCOUNT}:
        message = f"needs a service account of the pool, got {safe_repr(account or kubernetes.TRIAL_ACCOUNT)}"
        hint = "a service that checks tokens then knows the pool's trials by their account: service_account"
        yield draft.problem(place, message, code="pool-pod", hint=hint, at_key=True)


def gpu_keys(draft: Draft) -> Iterator[Problem]:
    """Only pools with GPUs have keys of GPUs."""
    for name in draft.names("pools"):
        place = ("pools", name)
        node = draft.get(*place, "node", kind=dict)
        if node is None or (*place, "node", "gpu") in draft.broken or node.get("gpu"):
            continue
        for key in ("gpu_resource", "gpu_shares", "gpu_type"):
            if key in draft.names(*place):
                message = "must be left out if nodes have no GPU"
                hint = "or set their number: node.gpu"
                yield draft.problem((*place, key), message, code="pool-gpu", hint=hint, at_key=True)


def budget_limits(draft: Draft) -> Iterator[Problem]:
    """A budget has a limit."""
    for team in draft.names("budgets"):
        place = ("budgets", team)
        if draft.get(*place, kind=dict) is not None and not {"gpu_hours", "money"} & {*draft.names(*place)}:
            message = "must be given unless money is"
            yield draft.problem((*place, "gpu_hours"), message, code="missing-key", at_key=True)
