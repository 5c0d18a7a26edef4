"""`results.store: api`: records come from pods of a real API server, which are held until git has what they say."""

from pathlib import Path
from typing import Any

import pytest

from sweepledger.engine.cluster import pods
from sweepledger.engine.cluster.kubectl import Kubectl
from sweepledger.structs.settings import ResultsStore
from tests.operations.clusters import Cluster, Scene
from tests.operations.test_collect import column
from tests.repository import Sandbox, append_to

FINALIZERS = ["sweepledger.dev/record"]


class Held(Scene):
    """A scene whose records are in pods."""

    def keeps(self, index: int, name: str = "", code: int = 0, **changes: Any) -> None:
        """Make a held pod that has ended with a record."""
        name = name or f"pod-{index}"
        uid = self.starts(index, name, finalizers=FINALIZERS)
        self.ended(name, code, self.message(index, uid, **changes))

    def keeps_all(self) -> None:
        """Let all trials end well."""
        for index in range(3):
            self.keeps(index)


@pytest.fixture
def scene(sandbox: Sandbox, cluster: Cluster, results: Path) -> Held:
    """A merged batch of three trials whose records are in pods; its Job is not applied."""
    append_to(sandbox.root / "sweepledger.yaml", "results: {store: api}\n")
    sandbox.commit("Keep records in pods")
    batch = sandbox.merged()
    assert sandbox.batch().lock.store is ResultsStore.API
    return Held(cluster.server, cluster.namespace, sandbox, results, batch)


@pytest.fixture
def begun(scene: Held) -> Held:
    """The same, and the Job has begun."""
    scene.job(scene.batch, trials=3)
    return scene


def held(cluster: Cluster) -> list[str]:
    listed = pods.held_pods(Kubectl(), cluster.namespace)
    return sorted(manifest["metadata"]["name"] for manifest in listed)


def test_the_push_releases_pods(begun: Held) -> None:
    begun.keeps_all()
    assert begun.look(1).collected == (), "the Job goes on"
    assert held(begun) == ["pod-0", "pod-1", "pod-2"]
    begun.over(completed="0-2")

    assert begun.recorded(1) == ["ok", "ok", "ok"]
    assert held(begun) == []
    assert begun.look(1).collected == ()


def test_one_attempt_wins(begun: Held) -> None:
    begun.keeps(0, "a", 1, status="failed", reason="exit-1", metrics={})
    begun.keeps(0, "b", attempt=2)
    begun.keeps(0, "c", attempt=3, metrics={"score": 9.0})
    uid = begun.starts(1, "killed", finalizers=FINALIZERS)
    begun.ended("killed", 137, reason="OOMKilled")
    begun.starts(2, "forger", finalizers=FINALIZERS)
    begun.ended("forger", 1, begun.message(2, uid))
    begun.over(completed="0", failed="1-2")

    assert begun.recorded(1) == ["ok", "oom", "failed"]
    assert column(begun.sandbox, "metrics.score")[0] == "0"
    assert held(begun) == []


def test_a_deleted_pod_is_read(begun: Held) -> None:
    begun.keeps_all()
    begun.server.kubectl("delete", "pod", "pod-1", *begun.here, "--wait=false", "--force")
    begun.over(completed="0-2")

    assert begun.recorded(1) == ["ok", "ok", "ok"]
    assert "pod-1" not in begun.server.kubectl("get", "pods", *begun.here, "--output=name").stdout


def test_a_late_end(begun: Held) -> None:
    begun.keeps(0)
    begun.keeps(1)
    uid = begun.starts(2, "silent", finalizers=FINALIZERS)
    begun.stands("silent", "Running")
    begun.over(completed="0-1", failed="2")
    (waiting,) = begun.look(1).pending
    assert (waiting.trials, waiting.pods) == (0, 1)
    assert begun.recorded(601) == ["ok", "ok", "missing"]
    assert held(begun) == ["silent"]
    begun.ended("silent", 0, begun.message(2, uid))

    assert begun.recorded(700) == ["ok", "ok", "ok"]

    assert held(begun) == []


def test_cancelled_batch(begun: Held) -> None:
    begun.keeps(0)
    begun.starts(1, "running", finalizers=FINALIZERS)
    begun.stands("running", "Running")
    begun.sandbox.cancel()
    begun.sandbox.push()
    begun.delete("jobs", begun.batch)
    assert begun.look(1).collected == (), "a pod has not ended"
    begun.ended("running", 143)

    assert begun.recorded(1)[::2] == ["ok", "cancelled"]
    assert held(begun) == []


def test_a_deleted_job(scene: Held) -> None:
    scene.keeps(0)
    scene.keeps(1)
    assert scene.look(1).collected == ()
    scene.keeps(2)

    assert scene.recorded(1) == ["ok", "ok", "ok"]
