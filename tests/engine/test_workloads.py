"""What objects that run trials say of themselves: their end, when it came, which trials ended well."""

from typing import Any

import pytest

from sweepledger.engine.cluster.workloads import BatchWorkloads, Workload, parse_workload
from sweepledger.formats.pack_digest import parse_indexes
from sweepledger.structs.kubernetes import JOB
from sweepledger.structs.run_config import Shape

MOMENT = "2026-01-01T00:00:00Z"


def an_object(spec: dict[str, Any] | None = None, label: str = "", **status: Any) -> dict[str, Any]:
    labels = {"sweepledger.dev/index": label} if label else {}
    return {"metadata": {"name": "a", "labels": labels}, "spec": spec or {}, "status": status}


def ends(name: str) -> list[dict[str, str]]:
    return [{"type": name, "status": "True", "lastTransitionTime": MOMENT}]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("", []),
        ("0", [0]),
        ("0-2,5", [0, 1, 2, 5]),
        ("3-1", []),
        ("0-999999999", list(range(10))),
        ("0-99999999999999,a,-1,2", [2]),
    ],
)
def test_indexes_beyond_the_table_are_ignored(text: str, values: list[int]) -> None:
    assert list(parse_indexes(text, 10)) == values


def test_a_running_indexed_job_lists_its_ended_trials() -> None:
    held = BatchWorkloads((parse_workload(an_object(completedIndexes="0,2", failedIndexes="3"), JOB),))

    assert held.is_running
    assert (held.succeeded(5), held.ended(5)) == (frozenset({0, 2}), frozenset({0, 2, 3}))


def test_with_the_job_all_its_trials_have_ended() -> None:
    held = BatchWorkloads((parse_workload(an_object(conditions=ends("Failed"), completedIndexes="1"), JOB),))

    assert held.have_ended(1)
    assert (held.succeeded(3), held.ended(3)) == (frozenset({1}), frozenset({0, 1, 2}))
    assert held.finished == 1767225600


@pytest.mark.parametrize(("name", "succeeded"), [("Succeeded", frozenset({4})), ("Failed", frozenset())])
def test_a_workload_with_one_trial_counts_for_that_trial_only(name: str, succeeded: frozenset[int]) -> None:
    labelled = parse_workload(an_object(label="4", conditions=ends(name)), Shape.MPI_JOB.kind)

    held = BatchWorkloads((labelled, Workload(1, False, False, None, False)))

    assert (held.succeeded(9), held.ended(9), held.have_ended(2)) == (succeeded, frozenset({4}), False)
    assert held.ended(4) == set(), "of a trial that the batch does not have it says nothing"


@pytest.mark.parametrize(
    ("manifest", "kind", "held"),
    [
        (an_object({"suspend": True}), JOB, {0, 1, 2}),
        (an_object({"suspend": True}, "1"), JOB, {1}),
        (an_object({"runPolicy": {"suspend": True}}, "2"), Shape.MPI_JOB.kind, {2}),
        (an_object({"suspend": "yes"}), JOB, set()),
    ],
    ids=["all", "one", "another-kind", "nonsense"],
)
def test_suspension_is_read_by_kind(manifest: dict[str, Any], kind: Any, held: set[int]) -> None:
    assert BatchWorkloads((parse_workload(manifest, kind),)).suspended(3) == held
