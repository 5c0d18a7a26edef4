"""Recorded results in a real MLflow server, by `results.sync` of the settings: what it lacks, and each trial once."""

import json
import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import box, sync_image
from tests.cluster.apiserver import NoClusterToolsError
from tests.cluster.children import until
from tests.e2e import outcomes
from tests.e2e.controllers import Controller
from tests.e2e.founding import Ground, secret
from tests.e2e.stores import VOLUME, change_store
from tests.e2e.team import COLLECTORS, READER, Team
from tests.stores.libraries import PYTHON

pytestmark = pytest.mark.full

PORT = 5055
ADDRESS = f"http://{box.ADDRESS}:{PORT}"
SYNCED = f'{VOLUME} sync: {{mlflow: {{to: "{ADDRESS}", egress: mlflow}}}},'
EGRESS = f"egress:\n  mlflow: {{cidrs: ['{box.ADDRESS}/32'], ports: [{PORT}]}}\n"
NOT_FOUND = 404
SECONDS = 300.0


@dataclass(frozen=True)
class MLflow:
    """The server of the box, with its own client's libraries."""

    ground: Ground
    folder: Path

    def start(self) -> None:
        self.folder.mkdir(exist_ok=True)
        argv = [str(PYTHON.parent / "mlflow"), "server", "--backend-store-uri", "sqlite:///store.db"]
        argv += ["--workers=1", f"--host={box.ADDRESS}", f"--port={PORT}", "--allowed-hosts=*"]
        path = {"PATH": f"{PYTHON.parent}:{os.environ['PATH']}", "MLFLOW_DISABLE_TELEMETRY": "true"}
        self.ground.machine.children.start("mlflow", argv, env=path, cwd=self.folder)
        until("MLflow answers", self._answers, seconds=SECONDS)

    def stop(self) -> None:
        self.ground.machine.children.end("mlflow")

    def _answers(self) -> bool:
        try:
            return self._ask("/health", None) == b"OK"
        except (OSError, urllib.error.URLError):
            return False

    def trials(self, sweep: str) -> list[str]:
        try:
            named = self._ask(f"/api/2.0/mlflow/experiments/get-by-name?experiment_name={sweep}", None)
        except urllib.error.HTTPError as error:
            if error.code != NOT_FOUND:
                raise
            return []
        found = json.loads(named)
        searched = {"experiment_ids": [found["experiment"]["experiment_id"]], "max_results": 1000}
        runs = json.loads(self._ask("/api/2.0/mlflow/runs/search", searched)).get("runs", [])
        ended = [run for run in runs if run["info"]["status"] == "FINISHED"]
        tags = [{tag["key"]: tag["value"] for tag in run["data"]["tags"]} for run in ended]
        return sorted(each["sweepledger.trial"] for each in tags)

    def _ask(self, path: str, given: Any) -> bytes:
        data = None if given is None else json.dumps(given).encode()
        request = urllib.request.Request(  # noqa: S310 - our own server's address
            ADDRESS + path, data=data, headers={"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=120) as answer:  # noqa: S310
            content: bytes = answer.read()
            return content


@pytest.fixture(scope="module")
def mlflow(ground: Ground) -> Iterator[MLflow]:
    if not PYTHON.exists():
        pytest.skip("skipped: no libraries of the stores (`make test-full` installs them)")
    made = MLflow(ground, ground.machine.folder / "mlflow")
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="module", autouse=True)
def _synced(team: Team, controller: Controller, ground: Ground, mlflow: MLflow) -> Iterator[None]:
    """Let the settings name the server; afterwards they are as they were."""
    node = ground.machine.node
    assert node is not None
    try:
        image = sync_image.build(ground.images, ground.machine.folder / "sync-image")
    except NoClusterToolsError as error:
        pytest.skip(f"skipped: {error}")
    node.load(image.archive)
    team.until_idle()
    team.pull()
    before = (team.root / "sweepledger.yaml").read_text()
    images = f"images:\n  sync: {image.name}@{image.digest}\n"
    team.write("sweepledger.yaml", before.replace("images:\n", images).replace("egress:\n", EGRESS))
    secret(team, COLLECTORS, "sweep-git-read", READER)
    change_store(team, controller, VOLUME, SYNCED)
    yield
    team.until_idle()
    team.pull()
    team.write("sweepledger.yaml", before)
    change_store(team, controller, VOLUME, VOLUME)


def has_failed(team: Team) -> bool:
    listed = team.server.ask(f"/apis/batch/v1/namespaces/{COLLECTORS}/jobs")
    assert listed is not None
    jobs = [job for job in listed["items"] if job["metadata"]["name"].startswith("sweep-sync-")]
    return any(job["status"].get("failed") for job in jobs)


def show_log(team: Team) -> None:
    """Keep what the last runs printed for the report of a failure."""
    logs = ("logs", f"--namespace={COLLECTORS}", "--selector=app.kubernetes.io/component=sweep-sync")
    team.transcript.append(team.server.kubectl(*logs, "--all-containers", "--tail=40", check=False).stdout)


def last_success(team: Team) -> str:
    cron_job = team.get("cronjob", "sweep-sync", COLLECTORS) or {}
    return str(cron_job.get("status", {}).get("lastSuccessfulTime", ""))


def until_synced(team: Team, mlflow: MLflow, sweep: str) -> None:
    """Wait until the server has the recorded trials of a sweep, and a run after that has ended, too."""
    wanted = sorted(row["trial"] for row in team.summary(sweep))
    try:
        until(f"the server has {sweep}", lambda: len(mlflow.trials(sweep)) >= len(wanted), seconds=SECONDS)
        before = last_success(team)
        until("another run succeeds", lambda: last_success(team) > before, seconds=SECONDS)
    finally:
        show_log(team)
    assert mlflow.trials(sweep) == wanted, "each once"


def trained(team: Team, name: str, *scores: float) -> None:
    """Run a sweep, and wait until its results are on the branch."""
    (batch,) = outcomes.trained(team, {name: scores})
    team.until_recorded(batch)


def test_recorded_trials_reach_the_server_each_once(team: Team, mlflow: MLflow) -> None:
    trained(team, "synced", 0.0, 1.0)

    until_synced(team, mlflow, "synced")


def test_a_server_that_is_away_delays_no_record_and_gets_what_it_lacks(team: Team, mlflow: MLflow) -> None:
    mlflow.stop()
    try:
        trained(team, "synced-late", 0.0, 1.0)
        until("a run fails", lambda: has_failed(team), seconds=2 * SECONDS)  # its client tries for minutes
    finally:
        mlflow.start()

    until_synced(team, mlflow, "synced-late")
