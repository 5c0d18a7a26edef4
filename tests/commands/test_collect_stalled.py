"""Batches that nothing ends: their Jobs were deleted by hand, or were never applied. Told, never recorded."""

import json
import subprocess
import time
from pathlib import Path

import pytest

from sweepledger.commands.collection.cluster_evidence import FRESH_SECONDS
from sweepledger.commands.collection.collector import Collection
from sweepledger.commands.repository.workspace import Workspace
from tests.command_line import run_sweep
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


def test_what_was_just_merged_is_not_stalled_and_what_was_never_applied_is(
    sandbox: Sandbox, look: Look
) -> None:
    batch = sandbox.merged()

    assert names(look()) == []
    assert names(look(after=FRESH_SECONDS + 60)) == [batch]


def test_a_job_that_was_deleted_while_its_trials_ran_leaves_its_batch_stalled(
    sandbox: Sandbox, cluster: Cluster, results: Path, look: Look
) -> None:
    batch = sandbox.merged()
    leave(results, stored(sandbox), 0)
    cluster.job(batch, trials=3)
    assert names(look(after=FRESH_SECONDS + 60)) == []

    cluster.delete("jobs", batch)

    assert names(look()) == [batch], "it was applied: its folder is there"
    assert sandbox.git("ls-remote", "origin", "main").split()[0] == sandbox.head()


def test_a_job_that_was_deleted_after_its_trials_ended_ends_by_its_records(
    sandbox: Sandbox, cluster: Cluster, results: Path, look: Look
) -> None:
    batch = sandbox.merged()
    for index in range(3):
        leave(results, stored(sandbox), index)
    cluster.job(batch, trials=3)
    cluster.delete("jobs", batch)

    assert recorded(sandbox, look().collected) == {"0": "ok", "1": "ok", "2": "ok"}


def test_of_jobs_of_which_one_was_deleted_the_others_ends_count(
    sandbox: Sandbox, cluster: Cluster, results: Path, look: Look
) -> None:
    batch = sandbox.merged(parallelism=3)
    leave(results, stored(sandbox), 0)
    cluster.job_of_trial(batch, 1)
    cluster.job_of_trial(batch, 2, "Failed")
    assert look(after=FRESH_SECONDS + 60) == Collection(), "one of them goes on"

    cluster.end(f"{batch}-1", "Failed")

    assert recorded(sandbox, look().collected) == {"0": "ok", "1": "missing", "2": "missing"}


def test_of_jobs_of_which_one_was_deleted_before_its_trial_ended_the_batch_is_stalled(
    sandbox: Sandbox, cluster: Cluster, look: Look
) -> None:
    batch = sandbox.merged(parallelism=3)
    for index in (1, 2):
        cluster.job_of_trial(batch, index, "Failed")

    (result,) = look(after=FRESH_SECONDS + 60).stalled

    assert (result.batch, result.objects, result.wanted) == (batch, 2, 3)


def test_in_a_shallow_clone_a_batch_is_as_old_as_what_the_clone_has(
    sandbox: Sandbox, tmp_path: Path, look: Look
) -> None:
    batch = sandbox.merged()
    sandbox.write("notes.md", "later")
    sandbox.publish("Later")
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
def test_the_command_names_the_ways_out_and_does_not_fail(
    controller: str,
    way: str,
    sandbox: Sandbox,
    cluster: Cluster,
    results: Path,
) -> None:
    batch = sandbox.merged()
    (results / batch / "0").mkdir(parents=True)
    sandbox.write(
        "sweepledger.yaml", f"version: 1\nnamespace: {cluster.namespace}\ncontroller: {controller}\n"
    )
    words = ("cluster", "collect", "--push", "--cluster", f"--results={results}")

    completed = run_sweep(*words, cwd=sandbox.root)
    data = run_sweep(*words, "--format=json", cwd=sandbox.root)

    assert (completed.returncode, data.returncode) == (0, 0), completed.stderr + data.stderr
    assert f"{batch}: stalled: the cluster has 0 of its 1 Job(s)" in completed.stdout
    result = json.loads(data.stdout)["data"]
    assert (result["collected"], result["waiting"], len(result["stalled"])) == ([], [], 1)
    assert result["stalled"][0]["hint"].startswith(way)
    assert f"`sweep cancel peak --batch {batch}`" in result["stalled"][0]["hint"]
