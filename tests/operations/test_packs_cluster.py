"""Packed batches in a cluster, on a real API server that says what tests let it say."""

import time
from pathlib import Path

import pytest

from sweepledger.engine.cluster.kubectl import Kubectl
from sweepledger.formats import records_jsonl
from sweepledger.operations.collection.cluster_evidence import LAG_SECONDS
from sweepledger.operations.reports import wait_causes as why
from sweepledger.operations.reports.status import sweep_statuses
from sweepledger.structs.record import Record
from tests.operations.clusters import MOMENT, Cluster, Scene
from tests.operations.test_status_cluster import ready
from tests.repository import SPEC, Sandbox

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
