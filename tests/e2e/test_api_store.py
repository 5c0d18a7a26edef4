"""Results without any volume: records come from pods, which stay until the results are on the branch."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.cluster.children import until
from tests.e2e import collecting, outcomes
from tests.e2e.collecting import Run
from tests.e2e.controllers import Controller, until_in_sync
from tests.e2e.founding import Ground
from tests.e2e.gates import gate
from tests.e2e.pools import LABEL, ROOMS, have_pools
from tests.e2e.team import COLLECTORS, NAMESPACE, PATIENCE, REPOSITORY, Batch, Team
from tests.e2e.test_lost_node import running_pod, start_node

FINALIZER = "sweepledger.dev/record"
RESULTS = "results: {claim: sweep-results,"
WITHOUT_VOLUME = "results: {store: api,"
SECONDS = 120.0

pytestmark = pytest.mark.full


@pytest.fixture(scope="module", autouse=True)
def _without_volume(team: Team, controller: Controller) -> Iterator[None]:
    """Let the settings name no volume, and the platform have none; afterwards both are as they were."""
    team.until_idle()
    team.pull()
    change_store(team, controller, RESULTS, WITHOUT_VOLUME)
    yield
    team.until_idle()
    team.pull()
    change_store(team, controller, WITHOUT_VOLUME, RESULTS)


def change_store(team: Team, controller: Controller, before: str, after: str) -> None:
    settings = (team.root / "sweepledger.yaml").read_text()
    assert before in settings
    team.write("sweepledger.yaml", settings.replace(before, after))
    team.sweep("bootstrap", team.controller, "--repo", team.forge.url(REPOSITORY), "--branch", "main")
    team.commit("Let results take another way")
    team.apply_platform()
    controller.look()
    until_in_sync(controller)


@pytest.fixture
def by_hand(team: Team) -> Iterator[None]:
    """Let the collector run when a test says so."""
    with collecting.only_by_hand(team):
        yield


def held(team: Team, batch: Batch) -> list[dict[str, Any]]:
    """Give the pods of a batch that stay for their records."""
    return [pod for pod in team.pods(batch) if FINALIZER in pod["metadata"].get("finalizers", ())]


def test_a_hundred_trials_are_recorded_in_a_cluster_without_a_storage_class(
    team: Team, controller: Controller
) -> None:
    scores = [number / 100 for number in range(100)]
    classes = team.server.kubectl("get", "storageclasses", "--output=name").stdout
    team.write_spec("hundred", parameters={"x": scores}, parallelism=12, shape="indexed", timeout="5m")
    (batch,) = team.merge_specs("hundred")

    team.until_recorded(batch, seconds=1500)

    assert classes == ""
    assert "persistentVolumeClaim" not in json.dumps(yaml.safe_load((batch_job(team, batch)).encode()))
    cron_job = team.get("cronjob", "sweep-collector", COLLECTORS)
    assert cron_job is not None
    assert "persistentVolumeClaim" not in json.dumps(cron_job["spec"])
    outcomes.is_recorded_once(team, batch, *scores)
    assert {record["ran"] for record in team.records(batch)} == {team.image("trainer")}
    until("no pod is held", lambda: not held(team, batch), seconds=SECONDS)
    until("Job and pods are gone", lambda: not team.jobs(batch) and not team.pods(batch), seconds=SECONDS)
    until_in_sync(controller, batch)


def batch_job(team: Team, batch: Batch) -> str:
    """Give the patch or the Jobs of a recorded batch, as history has them."""
    (commit,) = team.git("log", "-1", "--format=%H", "--", f"results/{batch.sweep}").split()
    return team.git("show", f"{commit}^:overlays/active/{batch.name}/job.yaml")


def test_killed_between_push_and_release_the_next_run_releases_the_pods(team: Team, by_hand: None) -> None:
    (batch,) = outcomes.trained(team, {"api-killed": (0.0, 1.0)})
    assert len(held(team, batch)) == 2

    with gate(team.forge, "post-receive") as answer:
        run = Run.start(team)
        until("the server has taken it", lambda: answer.waiting, seconds=SECONDS)
        run.kill()
    until("it is recorded", lambda: team.is_recorded(batch), seconds=SECONDS)
    assert len(held(team, batch)) == 2
    ended = Run.start(team).ended()

    assert ended.code == 0, ended
    assert held(team, batch) == []
    outcomes.is_recorded_once(team, batch, 0.0, 1.0)


def test_of_two_collectors_at_once_one_records_and_no_pod_stays(team: Team, by_hand: None) -> None:
    (batch,) = outcomes.trained(team, {"api-twice": (0.0, 1.0)})

    with gate(team.forge, "pre-receive") as server:
        runs = [Run.start(team) for _ in range(2)]
        until("both push at once", lambda: server.waiting == len(runs), seconds=SECONDS)
        server.open()
        ended = [run.ended() for run in runs]

    assert [result.code for result in ended] == [0, 0], ended
    outcomes.is_recorded_once(team, batch, 0.0, 1.0)
    assert held(team, batch) == []


def test_pods_that_were_deleted_before_the_collection_are_recorded_all_the_same(
    team: Team, by_hand: None
) -> None:
    (batch,) = outcomes.trained(team, {"api-deleted": (0.0, 1.0)})
    selected = f"--selector=sweepledger.dev/batch={batch.name}"
    team.server.kubectl("delete", "pods", selected, f"--namespace={NAMESPACE}", "--force", "--wait=false")
    assert len(held(team, batch)) == 2

    assert Run.start(team).ended().code == 0

    outcomes.is_recorded_once(team, batch, 0.0, 1.0)
    until("the pods are gone", lambda: not team.pods(batch), seconds=SECONDS)


def test_the_collector_may_change_nothing_of_a_pod_but_its_finalizer(team: Team, by_hand: None) -> None:
    (batch,) = outcomes.trained(team, {"api-rights": (0.0,)})
    (pod,) = held(team, batch)
    name, account = pod["metadata"]["name"], f"system:serviceaccount:{COLLECTORS}:sweep-collector"

    def patched(metadata: dict[str, Any]) -> str:
        patch = f"--patch={json.dumps({'metadata': metadata})}"
        words = ("patch", "pod", name, f"--namespace={NAMESPACE}", f"--as={account}", patch)
        return team.server.kubectl(*words, check=False).stderr

    assert "changes nothing but the finalizer" in patched({"annotations": {"a": "b"}})
    assert "changes nothing but the finalizer" in patched({"labels": {"sweepledger.dev/batch": "other"}})
    (owner,) = pod["metadata"]["ownerReferences"]
    gone = {**owner, "uid": "00000000-0000-4000-8000-000000000000", "controller": False}
    assert "changes nothing but the finalizer" in patched({"ownerReferences": [gone]})
    assert Run.start(team).ended().code == 0
    outcomes.is_recorded_once(team, batch, 0.0)


@pytest.mark.full
def test_the_trial_of_a_lost_node_is_tried_again_and_nothing_of_it_stays(team: Team, ground: Ground) -> None:
    have_pools(team)
    room = ROOMS[0]
    node = start_node(ground, 4, room)
    team.write_spec(
        "api-lost", parameters={"x": [1], "seconds": [60]}, pool=room, shape="indexed", timeout="15m"
    )
    (batch,) = team.merge_specs("api-lost")
    lost = running_pod(team, batch)
    node.lose()
    kubectl = ground.machine.server.kubectl
    kubectl("label", "node", "node-1", f"{LABEL}-{room}=yes")

    try:
        kubectl("delete", "node", node.place.name)
        team.until_recorded(batch, seconds=900)
    finally:
        kubectl("delete", "node", node.place.name, "--ignore-not-found")
        kubectl("label", "node", "node-1", f"{LABEL}-{room}-")

    (row,) = team.summary("api-lost")
    (record,) = team.records(batch)[:1]
    assert (row["status"], record["node"]) == ("ok", "node-1")
    assert record["uid"] != lost
    until("no pod is held", lambda: not held(team, batch), seconds=PATIENCE)
