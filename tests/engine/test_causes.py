"""Why a trial does not run, by objects of the API as controllers, scheduler, kubelet and Kueue write them."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from sweepledger.controllers import argocd, flux
from sweepledger.engine.cluster import batch_objects, causes
from sweepledger.engine.cluster.causes import BatchObjects, CauseKind, WaitCause
from sweepledger.engine.cluster.collector_state import CollectorState, parse_collector
from sweepledger.engine.cluster.kubectl import Kubectl
from sweepledger.engine.cluster.pods import parse_pod
from sweepledger.engine.cluster.workloads import parse_workload
from sweepledger.structs.kubernetes import INDEX_LABEL, JOB
from sweepledger.structs.platform import Names
from sweepledger.structs.settings import Controller, PlatformSettings
from tests.engine.trial_pods import a_pod, ended

MOMENT = "2026-01-01T00:00:00Z"
NOW = 1767225600.0 + 30
ABSENT = WaitCause(CauseKind.NOT_SYNCED, "the controller says nothing")
NO_ADMISSION = (
    'Job/sweeps/lr-b1-1 dry-run failed (Invalid): jobs.batch "lr-b1-1" is forbidden: ValidatingAdmissionPolicy '
    "'sweeps-trials' with binding 'sweeps-trials' denied request: a trial must not use Secrets"
)
FULL = (
    'pods "lr-b1-1-0-x" is forbidden: exceeded quota: trials, requested: requests.cpu=2, used: 8, limited: 8'
)


def a_job(**changes: Any) -> dict[str, Any]:
    spec = {"parallelism": 2, "completions": 3, **changes.pop("spec", {})}
    metadata = {"name": "lr-b1-1", "namespace": "sweeps", "uid": "job", "labels": changes.pop("labels", {})}
    return {"kind": "Job", "metadata": metadata, "spec": spec, "status": changes}


def condition(type_: str, status: str, message: str = "", **more: str) -> dict[str, Any]:
    messages = {"type": type_, "status": status, "message": message, "lastTransitionTime": MOMENT, **more}
    return {"conditions": [messages]}


def waiting(reason: str, message: str = "", uid: str = "uid-1") -> dict[str, Any]:
    return a_pod(uid, phase="Pending", state={"waiting": {"reason": reason, "message": message}})


def kind_of(
    job: dict[str, Any] | None,
    *pods: dict[str, Any],
    index: int = 0,
    missing: WaitCause = ABSENT,
    collector: CollectorState | None = None,
    **more: Any,
) -> tuple[CauseKind, str, str]:
    """Return kind, text and remedy for one of three trials of a batch."""
    objects = BatchObjects(
        missing,
        [(parse_workload(job, JOB), job)] if job else [],
        [pod for pod in map(parse_pod, pods) if pod],
        **more,
    )
    collector = collector or CollectorState("sweeps-collector", 5, is_known=False)
    for group in causes.explain_batch(objects, 3, collector=collector, now=NOW):
        if index in group.indexes:
            return group.cause.kind, group.cause.text, group.cause.remedy
    raise AssertionError("every trial has a cause")


UNFIT = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu. preemption: 0/3 nodes are available"
UNLABELLED = "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector."
UNCLAIMED = '0/3 nodes are available: persistentvolumeclaim "sweep-results" not found.'
NO_IMAGE = (
    'Back-off pulling image "r.example/t@sha256:00": ErrImagePull: rpc error: code = NotFound: not found'
)
NO_ACCESS = 'failed to pull image "r.example/t": 401 Unauthorized'


def unscheduled(message: str) -> dict[str, Any]:
    return condition("PodScheduled", "False", message, reason="Unschedulable")


def unplaced(message: str) -> dict[str, Any]:
    return a_pod(phase="Pending", status=unscheduled(message))


def rows(table: Mapping[str, Sequence[object]]) -> list[Any]:
    """Return the rows of a table of tests, with their names."""
    return [pytest.param(*row, id=name) for name, row in table.items()]


DOCTOR = "sweep cluster doctor"
WAITS = {
    "no node has room": (
        CauseKind.UNSCHEDULABLE,
        "Insufficient nvidia.com/gpu",
        "run.resources",
        unplaced(UNFIT),
    ),
    "no node has the labels of the pool": (
        CauseKind.UNSCHEDULABLE,
        "node affinity",
        "`pools`",
        unplaced(UNLABELLED),
    ),
    "a claim is missing, which the scheduler says": (
        CauseKind.VOLUME,
        "sweep-results",
        DOCTOR,
        unplaced(UNCLAIMED),
    ),
    "the image is not in its registry": (
        *(CauseKind.IMAGE, "NotFound", "sweep cluster pin"),
        waiting("ImagePullBackOff", NO_IMAGE),
    ),
    "the registry refuses the nodes": (
        *(CauseKind.IMAGE, "401", "image_pull_secret"),
        waiting("ErrImagePull", NO_ACCESS),
    ),
    "a Secret is missing": (
        *(CauseKind.VOLUME, 'secret "wandb" not found', DOCTOR),
        waiting("CreateContainerConfigError", 'secret "wandb" not found'),
    ),
    "it starts": (CauseKind.STARTING, "starts", "", waiting("ContainerCreating")),
    "it runs": (CauseKind.RUNNING, "it runs", "", a_pod(phase="Running", state={})),
}


@pytest.mark.parametrize(("kind", "words", "remedy", "pod"), rows(WAITS))
def test_why_a_pod_waits(kind: CauseKind, words: str, remedy: str, pod: dict[str, Any]) -> None:
    results = kind_of(a_job(), pod)

    assert results[0] is kind
    assert words in results[1]
    assert remedy in results[2]


def test_a_volume_that_cannot_be_mounted_is_in_an_event_alone() -> None:
    kind, text, _ = kind_of(
        a_job(), waiting("ContainerCreating"), mount_failures={"uid-1": "mount failed: exit status 32"}
    )

    assert (kind, text) == (CauseKind.VOLUME, "FailedMount: mount failed: exit status 32")


def test_an_attempt_after_a_failed_one_is_a_retry_and_says_how_the_last_one_ended() -> None:
    failed = a_pod("old", state=ended(1, "Error"))
    second = a_pod("new", phase="Running", creationTimestamp="2026-01-01T00:00:20Z")
    second["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"] = "1"

    pause, again = kind_of(a_job(), failed), kind_of(a_job(), failed, second)

    last = "the last one failed: Error, exit code 1"
    assert pause[:2] == (CauseKind.RETRYING, f"the next attempt follows after a pause; {last}")
    assert again[:2] == (CauseKind.RETRYING, f"attempt 2 runs; {last}")


def test_a_pod_on_a_silent_node_is_lost() -> None:
    conditions = [
        {"type": name, "status": status, "lastTransitionTime": MOMENT}
        for name, status in (("Ready", "False"), ("ContainersReady", "True"))
    ]

    kind, text, remedy = kind_of(a_job(), a_pod(phase="Running", status={"conditions": conditions}))

    assert (kind, "node-1" in text, "kubectl delete node" in remedy) == (CauseKind.NODE_LOST, True, True)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        *((CauseKind.QUOTA, FULL), (CauseKind.REFUSED, NO_ADMISSION)),
        (CauseKind.REFUSED, "Internal error occurred"),
    ],
    ids=["the quota is used up", "an admission policy refuses the pod", "anything else that refuses it"],
)
def test_a_job_that_cannot_create_pods_says_so_in_an_event(kind: CauseKind, message: str) -> None:
    results = kind_of(a_job(), creation_failures={"lr-b1-1": message})

    assert results[:2] == (kind, message.replace('pods "lr-b1-1-0-x"', "its pod"))


REQUESTS = (
    "requested: requests.nvidia.com/gpu=2,requests.cpu=500m, used: requests.nvidia.com/gpu=1,requests.cpu=1"
)
LIMITED = "limited: requests.nvidia.com/gpu={},requests.cpu=2"
POD = 'pods "lr-b1-1-0-x" is forbidden: '
WEBHOOK = 'Error creating: admission webhook "gpu.example.org" denied the request: name your project'


TEAM = f"{POD}exceeded quota: team, {REQUESTS}"
REFUSALS = {
    "our quota": (f"{POD}exceeded quota: sweep-trials, {REQUESTS}, {LIMITED.format(2)}", "raise `max_nodes`"),
    "a quota": (f"{TEAM}, {LIMITED.format(2)}", "it starts when other trials end"),
    "its name": (f"{TEAM}, {LIMITED.format(2)}", "raise ResourceQuota team"),
    "too small": (f"{TEAM}, {LIMITED.format(1)}", "more than the whole quota"),
    "unspecified": (
        f"{POD}failed quota: team: must specify limits.cpu for: store",
        "change ResourceQuota team",
    ),
    "a limit": (f"{POD}maximum cpu usage per Container is 500m, but limit is 1", "LimitRange"),
    "a ratio": (f"{POD}cpu max limit to request ratio per Pod is 1, but provided ratio is 2.0", "LimitRange"),
    "a webhook": (WEBHOOK, "webhook gpu.example.org"),
    "a policy": (NO_ADMISSION, "`sweep cluster doctor`"),
}


@pytest.mark.parametrize(("message", "words"), rows(REFUSALS))
def test_a_refusal_has_the_way_out_that_its_rule_leaves(message: str, words: str) -> None:
    assert words in causes.creation_remedy(message)
    assert words in kind_of(a_job(), creation_failures={"lr-b1-1": message})[2]


def test_trials_beyond_the_parallelism_wait_for_their_turn_even_if_an_older_event_stands() -> None:
    pods = [a_pod("one", 0, "Running"), a_pod("two", 1, "Running")]

    assert kind_of(a_job(), *pods, index=2, creation_failures={"lr-b1-1": FULL})[0] is CauseKind.TURN
    assert kind_of(a_job(), pods[0], index=2, creation_failures={"lr-b1-1": FULL})[0] is CauseKind.QUOTA


CPU = "insufficient unused quota for cpu"
PENDING = {"name": "capacity", "state": "Pending"}
PREEMPTED = "Preempted to accommodate a higher priority Workload"
HELD_BACK = {
    "the queue is full": (
        condition("QuotaReserved", "False", f"{CPU} in flavor default", reason="Pending"),
        CPU,
    ),
    "the queue does not exist": (
        condition("QuotaReserved", "False", "LocalQueue gpu doesn't exist", reason="Inadmissible"),
        "doesn't exist",
    ),
    "another took its place": (condition("Evicted", "True", PREEMPTED), "Preempted"),
    "an admission check is pending": ({"admissionChecks": [PENDING]}, "capacity is Pending"),
    "an admission check says why it is pending": (
        condition("QuotaReserved", "True", "Quota reserved in ClusterQueue gpu")
        | {"admissionChecks": [PENDING | {"message": "no nodes yet"}]},
        "with its quota reserved: admission check capacity is Pending: no nodes yet",
    ),
    "Kueue does not know it": (None, "Kueue reports nothing"),
}


@pytest.mark.parametrize(("entry", "words"), rows(HELD_BACK))
def test_a_job_that_a_queue_holds_back_says_what_kueue_says(entry: dict[str, Any] | None, words: str) -> None:
    job = a_job(spec={"suspend": True}, labels={"kueue.x-k8s.io/queue-name": "gpu"})
    entries = {} if entry is None else {"job": {"status": entry}}

    kind, text, _ = kind_of(job, queue_entries=entries)

    assert kind is CauseKind.SUSPENDED
    assert text.startswith("it waits in queue gpu")
    assert words in text


def test_a_job_that_its_queue_has_given_up_says_how_it_waits_again() -> None:
    job = a_job(spec={"suspend": True}, labels={"kueue.x-k8s.io/queue-name": "gpu"})
    evicted = condition("Evicted", "True", "The workload is deactivated due to Admission check(s): capacity")
    entry = {"metadata": {"name": "job-lr-b1-1-0f"}, "spec": {"active": False}, "status": evicted}

    kind, text, remedy = kind_of(job, queue_entries={"job": entry})

    assert kind is CauseKind.SUSPENDED
    assert text == f"queue gpu has given it up: {evicted['conditions'][0]['message']}"
    assert "kubectl --namespace sweeps delete workload job-lr-b1-1-0f`" in remedy


def test_a_job_that_a_person_suspended_says_how_to_resume_it() -> None:
    kind, _, remedy = kind_of(a_job(spec={"suspend": True}))

    assert kind is CauseKind.SUSPENDED
    assert "kubectl --namespace sweeps patch job lr-b1-1" in remedy


def an_application(**operation: Any) -> dict[str, Any]:
    return {"status": {"operationState": operation}}


UNREADABLE = condition("ErrorOccurred", "True", "authentication required: Unauthorized")
NO_BUILD = [{"type": "ComparisonError", "message": "kustomize build failed"}]
FAILS = an_application(
    phase="Running",
    message="one or more objects failed to apply, retrying attempt #1",
    syncResult={"resources": [{"status": "SyncFailed", "message": NO_ADMISSION}]},
)
OF_ARGO_CD = {
    "Argo CD is not set up": (CauseKind.NOT_SYNCED, "no ApplicationSet", None, None),
    "it cannot read the repository": (
        *(CauseKind.NOT_SYNCED, "authentication required", None),
        {"status": UNREADABLE},
    ),
    "it has not looked yet": (CauseKind.NOT_SYNCED, "no Application", None, {}),
    "the overlay does not build": (
        *(CauseKind.NOT_SYNCED, "kustomize build"),
        *({"status": {"conditions": NO_BUILD}}, {}),
    ),
    "an admission policy refuses the Job": (CauseKind.REFUSED, "must not use Secrets", FAILS, {}),
    "it was deleted": (CauseKind.STALLED, "gone", an_application(phase="Succeeded"), {}),
    "it comes": (CauseKind.NOT_SYNCED, "not synced it yet", {}, {}),
}


@pytest.mark.parametrize(("kind", "words", "application", "application_set"), rows(OF_ARGO_CD))
def test_argo_cd_says_why_a_batch_is_not_applied(
    kind: CauseKind, words: str, application: dict[str, Any] | None, application_set: dict[str, Any] | None
) -> None:
    missing = causes.sync_cause(argocd.CONTROLLER.sync("lr-b1-1", application, application_set))

    assert kind_of(None, missing=missing)[0] is kind
    assert words in missing.text


def test_each_cluster_has_its_own_application_set(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str]] = []

    def get(_kubectl: Kubectl, kind: str, name: str, _namespace: str) -> None:
        asked.append((kind.partition(".")[0], name))

    monkeypatch.setattr(Kubectl, "get", get)
    batch_objects.read_controller_cause(
        Kubectl(), PlatformSettings(Controller.ARGOCD), Names("ml", "eu"), "lr-b1-1"
    )

    assert asked == [("applications", "lr-b1-1"), ("applicationsets", "ml-eu")]


def of_status(status: str, message: str = "") -> dict[str, Any]:
    return {"status": condition("Ready", status, message)}


READY = of_status("True")
AUTHENTICATION = of_status("False", "failed to checkout: authentication required")
OF_FLUX = {
    "Flux is not set up": (CauseKind.NOT_SYNCED, "no GitRepository", None, None, None),
    "it cannot read the repository": (
        *(CauseKind.NOT_SYNCED, "authentication required"),
        *(None, READY, AUTHENTICATION),
    ),
    "a person suspended the source": (
        *(CauseKind.NOT_SYNCED, "is suspended"),
        *(None, READY, {"spec": {"suspend": True}}),
    ),
    "not looked yet": (CauseKind.NOT_SYNCED, "made no Kustomization", None, READY, READY),
    "an admission policy refuses the Job": (
        *(CauseKind.REFUSED, "must not use Secrets"),
        *(of_status("False", NO_ADMISSION), READY, READY),
    ),
    "it is under way": (CauseKind.NOT_SYNCED, "has not finished", of_status("Unknown"), READY, READY),
    "it was deleted": (CauseKind.STALLED, "gone", READY, READY, READY),
}


@pytest.mark.parametrize(("kind", "words", "kustomization", "root", "source"), rows(OF_FLUX))
def test_flux_says_why_a_batch_is_not_applied(
    kind: CauseKind,
    words: str,
    kustomization: dict[str, Any] | None,
    root: dict[str, Any] | None,
    source: dict[str, Any] | None,
) -> None:
    missing = causes.sync_cause(flux.CONTROLLER.sync("lr-b1-1", kustomization, root, source))

    assert (missing.kind, words in missing.text) == (kind, True), missing


CRON_JOB = {
    "metadata": {"creationTimestamp": MOMENT},
    "spec": {"suspend": False},
    "status": {"lastSuccessfulTime": MOMENT},
}


def a_run(name: str, type_: str, message: str = "") -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": name}, "status": condition(type_, "True", message)}


def a_collector_pod(job: str, **status: Any) -> dict[str, Any]:
    return {"metadata": {"ownerReferences": [{"uid": job}]}, "status": status}


def the_collector(
    cron_job: dict[str, Any] | None = CRON_JOB, *parts: dict[str, Any], pod: dict[str, Any] | None = None
) -> CollectorState:
    pods = [] if pod is None else [pod]
    return parse_collector(cron_job, parts, pods, namespace="sweeps-collector", every_minutes=5)


SAID = "Cloning\nfatal: Authentication failed for 'https://git.example/sweeps.git/'\n"
CLONE_ENDED = {
    "name": "clone",
    "state": {"terminated": {"exitCode": 128, "reason": "Error", "message": SAID}},
}


REVOKED = a_collector_pod("r1", phase="Failed", initContainerStatuses=[CLONE_ENDED])
UNRECORDED = {
    "it does not exist": ("no CronJob", the_collector(None)),
    "it is suspended": ("suspended", the_collector({"spec": {"suspend": True}})),
    "its credential was revoked": (
        "container clone: fatal: Authentication failed",
        the_collector(
            CRON_JOB, a_run("r1", "Failed", "Job has reached the specified backoff limit"), pod=REVOKED
        ),
    ),
    "its pod is gone, and the Job says why": (
        "longer than specified deadline",
        the_collector(CRON_JOB, a_run("r1", "Failed", "Job was active longer than specified deadline")),
    ),
    "no node has room for it": (
        UNFIT,
        the_collector(pod=a_collector_pod("r1", phase="Pending", **unscheduled(UNFIT))),
    ),
    "it never ran": (
        "for 3 runs, and has not succeeded yet",
        the_collector({"metadata": {"creationTimestamp": "2025-12-31T23:00:00Z"}, "spec": {}}),
    ),
}


@pytest.mark.parametrize(("words", "collector"), rows(UNRECORDED))
def test_why_an_ended_trial_is_not_recorded(words: str, collector: CollectorState) -> None:
    kind, text, remedy = kind_of(a_job(completedIndexes="0"), collector=collector)

    assert (kind, words in text, bool(remedy)) == (CauseKind.COLLECTOR_FAILING, True, True), text


def test_a_trial_that_ended_a_moment_ago_waits_for_the_next_run_of_the_collector() -> None:
    collector = the_collector(CRON_JOB, a_run("r1", "Complete"))

    results = kind_of(a_job(completedIndexes="0-1"), index=1, collector=collector)

    assert results == (
        CauseKind.COLLECTOR_DUE,
        "it has ended; the collector runs every 5 minutes, and last succeeded 0 min ago",
        "",
    )


QUEUED = {"kueue.x-k8s.io/queue-name": "gpu"}
BOTH = {"failedIndexes": "1", "completedIndexes": "0"}
KEEPS = "; until the batch ends, failed trials keep the quota of 1 pod(s) in queue gpu"


@pytest.mark.parametrize(
    ("index", "keeps", "job"),
    [
        pytest.param(1, True, BOTH, id="it failed, and one runs"),
        pytest.param(0, False, BOTH, id="it succeeded"),
        pytest.param(1, False, {"failedIndexes": "1"}, id="two others have its place"),
        pytest.param(1, False, {**BOTH, "labels": {}}, id="no queue"),
        pytest.param(1, False, {**BOTH, "completedIndexes": "0,2", **condition("Failed", "True")}, id="end"),
    ],
)
def test_a_failed_trial_keeps_its_quota(index: int, *, keeps: bool, job: dict[str, Any]) -> None:
    made = a_job(**{"labels": QUEUED, **job})

    _, text, _ = kind_of(made, index=index, collector=the_collector())

    assert (KEEPS in text) is keeps


@pytest.mark.parametrize(
    ("says", "job", "codes", "limit"),
    [
        pytest.param(True, {"failedIndexes": "0-2"}, {0: 1, 1: 1, 2: 1}, 3, id="all failed"),
        pytest.param(True, {"failedIndexes": "0,2"}, {2: 1}, 2, id="as many as the setting says"),
        pytest.param(False, {"failedIndexes": "0-1"}, {0: 1, 1: 1}, 3, id="too few"),
        pytest.param(False, {"failedIndexes": "0-1", "completedIndexes": "2"}, {1: 1}, 2, id="a success"),
        pytest.param(False, {"failedIndexes": "0-2"}, {0: 1, 1: 42, 2: 1}, 3, id="a divergence"),
        pytest.param(False, {"failedIndexes": "0-2"}, {0: 1, 1: 1, 2: 1}, 0, id="switched off"),
    ],
)
def test_many_failures(job: dict[str, Any], codes: dict[int, int], limit: int, *, says: bool) -> None:
    made = a_job(**job)
    pods = (a_pod(f"uid-{index}", index, state=ended(code)) for index, code in codes.items())
    objects = BatchObjects(
        ABSENT, [(parse_workload(made, JOB), made)], [pod for pod in map(parse_pod, pods) if pod]
    )

    groups = causes.explain_batch(objects, 3, collector=the_collector(), now=NOW, limit=limit)

    failed = [group for group in groups if group.cause.kind is CauseKind.FAILED]
    assert bool(failed) is says
    for group in failed:
        assert f"{len(group.indexes)} trials of the batch failed and none is ok" in group.cause.text
        assert "the last one failed: Error, exit code 1" in group.cause.text


@pytest.mark.parametrize(("conditions", "says"), [(("Failed",) * 3, True), (("Failed", "Complete"), False)])
def test_jobs_of_single_trials_that_all_failed_say_so(conditions: Sequence[str], *, says: bool) -> None:
    jobs = [
        a_job(labels={INDEX_LABEL: str(index)}, **condition(end, "True"))
        for index, end in enumerate(conditions)
    ]
    objects = BatchObjects(ABSENT, [(parse_workload(job, JOB), job) for job in jobs])

    groups = causes.explain_batch(objects, 3, collector=the_collector(), now=NOW, limit=1 + says)

    assert any(group.cause.kind is CauseKind.FAILED for group in groups) is says


def test_trials_with_one_cause_are_one_group() -> None:
    job = a_job(completedIndexes="2")
    objects = BatchObjects(ABSENT, [(parse_workload(job, JOB), job)])

    groups = causes.explain_batch(objects, 3, collector=the_collector(), now=NOW)

    assert [group.indexes for group in groups] == [(0, 1), (2,)]


def test_a_message_of_the_cluster_is_one_line_without_control_characters_and_not_long() -> None:
    message = causes.shorten("denied\n\x1b[31mred " + "x" * 1000)

    assert "\n" not in message
    assert "\x1b" not in message
    assert len(message) <= causes.MAX_MESSAGE + 1
