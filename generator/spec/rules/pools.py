"""The pools of the settings: how their nodes are chosen, and what a node can give."""

from collections.abc import Iterator

from generator.problems import Problem
from generator.reader import shown
from generator.spec import units
from generator.spec.draft import Draft
from generator.spec.nearest import did_you_mean
from generator.spec.rules import amounts
from generator.spec.rules.labels import is_resource


def default(draft: Draft) -> Iterator[Problem]:
    """The default pool is one of the pools."""
    place, known = ("defaults", "pool"), draft.names("pools")
    name = draft.get(*place, kind=str)
    if name is not None and name not in known:
        hint = did_you_mean(name, known) or "there is none: add it to pools"
        yield draft.problem(
            place, f"must be one of the pools, got {shown(name)}", code="unknown-pool", hint=hint
        )


def choices(draft: Draft) -> Iterator[Problem]:
    """Kueue writes selector and tolerations of its flavor into what it admits: two sources would disagree."""
    for name in draft.names("pools"):
        keys = draft.names("pools", name)
        for key in ("selector", "tolerations") if "queue" in keys else ():
            if key in keys:
                message = "must not stand beside queue, which chooses nodes itself"
                hint = f"keep one of the two; Kueue's ResourceFlavor has {key} of its own"
                yield draft.problem(("pools", name, key), message, code="pool-choice", hint=hint, at_key=True)


def nodes(draft: Draft) -> Iterator[Problem]:
    """What a node can give is an amount."""
    for name in draft.names("pools"):
        yield from amounts.cores(draft, ("pools", name, "node", "cpu"))
        yield from amounts.memory(draft, ("pools", name, "node", "memory"))
        yield from amounts.duration(draft, ("pools", name, "startup"), units.seconds)


def gpus(draft: Draft) -> Iterator[Problem]:
    """What is said of GPUs is said of nodes that have some."""
    for name in draft.names("pools"):
        place = ("pools", name)
        resource = draft.get(*place, "gpu_resource", kind=str)
        if resource is not None and not is_resource(resource):
            message = f"must be a resource with its domain, got {shown(resource)}"
            hint = "for example nvidia.com/mig-1g.5gb, as `kubectl describe node` shows it"
            yield draft.problem((*place, "gpu_resource"), message, code="pool-gpu", hint=hint)
        node = draft.get(*place, "node", kind=dict)
        if node is None or (*place, "node", "gpu") in draft.broken or node.get("gpu"):
            continue
        for key in ("gpu_resource", "gpu_type"):
            if key in draft.names(*place):
                message = "must be left out where nodes have no GPU"
                hint = "or say how many they have: node.gpu"
                yield draft.problem((*place, key), message, code="pool-gpu", hint=hint, at_key=True)
