"""When trials are done and what they cost, as a distribution: by what is recorded, else by what is expected.

Nothing is invented: where neither says anything, the answer is that nobody knows. Equal input, equal answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf, lcm
from random import Random
from statistics import NormalDist

from generator.plan.asked import Asked, Source, Times, times
from generator.plan.intervals import Interval
from generator.plan.simulation import Line, Room, end, simulate
from generator.structs import placing
from generator.structs.settings import Pool
from generator.structs.sweep import Run

SECONDS_AN_HOUR = 3600
MOST_DRAWS, FEWEST_DRAWS = 200, 20
MOST_STARTS = 400_000
"""Trials that are started in all draws together: half a second."""
MOST_SHOWN = 20_000
"""Single times of which the quantiles are taken."""
FINEST = 1_000_000
"""Units that a node is parted into at most."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What some trials will take, as far as that can be told."""

    source: Source
    trials: int
    records: int = 0
    """How many recorded trials it rests on."""
    by: tuple[str, ...] = ()
    """The parameters that time depends on, most telling first."""
    trial: Interval | None = None
    """Seconds of one trial; as all below, None where nobody knows."""
    hours: Interval | None = None
    """Of single trials, one after the other, retries included."""
    money: Interval | None = None
    """None as well where the pool has no price."""
    done: Interval | None = None
    """Seconds from when it could begin to its last end, what is ahead in the pool included."""
    ahead: int = 0
    """Batches that are active in its pool."""
    uncounted: int = 0
    """Those of them whose time nobody knows: `done` is without them."""
    reason: str = ""
    """Why nobody knows."""


def forecast(asked: Asked, ahead: Sequence[Asked] = (), *, seed: int = 0) -> Forecast:
    """Say what trials take, behind those that are active in their pool already."""
    found, size = times(asked), len(asked.trials)
    if isinstance(found, str) or not size:
        return Forecast(
            Source.UNKNOWN, size, ahead=len(ahead), reason=found if isinstance(found, str) else ""
        )
    # Without an end of the pool nobody waits for anybody.
    others = [(one, times(one)) for one in (ahead if _is_bounded(asked.pool) else ())]
    known = [(one, took) for one, took in others if isinstance(took, Times)]
    draws = _drawn([(asked, found), *known], Random(seed))  # noqa: S311 - no secret
    hours = Interval.of([one.hours for one in draws])
    done = Interval.of([one.done for one in draws])
    rate = price_an_hour(asked.run, asked.pool)
    return Forecast(
        found.source,
        size,
        found.records,
        found.by,
        Interval.of([seconds for one in draws for seconds in one.sample]),
        hours,
        None if rate is None else hours.times(rate),
        None if done.high == inf else done,
        len(ahead),
        len(others) - len(known),
    )


def rounds(one: Forecast, left: int) -> Forecast:
    """Say what so many rounds take that are all like this one, each begun when the one before has ended."""
    return replace(
        one,
        trials=one.trials * left,
        hours=one.hours and one.hours.times(left),
        money=one.money and one.money.times(left),
        done=one.done and one.done.times(left),
    )


def price_an_hour(run: Run, pool: Pool | None) -> float | None:
    """Price an hour of one trial: its share of nodes that are full. None where the pool has no price."""
    if pool is None or pool.price is None:
        return None
    fit = placing.per_node(run, pool.node)
    return pool.price * run.nodes / fit if fit else None


@dataclass(frozen=True, slots=True)
class _Draw:
    """One way in which it may go."""

    hours: float
    done: float
    sample: list[float]
    """Seconds of some trials."""


def _drawn(lines: Sequence[tuple[Asked, Times]], random: Random) -> list[_Draw]:
    """Play what is asked for, which comes first here and starts last, as often as there is time for."""
    (asked, took), size = lines[0], sum(len(one.trials) for one, _ in lines)
    count = max(FEWEST_DRAWS, min(MOST_DRAWS, MOST_STARTS // size))
    every = max(1, count * len(asked.trials) // MOST_SHOWN)
    # Evenly over the distribution: few draws would else say little of what all trials share.
    shifts = [NormalDist().inv_cdf((place + 0.5) / count) for place in range(count)]
    random.shuffle(shifts)
    room, units = _room([one for one, _ in lines])
    draws = []
    for shift in shifts:
        seconds = took.drawn(random, shift=shift)
        held, hours = _held(asked, took, seconds, random)
        waiting = [
            Line(_left(one, its, random), one.run.parallelism, share)
            for (one, its), share in zip(lines[1:], units[1:], strict=True)
        ]
        played = simulate([*waiting, Line(held, asked.run.parallelism, units[0])], room)
        draws.append(_Draw(hours, end(played[-1]), seconds[::every]))
    return draws


def _held(asked: Asked, took: Times, seconds: list[float], random: Random) -> tuple[list[float], float]:
    """Give how long each trial holds its place, and the hours that all of them compute."""
    longest, overhead = asked.run.timeout_seconds, took.overhead(random)
    for place, one in enumerate(seconds):
        if one > longest:
            seconds[place] = longest
    lost = took.retried(random, asked.run)
    held = [one + overhead for one in seconds]
    for place, more in lost.items():
        held[place] += more
    return held, (sum(seconds) + sum(lost.values())) / SECONDS_AN_HOUR


def _left(asked: Asked, took: Times, random: Random) -> list[float]:
    """Draw what is left of a batch that runs: how far it has come, git does not know."""
    held, _ = _held(asked, took, took.drawn(random, shift=random.gauss()), random)
    return held[int(random.random() * len(held)) :]


def _is_bounded(pool: Pool | None) -> bool:
    return pool is not None and pool.max_nodes is not None


def _room(lines: Sequence[Asked]) -> tuple[Room, list[int]]:
    """Part the pool's nodes so that each trial takes a whole number of parts."""
    pool = lines[0].pool
    if pool is None or pool.max_nodes is None:
        return Room(None, startup=0.0 if pool is None else pool.startup_seconds), [1] * len(lines)
    fit = [placing.per_node(one.run, pool.node) for one in lines]
    parts = min(FINEST, lcm(*(one for one in fit if one)))
    total = parts * pool.max_nodes
    units = [
        one.run.nodes * -(-parts // each) if each else total + 1 for one, each in zip(lines, fit, strict=True)
    ]
    busy = sum(
        min(one.run.parallelism, len(one.trials)) * share
        for one, share in zip(lines[1:], units[1:], strict=True)
    )
    warm = min(total, -(-busy // parts) * parts)
    return Room(total, warm, pool.startup_seconds), units
