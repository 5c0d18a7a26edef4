"""Results in a real S3 server: sidecars move files, pods stay until their records are on the branch."""

import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sweepledger.bucket.objects import Bucket
from sweepledger.repo.datasets import digest_folder
from tests.bucket.servers import BUCKET, KEY, KEY_ID
from tests.cluster import box, building
from tests.cluster.children import until
from tests.e2e import collecting, losses, outcomes
from tests.e2e.collecting import Run
from tests.e2e.controllers import Controller
from tests.e2e.founding import Ground
from tests.e2e.held_pods import HeldPods, LostNodes
from tests.e2e.pools import ROOMS, have_pools
from tests.e2e.stores import (
    SECONDS,
    change_store,
    held,
    in_store,
    recorded_job,
    trials_see_only_their_own_files,
)
from tests.e2e.team import COLLECTORS, NAMESPACE, Batch, Team
from tests.e2e.test_search import CLIMB, CLIMB_SPEC

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
    team.have_program("code/keep.py", KEEPING)
    with in_store(team, controller, IN_A_BUCKET):
        yield


def two_pods_wait(team: Team, batch: Batch, what: str) -> None:
    until(f"pods wait for {what}", lambda: len(team.pods(batch)) == 2, seconds=SECONDS)
    time.sleep(10)
    statuses = [pod["status"] for pod in team.pods(batch)]
    assert all("running" not in status["containerStatuses"][0]["state"] for status in statuses)


def fetched(team: Team, batch: Batch) -> dict[str, bytes]:
    """Fetch the artifacts of a batch's only trial, as a person with a credential."""
    (row,) = team.summary(batch.sweep)
    command = ["env", f"AWS_ACCESS_KEY_ID={KEY_ID}", f"AWS_SECRET_ACCESS_KEY={KEY}"]
    team.run(
        [*command, sys.executable, "-m", "sweepledger.cli", "show", row["trial"], "--fetch", "artifacts"]
    )
    folder = team.root / "artifacts"
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_trials_are_recorded_once_and_nothing_mounts_a_volume(team: Team) -> None:
    scores = [number / 10 for number in range(10)]
    team.write_spec("stored", parameters={"x": scores}, parallelism=4, shape="indexed", timeout="5m")
    (batch,) = team.merge_specs("stored")

    team.until_recorded(batch)

    assert "persistentVolumeClaim" not in recorded_job(team, batch)
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


def test_trials_that_write_files_report_their_own_numbers(team: Team) -> None:
    trials_see_only_their_own_files(team, "bucket")


def test_packed_trials_leave_their_records_and_files_and_go_on_from_their_checkpoints(team: Team) -> None:
    run: dict[str, Any] = {"retries": 1, "pack": {"trials": 4, "at_once": 2}, "parallelism": 2}
    run["resources"] = {"cpu": "100m", "memory": "128Mi", "scratch": "64Mi"}
    xs = [number / 10 for number in range(7)]
    team.write_spec("packed", parameters={"x": xs}, command=("python3", "code/keep.py", "${args}"), **run)
    (batch,) = team.merge_specs("packed")

    team.until_recorded(batch)

    records = sorted(team.records(batch), key=lambda record: (record["index"], record["attempt"]))
    assert [record["status"] for record in records] == ["failed", "ok"] * len(xs)
    assert len({record["uid"].rpartition("-")[0] for record in records}) == 4, "two packs, two pods each"
    until("no pod is held", lambda: not held(team, batch), seconds=SECONDS)


READING = '''"""A trial whose score is what its data says; it must not be able to change the data."""
import json, os, pathlib
folder = pathlib.Path(os.environ["SWEEP_DATA"])
try:
    (folder / "deep/score").write_text("9")
except OSError:
    pass
with open(os.environ["SWEEP_RESULT"], "w") as file:
    json.dump({"score": float((folder / "deep/score").read_text())}, file)
'''


