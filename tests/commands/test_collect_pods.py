"""`results.store: api`: records come from pods of a real API server, which are held until git has what they say."""

from pathlib import Path
from typing import Any

import pytest

from sweepledger.commands.collection import pod_store
from sweepledger.commands.collection.results_commit import ResultsCommit
from sweepledger.engine.cluster import pods
from sweepledger.engine.cluster.kubectl import Kubectl
from sweepledger.structs.settings import ResultsStore
from tests.commands.clusters import ENDED_AT, Cluster, Look
from tests.commands.test_collect import column, leave, recorded, stored
from tests.repository import Sandbox, append_to

FINALIZERS = ["sweepledger.dev/record"]


@pytest.fixture
def look(look_at_cluster: Look) -> Look:
    """Collect so long after the end of every Job and pod."""
    return lambda after=1: look_at_cluster(lambda: ENDED_AT + after)


@pytest.fixture
def batch(sandbox: Sandbox, cluster: Cluster) -> str:
    """A merged batch of three trials whose records are in pods."""
    append_to(sandbox.root / "sweepledger.yaml", "results: {store: api}\n")
    sandbox.commit("Keep records in pods")
    name = sandbox.merged()
    assert stored(sandbox).lock.store is ResultsStore.API
    return name


def attempt(
    cluster: Cluster,
    sandbox: Sandbox,
    tmp_path: Path,
    index: int,
    name: str = "",
    code: int = 0,
    **changes: Any,
) -> str:
    """Make a held pod that has ended with a record; give its uid."""
    name = name or f"pod-{index}"
    uid = cluster.attempt(stored(sandbox).name, index, name, finalizers=FINALIZERS)
    text = leave(tmp_path / "elsewhere", stored(sandbox), index, uid=uid, **changes).read_text()
    cluster.ended(name, code, text)
    return uid


def held(cluster: Cluster) -> list[str]:
    listed = pods.held_pods(Kubectl(), cluster.namespace)
    return sorted(manifest["metadata"]["name"] for manifest in listed)


def test_push_frees_pods(sandbox: Sandbox, cluster: Cluster, batch: str, look: Look, tmp_path: Path) -> None:
    cluster.job(batch, trials=3)
    for index in range(3):
        attempt(cluster, sandbox, tmp_path, index)
    assert look().collected == (), "the Job goes on"
    assert held(cluster) == ["pod-0", "pod-1", "pod-2"]
    cluster.end(batch, "Complete", completedIndexes="0-2")

    assert recorded(sandbox, look().collected) == {"0": "ok", "1": "ok", "2": "ok"}
    assert held(cluster) == []
    assert look().collected == ()


def test_one_attempt_wins(sandbox: Sandbox, cluster: Cluster, batch: str, look: Look, tmp_path: Path) -> None:
    cluster.job(batch, trials=3)
    attempt(cluster, sandbox, tmp_path, 0, "a", 1, status="failed", reason="exit-1", metrics={})
    attempt(cluster, sandbox, tmp_path, 0, "b", attempt=2)
    attempt(cluster, sandbox, tmp_path, 0, "c", attempt=3, metrics={"score": 9.0})
    uid = cluster.attempt(batch, 1, "killed", finalizers=FINALIZERS)
    cluster.ended("killed", 137, reason="OOMKilled")
    forged = leave(tmp_path / "elsewhere", stored(sandbox), 2, uid=uid).read_text()
    cluster.attempt(batch, 2, "forger", finalizers=FINALIZERS)
    cluster.ended("forger", 1, forged)
    cluster.end(batch, "Failed", completedIndexes="0", failedIndexes="1-2")

    assert recorded(sandbox, look().collected) == {"0": "ok", "1": "oom", "2": "failed"}
    assert column(sandbox, "metrics.score")[0] == "0"
    assert held(cluster) == []


def test_a_deleted_pod(sandbox: Sandbox, cluster: Cluster, batch: str, look: Look, tmp_path: Path) -> None:
    cluster.job(batch, trials=3)
    for index in range(3):
        attempt(cluster, sandbox, tmp_path, index)
    cluster.server.kubectl("delete", "pod", "pod-1", *cluster.here, "--wait=false", "--force")
    cluster.end(batch, "Complete", completedIndexes="0-2")

    assert recorded(sandbox, look().collected) == {"0": "ok", "1": "ok", "2": "ok"}
    names = cluster.server.kubectl("get", "pods", *cluster.here, "--output=name").stdout
    assert "pod-1" not in names


