"""What a pod that has ended tells of its attempt; the statuses are those that a kubelet was seen to write."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweepledger.engine.cluster import pod_termination, pods
from sweepledger.engine.cluster.pods import TrialPod
from sweepledger.engine.termination import OBSERVED_REASONS, ExpectedRecord
from sweepledger.formats import record_json as record_format
from sweepledger.structs.record import Record, Status
from tests.builders import a_record
from tests.engine.trial_pods import BEGAN, ENDED, FAILURES, IMAGE_ID, INDEX, MADE, a_pod, disrupted, ended

RECORD = a_record(index=0, uid="uid-1")
ASKED = ExpectedRecord(RECORD.batch, 0, RECORD.trial, RECORD.row, RECORD.code, RECORD.data, 7)

UNKNOWN = {
    "terminated": {
        "exitCode": 137,
        "reason": "ContainerStatusUnknown",
        "message": "The container could not be located when the pod was terminated",
        "startedAt": None,
        "finishedAt": None,
    }
}
LATE = {
    "reason": "DeadlineExceeded",
    "message": "Pod was active on the node longer than the specified deadline",
}
KILLED_SIDECAR = {"initContainerStatuses": [{"name": "store", "state": ended(137)}]}
NO_IMAGE = {"containerStatuses": [{"name": "trial", "imageID": "", "state": UNKNOWN}]}
INIT = {
    "initContainerStatuses": [{"name": "code", "state": ended(3)}],
    "containerStatuses": [{"name": "trial", "state": {"waiting": {"reason": "PodInitializing"}}}],
}


def read(manifest: dict[str, Any]) -> TrialPod:
    pod = pods.parse_pod(manifest)
    assert pod is not None
    return pod


def made(manifest: dict[str, Any], attempt: int | None = None) -> Record:
    termination = pod_termination.read_termination(read(manifest))
    record = pod_termination.substitute_record(
        ASKED, replace(termination, attempt=attempt or termination.attempt)
    )
    assert record is not None
    assert record_format.read(record_format.to_line(record).encode()) == record
    return record


STATES = {
    "oom": ended(137, "OOMKilled"),
    "killed": ended(137),
    "exit-1": ended(1),
    "signal-11": ended(139),
    "signal-15": ended(143),
    "disk-full": ended(74),
    "bad-sweep": ended(43),
    "timeout": ended(124),
    "start-failed": ended(128, "StartError", "exec: no such file"),
    "image-not-pulled": {"waiting": {"reason": "ErrImagePull"}},
}
LOW = {"reason": "Evicted", "message": "low on resource: memory"}
PODS = {
    "not found": (a_pod(state=ended(127)), "start-failed"),
    "deadline heeded": (a_pod(state=ended(0, "Completed"), status=LATE), "timeout"),
    "deadline ignored": (a_pod(state=ended(137), status=LATE), "timeout"),
    "never pulled": (a_pod(status={**NO_IMAGE, **LATE}), "start-failed"),
    "init": (a_pod(status=INIT), "start-failed"),
    "kubelet eviction": (a_pod(state=ended(137), status=LOW), "evicted"),
    "no CPU is left": (a_pod(status={"reason": "OutOfcpu"}), "refused-by-node"),
    "not admitted": (a_pod(status={"reason": "UnexpectedAdmissionError"}), "refused-by-node"),
    "shutdown": (a_pod(state=ended(143), status=disrupted("TerminationByKubelet")), "evicted"),
    "API eviction": (a_pod(state=ended(143), status=disrupted("EvictionByEvictionAPI")), "evicted"),
    "preempted": (a_pod(state=ended(143), status=disrupted("PreemptionByScheduler")), "preempted"),
    "tainted": (a_pod(state=ended(143), status=disrupted("DeletionByTaintManager")), "node-lost"),
    "node deleted": (a_pod(state={"running": {}}, status=disrupted("DeletionByPodGC")), "node-lost"),
    "new disruption": (a_pod(state=ended(42), status=disrupted("SomethingNew")), "evicted"),
    "succeeded": (a_pod(state=ended(0, "Completed"), phase="Succeeded"), "no-record"),
    "sidecar killed": (a_pod(state=ended(3), status=KILLED_SIDECAR), "exit-3"),
    "no code": (a_pod(state=ended(999)), "exit-1"),
    "nonsense": (a_pod(status={"containerStatuses": 5}), "start-failed"),
    **{reason: (a_pod(state=state), reason) for reason, state in STATES.items()},
}


@pytest.mark.parametrize(("pod", "reason"), PODS.values(), ids=PODS)
def test_the_end_of_a_pod_has_a_reason(pod: dict[str, Any], reason: str) -> None:
    record = made(pod, attempt=1)

    assert (record.status, record.reason) == (Status.FAILED, reason)


def test_bad_hyperparameters_without_a_record_are_diverged() -> None:
    record = made(a_pod(state=ended(42)))

    assert (record.status, record.reason) == (Status.DIVERGED, "bad-hyperparameters")


def test_the_record_contains_all_that_the_api_reports_of_an_attempt() -> None:
    record = made(
        a_pod(state=ended(1, message="launch.json is broken\n"), annotations={INDEX: "0", FAILURES: "2"})
    )

    assert (record.uid, record.attempt, record.node, record.seed) == ("uid-1", 3, "node-1", 7)
    assert (record.started, record.finished, record.seconds) == (BEGAN, ENDED, 10)
    assert (record.ran, record.details) == (IMAGE_ID, {"said": "launch.json is broken"})
    assert (record.trial, record.row, record.code) == (RECORD.trial, RECORD.row, RECORD.code)


def test_a_container_that_never_started_ran_nothing() -> None:
    record = made(a_pod(status={**NO_IMAGE, **LATE}))

    assert (record.ran, record.started, record.seconds) == ("nothing", MADE, 0)
    assert "its container never started" in record.details["said"]


def read_message(message: str, **changes: Any) -> Record | None:
    return pod_termination.read_record(read(a_pod(state=ended(1, message=message), **changes)), ASKED)


@pytest.mark.parametrize("reason", sorted(OBSERVED_REASONS))
def test_a_message_whose_reason_no_launcher_knows_is_forged(reason: str) -> None:
    forged = replace(RECORD, status=Status.FAILED, reason=reason)

    assert read_message(record_format.to_line(forged)) is None


def test_a_termination_message_counts_for_its_own_pod() -> None:
    assert read_message(record_format.to_line(RECORD) + "\n") == RECORD


@pytest.mark.parametrize(
    "change",
    [
        {"uid": "uid-2"},
        {"index": 1},
        {"row": "0" * 64},
        {"batch": "another-b1-00000000"},
        {"trial": "t" + "f" * 11},
        {"code": "0" * 40},
        {"data": None},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_termination_message_does_not_count_for_another_pod_or_row(change: dict[str, Any]) -> None:
    assert read_message(record_format.to_line(replace(RECORD, **change))) is None


@pytest.mark.parametrize("message", ["", "{}", "[" * 5000, record_format.to_line(RECORD)[:-9], "\ud800"])
def test_a_message_that_is_not_a_record_is_kept_as_text(message: str) -> None:
    assert read_message(message) is None
    said = made(a_pod(state=ended(1, message=message))).details.get("said", "")
    assert len(said) <= pod_termination.MAX_MESSAGE_LENGTH


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.text(), children),
    max_leaves=10,
)
PLACES = [
    ("metadata", "creationTimestamp"),
    ("metadata", "annotations", INDEX),
    ("metadata", "annotations", FAILURES),
    ("metadata", "deletionTimestamp"),
    ("spec", "nodeName"),
    ("spec", "containers", 0, "env"),
    ("status",),
    ("status", "phase"),
    ("status", "reason"),
    ("status", "message"),
    ("status", "conditions"),
    ("status", "containerStatuses"),
    ("status", "containerStatuses", 0, "state"),
    ("status", "containerStatuses", 0, "imageID"),
    ("status", "containerStatuses", 0, "state", "terminated", "exitCode"),
    ("status", "containerStatuses", 0, "state", "terminated", "startedAt"),
    ("status", "containerStatuses", 0, "state", "terminated", "message"),
]


@given(st.sampled_from(PLACES), JSON)
def test_no_response_leads_to_an_invalid_record(place: tuple[Any, ...], value: Any) -> None:
    pod = json.loads(json.dumps(a_pod(state=ended(1))))
    node = pod
    for step in place[:-1]:
        node = node[step]
    node[place[-1]] = value

    result = pods.parse_pod(pod)
    if result is not None:
        result.phase(0.0)
        record = pod_termination.substitute_record(
            ASKED, replace(pod_termination.read_termination(result), attempt=1)
        )

        assert record is None or record_format.read(record_format.to_line(record).encode()) == record


def test_an_impossible_time_is_none() -> None:
    state = ended(1)
    state["terminated"] |= {"startedAt": "9999-12-31T23:59:59-14:00", "finishedAt": "1970-01-01T00:00:00Z"}

    assert (made(a_pod(state=state)).started, made(a_pod(state=state)).seconds) == (MADE, 0)
