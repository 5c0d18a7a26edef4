"""Where trials run: the pool that a spec asks for, and whether a trial fits its nodes at all."""

from collections.abc import Iterator
from dataclasses import replace

from generator.problems import Problem
from generator.reader import Path, shown
from generator.spec.building.running import ran
from generator.spec.draft import Draft
from generator.spec.nearest import did_you_mean, quoted
from generator.spec.rules.cluster import LABEL
from generator.structs import placing
from generator.structs.settings import Pool
from generator.structs.sweep import Run

POOL = ("run", "pool")


def pool_name(draft: Draft) -> Iterator[Problem]:
    """Pools are asked for by the names that the settings give them."""
    name, known = draft.get(*POOL, kind=str), draft.settings.pools
    if name is not None and name not in known:
        hint = did_you_mean(name, known) or "the settings name none: add it to pools in sweepledger.yaml"
        message = f"must be a pool of the settings, got {shown(name)}"
        yield draft.problem(POOL, message, code="unknown-pool", hint=hint)


def priority(draft: Draft) -> Iterator[Problem]:
    """Priority is among those that wait in a queue."""
    place, pool = ("run", "priority"), chosen(draft)
    name = draft.get(*place, kind=str)
    if name is None:
        return
    if not LABEL.fullmatch(name):
        message = f"must be the name of a WorkloadPriorityClass, got {shown(name)}"
        yield draft.problem(place, message, code="queue-priority")
    if pool is None and _is_sound(draft):
        message = "must stand beside a pool with a queue, got no pool"
        yield draft.problem(place, message, code="queue-priority", hint=_queued(draft), at_key=True)
    elif pool is not None and pool.queue is None:
        message = f"must stand beside a pool with a queue, got {pool.name!r}, which has none"
        yield draft.problem(place, message, code="queue-priority", hint=_queued(draft), at_key=True)


def fits(draft: Draft) -> Iterator[Problem]:
    """What no node of the pool can bear would wait for ever."""
    pool, run = chosen(draft), _asked(draft)
    if pool is None or run is None:
        return
    found = tuple(placing.lacking(run, pool.node))
    for name in found:
        place, asked, there = _figures(run, pool, name)
        message = f"must fit on a node of pool {pool.name!r} with its {there}, got {asked}"
        yield draft.problem(_nearest(draft, place), message, code="pool-fit", hint=_fitting(draft, run))
    if not found and pool.max_nodes is not None and not placing.most_at_once(run, pool):
        needed = placing.nodes(replace(run, parallelism=1), pool, 1)
        message = (
            f"must fit on the {pool.max_nodes} nodes that pool {pool.name!r} has at most, "
            f"got a trial that takes {needed}"
        )
        yield draft.problem(
            _nearest(draft, ("run", "nodes")), message, code="pool-fit", hint=_fitting(draft, run)
        )


def chosen(draft: Draft) -> Pool | None:
    """Give the pool that a spec asks for, or the settings' default; None where there is none."""
    name = draft.get(*POOL, kind=str) if "pool" in draft.names("run") else draft.settings.defaults.pool
    return draft.settings.pools.get(name or "")


def _is_sound(draft: Draft) -> bool:
    """Tell whether nothing else was said of the pool."""
    return "pool" not in draft.names("run")


def _asked(draft: Draft) -> Run | None:
    """Read what a pod asks for; None where part of it is wrong, which is said elsewhere."""
    resources, nodes = draft.get("run", "resources", kind=dict), draft.number("run", "nodes")
    if any(place[:2] in {("run", "resources"), ("run", "nodes")} for place in draft.broken):
        return None
    try:
        return ran({"resources": resources or {}, "nodes": nodes or 1}, draft.settings)
    except ValueError:
        return None


def _figures(run: Run, pool: Pool, name: str) -> tuple[Path, str, str]:
    place, asked, node = ("run", "resources", name), run.resources, pool.node
    match name:
        case "cpu":
            return place, f"{asked.cpu} CPU", f"{node.cpu} CPU"
        case "memory":
            return place, asked.memory, node.memory
        case _:
            return place, f"{asked.gpu} GPU", f"{node.gpu} GPU"


def _nearest(draft: Draft, place: Path) -> Path:
    """Point at what is written: a default has no place of its own, so that the pool is what is wrong."""
    written = place[-1] in draft.names(*place[:-1])
    return place if written else POOL if "pool" in draft.names("run") else ("run",)


def _fitting(draft: Draft, run: Run) -> str:
    able = [
        pool.name
        for pool in draft.settings.pools.values()
        if not any(placing.lacking(run, pool.node)) and placing.most_at_once(run, pool) != 0
    ]
    return f"it fits in {quoted(able)}" if able else "it fits in no pool of the settings: ask for less"


def _queued(draft: Draft) -> str:
    able = [pool.name for pool in draft.settings.pools.values() if pool.queue is not None]
    return f"pools with a queue: {quoted(able)}" if able else "no pool has a queue: delete the key"
