"""What `sweep cluster collect --cluster` learns from pods, on a real API server that says what tests let it say."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sweepledger.formats import record_json, records_jsonl
from sweepledger.operations.collection.cluster_evidence import LAG_SECONDS
from sweepledger.operations.collection.collector import Collection
from sweepledger.structs.record import Record
from tests.engine.trial_pods import a_pod, ended
from tests.operations.clusters import ENDED_AT, IMAGE_ID, Scene

LATER = LAG_SECONDS + 1
"""After this, nothing on the volume is waited for."""


def records(scene: Scene) -> dict[str, dict[str, Any]]:
    """Give the recorded attempts as main holds them, by uid."""
    (path,) = (scene.sandbox.root / "results/peak/records").iterdir()
    results = [record for record in records_jsonl.records(path.read_bytes()) if isinstance(record, Record)]
    return {record.uid: json.loads(record_json.to_line(record)) for record in results}


def test_a_killed_attempt_has_a_row(scene: Scene) -> None:
    scene.leave(0)
    first, second, last = scene.starts(1, "a"), scene.starts(1, "b", failures=1), scene.starts(2, "c")
    scene.ended("a", 137, reason="OOMKilled")
    scene.ended("b", 137)
    scene.ended("c", 42)
    scene.over(completed="0", failed="1-2")

    assert scene.recorded(LATER) == ["ok", "oom", "diverged"]

    documents = records(scene)
    expected = {first: "oom", second: "killed", last: "bad-hyperparameters"}
    assert {uid: documents[uid]["reason"] for uid in (first, second, last)} == expected
    assert [documents[uid]["attempt"] for uid in (first, second)] == [1, 2]
    assert {documents[first]["ran"], documents[first]["seconds"]} == {IMAGE_ID, 0}


def test_a_message_replaces_a_record(scene: Scene) -> None:
    for index, code in ((0, 74), (1, 0)):
        scene.ended(f"pod-{index}", code, scene.message(index, scene.starts(index)))
    scene.over(completed="1", failed="0,2")

    assert scene.recorded(1) == ["ok", "ok", "missing"]


def test_the_cluster_knows_the_cause_of_an_end(scene: Scene) -> None:
    uids = [scene.starts(index) for index in range(3)]
    for index, reason in ((0, "signal-9"), (1, "exit-1")):
        scene.leave(index, uid=uids[index], status="failed", reason=reason, metrics={})
    output = scene.message(2, uids[2], status="failed", reason="signal-15", metrics={})
    scene.ended("pod-0", 137, reason="OOMKilled")
    scene.ended("pod-1", 1, reason="OOMKilled")
    eviction = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}
    scene.ended("pod-2", 143, output, conditions=[eviction])
    scene.over(failed="0-2")

    scene.recorded(LATER)

    assert [records(scene)[uid]["reason"] for uid in uids] == ["oom", "exit-1", "evicted"]


def test_no_trial_speaks_for_others(scene: Scene) -> None:
    zeroth, first = scene.starts(0), scene.starts(1)
    scene.ended("pod-0", 1)
    scene.ended("pod-1", 1, scene.message(0, zeroth))
    second = scene.starts(2)
    scene.ended("pod-2", 1, scene.message(2, first))
    scene.over(failed="0-2")

    assert scene.recorded(LATER) == ["failed"] * 3

    assert {uid: item["index"] for uid, item in records(scene).items()} == {zeroth: 0, first: 1, second: 2}


def test_records_may_lag_behind(scene: Scene) -> None:
    scene.leave(0, 1)
    uid = scene.starts(2, "late")
    scene.ended("late", 0)
    scene.over(completed="0-2")

    collection = scene.look(LAG_SECONDS - 1)

    assert (collection.collected, collection.stalled) == ((), ())
    assert [(pending.batch, pending.trials, pending.until) for pending in collection.pending] == [
        (scene.batch, 1, ENDED_AT + LAG_SECONDS)
    ]
    scene.leave(2, uid=uid)
    assert scene.recorded(LAG_SECONDS - 1) == ["ok", "ok", "ok"]
    assert scene.look(LATER) == Collection()


def test_the_wait_for_records_ends(scene: Scene) -> None:
    scene.leave(0)
    uid = scene.starts(1, "silent")
    scene.ended("silent", 0)
    scene.over(completed="0-2")

    assert scene.recorded(LATER) == ["ok", "failed", "missing"]
    assert records(scene)[uid]["reason"] == "no-record"


def test_pods_too_late_do_not_count(scene: Scene) -> None:
    scene.leave(0)
    scene.leave(1, status="diverged", reason="bad-hyperparameters", metrics={})
    for index, code in ((0, 0), (1, 42)):
        scene.starts(index, f"again-{index}")
        scene.ended(f"again-{index}", code)
    scene.over(completed="0", failed="1-2")

    assert scene.recorded(LATER) == ["ok", "diverged", "missing"]

    assert len(records(scene)) == 2


def test_a_job_that_goes_on_decides(scene: Scene) -> None:
    scene.leave(0, 1)
    for attempt in range(1, 5):
        scene.leave(2, uid=f"evicted-{attempt}", status="failed", reason="signal-15", metrics={})

    assert scene.look(LATER) == Collection(), "its Job tries the third again"

    scene.leave(2)
    assert scene.recorded(LATER) == ["ok", "ok", "ok"]


PROGRAM = """
import re
from pathlib import Path
from sweepledger.operations.collection.cluster_evidence import PodAccount
from sweepledger.engine.cluster import pods
from sweepledger.engine.cluster.kubectl import Kubectl
from sweepledger.engine.termination import ExpectedRecord
from tests.builders import a_lock
code = "0" * 40
expected = tuple(
    ExpectedRecord("a-b1-00000000", i, f"t{i:011x}", f"{i:064x}", code, None, 0) for i in range(10_000)
)
account = PodAccount(expected)
lock = a_lock(name="a-b1-00000000", trials=10_000)
account.add_pods(pods.batch_pods(Kubectl(), "a", lock, pods.NOT_SUCCEEDED), 0.0)
print(len(list(account.records())))
print(re.search(r"VmHWM:\\s+([0-9]+) kB", Path("/proc/self/status").read_text())[1])
"""
PADDING: dict[str, Any] = {f"f:{number}": {"f:value": {}} for number in range(30)}
"""As much as the server says of who wrote which field."""


@pytest.mark.full_suite("large inputs")
def test_ten_thousand_pods_need_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not Path("/proc/self/status").is_file():
        pytest.skip("skipped: no /proc to read the memory from")
    for first in range(0, 10_000, 100):
        documents = [a_pod(f"uid-{index}", index, state=ended(137)) for index in range(first, first + 100)]
        for pod in documents:
            pod["metadata"]["managedFields"] = [{"fieldsV1": PADDING}]
        metadata = {"continue": str(first + 100)} if first < 9_900 else {}
        (tmp_path / str(first)).write_text(json.dumps({"items": documents, "metadata": metadata}))
    fake = tmp_path / "kubectl"
    fake.write_text(
        f'#!/bin/sh\nfor last; do :; done\nnext=${{last##*continue=}}\ncd "{tmp_path}"\n'
        '[ -f "$next" ] && exec cat "$next"\nexec cat 0\n'
    )
    fake.chmod(0o755)
    monkeypatch.setenv("KUBECTL", str(fake))

    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)

    records, kibibytes = map(int, done.stdout.split())
    assert records == 10_000
    assert kibibytes < 80 * 1024
