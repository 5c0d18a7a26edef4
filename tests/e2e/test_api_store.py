"""Results without any volume: records come from pods, which stay until the results are on the branch."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.children import until
from tests.e2e import collecting, outcomes
from tests.e2e.collecting import Run
from tests.e2e.controllers import Controller, until_in_sync
from tests.e2e.held_pods import HeldPods, LostNodes
from tests.e2e.stores import SECONDS, held, in_store, recorded_job, trials_see_only_their_own_files
from tests.e2e.team import COLLECTORS, NAMESPACE, Batch, Team

CLAIM = "persistentVolumeClaim"


@pytest.fixture(scope="module", autouse=True)
def _without_volume(team: Team, controller: Controller) -> Iterator[None]:
    with in_store(team, controller, "results: {store: api,"):
        yield


def record_trials(team: Team, controller: Controller, name: str, trials: int) -> Batch:
    """Merge a sweep of so many trials, and demand that it leaves records and nothing else."""
    scores = [number / 100 for number in range(trials)]
    team.write_spec(name, parameters={"x": scores}, parallelism=12, shape="indexed", timeout="5m")
    (batch,) = team.merge_specs(name)

    team.until_recorded(batch, seconds=1500)

    assert CLAIM not in recorded_job(team, batch)
    outcomes.is_recorded_once(team, batch, *scores)
    assert {record["ran"] for record in team.records(batch)} == {team.image("trainer")}
    until("no pod is held", lambda: not held(team, batch), seconds=SECONDS)
    until("Job and pods are gone", lambda: not team.jobs(batch) and not team.pods(batch), seconds=SECONDS)
    until_in_sync(controller, batch)
    return batch


def test_a_merged_spec_is_recorded_from_its_pods_which_then_go(team: Team, controller: Controller) -> None:
    record_trials(team, controller, "podded", 4)

    cron_job = team.get("cronjob", "sweep-collector", COLLECTORS)
    assert cron_job is not None
    assert CLAIM not in json.dumps(cron_job["spec"])


@pytest.mark.full
def test_trials_that_write_files_report_their_own_numbers(team: Team) -> None:
    trials_see_only_their_own_files(team, "api")


@pytest.mark.full
def test_a_hundred_trials_are_recorded_without_storage_class(
    team: Team, controller: Controller
) -> None:
    assert team.server.kubectl("get", "storageclasses", "--output=name").stdout == ""

    record_trials(team, controller, "hundred", 100)


@pytest.mark.full
def test_the_collector_may_change_nothing_of_a_pod_but_its_finalizer(team: Team) -> None:
    with collecting.only_by_hand(team):
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
class TestHeldPods(HeldPods):
    """A Job that is made anew trains again: nothing in its pods knows of earlier ones."""

    store = "api"
    keeps_records = False


@pytest.mark.full
class TestLostNodes(LostNodes):
    """The next attempt begins anew."""

    store = "api"
    numbers = (4, 5)
    goes_on = False
