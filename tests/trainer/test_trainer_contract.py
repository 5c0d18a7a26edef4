from pathlib import Path

import pytest

from trainer.contract import BAD_SWEEP, Surroundings, TrialError, surroundings


def test_an_empty_environment_means_the_defaults() -> None:
    assert surroundings({}) == Surroundings(seed=0, threads=1, data=None, result=None)


def test_an_empty_variable_counts_as_unset() -> None:
    empty = dict.fromkeys(("SWEEP_SEED", "OMP_NUM_THREADS", "SWEEP_DATA", "SWEEP_RESULT"), "")

    assert surroundings(empty) == Surroundings()


def test_seed_threads_and_paths_come_from_the_environment() -> None:
    given = surroundings(
        {"SWEEP_SEED": "7", "OMP_NUM_THREADS": "2", "SWEEP_DATA": "/a b", "SWEEP_RESULT": "/c.json"}
    )

    assert given == Surroundings(7, 2, Path("/a b"), Path("/c.json"))


@pytest.mark.parametrize("text", ["abc", "-1", "1.5", str(2**63), "٣", "1" * 5000])
def test_a_seed_that_is_no_seed_is_refused(text: str) -> None:
    with pytest.raises(TrialError, match="SWEEP_SEED: must be a whole number from 0 to") as caught:
        surroundings({"SWEEP_SEED": text})

    assert caught.value.exit_code == BAD_SWEEP


def test_all_bad_variables_are_told_at_once() -> None:
    with pytest.raises(TrialError) as caught:
        surroundings({"SWEEP_SEED": "x", "OMP_NUM_THREADS": "0"})

    assert [problem.place for problem in caught.value.problems] == ["SWEEP_SEED", "OMP_NUM_THREADS"]
