"""Packed batches in a cluster, on a real API server that says what tests let it say."""

import time
from pathlib import Path

import pytest

from sweepledger.commands.collection.cluster_evidence import LAG_SECONDS
from sweepledger.commands.reports import wait_causes as why
from sweepledger.commands.reports.status import sweep_statuses
from sweepledger.engine.cluster.kubectl import Kubectl
from sweepledger.formats import records_jsonl
from sweepledger.structs.record import Record
from tests.commands.clusters import ENDED_AT, MOMENT, Cluster, Look
from tests.commands.test_collect import leave, recorded, stored
from tests.commands.test_status_cluster import ready
from tests.repository import SPEC, Sandbox

XS = "1, 2, 3, 4, 5"


@pytest.fixture
def batch(sandbox: Sandbox) -> str:
    """A merged batch of five trials, two in a pod."""
    text = SPEC.format(name="peak", xs=XS, parallelism=2) + "  pack: {trials: 2}\n"
    sandbox.write("sweeps/peak.yaml", text)
    sandbox.publish_batches("Ask for packs")
    return stored(sandbox).name


@pytest.fixture
def look(look_at_cluster: Look) -> Look:
    return lambda after=LAG_SECONDS + 1: look_at_cluster(lambda: ENDED_AT + after)


def records(sandbox: Sandbox) -> dict[int, Record]:
    (path,) = (sandbox.root / "results/peak/records").iterdir()
    read = [record for record in records_jsonl.records(path.read_bytes()) if isinstance(record, Record)]
    return {record.index: record for record in read}


def test_records_of_rows(sandbox: Sandbox, cluster: Cluster, results: Path, look: Look, batch: str) -> None:
    cluster.job(batch, trials=3)
    uids = [cluster.attempt(batch, index, f"pod-{index}") for index in range(3)]
    for row in (0, 1, 2):
        leave(results, stored(sandbox), row, uid=f"{uids[row // 2]}-{row}")
    cluster.ended("pod-0", 0)
    cluster.ended("pod-1", 137, reason="OOMKilled")
    cluster.ended("pod-2", 1)
    cluster.end(batch, "Failed", completedIndexes="0", failedIndexes="1-2")

    found = recorded(sandbox, look().collected)

    assert found == {"0": "ok", "1": "ok", "2": "ok", "3": "oom", "4": "failed"}
    last = records(sandbox)
    assert last[3].uid == f"{uids[1]}-3"
    assert [last[row].observed for row in (0, 1, 2)] == [(MOMENT, MOMENT)] * 3, (
        "a share of the time of the pod"
    )


def test_foreign_records(sandbox: Sandbox, cluster: Cluster, results: Path, look: Look, batch: str) -> None:
    cluster.job(batch, trials=3)
    for row in range(5):
        leave(results, stored(sandbox), row)
    own = results / batch / "2/4"
    own.rename(results / batch / "0/4")
    cluster.end(batch, "Complete", completedIndexes="0-2")

    assert recorded(sandbox, look().collected)["4"] == "missing"


def test_late_records(sandbox: Sandbox, cluster: Cluster, results: Path, look: Look, batch: str) -> None:
    cluster.job(batch, trials=3)
    leave(results, stored(sandbox), 0)
    cluster.end(batch, "Complete", completedIndexes="0-2")

    (pending,) = look(after=1).pending

    assert (pending.batch, pending.trials) == (batch, 4)


def test_the_status_and_the_reasons_follow_the_pods(sandbox: Sandbox, cluster: Cluster, batch: str) -> None:
    cluster.job(batch, trials=3)
    cluster.say("jobs", batch, {"completedIndexes": "0", "startTime": MOMENT})
    cluster.attempt(batch, 1, "runs")
    cluster.stands("runs", "Running", conditions=ready("True", "True"))

    (tally,) = sweep_statuses(
        sandbox.workspace, state=sandbox.root / ".sweepledger", kubectl=Kubectl(), clock=time.time
    )

    assert tally.counts == {"ended": 2, "running": 2, "pending": 1}
    observer = why.BatchObserver.of(sandbox.workspace, Kubectl(), time.time())
    groups = {str(group.cause.kind): group.indexes for group in observer.in_cluster(stored(sandbox))}
    assert groups["running"] == (2, 3)
    assert [rows for rows in groups.values() if 4 in rows] == [(4,)]
