"""Pools of nodes in the settings, and the budgets of teams."""

import re
from collections.abc import Iterator

from sweepledger.problems import Problem
from sweepledger.reader import safe_repr
from sweepledger.spec import units
from sweepledger.spec.draft import Draft
from sweepledger.spec.rules.cluster import DNS_LABEL, is_resource_name
from sweepledger.spec.suggestions import did_you_mean


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


def node_choice(draft: Draft) -> Iterator[Problem]:
    """A pool has a queue, or selector and tolerations: Kueue sets those of its flavor itself."""
    for name in draft.names("pools"):
        keys = draft.names("pools", name)
        for key in ("selector", "tolerations") if "queue" in keys else ():
            if key in keys:
                message = "must not be given with queue, which chooses the nodes"
                hint = f"keep one of the two; Kueue's ResourceFlavor has {key} of its own"
                yield draft.problem(("pools", name, key), message, code="pool-choice", hint=hint, at_key=True)


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
