"""Results in a real S3 server: sidecars move files, pods stay until their records are on the branch."""

import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.bucket.servers import BUCKET, KEY, KEY_ID
from tests.cluster import box, building
from tests.cluster.children import until
from tests.e2e import collecting, outcomes
from tests.e2e.collecting import Run
from tests.e2e.controllers import Controller
from tests.e2e.founding import Ground
from tests.e2e.gates import gate
from tests.e2e.team import COLLECTORS, NAMESPACE, Batch, Team
from tests.e2e.test_api_store import RESULTS, SECONDS, batch_job, change_store, held

pytestmark = pytest.mark.full

PORT = 7070
SECRET, SEALS = "sweep-bucket", "sweep-seals"
KEY_OF_SEALS = os.urandom(32).hex()
ENDPOINT = f"http://{box.ADDRESS}:{PORT}"
SETTING = (
    f'bucket: {{url: "s3://{BUCKET}/vision", endpoint: "{ENDPOINT}", region: us-east-1, egress: git,'
    f" secret: {SECRET}, seals: {SEALS}}},"
)
IN_A_BUCKET = f"results: {{store: bucket, {SETTING}"

KEEPING = '''"""A trial that fails once, then goes on from its checkpoint, and says what it sees of its pod."""
import argparse, json, os, pathlib, sys
parser = argparse.ArgumentParser()
parser.add_argument("--x", type=float, default=0)
args = parser.parse_args()
state = pathlib.Path(os.environ["SWEEP_CHECKPOINTS"], "state")
if not state.exists():
    state.write_bytes(os.urandom(20 << 20))
    sys.exit(1)
folder = pathlib.Path(os.environ["SWEEP_ARTIFACTS"])
(folder / "model").write_bytes(state.read_bytes()[:1000])
(folder / "seen").write_text(" ".join(sorted(os.listdir("/sweep"))))
print("went on", flush=True)
with open(os.environ["SWEEP_RESULT"], "w") as file:
    json.dump({"score": args.x}, file)
'''


@dataclass(frozen=True)
class S3:
    """The server of the box."""

    ground: Ground
    folder: Path

    def start(self) -> None:
        program = building.built(building.VERSITYGW)
        if program is None:
            pytest.skip("skipped: versitygw is not built (python -m tests.cluster.building versitygw)")
        (self.folder / BUCKET).mkdir(parents=True, exist_ok=True)
        argv = [str(program / "versitygw"), "--port", f"{box.ADDRESS}:{PORT}", "posix", str(self.folder)]
        account = {"ROOT_ACCESS_KEY": KEY_ID, "ROOT_SECRET_KEY": KEY}
        self.ground.machine.children.start("versitygw", argv, env=account)

    def stop(self) -> None:
        self.ground.machine.children.end("versitygw")


@pytest.fixture(scope="module")
def s3(ground: Ground) -> Iterator[S3]:
    made = S3(ground, ground.machine.folder / "s3")
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="module", autouse=True)
def _in_a_bucket(team: Team, controller: Controller, s3: S3) -> Iterator[None]:
    """Let the settings name the bucket; afterwards they are as they were."""
    for namespace in (NAMESPACE, COLLECTORS):
        for name, values in (
            (SECRET, {"AWS_ACCESS_KEY_ID": KEY_ID, "AWS_SECRET_ACCESS_KEY": KEY}),
            (SEALS, {"key": KEY_OF_SEALS}),
        ):
            given = [f"--from-literal={key}={value}" for key, value in values.items()]
            team.server.kubectl("create", "secret", "generic", name, f"--namespace={namespace}", *given)
    team.until_idle()
    team.pull()
    team.write("code/keep.py", KEEPING)
    change_store(team, controller, RESULTS, IN_A_BUCKET)
    yield
    team.until_idle()
    team.pull()
    change_store(team, controller, IN_A_BUCKET, RESULTS)


@pytest.fixture
def by_hand(team: Team) -> Iterator[None]:
    """Let the collector run when a test says so."""
    with collecting.only_by_hand(team):
        yield


