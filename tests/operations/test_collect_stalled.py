"""Batches that nothing ends: their Jobs were deleted by hand, or were never applied. Told, never recorded."""

import json
import subprocess
import time
from pathlib import Path

import pytest

from sweepledger.operations.collection.cluster_evidence import FRESH_SECONDS
from sweepledger.operations.collection.collector import Collection
from sweepledger.operations.repository.workspace import Workspace
from tests.operations.clusters import ENDED_AT, Cluster, Look, Scene
from tests.repository import Sandbox


@pytest.fixture
def look(look_at_cluster: Look) -> Look:
    """Collect so long after now."""
    return lambda after=0, workspace=None: look_at_cluster(lambda: time.time() + after, workspace)


LATER = FRESH_SECONDS + 60
NOW = time.time() - ENDED_AT


def names(collection: Collection) -> list[str]:
    assert collection.collected == ()
    return [batch.batch for batch in collection.stalled]


def test_a_new_batch_is_not_stalled_and_an_unapplied_one_is(sandbox: Sandbox, look: Look) -> None:
    batch = sandbox.merged()

    assert (names(look()), names(look(after=LATER))) == ([], [batch])


def test_a_job_deleted_early_stalls(scene: Scene, look: Look) -> None:
    scene.leave(0)
    assert names(look(after=LATER)) == []

    scene.delete("jobs", scene.batch)

    assert names(look()) == [scene.batch], "it was applied: its folder is there"
    assert scene.sandbox.git("ls-remote", "origin", "main").split()[0] == scene.sandbox.head()


def test_a_job_deleted_late_ends(scene: Scene) -> None:
    scene.leave(0, 1, 2)
    scene.delete("jobs", scene.batch)

    assert scene.recorded(NOW) == ["ok", "ok", "ok"]


@pytest.fixture
def three_jobs(sandbox: Sandbox, cluster: Cluster, results: Path) -> Scene:
    """A batch with a Job for each trial, none of which is applied."""
    return Scene(cluster.server, cluster.namespace, sandbox, results, sandbox.merged(parallelism=3))


def test_a_deleted_job_stops_no_other(three_jobs: Scene, look: Look) -> None:
    three_jobs.leave(0)
    three_jobs.job_of_trial(three_jobs.batch, 1)
    three_jobs.job_of_trial(three_jobs.batch, 2, "Failed")
    assert look(after=LATER) == Collection(), "one of them goes on"

    three_jobs.end(f"{three_jobs.batch}-1", "Failed")

    assert three_jobs.recorded(NOW) == ["ok", "missing", "missing"]


def test_a_batch_without_one_of_its_jobs_is_stalled(three_jobs: Scene, look: Look) -> None:
    for index in (1, 2):
        three_jobs.job_of_trial(three_jobs.batch, index, "Failed")

    (result,) = look(after=LATER).stalled

    assert (result.batch, result.lacks) == (three_jobs.batch, "the cluster has 2 of its 3 Job(s)")


def test_a_shallow_clone_tells_the_age_of_a_batch(sandbox: Sandbox, tmp_path: Path, look: Look) -> None:
    batch = sandbox.merged()
    sandbox.publish("Later", {"notes.md": "later"})
    clone = ("git", "clone", "-q", "--depth=1", f"file://{sandbox.remote}", str(tmp_path / "shallow"))
    subprocess.run(clone, check=True)
    shallow = Workspace.find(tmp_path / "shallow")

    assert (names(look(workspace=shallow)), names(look(after=LATER, workspace=shallow))) == ([], [batch])


@pytest.mark.parametrize(
    ("controller", "way"),
    [
        ("argocd", "sync its Application in Argo CD"),
        ("flux", "Flux makes it anew"),
        ("none", "apply its overlay"),
    ],
)
def test_the_way_out(controller: str, way: str, sandbox: Sandbox, cluster: Cluster, results: Path) -> None:
    batch = sandbox.merged()
    (results / batch / "0").mkdir(parents=True)
    sandbox.write(
        "sweepledger.yaml", f"version: 1\nnamespace: {cluster.namespace}\ncontroller: {controller}\n"
    )
    words = ("cluster", "collect", "--push", "--cluster", f"--results={results}")

    data = sandbox.sweep(*words, "--format=json")

    result = json.loads(data.stdout)["data"]
    assert (result["collected"], result["waiting"], len(result["stalled"])) == ([], [], 1)
    assert result["stalled"][0]["hint"].startswith(way)
    assert f"`sweep cancel peak --batch {batch}`" in result["stalled"][0]["hint"]
