"""Pools of nodes in the settings, and the budgets of teams."""

import re
from collections.abc import Iterator

from sweepledger.problems import Problem
from sweepledger.reader import DocumentPath, safe_repr
from sweepledger.spec import units
from sweepledger.spec.draft import Draft
from sweepledger.spec.rules.cluster import (
    DNS_LABEL,
    RESERVED_DOMAINS,
    is_domain_name,
    is_label_key,
    is_reserved_label,
    is_resource_name,
)
from sweepledger.spec.suggestions import did_you_mean
from sweepledger.structs.kubernetes import (
    CLAIMS_VERSION,
    HOSTNAME_LABEL,
    OLDEST_VERSION,
    POD_SET_ANNOTATIONS,
    TRIAL_ACCOUNT,
    format_version,
    parse_version,
)
from sweepledger.structs.node_pool import GPU_RESOURCE, GRACE_SECONDS
from sweepledger.structs.settings import Controller

MAX_FLAVOR_ITEMS = 8
"""Labels, and tolerations, of a ResourceFlavor (Kueue v1beta1)."""
MIN_TOKEN_SECONDS, MAX_TOKEN_SECONDS = 600, 86_400
"""The shortest life that Kubernetes gives a token, and the longest that a kubelet need not renew early."""
AUDIENCE = re.compile(r"[!-~]{1,256}", re.ASCII)
API_SERVERS = re.compile(
    r"(https?://)?(kubernetes|kube-apiserver|api)(\.default.*)?/?", re.ASCII | re.IGNORECASE
)
"""Audiences by which API servers commonly know themselves."""
MIN_GRACE_SECONDS, MAX_GRACE_SECONDS = GRACE_SECONDS, 3600
OWN_DOMAINS = ("sweepledger.dev", "batch.kubernetes.io")
"""Domains of annotations by which trials and their attempts are counted."""


def default_pool(draft: Draft) -> Iterator[Problem]:
    """The default pool and that of the collector are among the pools."""
    known = draft.names("pools")
    for place in (("defaults", "pool"), ("collector", "pool")):
        name = draft.get(*place, kind=str)
        if name is not None and name not in known:
            hint = did_you_mean(name, known) or "there is none: add it to pools"
            yield draft.problem(
                place, f"must be one of the pools, got {safe_repr(name)}", code="not-in-settings", hint=hint
            )


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
        cohort = draft.get(*place, "cohort", kind=str)
        if cohort is not None and not DNS_LABEL.fullmatch(cohort):
            message = f"must be lower-case letters, digits and inner hyphens, got {safe_repr(cohort)}"
            yield draft.problem((*place, "cohort"), message, code="cluster-name")
        yield from _flavor(draft, name)
        yield from _topology(draft, name)
        yield from _provisioning(draft, name)
    yield from _shared_queues(draft)
    yield from _lenders(draft)


def _flavor(draft: Draft, pool: str) -> Iterator[Problem]:
    """A flavor that exists has the form of a name, and says itself which nodes it has."""
    flavor = draft.get("pools", pool, "flavor", kind=str)
    if flavor is None:
        return
    if not is_domain_name(flavor):
        message = f"must be the name of a ResourceFlavor, got {safe_repr(flavor)}"
        yield draft.problem(("pools", pool, "flavor"), message, code="cluster-name")
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
        if not is_label_key(level):
            message = f"must be a label of nodes such as topology.kubernetes.io/zone, got {safe_repr(level)}"
            yield draft.problem(at, message, code="label")
        elif level in levels[:index]:
            yield draft.problem(at, f"must be given once, got {safe_repr(level)} again", code="pool-queue")
        elif level == HOSTNAME_LABEL and index + 1 < len(levels):
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
        if key.startswith(POD_SET_ANNOTATIONS):
            message = f"must not be given with topology, which writes it, got {safe_repr(key)}"
            hint = f"pools.{pool}.topology.require or prefer"
            at = ("pools", pool, "pod", "annotations", key)
            yield draft.problem(at, message, code="pool-queue", hint=hint, at_key=True)