def test_data_in_the_bucket_are_copied_if_right(team: Team, controller: Controller, tmp_path: Path) -> None:
    credential = {"AWS_ACCESS_KEY_ID": KEY_ID, "AWS_SECRET_ACCESS_KEY": KEY}
    place = {"AWS_ENDPOINT_URL": ENDPOINT, "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1"}
    bucket = Bucket(f"s3://{BUCKET}/vision", variables={**credential, **place})
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/score").write_text("7")
    bucket.put("data/scores/deep/score", b"8")
    named = (
        f"datasets:\n  scores: {{bucket: data/scores, size: 16Mi, digest: '{digest_folder(tmp_path)[0]}'}}\n"
    )
    team.have_program("code/reading.py", READING)
    change_store(team, controller, "datasets:\n", named)
    try:
        command = ("python3", "code/reading.py", "${args}")
        team.write_spec("read", parameters={"x": [1.0, 2.0]}, command=command, data="scores", timeout="5m")
        (batch,) = team.merge_specs("read")
        two_pods_wait(team, batch, "other data")
        bucket.put("data/scores/deep/score", b"7")

        team.until_recorded(batch)

        outcomes.is_recorded_once(team, batch, 7.0, 7.0)
    finally:
        team.until_idle()
        team.pull()
        change_store(team, controller, named, "datasets:\n")


def test_a_bucket_that_is_away_delays_trials_and_loses_none(team: Team, s3: S3) -> None:
    team.write_spec("away", parameters={"x": [0.0, 1.0]}, timeout="5m")
    s3.stop()
    try:
        (batch,) = team.merge_specs("away")
        two_pods_wait(team, batch, "the bucket")
    finally:
        s3.start()

    team.until_recorded(batch)
    outcomes.is_recorded_once(team, batch, 0.0, 1.0)


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


class TestHeldPods(HeldPods):
    """The sidecar of a Job that is made anew restores the records of the one before."""

    store = "bucket"
    keeps_records = True


class TestLostNodes(LostNodes):
    """The next attempt goes on, on another node, from the checkpoint that the lost one had saved."""

    store = "bucket"
    numbers = (6, 7)
    goes_on = True
    seconds = 600

    @pytest.fixture(autouse=True)
    def _see_objects(self, s3: S3) -> None:
        self.objects = s3.folder / BUCKET / "vision"

    def has_checkpoint(self, batch: Batch) -> bool:
        """Look into the folder of the server."""
        return any((self.objects / batch.name / "checkpoints").rglob("*.json"))


def test_a_halving_goes_on_from_the_bucket_on_another_node(team: Team, ground: Ground) -> None:
    room = ROOMS[1]
    nodes = [losses.start_node(ground, number, room).place.name for number in (8, 9)]
    have_pools(team)
    team.have_program("code/climb.py", CLIMB)
    team.write("sweeps/moving.yaml", CLIMB_SPEC.replace("name: climb", "name: moving") + f"  pool: {room}\n")
    team.server.kubectl("cordon", nodes[1])

    try:
        with collecting.only_by_hand(team):
            batches = list(team.merge_specs("moving"))
            for _ in range(2):
                outcomes.until_trained(team, batches[-1])
                team.server.kubectl("cordon", nodes[0])
                team.server.kubectl("uncordon", nodes[1])
                nodes.reverse()
                assert Run.start(team).ended().code == 0
                team.pull()
                batches.append(team.batch("moving"))
            outcomes.until_trained(team, batches[-1])
            assert Run.start(team).ended().code == 0
            team.pull()
    finally:
        team.server.kubectl("delete", "node", *nodes)

    rows = [row for row in team.summary("moving") if row["status"] == "ok"]
    seen = sorted((int(row["params.epochs"]), int(row["metrics.done"])) for row in rows)
    assert seen == [(1, 0), (1, 0), (1, 0), (1, 0), (2, 1), (2, 1), (4, 2)]
    ran_on = [{record["node"] for record in team.records(batch)} for batch in batches]
    assert ran_on == [{nodes[0]}, {nodes[1]}, {nodes[0]}]