def fetched(team: Team, batch: Batch) -> dict[str, bytes]:
    """Fetch the artifacts of a batch's only trial, as a person with a credential."""
    (row,) = team.summary(batch.sweep)
    command = ["env", f"AWS_ACCESS_KEY_ID={KEY_ID}", f"AWS_SECRET_ACCESS_KEY={KEY}"]
    team.run([*command, sys.executable, "-m", "sweepledger.cli", "fetch", row["trial"]])
    folder = team.root / "artifacts" / row["trial"]
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_trials_are_recorded_once_and_nothing_mounts_a_volume(team: Team) -> None:
    scores = [number / 10 for number in range(10)]
    team.write_spec("stored", parameters={"x": scores}, parallelism=4, shape="indexed", timeout="5m")
    (batch,) = team.merge_specs("stored")

    team.until_recorded(batch)

    assert "persistentVolumeClaim" not in batch_job(team, batch)
    outcomes.is_recorded_once(team, batch, *scores)
    until("no pod is held", lambda: not held(team, batch), seconds=SECONDS)


def test_the_second_attempt_goes_on_from_the_checkpoint_and_its_files_are_fetched(team: Team) -> None:
    run: dict[str, Any] = {"retries": 1, "resources": {"cpu": "100m", "memory": "128Mi", "scratch": "64Mi"}}
    team.write_spec("kept", parameters={"x": [1.0]}, command=("python3", "code/keep.py", "${args}"), **run)
    (batch,) = team.merge_specs("kept")

    team.until_recorded(batch)

    assert [record["status"] for record in team.records(batch)] == ["failed", "ok"]
    files = fetched(team, batch)
    assert len(files["model"]) == 1000
    assert b"store-credentials" not in files["seen"], "the trial has no credential"


def test_a_bucket_that_is_away_delays_trials_and_loses_none(team: Team, s3: S3) -> None:
    team.write_spec("away", parameters={"x": [0.0, 1.0]}, timeout="5m")
    s3.stop()
    try:
        (batch,) = team.merge_specs("away")
        until("pods wait for the bucket", lambda: len(team.pods(batch)) == 2, seconds=SECONDS)
        time.sleep(10)
        statuses = [pod["status"] for pod in team.pods(batch)]
        assert all("running" not in status["containerStatuses"][0]["state"] for status in statuses)
    finally:
        s3.start()

    team.until_recorded(batch)
    outcomes.is_recorded_once(team, batch, 0.0, 1.0)


def test_killed_between_push_and_release_the_next_run_releases_the_pods(team: Team, by_hand: None) -> None:
    (batch,) = outcomes.trained(team, {"stored-killed": (0.0, 1.0)})
    assert len(held(team, batch)) == 2

    with gate(team.forge, "post-receive") as answer:
        run = Run.start(team)
        until("the server has taken it", lambda: answer.waiting, seconds=SECONDS)
        run.kill()
    until("it is recorded", lambda: team.is_recorded(batch), seconds=SECONDS)
    assert len(held(team, batch)) == 2

    assert Run.start(team).ended().code == 0
    assert held(team, batch) == []
    outcomes.is_recorded_once(team, batch, 0.0, 1.0)


def test_pods_that_were_deleted_before_the_collection_are_recorded_all_the_same(
    team: Team, by_hand: None
) -> None:
    (batch,) = outcomes.trained(team, {"stored-deleted": (0.0, 1.0)})
    selected = f"--selector=sweepledger.dev/batch={batch.name}"
    team.server.kubectl("delete", "pods", selected, f"--namespace={NAMESPACE}", "--force", "--wait=false")

    assert Run.start(team).ended().code == 0

    outcomes.is_recorded_once(team, batch, 0.0, 1.0)
    until("the pods are gone", lambda: not team.pods(batch), seconds=SECONDS)


def test_a_pod_that_is_deleted_while_it_waits_for_the_bucket_ends(team: Team, s3: S3) -> None:
    team.write_spec("stuck", parameters={"x": [0.0]}, timeout="5m")
    s3.stop()
    try:
        (batch,) = team.merge_specs("stuck")
        until("a pod waits", lambda: bool(team.pods(batch)), seconds=SECONDS)
        time.sleep(10)
        name = team.pods(batch)[0]["metadata"]["name"]
        team.server.kubectl("delete", "pod", name, f"--namespace={NAMESPACE}", "--wait=false")

        def has_ended() -> bool:
            (pod,) = [each for each in team.pods(batch) if each["metadata"]["name"] == name]
            return pod["status"]["phase"] in {"Failed", "Succeeded"}

        until("it ends within its grace period", has_ended, seconds=330)
    finally:
        s3.start()
    team.until_recorded(batch)
    outcomes.is_recorded_once(team, batch, 0.0)
