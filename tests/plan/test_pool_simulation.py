"""The simulation of a pool: properties of every schedule, and a published example."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweepledger.plan.forecast import PoolCapacity, QueuedBatch, last_end, simulate

SECONDS = st.lists(st.floats(0.125, 1000, allow_nan=False, width=16), min_size=1, max_size=40)
AT_ONCE = st.integers(1, 12)
CAPACITIES = st.builds(
    lambda units, warm, startup: PoolCapacity(units, min(warm, units), float(startup)),
    st.integers(1, 30),
    st.integers(0, 30),
    st.integers(0, 600),
)


UNLIMITED = PoolCapacity()


def alone(
    seconds: list[float], at_once: int, capacity: PoolCapacity = UNLIMITED
) -> tuple[tuple[float, float], ...]:
    (spans,) = simulate([QueuedBatch(seconds, at_once)], capacity)
    return spans


def running(spans: tuple[tuple[float, float], ...], moment: float) -> int:
    return sum(start <= moment < end for start, end in spans)


def flat(spans: tuple[tuple[float, float], ...]) -> list[float]:
    return [moment for span in spans for moment in span]


@given(SECONDS, AT_ONCE)
def test_the_makespan_lies_within_grahams_bounds(seconds: list[float], at_once: int) -> None:
    value = last_end(alone(seconds, at_once))

    total, longest = sum(seconds), max(seconds)
    assert value >= max(longest, total / at_once) - 1e-6
    assert value <= total / at_once + longest * (1 - 1 / at_once) + 1e-6


@given(SECONDS, AT_ONCE, CAPACITIES, st.integers(1, 4))
def test_capacity_is_kept(seconds: list[float], at_once: int, capacity: PoolCapacity, units: int) -> None:
    batch = QueuedBatch(seconds, at_once, units)
    (spans,) = simulate([batch], capacity)

    for start, _ in spans:
        if start < inf:
            assert running(spans, start) <= min(at_once, (capacity.units or 0) // units)


@given(SECONDS, AT_ONCE, CAPACITIES, st.integers(1, 4))
def test_trials_start_in_turn(seconds: list[float], at_once: int, capacity: PoolCapacity, units: int) -> None:
    (spans,) = simulate([QueuedBatch(seconds, at_once, units)], capacity)

    starts = [start for start, _ in spans]
    assert starts == sorted(starts)
    if units <= (capacity.units or 0):
        assert [value - start for start, value in spans] == pytest.approx(seconds)


@given(SECONDS, SECONDS, AT_ONCE, AT_ONCE, CAPACITIES)
def test_a_batch_does_not_delay_the_batches_ahead_of_it(
    first: list[float], second: list[float], number: int, other: int, capacity: PoolCapacity
) -> None:
    (before,) = simulate([QueuedBatch(first, number)], capacity)
    after, behind = simulate([QueuedBatch(first, number), QueuedBatch(second, other)], capacity)

    assert flat(after) == pytest.approx(flat(before))
    assert last_end(behind) >= last_end(alone(second, other, capacity)) - 1e-6


def test_no_trial_starts_before_the_nodes_do() -> None:
    assert alone([10, 10], 2, PoolCapacity(2, startup=300)) == ((300, 310), (300, 310))
    assert alone([10, 10], 2, PoolCapacity(None, startup=60)) == ((60, 70), (60, 70))


def test_active_batches_keep_nodes_warm() -> None:
    assert alone([10, 10], 2, PoolCapacity(2, warm=1, startup=300)) == ((0, 10), (10, 20))


def test_a_trial_that_fits_on_no_node_never_starts() -> None:
    assert alone([10, 10], 2, PoolCapacity(1, warm=1)) == ((0, 10), (10, 20))
    (spans,) = simulate([QueuedBatch([10], 1, units=2)], PoolCapacity(1))
    assert spans == ((inf, inf),)
    _, spans = simulate([QueuedBatch([10], 1), QueuedBatch([10], 1, units=2)], PoolCapacity(1))
    assert spans == ((inf, inf),)


# NVIDIA's published example of sixteen trials: seconds by job, as its notebook shows them.

PUBLISHED = {
    1: 117.764999, 2: 75.399140, 3: 119.592690, 4: 75.619865,
    5: 117.680233, 6: 74.556600, 7: 114.646887, 8: 74.983109,
    9: 116.857387, 10: 75.062058, 11: 116.772228, 12: 75.540528,
    13: 116.791409, 14: 74.523308, 15: 117.292228, 16: 74.602888,
}  # fmt: skip
BY_BATCH_SIZE = {128: 117.2, 512: 75.0}
CREATED = sorted(PUBLISHED, key=str)
"""`kubectl create -f FOLDER` takes files by name: 1, 10, 11 … 16, 2 … 9."""


def batch_size(job: int) -> int:
    return 128 if job % 2 else 512


def test_the_published_grid_on_three_gpus_takes_as_long_as_expected() -> None:
    published = [PUBLISHED[job] for job in CREATED]
    expected = [BY_BATCH_SIZE[batch_size(job)] for job in CREATED]

    assert sum(published) == pytest.approx(1537.7, abs=0.1)
    simulated, planned = last_end(alone(published, 3)), last_end(alone(expected, 3))
    # Nine minutes, where a third of the work would be eight and a half.
    assert simulated == pytest.approx(543.5, abs=0.1)
    assert planned == pytest.approx(simulated, rel=0.01)
