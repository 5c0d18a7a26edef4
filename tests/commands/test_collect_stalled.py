"""Batches that nothing ends: their Jobs were deleted by hand, or were never applied. Told, never recorded."""

import json
import subprocess
import time
from pathlib import Path

import pytest

from sweepledger.commands.collection.cluster_evidence import FRESH_SECONDS
from sweepledger.commands.collection.collector import Collection
from sweepledger.commands.repository.workspace import Workspace
from tests.commands.clusters import Cluster, Look
from tests.commands.test_collect import leave, recorded, stored
from tests.repository import Sandbox


@pytest.fixture
def look(look_at_cluster: Look) -> Look:
    """Collect so long after now."""
    return lambda after=0, workspace=None: look_at_cluster(lambda: time.time() + after, workspace)


def names(collection: Collection) -> list[str]:
    assert collection.collected == ()
    return [batch.batch for batch in collection.stalled]


def test_a_new_batch_is_not_stalled_and_an_unapplied_one_is(sandbox: Sandbox, look: Look) -> None:
    batch = sandbox.merged()

    assert names(look()) == []
    assert names(look(after=FRESH_SECONDS + 60)) == [batch]


def test_a_job_deleted_early_stalls(sandbox: Sandbox, cluster: Cluster, results: Path, look: Look) -> None:
    batch = sandbox.merged()
    leave(results, stored(sandbox), 0)
    cluster.job(batch, trials=3)
    assert names(look(after=FRESH_SECONDS + 60)) == []

    cluster.delete("jobs", batch)

    assert names(look()) == [batch], "it was applied: its folder is there"
    assert sandbox.git("ls-remote", "origin", "main").split()[0] == sandbox.head()


def test_a_job_deleted_late_ends(sandbox: Sandbox, cluster: Cluster, results: Path, look: Look) -> None:
    batch = sandbox.merged()
    for index in range(3):
        leave(results, stored(sandbox), index)
    cluster.job(batch, trials=3)
    cluster.delete("jobs", batch)

    assert recorded(sandbox, look().collected) == {"0": "ok", "1": "ok", "2": "ok"}


def test_a_deleted_job_stops_no_other(sandbox: Sandbox, cluster: Cluster, results: Path, look: Look) -> None:
    batch = sandbox.merged(parallelism=3)
    leave(results, stored(sandbox), 0)
    cluster.job_of_trial(batch, 1)
    cluster.job_of_trial(batch, 2, "Failed")
    assert look(after=FRESH_SECONDS + 60) == Collection(), "one of them goes on"

    cluster.end(f"{batch}-1", "Failed")

    assert recorded(sandbox, look().collected) == {"0": "ok", "1": "missing", "2": "missing"}


def test_a_batch_without_one_of_its_jobs_is_stalled(sandbox: Sandbox, cluster: Cluster, look: Look) -> None:
    batch = sandbox.merged(parallelism=3)
    for index in (1, 2):
        cluster.job_of_trial(batch, index, "Failed")

    (result,) = look(after=FRESH_SECONDS + 60).stalled

    assert (result.batch, result.objects, result.wanted) == (batch, 2, 3)


def test_a_shallow_clone_tells_the_age_of_a_batch(sandbox: Sandbox, tmp_path: Path, look: Look) -> None:
    batch = sandbox.merged()
    sandbox.publish("Later", {"notes.md": "later"})
    clone = ("git", "clone", "-q", "--depth=1", f"file://{sandbox.remote}", str(tmp_path / "shallow"))
    subprocess.run(clone, check=True)
    shallow = Workspace.find(tmp_path / "shallow")

    assert names(look(workspace=shallow)) == []
    assert names(look(after=FRESH_SECONDS + 60, workspace=shallow)) == [batch]


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

    completed = sandbox.sweep(*words)
    data = sandbox.sweep(*words, "--format=json")

    assert (completed.returncode, data.returncode) == (0, 0), completed.stderr + data.stderr
    assert f"{batch}: stalled: the cluster has 0 of its 1 Job(s)" in completed.stdout
    result = json.loads(data.stdout)["data"]
    assert (result["collected"], result["waiting"], len(result["stalled"])) == ([], [], 1)
    assert result["stalled"][0]["hint"].startswith(way)
    assert f"`sweep cancel peak --batch {batch}`" in result["stalled"][0]["hint"]