def _provisioning(draft: Draft, pool: str) -> Iterator[Problem]:
    """The class of ProvisioningRequests has the form of one, and the nodes' labels that of labels."""
    place: DocumentPath = ("pools", pool, "provisioning")
    name = draft.get(*place, "class", kind=str)
    if name is not None and not is_domain_name(name):
        message = f"must be a provisioning class, got {safe_repr(name)}"
        hint = "for example check-capacity.autoscaling.x-k8s.io"
        yield draft.problem((*place, "class"), message, code="pool-queue", hint=hint)
    for key in draft.names(*place, "selector"):
        if not is_label_key(key):
            message = f"must be a label of nodes, got {safe_repr(key)}"
            yield draft.problem((*place, "selector", key), message, code="label", at_key=True)


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
    """Names, resources and the grace period of a pool's pods are valid, and no key is one that programs act on."""
    for name in draft.names("pools"):
        place = ("pools", name, "pod")
        yield from _resources(draft, name)
        for key in draft.names(*place, "annotations"):
            if not is_label_key(key):
                message = f"must be an annotation's key such as example.org/team, got {safe_repr(key)}"
                yield draft.problem((*place, "annotations", key), message, code="label", at_key=True)
        for table, domains in (("labels", RESERVED_DOMAINS), ("annotations", OWN_DOMAINS)):
            for key in draft.names(*place, table):
                if is_reserved_label(key, domains):
                    message = f"must not be a key that a program acts on, got {safe_repr(key)}"
                    yield draft.problem((*place, table, key), message, code="label-reserved", at_key=True)
        yield from _grace(draft, (*place, "grace"))
        yield from _claims(draft, name)
        yield from _tokens(draft, name)
        for key in draft.names(*place, "spread"):
            if not is_label_key(key):
                message = (
                    f"must be a label of nodes such as topology.kubernetes.io/zone, got {safe_repr(key)}"
                )
                yield draft.problem((*place, "spread", key), message, code="label", at_key=True)


def _resources(draft: Draft, name: str) -> Iterator[Problem]:
    place = ("pools", name, "pod", "resources")
    gpu = draft.get("pools", name, "gpu_resource", kind=str) or GPU_RESOURCE
    for resource in draft.names(*place):
        if resource == gpu:
            message, hint = "must not be the pool's GPU, of which specs say the number", "run.resources.gpu"
        elif not is_resource_name(resource):
            message = f"must be a resource with its domain, got {safe_repr(resource)}"
            hint = "for example vpc.amazonaws.com/efa, as `kubectl describe node` shows it"
        else:
            continue
        yield draft.problem((*place, resource), message, code="pool-pod", hint=hint, at_key=True)


def _claims(draft: Draft, pool: str) -> Iterator[Problem]:
    """Claims of devices need a Kubernetes that has them, and no queue, which would not count them."""
    place: DocumentPath = ("pools", pool, "pod", "claims")
    names = draft.names(*place)
    for name in names:
        text = draft.get(*place, name, kind=str)
        if not DNS_LABEL.fullmatch(name) or (text is not None and not DNS_LABEL.fullmatch(text)):
            message = f"must be a name and that of a ResourceClaimTemplate, got {safe_repr(name)}: {safe_repr(text)}"
            yield draft.problem((*place, name), message, code="pool-pod", at_key=True)
    written = draft.get("kubernetes", kind=str)
    version = parse_version(written) if written else OLDEST_VERSION
    if names and version < CLAIMS_VERSION:
        needed = format_version(CLAIMS_VERSION)
        message = f"needs Kubernetes {needed} or newer, got {format_version(version)}"
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
    if names and account in {None, TRIAL_ACCOUNT}:
        message = f"needs a service account of the pool, got {safe_repr(account or TRIAL_ACCOUNT)}"
        hint = "a service that checks tokens then knows the pool's trials by their account: service_account"
        yield draft.problem(place, message, code="pool-pod", hint=hint, at_key=True)
    for name in names:
        if not DNS_LABEL.fullmatch(name):
            message = f"must be lower-case letters, digits and inner hyphens, got {safe_repr(name)}"
            yield draft.problem((*place, name), message, code="pool-pod", at_key=True)
        audience = draft.get(*place, name, "audience", kind=str)
        if audience is not None and (not AUDIENCE.fullmatch(audience) or API_SERVERS.fullmatch(audience)):
            message = f"must be a service outside of Kubernetes, in one word, got {safe_repr(audience)}"
            hint = "the audience that its configuration requires, for example https://vault.example.org"
            yield draft.problem((*place, name, "audience"), message, code="pool-pod", hint=hint)
        at = (*place, name, "expires")
        problems = list(units.duration_problems(draft, at, units.seconds))
        yield from problems
        text = draft.get(*at, kind=str)
        if text and not problems and not MIN_TOKEN_SECONDS <= units.seconds(text) <= MAX_TOKEN_SECONDS:
            yield draft.problem(at, f"must be between 10m and 24h, got {safe_repr(text)}", code="pool-pod")


