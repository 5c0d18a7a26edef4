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
    is_label_key,
    is_reserved_label,
    is_resource_name,
)
from sweepledger.spec.suggestions import did_you_mean
from sweepledger.structs.node_pool import GPU_RESOURCE, GRACE_SECONDS

MAX_FLAVOR_ITEMS = 8
"""Labels, and tolerations, of a ResourceFlavor (Kueue v1beta1)."""
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
                place, f"must be one of the pools, got {safe_repr(name)}", code="unknown-pool", hint=hint
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
        for key in ("gpu_resource", "gpu_type"):
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
            yield draft.problem(place, message, code="budget-name", at_key=True)
        for index, pattern in enumerate(draft.get(*place, "sweeps", kind=list) or ()):
            if isinstance(pattern, str) and not SWEEP_PATTERN.fullmatch(pattern):
                message = f"must be the name of a sweep, or one with stars, got {safe_repr(pattern)}"
                hint = "for example vision-*"
                yield draft.problem((*place, "sweeps", index), message, code="budget-name", hint=hint)


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
