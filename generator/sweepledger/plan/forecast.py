"""Forecast of completion time and cost as a distribution, from recorded durations or from expected minutes.

If neither is known, the forecast contains the reason. Equal input gives an equal forecast.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from heapq import heapify, heappop, heappush, heapreplace
from math import exp, inf, lcm
from random import Random
from statistics import NormalDist

from sweepledger.plan.durations import NO_HISTORY, DurationModel, TimingHistory, fit_durations
from sweepledger.quantiles import interpolated_quantile
from sweepledger.structs import node_pool
from sweepledger.structs.node_pool import Pool
from sweepledger.structs.run_config import RunConfig
from sweepledger.structs.values import SECONDS_PER_HOUR, Value

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
    """The capacity of a pool, in fractions of a node so that every trial needs a whole number of them."""

    units: int | None = None
    """None: unlimited."""
    warm: int = 0
    """Units that are available immediately; the others become available after the start-up."""
    startup: float = 0.0


def simulate(batches: Sequence[QueuedBatch], capacity: PoolCapacity) -> tuple[tuple[Span, ...], ...]:
    """Return when each trial of each batch starts and ends; a trial that never fits starts at infinity.

    Batches are served in order. A batch at its parallelism, or without capacity for another trial,
    lets later batches start trials, as Kubernetes and Kueue do by default.
    """
    if len(batches) == 1:
        return (_simulate_one(batches[0], capacity),)
    return _simulate_queue(batches, capacity)


def last_end(spans: Sequence[Span]) -> float:
    """Return when the last trial ends."""
    return max((end for _, end in spans), default=0.0)


def _slots(batch: QueuedBatch, capacity: PoolCapacity) -> int:
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


LOW, HIGH = 0.1, 0.9

SECONDS_A_MINUTE = 60
RETRY_BACKOFF = 10
"""Seconds before a first retry in Kubernetes; doubled for each further retry."""

MAX_DRAWS, MIN_DRAWS = 200, 20
MAX_STARTS = 400_000
"""Trial starts in all draws together: half a second."""
MAX_SAMPLE = 20_000
"""Durations of single trials from which quantiles are computed."""
MAX_NODE_PARTS = 1_000_000
"""Largest number of units in a node."""


@dataclass(frozen=True, slots=True)
class Quantiles:
    """The median and the 80 % interval of a quantity."""

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, draws: Sequence[float]) -> "Quantiles":
        """Compute the quantiles of random draws."""
        ordered = sorted(draws)
        return cls(*(interpolated_quantile(ordered, share) for share in (LOW, 0.5, HIGH)))

    @property
    def is_exact(self) -> bool:
        """Whether all draws between the quantiles are equal."""
        return self.low == self.high

    def times(self, factor: float) -> "Quantiles":
        """Multiply by a factor."""
        return Quantiles(self.low * factor, self.median * factor, self.high * factor)


class DurationSource(StrEnum):
    """Where the duration of a trial comes from."""

    RECORDS = "records"
    EXPECTED = "expected"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class PlannedTrials:
    """Trials that are to run."""

    run: RunConfig
    trials: Sequence[Mapping[str, Value] | None]
    """Configurations in the order in which they start; None: not chosen yet."""
    pool: Pool | None = None
    history: TimingHistory = NO_HISTORY
    """Recorded durations of their program."""
    rounds: int = 1
    """Number of rounds that the trials are divided into; each starts when the one before has ended."""


@dataclass(frozen=True, slots=True)
class DurationEstimate:
    """The distribution of the durations of trials."""

    source: DurationSource
    means: tuple[float, ...]
    """Mean seconds of each trial."""
    noise: tuple[float, ...] = (1.0,)
    """Equally likely factors of single trials."""
    drift: float = 0.0
    """Standard deviation of the logarithm of a factor that all trials share."""
    history: TimingHistory = NO_HISTORY
    records: int = 0
    parameters: tuple[str, ...] = ()
    """The parameters that the duration depends on."""

    def draw_seconds(self, random: Random, *, shift: float) -> list[float]:
        """Draw the seconds of each trial's command; `shift` is the shared factor in standard deviations."""
        shared = exp(self.drift * shift)
        if self.noise == (1.0,):
            return [mean * shared for mean in self.means]
        factors = random.choices(self.noise, k=len(self.means))
        return [mean * shared * factor for mean, factor in zip(self.means, factors, strict=True)]

    def draw_failures(self, random: Random, run: RunConfig) -> dict[int, float]:
        """Draw which trials fail before they succeed, and how many seconds they lose."""
        rate, lost_seconds = self.history.failure_rate, {}
        if not rate or not run.retries:
            return {}
        for at in range(len(self.means)):
            lost, attempt = 0.0, 0
            while attempt < run.retries and random.random() < rate:
                lost += (
                    min(random.choice(self.history.failed), run.timeout_seconds) + RETRY_BACKOFF * 2**attempt
                )
                attempt += 1
            if lost:
                lost_seconds[at] = lost
        return lost_seconds


