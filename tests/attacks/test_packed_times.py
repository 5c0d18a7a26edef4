"""Trials that share a pod report no time, or name pods that never were: what is charged is the time of their pod."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from sweepledger.engine.cluster import pods
from sweepledger.engine.cluster.kubectl import Kubectl
from sweepledger.engine.cluster.workloads import BatchWorkloads, Workload
from sweepledger.formats import records_jsonl
from sweepledger.formats.launch_json import LAUNCHER_PATH
from sweepledger.operations.collection.attempts import BatchAttempts
from sweepledger.operations.collection.cluster_evidence import LAG_SECONDS, PendingRecords, PodStore
from sweepledger.operations.collection.record_store import RecordStores
from sweepledger.operations.repository.costs import usage_in
from sweepledger.repo.results_volume import VolumeResults
from sweepledger.structs.kubernetes import BATCH_LABEL
from tests.operations.test_collect import leave, stored
from tests.operations.test_several_datasets import BUCKET
from tests.repository import SPEC, Sandbox, append_to

BEGIN = "2026-01-01T10:00:00Z"
ENDS = {"pod-0": "2026-01-01T10:00:30Z", "pod-1": "2026-01-01T10:00:51Z"}
ROWS = 8
Claim = Callable[[str, int], str]
"""Returns the attempt that a trial claims to be, given its pod and row."""
CLAIMS: dict[str, Claim] = {
    "its own attempt": lambda pod, row: f"{pod}-{row}",
    "a pod that never was": lambda _, row: f"pod-9-{row}",
    "a pod without a row": lambda pod, _: pod,
    "the row beside it": lambda pod, row: f"{pod}-{row + 1}",
    "the other pod": lambda pod, row: f"pod-{1 - int(pod[-1])}-{row}",
}


class EndedPods:
    """Lists the pods of a batch, as a cluster does."""

    def __init__(self, batch: str) -> None:
        self.batch = batch

    def pages(self, _path: str, _selector: str, *, fields: str) -> Iterator[list[dict[str, Any]]]:
        yield [pod(*item, self.batch) for item in enumerate(ENDS)] if fields in {"", pods.SUCCEEDED} else []


def pod(index: int, name: str, batch: str) -> dict[str, Any]:
    state = {"exitCode": 0, "reason": "Completed", "startedAt": BEGIN, "finishedAt": ENDS[name]}
    annotations = {"batch.kubernetes.io/job-completion-index": str(index)}
    variable = {"name": "SWEEP_INDEX", "value": str(index)}
    return {
        "metadata": {
            "name": name,
            "uid": name,
            "labels": {BATCH_LABEL: batch},
            "ownerReferences": [{"kind": "Job", "name": batch, "controller": True}],
            "annotations": annotations,
            "creationTimestamp": BEGIN,
        },
        "spec": {"containers": [{"name": "trial", "env": [variable], "command": ["python3", LAUNCHER_PATH]}]},
        "status": {
            "phase": "Succeeded",
            "containerStatuses": [{"name": "trial", "state": {"terminated": state}}],
        },
    }


@pytest.mark.sampled(3)
@pytest.mark.parametrize("claim", CLAIMS)
@pytest.mark.parametrize("settings", ["results: {store: volume}\n", BUCKET], ids=["volume", "bucket"])
def test_the_time_of_a_pod_is_charged(claim: str, settings: str, sandbox: Sandbox, tmp_path: Path) -> None:
    append_to(sandbox.root / "sweepledger.yaml", settings)
    sandbox.commit("Choose a store")
    xs = ", ".join(map(str, range(ROWS)))
    text = SPEC.format(name="peak", xs=xs, parallelism=4)
    sandbox.write("sweeps/peak.yaml", f"{text}  pack: {{trials: 4, at_once: 2}}\n")
    sandbox.generate()
    batch = stored(sandbox)
    for row in range(ROWS):
        leave(tmp_path, batch, row, uid=CLAIMS[claim](f"pod-{row // 4}", row), seconds=0.0)
    volume = VolumeResults(tmp_path)
    kubectl, stores = cast("Kubectl", EndedPods(batch.name)), RecordStores.all_in(volume)
    pod_store = PodStore(kubectl, "sweeps", LAG_SECONDS + 1, stores)
    is_held = batch.lock.store.facts.holds_pods
    attempts = pod_store.read(batch) if is_held else BatchAttempts.read(volume, batch, by_engine=False)
    assert len(attempts.records) == ROWS

    job = Workload(None, has_ended=True, is_complete=True, finished=0.0, is_suspended=False)
    read = pod_store.complete(attempts, BatchWorkloads((job,)))

    assert not isinstance(read, PendingRecords)
    usage = usage_in(b"".join(records_jsonl.write(read.concluded.records)))
    assert sum(one.seconds for one in usage.values()) == pytest.approx(2 * (30 + 51), abs=1)
    assert max(one.seconds for one in usage.values()) <= 51
