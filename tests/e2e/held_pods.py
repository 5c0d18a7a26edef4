"""What holds for every store whose records wait in pods: two suites, of which each store's tests make a class."""

from typing import ClassVar

import pytest

from tests.cluster.children import until
from tests.e2e import collecting, losses, outcomes
from tests.e2e.collecting import Run
from tests.e2e.controllers import Controller
from tests.e2e.founding import Ground
from tests.e2e.gates import gate
from tests.e2e.pools import ROOMS, have_pools
from tests.e2e.stores import SECONDS, held, proof
from tests.e2e.team import NAMESPACE, PATIENCE, Batch, Team
from tests.e2e.watching import ALREADY, Watch

LINGER = '''"""A trial that waits, unless it finds a checkpoint of its own."""
import argparse, json, os, pathlib, time
parser = argparse.ArgumentParser()
parser.add_argument("--x", type=float)
parser.add_argument("--seconds", type=float)
args = parser.parse_args()
state = pathlib.Path(os.environ["SWEEP_CHECKPOINTS"], "state")
went_on = state.exists()
if not went_on:
    state.write_text("begun")
    time.sleep(args.seconds)
with open(os.environ["SWEEP_RESULT"], "w") as file:
    json.dump({"score": args.x, "went_on": int(went_on)}, file)
'''


@pytest.mark.usefixtures("by_hand")
class HeldPods:
    """A collector that is killed, two at once, pods and Jobs that are deleted, and what doctor says."""

    store: ClassVar[str]
    keeps_records: ClassVar[bool]
    """Whether a pod that starts anew finds the record of an earlier one."""

    def test_doctor_proves_it_from_inside_a_pod(self, team: Team) -> None:
        finding = proof(team)

        assert finding["state"] == "ok", finding
        assert team.server.kubectl("get", "jobs", f"--namespace={NAMESPACE}", "--output=name").stdout == ""

    def test_killed_between_push_and_release_the_next_run_releases_the_pods(self, team: Team) -> None:
        (batch,) = outcomes.trained(team, {f"{self.store}-killed": (0.0, 1.0)})
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

    def test_of_two_collectors_at_once_one_records_and_no_pod_stays(self, team: Team) -> None:
        (batch,) = outcomes.trained(team, {f"{self.store}-twice": (0.0, 1.0)})

        with gate(team.forge, "pre-receive") as server:
            runs = [Run.start(team) for _ in range(2)]
            until("both push at once", lambda: server.waiting == len(runs), seconds=SECONDS)
            server.open()
            ended = [run.ended() for run in runs]

        assert [result.code for result in ended] == [0, 0], ended
        outcomes.is_recorded_once(team, batch, 0.0, 1.0)
        assert held(team, batch) == []

    def test_pods_that_were_deleted_before_the_collection_are_recorded_all_the_same(self, team: Team) -> None:
        (batch,) = outcomes.trained(team, {f"{self.store}-deleted": (0.0, 1.0)})
        selected = f"--selector=sweepledger.dev/batch={batch.name}"
        team.server.kubectl("delete", "pods", selected, f"--namespace={NAMESPACE}", "--force", "--wait=false")
        assert len(held(team, batch)) == 2

        assert Run.start(team).ended().code == 0

        outcomes.is_recorded_once(team, batch, 0.0, 1.0)
        until("the pods are gone", lambda: not team.pods(batch), seconds=SECONDS)

    def test_remade_jobs_are_recorded_once(self, team: Team, controller: Controller, ground: Ground) -> None:
        watch = Watch(team, ground.storage.results)
        (batch,) = outcomes.trained(team, {f"{self.store}-anew": (0.0, 1.0)})
        before = watch.jobs(batch)

        watch.delete(batch)
        until("the Jobs are gone", lambda: not watch.jobs(batch), seconds=SECONDS)
        outcomes.apply_again(team, controller, batch)
        watch.until_ended(batch, but=before)
        words = watch.outputs(batch)
        assert len(held(team, batch)) == 4
        assert Run.start(team).ended().code == 0

        assert len(words) == 2
        assert all((ALREADY in text) is self.keeps_records for text in words.values()), words
        outcomes.is_recorded_once(team, batch, 0.0, 1.0)
        assert held(team, batch) == []


class LostNodes:
    """A node that is lost while a trial runs on it, and one that is lost after its trial has ended."""

    store: ClassVar[str]
    numbers: ClassVar[tuple[int, int]]
    """Of the nodes that are lost: a number serves once."""
    goes_on: ClassVar[bool]
    """Whether the next attempt finds the checkpoint of the one before."""
    seconds: ClassVar[int] = 60
    """For which an attempt without a checkpoint waits."""
    room = ROOMS[0]

    def has_checkpoint(self, batch: Batch) -> bool:  # noqa: ARG002 - for a store that keeps it
        return not self.goes_on

    def asked_for(self, team: Team, name: str, seconds: int) -> Batch:
        """Merge a sweep with one trial, which runs in the room."""
        have_pools(team)
        team.have_program("code/linger.py", LINGER)
        team.write_spec(
            name,
            parameters={"x": [1.0], "seconds": [seconds]},
            command=("python3", "code/linger.py", "${args}"),
            pool=self.room,
            shape="indexed",
            timeout="15m",
        )
        (batch,) = team.merge_specs(name)
        return batch

    def test_its_trial_is_tried_again_once_and_recorded(self, team: Team, ground: Ground) -> None:
        node = losses.start_node(ground, self.numbers[0], self.room)
        batch = self.asked_for(team, f"{self.store}-lost", self.seconds)
        lost = losses.running_pod(team, batch)
        until("the checkpoint is kept", lambda: self.has_checkpoint(batch), seconds=SECONDS)
        node.lose()

        with losses.given_up(ground, node, self.room):
            team.until_recorded(batch, seconds=900)

        (row,) = team.summary(batch.sweep)
        assert (row["status"], row["metrics.went_on"]) == ("ok", str(int(self.goes_on)))
        first, second = team.records(batch)
        assert (first["uid"], first["node"], first["reason"]) == (lost, node.place.name, "node-lost")
        assert (second["status"], second["node"]) == ("ok", losses.FIRST)
        assert len(team.results_commits(batch)) == 1
        until("no pod is held", lambda: not held(team, batch), seconds=PATIENCE)

    def test_a_trial_that_had_ended_is_recorded_by_what_is_left(self, team: Team, ground: Ground) -> None:
        node = losses.start_node(ground, self.numbers[1], self.room)
        with collecting.only_by_hand(team):
            batch = self.asked_for(team, f"{self.store}-ended", 0)
            outcomes.until_trained(team, batch)
            (pod,) = team.pods(batch)
            node.lose()
            with losses.given_up(ground, node, self.room):
                until("the pod is to go", lambda: _is_doomed(team, batch), seconds=PATIENCE)
                assert [each["metadata"]["uid"] for each in held(team, batch)] == [pod["metadata"]["uid"]]

                assert Run.start(team).ended().code == 0

        outcomes.is_recorded_once(team, batch, 1.0)
        (record,) = team.records(batch)
        assert (record["uid"], record["node"]) == (pod["metadata"]["uid"], node.place.name)
        until("the pod is gone", lambda: not team.pods(batch), seconds=PATIENCE)


def _is_doomed(team: Team, batch: Batch) -> bool:
    """Tell whether the control plane has deleted the pods of a node that is gone."""
    return all("deletionTimestamp" in pod["metadata"] for pod in team.pods(batch))
