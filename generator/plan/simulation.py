"""A pool of nodes as a queue of trials: who starts when, as a scheduler would have it. No chance, no clock.

Batches are served in their order. One that has as many trials at work as it wants, or that finds no room
for another one, lets the next ones go on; so do Kubernetes and Kueue, unless somebody has told them not to.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush, heapreplace
from math import inf

Span = tuple[float, float]
"""Start and end, in seconds."""

NODES_COME = -1
"""Who an event is about, where it is about no batch."""


@dataclass(frozen=True, slots=True)
class Line:
    """A batch that waits: how long each trial will hold its place, in the order in which they start."""

    seconds: Sequence[float]
    at_once: int
    units: int = 1
    """Of the pool, for each trial."""


@dataclass(frozen=True, slots=True)
class Room:
    """What there is to run on, in units of a node that any trial takes a whole number of."""

    units: int | None = None
    """None: without end."""
    warm: int = 0
    """Units that are there at once; the others come after the start-up."""
    startup: float = 0.0


@dataclass(frozen=True, slots=True)
class State:
    """How many trials of a batch stand where at a moment."""

    ended: int
    running: int
    waiting: int


def simulate(lines: Sequence[Line], room: Room) -> tuple[tuple[Span, ...], ...]:
    """Play the lines to their ends; give for each trial of each when it starts and ends.

    Trials for which there will never be room start never: at infinity.
    """
    if len(lines) == 1:
        return (_alone(lines[0], room),)
    return _together(lines, room)


def end(spans: Sequence[Span]) -> float:
    """Say when the last one ends."""
    return max((end for _, end in spans), default=0.0)


def state(spans: Sequence[Span], moment: float) -> State:
    """Say where trials stand at a moment; what ends just then has ended."""
    ended = sum(end <= moment for _, end in spans)
    begun = sum(start <= moment for start, _ in spans)
    return State(ended, begun - ended, len(spans) - begun)


def places(line: Line, room: Room) -> int:
    """Count the trials of a line that there is room for at once."""
    most = min(line.at_once, len(line.seconds))
    return most if room.units is None else min(most, room.units // line.units)


def _alone(line: Line, room: Room) -> tuple[Span, ...]:
    """Play a line that has the room for itself: each place takes the next trial as soon as it is free."""
    early = places(line, Room(room.warm)) if room.units is not None else 0
    free = [0.0] * early + [room.startup] * (places(line, room) - early)
    if not free:
        return ((inf, inf),) * len(line.seconds)
    heapify(free)
    spans = []
    for seconds in line.seconds:
        start = free[0]
        heapreplace(free, start + seconds)
        spans.append((start, start + seconds))
    return tuple(spans)


def _together(lines: Sequence[Line], room: Room) -> tuple[tuple[Span, ...], ...]:
    spans: list[list[Span]] = [[] for _ in lines]
    running = [0] * len(lines)
    free = float(room.warm) if room.units is not None else 0.0
    cold = inf if room.units is None else room.units - room.warm
    events: list[tuple[float, int]] = [(room.startup, NODES_COME)]
    now = 0.0
    while True:
        for who, line in enumerate(lines):
            while len(spans[who]) < len(line.seconds) and running[who] < line.at_once and free >= line.units:
                until = now + line.seconds[len(spans[who])]
                spans[who].append((now, until))
                heappush(events, (until, who))
                running[who] += 1
                free -= line.units
        if not events:
            break
        now, who = heappop(events)
        if who == NODES_COME:
            free += cold
        else:
            running[who] -= 1
            free += lines[who].units
    return tuple(
        (*found, *[(inf, inf)] * (len(line.seconds) - len(found)))
        for found, line in zip(spans, lines, strict=True)
    )
