"""A pool as a queue of trials: what must hold of every schedule, whatever the trials take."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.plan.simulation import Line, Room, State, end, places, simulate, state

SECONDS = st.lists(st.floats(0.125, 1000, allow_nan=False, width=16), min_size=1, max_size=40)
AT_ONCE = st.integers(1, 12)
ROOMS = st.builds(
    lambda units, warm, startup: Room(units, min(warm, units), float(startup)),
    st.integers(1, 30),
    st.integers(0, 30),
    st.integers(0, 600),
)


ENDLESS = Room()


def alone(seconds: list[float], at_once: int, room: Room = ENDLESS) -> tuple[tuple[float, float], ...]:
    (spans,) = simulate([Line(seconds, at_once)], room)
    return spans


def flat(spans: tuple[tuple[float, float], ...]) -> list[float]:
    return [moment for span in spans for moment in span]


@given(SECONDS, AT_ONCE)
def test_the_makespan_lies_within_grahams_bounds(seconds: list[float], at_once: int) -> None:
    found = end(alone(seconds, at_once))

    total, longest = sum(seconds), max(seconds)
    assert found >= max(longest, total / at_once) - 1e-6
    assert found <= total / at_once + longest * (1 - 1 / at_once) + 1e-6


@given(SECONDS, AT_ONCE)
def test_one_more_at_once_never_takes_longer(seconds: list[float], at_once: int) -> None:
    assert end(alone(seconds, at_once + 1)) <= end(alone(seconds, at_once)) + 1e-6


@given(SECONDS, AT_ONCE, st.data())
def test_a_trial_that_takes_longer_never_ends_the_whole_sooner(
    seconds: list[float], at_once: int, data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(seconds) - 1))
    longer = [one + (at == place) for at, one in enumerate(seconds)]

    assert end(alone(longer, at_once)) >= end(alone(seconds, at_once)) - 1e-6


@given(SECONDS, AT_ONCE, ROOMS, st.integers(1, 4))
def test_no_more_run_at_once_than_may_and_than_there_is_room_for(
    seconds: list[float], at_once: int, room: Room, units: int
) -> None:
    line = Line(seconds, at_once, units)
    (spans,) = simulate([line], room)

    for start, _ in spans:
        if start < inf:
            assert state(spans, start).running <= min(at_once, (room.units or 0) // units)


@given(SECONDS, AT_ONCE, ROOMS, st.integers(1, 4))
def test_trials_start_in_their_order_and_hold_their_place_as_long_as_they_take(
    seconds: list[float], at_once: int, room: Room, units: int
) -> None:
    (spans,) = simulate([Line(seconds, at_once, units)], room)

    starts = [start for start, _ in spans]
    assert starts == sorted(starts)
    if places(Line(seconds, at_once, units), room):
        assert [one - start for start, one in spans] == pytest.approx(seconds)


@given(SECONDS, AT_ONCE, ROOMS, st.integers(1, 4))
def test_a_line_alone_is_a_line_among_empty_ones(
    seconds: list[float], at_once: int, room: Room, units: int
) -> None:
    line = Line(seconds, at_once, units)

    (quick,) = simulate([line], room)
    slow, _ = simulate([line, Line([], 1)], room)

    assert [start for start, _ in quick] == pytest.approx([start for start, _ in slow])


@given(SECONDS, SECONDS, AT_ONCE, AT_ONCE, ROOMS)
def test_those_ahead_are_not_held_up_by_those_behind(
    first: list[float], second: list[float], one: int, other: int, room: Room
) -> None:
    (before,) = simulate([Line(first, one)], room)
    after, behind = simulate([Line(first, one), Line(second, other)], room)

    assert flat(after) == pytest.approx(flat(before))
    assert end(behind) >= end(alone(second, other, room)) - 1e-6


@given(SECONDS, AT_ONCE, ROOMS, st.floats(0, 2000))
def test_every_trial_stands_somewhere_at_every_moment(
    seconds: list[float], at_once: int, room: Room, moment: float
) -> None:
    found = state(alone(seconds, at_once, room), moment)

    assert found.ended + found.running + found.waiting == len(seconds)


def test_nothing_starts_before_the_nodes_are_there() -> None:
    assert alone([10, 10], 2, Room(2, startup=300)) == ((300, 310), (300, 310))
    assert alone([10, 10], 2, Room(None, startup=60)) == ((60, 70), (60, 70))


def test_what_runs_already_keeps_nodes_warm() -> None:
    assert alone([10, 10], 2, Room(2, warm=1, startup=300)) == ((0, 10), (10, 20))


def test_a_trial_that_no_node_can_bear_never_starts() -> None:
    assert alone(
        [10, 10],
        2,
        Room(1, warm=1),
    ) == ((0, 10), (10, 20))
    (spans,) = simulate([Line([10], 1, units=2)], Room(1))
    assert spans == ((inf, inf),)
    _, spans = simulate([Line([10], 1), Line([10], 1, units=2)], Room(1))
    assert spans == ((inf, inf),)


# What NVIDIA published of its sixteen trials: seconds by job, as its notebook read them.

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


def test_the_published_grid_on_three_gpus_takes_as_long_as_its_sixteen_times_say() -> None:
    published = [PUBLISHED[job] for job in CREATED]
    expected = [BY_BATCH_SIZE[batch_size(job)] for job in CREATED]

    assert sum(published) == pytest.approx(1537.7, abs=0.1)
    played, planned = end(alone(published, 3)), end(alone(expected, 3))
    # Nine minutes, where a third of the work would be eight and a half.
    assert played == pytest.approx(543.5, abs=0.1)
    assert planned == pytest.approx(played, rel=0.01)


def test_the_published_snapshot_of_four_ended_four_running_and_eight_pending_is_a_state_of_it() -> None:
    # Two minutes after they were created, with a GPU for each of four: three cannot run four.
    spans = alone([PUBLISHED[job] for job in CREATED], 4)

    assert state(spans, 120) == State(ended=4, running=4, waiting=8)
    ended = {job for job, (_, done) in zip(CREATED, spans, strict=True) if done <= 120}
    assert ended == {1, 10, 11, 12}
