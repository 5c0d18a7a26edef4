"""Simulation of a pool of nodes as a queue of trials: when each starts and ends. No randomness, no clock.

Batches are served in order. A batch that runs as many trials as it may, or finds no capacity for another one,
lets the next ones continue, as Kubernetes and Kueue do by default.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush, heapreplace
from math import inf

Span = tuple[float, float]
"""Start and end, in seconds."""

NODES_START = -1
"""In events: nodes have started, instead of a batch's trial ending."""


@dataclass(frozen=True, slots=True)
class QueuedBatch:
    """A batch: how long each trial occupies its slot, in the order in which they start."""

    seconds: Sequence[float]
    at_once: int
    units: int = 1
    """Units of the pool that each trial needs."""


@dataclass(frozen=True, slots=True)
class PoolCapacity:
    """The capacity of a pool, in fractions of a node that every trial needs a whole number of."""

    units: int | None = None
    """None: unlimited."""
    warm: int = 0
    """Units that are available immediately; the others become available after the start-up."""
    startup: float = 0.0


def simulate(batches: Sequence[QueuedBatch], capacity: PoolCapacity) -> tuple[tuple[Span, ...], ...]:
    """Return when each trial of each batch starts and ends; a trial that never fits starts at infinity."""
    if len(batches) == 1:
        return (_simulate_one(batches[0], capacity),)
    return _simulate_queue(batches, capacity)


def last_end(spans: Sequence[Span]) -> float:
    """Return when the last trial ends."""
    return max((end for _, end in spans), default=0.0)


def _slots(batch: QueuedBatch, capacity: PoolCapacity) -> int:
    """Return how many trials of a batch can run at the same time."""
    most = min(batch.at_once, len(batch.seconds))
    return most if capacity.units is None else min(most, capacity.units // batch.units)


def _simulate_one(batch: QueuedBatch, capacity: PoolCapacity) -> tuple[Span, ...]:
    """Simulate a single batch: each slot takes the next trial as soon as it is free."""
    warm_slots = _slots(batch, PoolCapacity(capacity.warm)) if capacity.units is not None else 0
    free = [0.0] * warm_slots + [capacity.startup] * (_slots(batch, capacity) - warm_slots)
    if not free:
        return ((inf, inf),) * len(batch.seconds)
    heapify(free)
    spans = []
    for seconds in batch.seconds:
        start = free[0]
        heapreplace(free, start + seconds)
        spans.append((start, start + seconds))
    return tuple(spans)


def _simulate_queue(batches: Sequence[QueuedBatch], capacity: PoolCapacity) -> tuple[tuple[Span, ...], ...]:
    spans: list[list[Span]] = [[] for _ in batches]
    running = [0] * len(batches)
    free = float(capacity.warm) if capacity.units is not None else 0.0
    cold = inf if capacity.units is None else capacity.units - capacity.warm
    events: list[tuple[float, int]] = [(capacity.startup, NODES_START)]
    now = 0.0
    while True:
        for number, batch in enumerate(batches):
            started = spans[number]
            while (
                len(started) < len(batch.seconds) and running[number] < batch.at_once and free >= batch.units
            ):
                until = now + batch.seconds[len(started)]
                started.append((now, until))
                heappush(events, (until, number))
                running[number] += 1
                free -= batch.units
        if not events:
            break
        now, number = heappop(events)
        if number == NODES_START:
            free += cold
        else:
            running[number] -= 1
            free += batches[number].units
    return tuple(
        (*started, *[(inf, inf)] * (len(batch.seconds) - len(started)))
        for started, batch in zip(spans, batches, strict=True)
    )