def _grace(draft: Draft, place: DocumentPath) -> Iterator[Problem]:
    problems = list(units.duration_problems(draft, place, units.seconds))
    yield from problems
    text = draft.get(*place, kind=str)
    if text is None or problems:
        return
    if not MIN_GRACE_SECONDS <= units.seconds(text) <= MAX_GRACE_SECONDS:
        message = f"must be between {MIN_GRACE_SECONDS} seconds and an hour, got {safe_repr(text)}"
        yield draft.problem(
            place, message, code="pool-pod", hint="a checkpoint must fit in it, for example 2m"
        )


def node_amounts(draft: Draft) -> Iterator[Problem]:
    """Amounts of a node, and those of the collector, are valid quantities."""
    yield from units.memory_problems(draft, ("collector", "memory"))
    yield from units.memory_problems(draft, ("collector", "disk"))
    for name in draft.names("pools"):
        yield from units.cores_problems(draft, ("pools", name, "node", "cpu"))
        yield from units.memory_problems(draft, ("pools", name, "node", "memory"))
        yield from units.duration_problems(draft, ("pools", name, "startup"), units.seconds)


def gpu_keys(draft: Draft) -> Iterator[Problem]:
    """GPU keys are valid, and only pools with GPUs have them."""
    for name in draft.names("pools"):
        place = ("pools", name)
        resource = draft.get(*place, "gpu_resource", kind=str)
        if resource is not None and not is_resource_name(resource):
            message = f"must be a resource with its domain, got {safe_repr(resource)}"
            hint = "for example nvidia.com/mig-1g.5gb, as `kubectl describe node` shows it"
            yield draft.problem((*place, "gpu_resource"), message, code="pool-gpu", hint=hint)
        node = draft.get(*place, "node", kind=dict)
        if node is None or (*place, "node", "gpu") in draft.broken or node.get("gpu"):
            continue
        for key in ("gpu_resource", "gpu_shares", "gpu_type"):
            if key in draft.names(*place):
                message = "must be left out if nodes have no GPU"
                hint = "or set their number: node.gpu"
                yield draft.problem((*place, key), message, code="pool-gpu", hint=hint, at_key=True)


SWEEP_PATTERN = re.compile(r"[a-z0-9*-]{1,63}", re.ASCII)
CURRENCY = re.compile(r"[A-Za-z€$£¥]{1,8}", re.ASCII)


def budget_names(draft: Draft) -> Iterator[Problem]:
    """The names of teams and the patterns of sweeps are valid."""
    for team in draft.names("budgets"):
        place = ("budgets", team)
        if not DNS_LABEL.fullmatch(team):
            message = f"must have lower-case letters, digits and inner hyphens only, got {safe_repr(team)}"
            yield draft.problem(place, message, code="name-form", at_key=True)
        for index, pattern in enumerate(draft.get(*place, "sweeps", kind=list) or ()):
            if isinstance(pattern, str) and not SWEEP_PATTERN.fullmatch(pattern):
                message = f"must be the name of a sweep, or one with stars, got {safe_repr(pattern)}"
                hint = "for example vision-*"
                yield draft.problem((*place, "sweeps", index), message, code="name-form", hint=hint)


def budget_limits(draft: Draft) -> Iterator[Problem]:
    """A budget has a limit."""
    for team in draft.names("budgets"):
        place = ("budgets", team)
        if draft.get(*place, kind=dict) is not None and not {"gpu_hours", "money"} & {*draft.names(*place)}:
            message = "must be given unless money is"
            yield draft.problem((*place, "gpu_hours"), message, code="missing-key", at_key=True)


def currency(draft: Draft) -> Iterator[Problem]:
    """The currency is a short code or sign."""
    found = draft.get("currency", kind=str)
    if found is not None and not CURRENCY.fullmatch(found):
        message = f"must be a currency code or sign, got {safe_repr(found)}"
        yield draft.problem(("currency",), message, code="currency", hint="for example EUR")
