"""`sweep cluster collect --cluster`: a real API server says what has ended; nothing runs there but what tests say."""

import os
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sweepledger.engine.cluster.kubectl import ClusterError, Kubectl
from sweepledger.operations.collection.cluster_evidence import LAG_SECONDS
from sweepledger.operations.collection.collector import collect_from_cluster
from sweepledger.operations.collection.record_store import on_volume
from sweepledger.operations.collection.results_commit import ResultsCommit
from sweepledger.structs.settings import ResultsSettings
from tests.cluster.apiserver import kubectl
from tests.command_line import install_sweep
from tests.operations.clusters import Cluster, Look, Scene
from tests.operations.test_collect import leave, stored
from tests.render.platforms import PLATFORM_SETTINGS, a_platform, a_source, the
from tests.repository import Sandbox


@pytest.fixture
def collected(look_at_cluster: Look) -> Callable[[], tuple[ResultsCommit, ...]]:
    return lambda: look_at_cluster().collected


@pytest.mark.parametrize("ends", ["Complete", "Failed"])
def test_a_batch_is_recorded_when_its_job_says_that_it_has_ended(ends: str, scene: Scene) -> None:
    scene.leave(0)
    assert scene.look(0).collected == ()

    scene.job(scene.batch, f"{scene.batch}-another", ends)
    assert scene.look(0).collected == (), "one of its Jobs goes on"
    scene.delete("jobs", f"{scene.batch}-another")
    scene.end(scene.batch, ends)

    assert scene.recorded(LAG_SECONDS + 1) == ["ok", "missing", "missing"]


def test_every_job_is_waited_for(sandbox: Sandbox, cluster: Cluster, collected: Callable[..., Any]) -> None:
    batch = sandbox.merged(parallelism=3)
    assert str(stored(sandbox).lock.shape) == "jobs"
    for index in range(2):
        cluster.job(batch, f"{batch}-{index}", "Complete")
    assert collected() == (), "two of three Jobs are applied"

    cluster.job(batch, f"{batch}-2", "Failed")

    (result,) = collected()
    assert result.batches == (batch,)


def test_a_cancelled_batch_is_recorded_when_neither_job_nor_pod_is_left(scene: Scene) -> None:
    scene.leave(0)
    scene.pod(scene.batch)
    scene.sandbox.cancel(push=True)
    assert scene.look(0).collected == ()
    scene.delete("jobs", scene.batch)
    assert scene.look(0).collected == (), "a pod is still there"

    scene.delete("pods", "left")

    assert scene.recorded(0) == ["ok", "cancelled", "cancelled"]


def test_a_cluster_that_does_not_answer_records_nothing(
    sandbox: Sandbox, results: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sandbox.merged()
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "nowhere"))
    monkeypatch.setenv("KUBECTL", shlex.quote(kubectl()))

    with pytest.raises(ClusterError):
        collect_from_cluster(sandbox.target(), on_volume(results), Kubectl(), "x")


def test_the_cron_job_records(sandbox: Sandbox, cluster: Cluster, results: Path, tmp_path: Path) -> None:
    batch = sandbox.merged()
    leave(results, stored(sandbox), 0)
    cluster.job(batch, ends="Complete")
    nowhere = sandbox.sweep("cluster", "collect", "--push", "--cluster", f"--results={results}/nowhere")
    assert (nowhere.returncode, "no such folder" in nowhere.stderr) == (3, True)
    url = "https://git.example.org/team/sweeps.git"
    settings = replace(PLATFORM_SETTINGS, results=ResultsSettings())
    made = the("CronJob", "sweep-collector", a_platform(settings, a_source(url=url, branch="main")))
    pod = made["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    clone, collect = pod["initContainers"][0], pod["containers"][0]
    programs = tmp_path / "programs"
    for folder in (tmp_path / "work", programs):
        folder.mkdir()
    install_sweep(programs)
    (tmp_path / "gitconfig").write_text(f'[url "file://{sandbox.remote}"]\n  insteadOf = {url}\n')

    for container in (clone, collect):
        words = [word.replace("/sweep/", f"{tmp_path}/") for word in container["command"]]
        given = {item["name"]: item["value"].replace("/sweep/", f"{tmp_path}/") for item in container["env"]}
        paths = {"PATH": f"{programs}:{os.environ['PATH']}", "GIT_CONFIG_GLOBAL": str(tmp_path / "gitconfig")}
        place = container.get("workingDir", "/sweep/work").replace("/sweep/", f"{tmp_path}/")
        subprocess.run(words, cwd=place, env={**os.environ, **paths, **given}, check=True)

    sandbox.pull()
    assert (sandbox.root / "overlays/archive" / batch).is_dir()
    assert sandbox.git("log", "-1", "--format=%s").startswith("results(peak): 1/3 trials")