def estimate_durations(workload: PlannedTrials) -> DurationEstimate | str:
    """Estimate the durations of trials, or return why they are unknown."""
    model = fit_durations(workload.history)
    estimate = _estimate_from_records(workload, model) if model else "no trial of this program is recorded"
    if isinstance(estimate, DurationEstimate):
        return estimate
    if model is None and (finished := len(workload.history.finished)):
        estimate = f"only {finished} trial{'s' * (finished > 1)} of this program recorded"
    if workload.run.expected_minutes is not None:
        seconds = workload.run.expected_minutes * SECONDS_A_MINUTE
        return DurationEstimate(DurationSource.EXPECTED, (seconds,) * len(workload.trials))
    return estimate


def _estimate_from_records(workload: PlannedTrials, model: DurationModel) -> DurationEstimate | str:
    finished, means = workload.history.finished, []
    for at, values in enumerate(workload.trials):
        # Configurations that are not chosen yet are assumed to be like recorded ones.
        configuration = finished[at % len(finished)].configuration if values is None else values
        seconds = model.seconds(configuration)
        if seconds is None:
            name = model.unlike_parameter(configuration) or ""
            return f"no recorded trial is like {name}={configuration.get(name)!r}"
        means.append(seconds)
    return DurationEstimate(
        DurationSource.RECORDS,
        tuple(means),
        model.noise,
        model.drift,
        workload.history,
        model.records,
        tuple(effect.parameter for effect in model.effects),
    )


@dataclass(frozen=True, slots=True)
class Forecast:
    """The estimated durations and cost of trials."""

    source: DurationSource
    trials: int
    records: int = 0
    """Number of recorded trials that it is based on."""
    parameters: tuple[str, ...] = ()
    """The parameters that the duration depends on, the strongest effect first."""
    trial_seconds: Quantiles | None = None
    """Seconds of one trial; like all quantities below, None if unknown."""
    trial_hours: Quantiles | None = None
    """Hours of single trials, one after the other, including retries."""
    money: Quantiles | None = None
    """Also None if the pool has no price."""
    completion_seconds: Quantiles | None = None
    """Seconds from the merge to the end of the last trial, including batches that are ahead in the pool."""
    ahead: int = 0
    """Active batches in its pool."""
    uncounted: int = 0
    """Active batches of unknown duration, which `completion_seconds` does not include."""
    reason: str = ""
    """Why the estimate is unavailable."""


def forecast(workload: PlannedTrials, ahead: Sequence[PlannedTrials] = (), *, seed: int = 0) -> Forecast:
    """Forecast trials that start after the active workloads of their pool."""
    estimate, size = estimate_durations(workload), len(workload.trials)
    if isinstance(estimate, str) or not size:
        reason = estimate if isinstance(estimate, str) else ""
        return Forecast(DurationSource.UNKNOWN, size, ahead=len(ahead), reason=reason)
    if workload.pool is None or workload.pool.max_nodes is None:
        ahead = ()  # in an unlimited pool no trial waits for others
    others = [(other, estimate_durations(other)) for other in ahead]
    known = [(other, durations) for other, durations in others if isinstance(durations, DurationEstimate)]
    draws = _simulate_draws([(workload, estimate), *known], Random(seed))  # noqa: S311 - not for security
    hours = Quantiles.of([hours for hours, _, _ in draws])
    completion = Quantiles.of([completion for _, completion, _ in draws])
    price = hourly_price(workload.run, workload.pool)
    return Forecast(
        estimate.source,
        size,
        estimate.records,
        estimate.parameters,
        Quantiles.of([seconds for *_, sample in draws for seconds in sample]),
        hours,
        None if price is None else hours.times(price),
        None if completion.high == inf else completion,
        len(ahead),
        len(others) - len(known),
    )


