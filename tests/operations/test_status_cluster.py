"""`sweep status --cluster`: where trials stand, by the Jobs and pods of a real API server."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from sweepledger.engine.cluster.kubectl import ClusterError, Kubectl
from sweepledger.formats import records_jsonl
from sweepledger.operations.collection.cluster_evidence import FRESH_SECONDS, LAG_SECONDS
from sweepledger.operations.reports import wait_causes as why
from sweepledger.operations.reports.status import SweepStatus, sweep_statuses
from sweepledger.structs.record import Record
from tests.operations.clusters import MOMENT, Cluster, Scene
from tests.repository import SPEC, Sandbox


def ready(status: str, containers: str) -> list[dict[str, Any]]:
    messages = {"PodScheduled": "True", "Ready": status, "ContainersReady": containers}
    return [{"type": name, "status": value, "lastTransitionTime": MOMENT} for name, value in messages.items()]


def tally(sandbox: Sandbox, after: float = 0) -> SweepStatus:
    clock = lambda: time.time() + after  # noqa: E731 - the one clock of these tests
    state = sandbox.root / ".sweepledger"
    (result,) = sweep_statuses(sandbox.workspace, state=state, kubectl=Kubectl(), clock=clock)
    return result


def counts(sandbox: Sandbox, after: float = 0) -> dict[str, int]:
    return {str(name): count for name, count in tally(sandbox, after).counts.items()}


def test_a_batch_that_is_not_applied_is_stalled_later(sandbox: Sandbox, cluster: Cluster) -> None:
    sandbox.merged()

    assert counts(sandbox) == {"pending": 3}
    assert counts(sandbox, after=FRESH_SECONDS + 60) == {"stalled": 3}
    (remark,) = tally(sandbox, after=FRESH_SECONDS + 60).remarks
    assert (remark.kind, remark.message) == ("stalled", "the cluster has 0 of its 1 Job(s)")
    assert "`sweep cancel peak" in remark.hint


def test_a_batch_that_controllers_do_not_see_is_planned(sandbox: Sandbox, cluster: Cluster) -> None:
    sandbox.merged()
    sandbox.git("push", "-q", "--force", "origin", "HEAD~1:main")
    sandbox.git("fetch", "-q", "origin")

    assert counts(sandbox) == {"planned": 3}


def test_the_trials_of_a_job_are_queued_until_it_starts_and_wait_once_it_has_ended(
    sandbox: Sandbox, cluster: Cluster
) -> None:
    batch = sandbox.merged()
    cluster.job(batch, trials=3)
    cluster.server.kubectl("patch", "job", batch, *cluster.here, "--patch", '{"spec": {"suspend": true}}')

    assert counts(sandbox) == {"queued": 3}
    cluster.server.kubectl("patch", "job", batch, *cluster.here, "--patch", '{"spec": {"suspend": false}}')
    cluster.end(batch, "Failed")
    assert counts(sandbox) == {"ended": 3}


def test_each_trial_stands_where_its_pod_is(sandbox: Sandbox, cluster: Cluster) -> None:
    batch = sandbox.merged(xs="1, 2, 3, 4, 5, 6, 7")
    cluster.job(batch, trials=7)
    cluster.say("jobs", batch, {"completedIndexes": "0", "failedIndexes": "1", "startTime": MOMENT})
    for index in (0, 1, 3, 5):
        cluster.attempt(batch, index, f"first-{index}")
    cluster.ended("first-0", 0)
    cluster.ended("first-1", 42)
    cluster.ended("first-3", 1)
    cluster.stands("first-5", "Running", conditions=ready("True", "True"))
    cluster.attempt(batch, 4, "second-4", failures=1)
    cluster.stands("second-4", "Running", conditions=ready("True", "True"))
    cluster.attempt(batch, 6, "waits")
    waiting = {"waiting": {"reason": "ImagePullBackOff"}}
    cluster.stands("waits", "Pending", waiting, conditions=ready("False", "False"))

    result = tally(sandbox)

    assert result.counts == {"ended": 2, "retrying": 2, "running": 1, "pending": 2}
    assert [(remark.kind, remark.message) for remark in result.remarks] == [
        ("waiting", "1 trial(s): image: ImagePullBackOff")
    ]


def test_trials_on_a_silent_node_are_lost(sandbox: Sandbox, cluster: Cluster) -> None:
    batch = sandbox.merged()
    cluster.job(batch, trials=3)
    cluster.attempt(batch, 0, "lost", failures=1)
    bound = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "lost"}}
    target = {"apiVersion": "v1", "kind": "Node", "name": "node-9"}
    path = f"/api/v1/namespaces/{cluster.namespace}/pods/lost/binding"
    given = json.dumps({**bound, "target": target})
    cluster.server.kubectl("create", "--raw", path, "-f", "-", given=given)
    cluster.stands("lost", "Running", conditions=ready("False", "True"))

    result = tally(sandbox)

    assert (result.counts["node lost"], result.counts["pending"]) == (1, 2)
    (remark,) = result.remarks
    assert (remark.kind, "node-9" in remark.message) == ("node lost", True)
    assert "kubectl delete node" in remark.hint
    assert "out-of-service" in remark.hint


def test_a_cluster_that_does_not_answer_is_told(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox.merged()
    monkeypatch.setenv("KUBECONFIG", str(sandbox.root / "nowhere"))

    with pytest.raises(ClusterError):
        tally(sandbox)


XS = "1, 2, 3, 4, 5"


@pytest.fixture
def scene(sandbox: Sandbox, cluster: Cluster, results: Path) -> Scene:
    """A merged batch of five trials, two in a pod, whose Job has begun."""
    text = SPEC.format(name="peak", xs=XS, parallelism=2) + "  pack: {trials: 2}\n"
    sandbox.write("sweeps/peak.yaml", text)
    sandbox.publish_batches("Ask for packs")
    made = Scene(cluster.server, cluster.namespace, sandbox, results, sandbox.batch().name)
    made.job(made.batch, trials=3)
    return made


def records(sandbox: Sandbox) -> dict[int, Record]:
    (path,) = (sandbox.root / "results/peak/records").iterdir()
    read = [record for record in records_jsonl.records(path.read_bytes()) if isinstance(record, Record)]
    return {record.index: record for record in read}


def test_records_of_rows(scene: Scene) -> None:
    uids = [scene.starts(index) for index in range(3)]
    for row in (0, 1, 2):
        scene.leave(row, uid=f"{uids[row // 2]}-{row}")
    scene.ended("pod-0", 0)
    scene.ended("pod-1", 137, reason="OOMKilled")
    scene.ended("pod-2", 1)
    scene.over(completed="0", failed="1-2")

    assert scene.recorded(LAG_SECONDS + 1) == ["ok", "ok", "ok", "oom", "failed"]

    last = records(scene.sandbox)
    assert last[3].uid == f"{uids[1]}-3"
    assert [last[row].observed for row in (0, 1, 2)] == [(MOMENT, MOMENT)] * 3, "a share of the pod's time"


def test_foreign_records(scene: Scene) -> None:
    scene.leave(*range(5))
    (scene.results / scene.batch / "2/4").rename(scene.results / scene.batch / "0/4")
    scene.over(completed="0-2")

    assert scene.recorded(LAG_SECONDS + 1)[4] == "missing"


def test_the_status_and_the_reasons_follow_the_pods(scene: Scene) -> None:
    scene.say("jobs", scene.batch, {"completedIndexes": "0", "startTime": MOMENT})
    scene.starts(1, "runs")
    scene.stands("runs", "Running", conditions=ready("True", "True"))
    workspace = scene.sandbox.workspace

    (tally,) = sweep_statuses(workspace, state=scene.sandbox.root / ".sweepledger", kubectl=Kubectl())

    assert tally.counts == {"ended": 2, "running": 2, "pending": 1}
    observer = why.BatchObserver.of(workspace, Kubectl(), time.time())
    groups = {str(group.cause.kind): group.indexes for group in observer.in_cluster(scene.sandbox.batch())}
    assert groups["running"] == (2, 3)
    assert [rows for rows in groups.values() if 4 in rows] == [(4,)]