def test_a_collector_that_died_behind_its_push_leaves_the_release_to_the_next(
    sandbox: Sandbox,
    cluster: Cluster,
    batch: str,
    look: Look,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class KilledError(BaseException):
        """What nothing catches."""

    def killed(*_: object) -> None:
        raise KilledError

    cluster.job(batch, trials=3)
    for index in range(3):
        attempt(cluster, sandbox, tmp_path, index)
    cluster.end(batch, "Complete", completedIndexes="0-2")
    with monkeypatch.context() as patched:
        patched.setattr(pods, "release", killed)
        with pytest.raises(KilledError):
            look()
    sandbox.git("pull", "-q")
    tip = sandbox.git("rev-parse", "HEAD")
    assert held(cluster) == ["pod-0", "pod-1", "pod-2"]

    assert look().collected == ()

    assert held(cluster) == []
    sandbox.git("pull", "-q")
    assert sandbox.git("rev-parse", "HEAD") == tip


def test_a_late_end(sandbox: Sandbox, cluster: Cluster, batch: str, look: Look, tmp_path: Path) -> None:
    cluster.job(batch, trials=3)
    for index in range(2):
        attempt(cluster, sandbox, tmp_path, index)
    uid = cluster.attempt(batch, 2, "silent", finalizers=FINALIZERS)
    cluster.stands("silent", "Running")
    cluster.end(batch, "Failed", completedIndexes="0-1", failedIndexes="2")
    (waiting,) = look().pending
    assert (waiting.trials, waiting.pods) == (0, 1)
    assert recorded(sandbox, look(601).collected) == {"0": "ok", "1": "ok", "2": "missing"}
    assert held(cluster) == ["silent"]
    text = leave(tmp_path / "elsewhere", stored(sandbox), 2, uid=uid).read_text()
    cluster.ended("silent", 0, text)

    assert recorded(sandbox, look(700).collected) == {"0": "ok", "1": "ok", "2": "ok"}

    assert held(cluster) == []


def test_cancelled_batch(sandbox: Sandbox, cluster: Cluster, batch: str, look: Look, tmp_path: Path) -> None:
    cluster.job(batch, trials=3)
    attempt(cluster, sandbox, tmp_path, 0)
    cluster.attempt(batch, 1, "running", finalizers=FINALIZERS)
    cluster.stands("running", "Running")
    sandbox.cancel()
    sandbox.push()
    cluster.delete("jobs", batch)
    assert look().collected == (), "a pod has not ended"
    cluster.ended("running", 143)

    rows = recorded(sandbox, look().collected)

    assert (rows["0"], rows["2"]) == ("ok", "cancelled")
    assert held(cluster) == []


def test_a_deleted_job(sandbox: Sandbox, cluster: Cluster, batch: str, look: Look, tmp_path: Path) -> None:
    for index in range(2):
        attempt(cluster, sandbox, tmp_path, index)
    assert look().collected == ()
    attempt(cluster, sandbox, tmp_path, 2)

    assert recorded(sandbox, look().collected) == {"0": "ok", "1": "ok", "2": "ok"}


def test_pods_without_a_commit_stay(sandbox: Sandbox, cluster: Cluster, batch: str, look: Look) -> None:
    cluster.attempt("peak-b9-00000000", 0, "orphan", finalizers=FINALIZERS)
    cluster.ended("orphan", 0)

    assert look().collected == ()

    assert held(cluster) == ["orphan"]


def test_of_two_collectors_that_read_the_same_pods_one_commits(
    sandbox: Sandbox,
    cluster: Cluster,
    batch: str,
    look: Look,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster.job(batch, trials=3)
    for index in range(3):
        attempt(cluster, sandbox, tmp_path, index)
    cluster.end(batch, "Complete", completedIndexes="0-2")
    first = pod_store.PodStore.read
    others: list[tuple[ResultsCommit, ...] | None] = []

    def read_while_another_collects(store: Any, stored_batch: Any) -> Any:
        attempts = first(store, stored_batch)
        if not others:
            others.append(None)
            others.append(look().collected)
        return attempts

    monkeypatch.setattr(pod_store.PodStore, "read", read_while_another_collects)

    assert look().collected == ()

    assert [len(commits or ()) for commits in others] == [0, 1]
    assert held(cluster) == []