def hourly_price(run: RunConfig, pool: Pool | None) -> float | None:
    """Return the price of one trial per hour: its share of a full node. None if the pool has no price."""
    if pool is None or pool.price is None:
        return None
    trials = node_pool.pods_per_node(run, pool.node) * run.trials_per_pod
    return pool.price * run.nodes / trials if trials else None


def _simulate_draws(
    workloads: Sequence[tuple[PlannedTrials, DurationEstimate]], random: Random
) -> list[tuple[float, float, list[float]]]:
    """Simulate the first workload, which starts after the others, as often as time allows.

    Return the hours of all its trials, when it is complete, and the seconds of some trials.
    """
    workload, estimate = workloads[0]
    count = max(MIN_DRAWS, min(MAX_DRAWS, MAX_STARTS // sum(len(other.trials) for other, _ in workloads)))
    stride = max(1, count * len(workload.trials) // MAX_SAMPLE)
    # Evenly spaced quantiles: with few draws, random ones would cover the shared factor poorly.
    shifts = [NormalDist().inv_cdf((at + 0.5) / count) for at in range(count)]
    random.shuffle(shifts)
    capacity, units = _pool_capacity([other for other, _ in workloads])
    draws = []
    for shift in shifts:
        seconds = estimate.draw_seconds(random, shift=shift)
        slot_seconds, hours = _slot_seconds(workload.run, estimate, seconds, random)
        queue = [
            QueuedBatch(_remaining_seconds(other, durations, random), other.run.parallelism, share)
            for (other, durations), share in zip(workloads[1:], units[1:], strict=True)
        ]
        # Rounds of equal size, the last of which may be smaller.
        size = max(1, -(-len(slot_seconds) // workload.rounds))
        first, *later = (slot_seconds[start : start + size] for start in range(0, len(slot_seconds), size))
        spans = simulate([*queue, QueuedBatch(first, workload.run.parallelism, units[0])], capacity)
        completion = last_end(spans[-1])
        for round_ in later:  # by then the batches before have ended, and the nodes run
            batch = QueuedBatch(round_, workload.run.parallelism, units[0])
            completion += last_end(simulate([batch], replace(capacity, startup=0.0))[0])
        draws.append((hours, completion, seconds[::stride]))
    return draws


def _slot_seconds(
    run: RunConfig, estimate: DurationEstimate, seconds: list[float], random: Random
) -> tuple[list[float], float]:
    """Return how long each trial occupies its slot, and the hours of all commands; limit seconds to the timeout."""
    longest, overheads = run.timeout_seconds, estimate.history.overheads
    overhead = random.choice(overheads) if overheads else 0.0  # a slot is idle between two trials
    for at, duration in enumerate(seconds):
        if duration > longest:
            seconds[at] = longest
    lost = estimate.draw_failures(random, run)
    slot_seconds = [duration + overhead for duration in seconds]
    for at, extra in lost.items():
        slot_seconds[at] += extra
    return slot_seconds, (sum(seconds) + sum(lost.values())) / SECONDS_PER_HOUR


def _remaining_seconds(workload: PlannedTrials, estimate: DurationEstimate, random: Random) -> list[float]:
    """Draw the remaining trials of an active batch, whose progress git does not contain."""
    seconds = estimate.draw_seconds(random, shift=random.gauss())
    slot_seconds, _ = _slot_seconds(workload.run, estimate, seconds, random)
    return slot_seconds[int(random.random() * len(slot_seconds)) :]


def _pool_capacity(workloads: Sequence[PlannedTrials]) -> tuple[PoolCapacity, list[int]]:
    """Divide the pool's nodes into units so that each trial takes a whole number of them."""
    pool = workloads[0].pool
    if pool is None or pool.max_nodes is None:
        return PoolCapacity(None, startup=0.0 if pool is None else pool.startup_seconds), [1] * len(workloads)
    trials = [
        node_pool.pods_per_node(workload.run, pool.node) * workload.run.trials_per_pod
        for workload in workloads
    ]
    parts = min(MAX_NODE_PARTS, lcm(*(count for count in trials if count)))
    total = parts * pool.max_nodes
    units = [
        workload.run.nodes * -(-parts // count) if count else total + 1
        for workload, count in zip(workloads, trials, strict=True)
    ]
    busy = sum(
        min(workload.run.parallelism, len(workload.trials)) * share
        for workload, share in zip(workloads[1:], units[1:], strict=True)
    )
    warm = min(total, -(-busy // parts) * parts)
    return PoolCapacity(total, warm, pool.startup_seconds), units
