"""What `sweep cluster collect --cluster` learns from pods, on a real API server that says what tests let it say."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sweepledger.commands.collection.cluster_evidence import LAG_SECONDS
from sweepledger.commands.collection.collector import Collection
from sweepledger.formats import record_json, records_jsonl
from sweepledger.structs.record import Record
from tests.commands.clusters import ENDED_AT, IMAGE_ID, Cluster, Look
from tests.commands.test_collect import leave, recorded, stored
from tests.engine.trial_pods import a_pod, ended
from tests.repository import Sandbox


@pytest.fixture
def look(look_at_cluster: Look) -> Look:
    """Collect so long after the end of every Job and pod."""
    return lambda after=LAG_SECONDS + 1: look_at_cluster(lambda: ENDED_AT + after)


def message(tmp_path: Path, sandbox: Sandbox, index: int, uid: str, **changes: object) -> str:
    """Give the record of an attempt as its launcher leaves it with the node."""
    return leave(tmp_path / "elsewhere", stored(sandbox), index, uid=uid, **changes).read_text()


def records(sandbox: Sandbox) -> dict[str, dict[str, Any]]:
    """Give the recorded attempts as main holds them, by uid."""
    (path,) = (sandbox.root / "results/peak/records").iterdir()
    results = [record for record in records_jsonl.records(path.read_bytes()) if isinstance(record, Record)]
    return {record.uid: json.loads(record_json.to_line(record)) for record in results}


def test_a_killed_attempt_has_a_row(sandbox: Sandbox, cluster: Cluster, results: Path, look: Look) -> None:
    batch = sandbox.merged()
    leave(results, stored(sandbox), 0)
    cluster.job(batch, trials=3)
    first = cluster.attempt(batch, 1, "a")
    second = cluster.attempt(batch, 1, "b", failures=1)
    last = cluster.attempt(batch, 2, "c")
    cluster.ended("a", 137, reason="OOMKilled")
    cluster.ended("b", 137)
    cluster.ended("c", 42)
    cluster.end(batch, "Failed", completedIndexes="0", failedIndexes="1-2")

    assert recorded(sandbox, look().collected) == {"0": "ok", "1": "oom", "2": "diverged"}

    documents = records(sandbox)
    expected = {first: "oom", second: "killed", last: "bad-hyperparameters"}
    assert {uid: documents[uid]["reason"] for uid in (first, second, last)} == expected
    assert [documents[uid]["attempt"] for uid in (first, second)] == [1, 2]
    assert {documents[first]["ran"], documents[first]["seconds"]} == {IMAGE_ID, 0}


def test_a_message_replaces_a_record(sandbox: Sandbox, cluster: Cluster, look: Look, tmp_path: Path) -> None:
    batch = sandbox.merged()
    cluster.job(batch, trials=3)
    for index, code in ((0, 74), (1, 0)):
        uid = cluster.attempt(batch, index, f"pod-{index}")
        cluster.ended(f"pod-{index}", code, message(tmp_path, sandbox, index, uid))
    cluster.end(batch, "Failed", completedIndexes="1", failedIndexes="0,2")

    assert recorded(sandbox, look(after=1).collected) == {"0": "ok", "1": "ok", "2": "missing"}


def test_cause_of_end(sandbox: Sandbox, cluster: Cluster, results: Path, look: Look, tmp_path: Path) -> None:
    batch = sandbox.merged()
    cluster.job(batch, trials=3)
    uids = [cluster.attempt(batch, index, f"pod-{index}") for index in range(3)]
    for index, reason in ((0, "signal-9"), (1, "exit-1")):
        leave(results, stored(sandbox), index, uid=uids[index], status="failed", reason=reason, metrics={})
    output = message(tmp_path, sandbox, 2, uids[2], status="failed", reason="signal-15", metrics={})
    cluster.ended("pod-0", 137, reason="OOMKilled")
    cluster.ended("pod-1", 1, reason="OOMKilled")
    eviction = {"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}
    cluster.ended("pod-2", 143, output, conditions=[eviction])
    cluster.end(batch, "Failed", failedIndexes="0-2")

    recorded(sandbox, look().collected)

    documents = records(sandbox)
    assert [documents[uid]["reason"] for uid in uids] == ["oom", "exit-1", "evicted"]


def test_anothers_pod_hides_nothing(sandbox: Sandbox, cluster: Cluster, results: Path, look: Look) -> None:
    batch = sandbox.merged()
    cluster.job(batch, trials=3)
    uid = cluster.attempt(batch, 0, "killed")
    cluster.ended("killed", 137)
    leave(results, stored(sandbox), 1, uid=uid)
    cluster.end(batch, "Failed", completedIndexes="1", failedIndexes="0,2")

    assert recorded(sandbox, look().collected) == {"0": "failed", "1": "ok", "2": "missing"}


def test_no_trial_speaks_for_others(sandbox: Sandbox, cluster: Cluster, look: Look, tmp_path: Path) -> None:
    batch = sandbox.merged()
    cluster.job(batch, trials=3)
    zeroth, first = (cluster.attempt(batch, index, f"pod-{index}") for index in (0, 1))
    cluster.ended("pod-0", 1)
    cluster.ended("pod-1", 1, message(tmp_path, sandbox, 0, zeroth))
    second = cluster.attempt(batch, 2, "pod-2")
    cluster.ended("pod-2", 1, message(tmp_path, sandbox, 2, first))
    cluster.end(batch, "Failed", failedIndexes="0-2")

    assert set(recorded(sandbox, look().collected).values()) == {"failed"}

    assert {uid: item["index"] for uid, item in records(sandbox).items()} == {zeroth: 0, first: 1, second: 2}


def test_records_may_lag_behind(sandbox: Sandbox, cluster: Cluster, results: Path, look: Look) -> None:
    batch = sandbox.merged()
    leave(results, stored(sandbox), 0)
    leave(results, stored(sandbox), 1)
    cluster.job(batch, trials=3)
    uid = cluster.attempt(batch, 2, "late")
    cluster.ended("late", 0)
    cluster.end(batch, "Complete", completedIndexes="0-2", succeeded=3)

    collection = look(after=LAG_SECONDS - 1)

    assert (collection.collected, collection.stalled) == ((), ())
    assert [(pending.batch, pending.trials, pending.until) for pending in collection.pending] == [
        (batch, 1, ENDED_AT + LAG_SECONDS)
    ]
    leave(results, stored(sandbox), 2, uid=uid)
    assert recorded(sandbox, look(after=LAG_SECONDS - 1).collected) == {"0": "ok", "1": "ok", "2": "ok"}
    assert look() == Collection()


def test_the_wait_for_records_ends(sandbox: Sandbox, cluster: Cluster, results: Path, look: Look) -> None:
    batch = sandbox.merged()
    leave(results, stored(sandbox), 0)
    cluster.job(batch, trials=3)
    uid = cluster.attempt(batch, 1, "silent")
    cluster.ended("silent", 0)
    cluster.end(batch, "Complete", completedIndexes="0-2", succeeded=3)

    assert recorded(sandbox, look().collected) == {"0": "ok", "1": "failed", "2": "missing"}
    assert records(sandbox)[uid]["reason"] == "no-record"


def test_a_late_pod_is_waited_for(sandbox: Sandbox, cluster: Cluster, results: Path, look: Look) -> None:
    batch = sandbox.merged()
    leave(results, stored(sandbox), 0)
    cluster.job(batch, trials=3)
    cluster.attempt(batch, 1, "ending")
    cluster.stands("ending", "Running")
    cluster.end(batch, "Failed", completedIndexes="0", failedIndexes="1-2")

    assert [(pending.trials, pending.pods) for pending in look(after=1).pending] == [(0, 1)]

    assert recorded(sandbox, look().collected) == {"0": "ok", "1": "missing", "2": "missing"}


def test_pods_too_late_do_not_count(sandbox: Sandbox, cluster: Cluster, results: Path, look: Look) -> None:
    batch = sandbox.merged()
    leave(results, stored(sandbox), 0)
    leave(results, stored(sandbox), 1, status="diverged", reason="bad-hyperparameters", metrics={})
    cluster.job(batch, trials=3)
    for index, code in ((0, 0), (1, 42)):
        cluster.attempt(batch, index, f"again-{index}")
        cluster.ended(f"again-{index}", code)
    cluster.end(batch, "Failed", completedIndexes="0", failedIndexes="1-2")

    assert recorded(sandbox, look().collected) == {"0": "ok", "1": "diverged", "2": "missing"}

    assert len(records(sandbox)) == 2


def test_attempts_count_by_age(sandbox: Sandbox, cluster: Cluster, results: Path, look: Look) -> None:
    batch = sandbox.merged(parallelism=3)
    leave(results, stored(sandbox), 1, status="failed", reason="exit-1", metrics={})
    for index in range(3):
        cluster.job_of_trial(batch, index)
        cluster.end(f"{batch}-{index}", "Failed")
    variables = {"SWEEP_INDEX": "1"}
    uid = cluster.attempt(batch, 0, "second", numbered=False, variables=variables)
    cluster.ended("second", 137, reason="OOMKilled")

    recorded(sandbox, look().collected)

    assert [(record["uid"], record["attempt"], record["index"]) for record in records(sandbox).values()] == [
        ("uid-1", 1, 1),
        (uid, 2, 1),
    ]


def test_a_job_that_goes_on_decides(sandbox: Sandbox, cluster: Cluster, results: Path, look: Look) -> None:
    batch = sandbox.merged()
    leave(results, stored(sandbox), 0)
    leave(results, stored(sandbox), 1)
    for attempt in range(1, 5):
        uid = f"evicted-{attempt}"
        leave(results, stored(sandbox), 2, uid=uid, status="failed", reason="signal-15", metrics={})
    cluster.job(batch, trials=3)

    assert look() == Collection(), "its Job tries the third again"

    leave(results, stored(sandbox), 2)
    assert recorded(sandbox, look().collected) == {"0": "ok", "1": "ok", "2": "ok"}


PROGRAM = """
import re
from pathlib import Path
from sweepledger.commands.collection.cluster_evidence import PodAccount
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
