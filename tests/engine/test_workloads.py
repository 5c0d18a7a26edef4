"""What objects that run trials say of themselves: their end, when it came, which trials ended well."""

from typing import Any

import pytest

from generator.engine.cluster.observed import Held, Runner, indexes, runner
from generator.structs.kinds import JOB, MPI_JOB

MOMENT = "2026-01-01T00:00:00Z"


def an_object(spec: dict[str, Any] | None = None, label: str = "", **status: Any) -> dict[str, Any]:
    labels = {"sweepledger.dev/index": label} if label else {}
    return {"metadata": {"name": "a", "labels": labels}, "spec": spec or {}, "status": status}


def ends(name: str) -> list[dict[str, str]]:
    return [{"type": name, "status": "True", "lastTransitionTime": MOMENT}]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("0", [0]),
        ("0-2,5", [0, 1, 2, 5]),
        ("3-1", []),
        ("0-999999999", list(range(10))),
        ("0-99999999999999,a,-1,2", [2]),
    ],
)
def test_the_indexes_that_a_job_lists_are_read_up_to_those_that_there_are(
    text: str, found: list[int]
) -> None:
    assert list(indexes(text, 10)) == found


def test_an_indexed_job_says_which_trials_are_over_before_it_ends() -> None:
    held = Held((runner(an_object(completedIndexes="0,2", failedIndexes="3"), JOB),))

    assert (held.is_running, held.succeeded(5), held.over(5)) == (
        True,
        frozenset({0, 2}),
        frozenset({0, 2, 3}),
    )


def test_with_its_end_every_trial_of_a_job_is_over() -> None:
    held = Held((runner(an_object(conditions=ends("Failed"), completedIndexes="1"), JOB),))

    assert (held.is_over(1), held.succeeded(3), held.over(3)) == (
        True,
        frozenset({1}),
        frozenset({0, 1, 2}),
    )
    assert held.finished == 1767225600


@pytest.mark.parametrize(("name", "succeeded"), [("Succeeded", {4}), ("Failed", set())])
def test_an_object_of_one_trial_speaks_for_that_alone(name: str, succeeded: set[int]) -> None:
    held = Held(
        (runner(an_object(label="4", conditions=ends(name)), MPI_JOB), Runner(1, False, False, None, False))
    )

    assert (held.succeeded(9), held.over(9), held.is_over(2)) == (
        frozenset(succeeded),
        frozenset({4}),
        False,
    )
    assert held.over(4) == set(), "of a trial that the batch does not have it says nothing"


@pytest.mark.parametrize(
    ("manifest", "kind", "held"),
    [
        (an_object({"suspend": True}), JOB, {0, 1, 2}),
        (an_object({"suspend": True}, "1"), JOB, {1}),
        (an_object({"runPolicy": {"suspend": True}}, "2"), MPI_JOB, {2}),
        (an_object({"suspend": "yes"}), JOB, set()),
    ],
    ids=["all", "one", "another-kind", "nonsense"],
)
def test_what_is_suspended_is_told_wherever_its_kind_says_so(
    manifest: dict[str, Any], kind: Any, held: set[int]
) -> None:
    assert Held((runner(manifest, kind),)).suspended(3) == held
