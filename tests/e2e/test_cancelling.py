"""Hazard: a batch is cancelled by commit, while it runs or before it could begin; what was finished stays."""

import time
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.cluster.children import until
from tests.e2e.controllers import Controller, until_in_sync
from tests.e2e.founding import Ground
from tests.e2e.team import PATIENCE, RUN, Batch, Team

PATIENT = '''"""A trial that takes its time; asked to end it says so, and goes on where it is stubborn."""
import argparse, json, os, signal, sys, time
parser = argparse.ArgumentParser()
parser.add_argument("--long", type=int)
parser.add_argument("--stubborn", type=int)
args = parser.parse_args()
def asked(*_):
    print("asked to end", flush=True)
    if not args.stubborn:
        sys.exit(1)
signal.signal(signal.SIGTERM, asked)
print("trained", flush=True)
end = time.monotonic() + args.long * float(os.environ["PATIENCE"])
while time.monotonic() < end:
    time.sleep(0.1)
with open(os.environ["SWEEP_RESULT"], "w") as file:
    json.dump({"score": args.long + 2 * args.stubborn}, file)
'''
COMMAND = ("python3", "code/patient.py", "${args}")
VALUES = {"stubborn": [0, 1], "long": [0, 1]}
ENOUGH: Any = RUN["resources"]
TOO_MUCH = {**ENOUGH, "cpu": "1000"}
"""No node has that, so no pod of it is ever placed."""


@dataclass
class Story:
    """Two batches that were cancelled by commit: one while half of it ran, one that found no node."""

    team: Team
    ground: Ground
    halfway: Batch
    nowhere: Batch
    asked_to_end: dict[str, float] = field(default_factory=dict)
    """Seconds from the push until a pod was asked to end."""
    gone_after: float = 0

    def pods(self) -> list[dict[str, Any]]:
        return self.team.pods(self.halfway) + self.team.pods(self.nowhere)

    def printed_lines(self, index: int) -> list[str]:
        """Give what a trial of the running batch has printed, all attempts together."""
        folder = self.ground.storage.results / self.halfway.name / str(index)
        return [line for path in sorted(folder.glob("*.out")) for line in path.read_text().splitlines()]

    def is_halfway(self) -> bool:
        """Tell whether two trials are done, two run, and none of the other batch could begin."""
        halfway = sorted(pod["status"]["phase"] for pod in self.team.pods(self.halfway))
        unplaced = [
            condition["reason"]
            for pod in self.team.pods(self.nowhere)
            for condition in pod["status"].get("conditions", [])
            if condition["type"] == "PodScheduled" and condition["status"] == "False"
        ]
        have_begun = all(self.printed_lines(index) for index in range(4))
        return halfway == ["Running"] * 2 + ["Succeeded"] * 2 and len(unplaced) == 4 and have_begun

    def watch_them_end(self) -> None:
        """Note when pods were asked to end, and when the last one was gone."""
        began = time.monotonic()

        def are_gone() -> bool:
            pods = self.pods()
            for pod in pods:
                if "deletionTimestamp" in pod["metadata"]:
                    self.asked_to_end.setdefault(pod["metadata"]["name"], time.monotonic() - began)
            return not pods

        until("the pods of cancelled batches are gone", are_gone, seconds=PATIENCE, pause=0.5)
        self.gone_after = time.monotonic() - began


def _ask(team: Team, *, patience: int, resources: object) -> None:
    """Ask for one batch as a single Job that runs three at once, and for one as a Job a trial."""
    common: dict[str, Any] = {"parameters": VALUES, "command": COMMAND, "retries": 0, "timeout": "15m"}
    team.write_spec("halfway", environment={"PATIENCE": str(patience)}, **common)
    team.write_spec("nowhere", environment={"PATIENCE": "0"}, resources=resources, parallelism=4, **common)


@pytest.fixture(scope="module")
def story(team: Team, ground: Ground) -> Story:
    team.write("code/patient.py", PATIENT)
    team.commit("A trial that takes its time")
    _ask(team, patience=900, resources=TOO_MUCH)
    halfway, nowhere = team.merge_specs("halfway", "nowhere")
    story = Story(team, ground, halfway, nowhere)
    until("half of one has run, and nothing of the other", story.is_halfway, seconds=PATIENCE, pause=1)
    for name in ("halfway", "nowhere"):
        team.sweep("cancel", name)
    team.sweep("check", "--base", "origin/main")
    team.push()
    story.watch_them_end()
    team.collect()
    team.until_recorded(halfway)
    team.until_recorded(nowhere)
    print(f"asked to end after {story.asked_to_end}; gone after {story.gone_after:.1f} s")
    return story


def test_trials_of_a_cancelled_batch_are_asked_to_end_and_ended_within_the_grace(
    story: Story,
) -> None:
    by_index = {record["index"]: record for record in story.team.records(story.halfway)}

    # A launcher that the kubelet had to kill would have left no record.
    assert [by_index[index]["reason"] for index in (1, 3)] == ["signal-15"] * 2
    assert [story.printed_lines(index) for index in (1, 3)] == [["trained", "asked to end"]] * 2
    assert [story.printed_lines(index) for index in (0, 2)] == [["trained"]] * 2


def test_what_was_finished_stays_and_the_rest_is_cancelled_by_one_commit(
    story: Story,
) -> None:
    rows = {row["index"]: row for row in story.team.summary("halfway")}

    assert [rows[index]["status"] for index in "0123"] == ["ok", "cancelled", "ok", "cancelled"]
    assert [rows[index]["metrics.score"] for index in "02"] == ["0", "2"]
    assert story.team.results_commits(story.halfway) == [
        f"results(halfway): 2/4 trials, best score 2 ({rows['2']['trial']})"
    ]


def test_a_batch_that_found_no_node_is_cancelled_as_well(story: Story) -> None:
    rows = story.team.summary("nowhere")

    assert [(row["status"], row["attempts"]) for row in rows] == [("cancelled", "0")] * 4
    assert len(story.team.results_commits(story.nowhere)) == 1


def test_nothing_of_a_cancelled_batch_comes_back(story: Story, controller: Controller) -> None:
    story.team.pull()
    story.team.write("README.md", "What has nothing to do with it.\n")
    story.team.commit("Something else")

    controller.look()

    until_in_sync(controller, story.halfway, story.nowhere)
    for batch in (story.halfway, story.nowhere):
        assert (story.team.jobs(batch), story.team.pods(batch)) == ([], [])
        assert len(story.team.results_commits(batch)) == 1


def test_a_retry_asks_for_what_was_cancelled_and_for_nothing_else_and_that_runs(story: Story) -> None:
    team = story.team
    team.pull()
    cancelled = {row["trial"] for row in team.summary("halfway") if row["status"] == "cancelled"}
    _ask(team, patience=0, resources=ENOUGH)
    team.commit("Less patience, and CPUs that there are")
    for name in ("halfway", "nowhere"):
        team.sweep("retry", name)

    team.push()
    again = {name: team.batch(name) for name in ("halfway", "nowhere")}
    for batch in again.values():
        team.until_recorded(batch)

    rows = team.summary("halfway")
    assert {row["trial"] for row in rows if row["batch"] == again["halfway"].name} == cancelled
    assert [row["batch"] for row in team.summary("nowhere")] == [again["nowhere"].name] * 4
    assert [row["status"] for name in again for row in team.summary(name)] == ["ok"] * 8
