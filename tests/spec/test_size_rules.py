"""Sizes and shapes: what just fits and what just does not."""

from generator.structs.sweep import Shape
from tests.written_specs import axis, bad, good, messages


def test_a_grid_of_the_largest_size_is_taken_and_one_trial_more_is_not() -> None:
    assert good(parameters={"a": axis(400), "b": axis(250), "c": {"value": 1}})
    assert bad(parameters={"a": axis(400), "b": axis(251)}) == [("parameters", "too-many-trials")]
    assert messages(parameters={"a": axis(400), "b": axis(251), "c": {"value": 1}, "d": axis(1)}) == [
        "must make at most 100000 trials, got 100400 = 400 * 251"
    ]


def test_a_grid_of_any_size_is_counted_and_not_made() -> None:
    (found,) = messages(parameters={f"p{n}": axis(90) for n in range(100)})

    assert found.startswith("must make at most 100000 trials, got 2656139888758747693387813220357796")
    assert len(found) < 150


def test_jobs_are_for_up_to_a_hundred_trials_that_may_all_run_at_once() -> None:
    assert (
        good(parameters={"a": axis(100)}, run={"shape": "jobs", "parallelism": 100}).run.shape is Shape.JOBS
    )
    assert good(parameters={"a": axis(1)}, run={"shape": "jobs"})
    assert (
        good(parameters={"a": axis(101)}, run={"shape": "indexed", "parallelism": 1}).run.shape
        is Shape.INDEXED
    )
    assert messages(parameters={"a": axis(101)}, run={"shape": "jobs", "parallelism": 101}) == [
        "must be 'indexed' for more than 100 trials, got 'jobs' for 101"
    ]
    assert messages(parameters={"a": axis(100)}, run={"shape": "jobs", "parallelism": 99}) == [
        "must be 'indexed' where parallelism (99) is less than the trials (100), got 'jobs'"
    ]
    assert bad(parameters={"a": axis(2)}, run={"shape": "jobs"}) == [("run.shape", "shape-limit")]


def test_a_wrong_parallelism_says_nothing_about_the_shape() -> None:
    assert bad(run={"shape": "jobs", "parallelism": 0}) == [("run.parallelism", "out-of-range")]
