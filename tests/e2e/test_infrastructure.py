"""Trials that infrastructure ended are tried again elsewhere, by themselves and within a bound, with `retries: 0`."""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from tests.cluster.children import until
from tests.cluster.node import Node, Place
from tests.e2e.founding import Ground
from tests.e2e.losses import FIRST
from tests.e2e.pools import LABEL, ROOMS, TAINT, have_pools
from tests.e2e.team import PATIENCE, Batch, Team
from tests.e2e.test_endings import nowhere
from tests.manifests import manifest

pytestmark = pytest.mark.full

SECONDS = 900
NODE = 4
"""Tests of lost nodes have two and three."""
REFUSING, WITHOUT_IMAGE = ROOMS
NOT_PULLED = ("ErrImagePull", "ImagePullBackOff")
SPEC: Mapping[str, Any] = {"retries": 0, "timeout": "20s", "infrastructure": {"retries": 1}}


@dataclass
class Repeated:
    """What came of the sweeps."""

    team: Team
    first: Mapping[str, Batch]
    """The batch that a person merged, by sweep."""
    failed_before: set[str]
    """Runs of the collector that had failed in other tests."""
    began: float = field(default_factory=time.monotonic)

    def say(self, what: str) -> None:
        """Print when something was seen."""
        print(f"{what} after {time.monotonic() - self.began:.0f} s", flush=True)

    def batches(self, sweep: str) -> list[str]:
        self.team.git("fetch", "-q", "origin")
        names = [
            name
            for place in ("active", "archive")
            for name in self.team.git("ls-tree", "--name-only", f"origin/main:overlays/{place}").split()
            if name.startswith(f"{sweep}-b")
        ]
        return sorted(names, key=lambda name: int(name.removeprefix(f"{sweep}-b").partition("-")[0]))

    def until_repeated(self, sweep: str) -> Batch:
        """Wait until trials of a sweep are requested again; give the batch."""
        until(f"{sweep} is repeated", lambda: len(self.batches(sweep)) == 2, seconds=SECONDS, pause=1)
        self.team.pull()
        name = self.batches(sweep)[1]
        self.say(f"{sweep} is requested again")
        return Batch(name, sweep, self.team.root / "overlays/active" / name)


def start_node_without_trainer(ground: Ground, number: int, room: str) -> Node:
    """Start a node of a pool that no registry gives the image of the trials."""
    machine, place = ground.machine, Place(number)
    labels, taints = {f"{LABEL}-{room}": "yes"}, {TAINT: "NoSchedule"}
    node = Node(machine.folder / place.name, machine.children, machine.server, place, labels, taints)
    node.start()
    for image in (ground.images.pause, ground.images.collector):
        node.load(image.archive)
    return node


def let_a_node_refuse_it(result: Repeated, ground: Ground, node: Node, batch: Batch) -> None:
    """Bind a pod that waits for its pool to a node of another one: its kubelet refuses it, as its labels differ."""
    team, kubectl = result.team, ground.machine.server.kubectl
    until("the pod waits", lambda: len(team.pods(batch)) == 1, seconds=PATIENCE, pause=0.5)
    (pod,) = team.pods(batch)
    name, space = pod["metadata"]["name"], pod["metadata"]["namespace"]
    target = {"apiVersion": "v1", "kind": "Node", "name": node.place.name}
    binding = manifest("Binding", name, space, target=target)
    file = team.root.parent / "binding.json"
    file.write_text(json.dumps(binding))
    kubectl("create", "--raw", f"/api/v1/namespaces/{space}/pods/{name}/binding", "-f", str(file))
    result.say("the pod is bound to a node that refuses it")
    kubectl("label", "node", FIRST, f"{LABEL}-{REFUSING}=yes")


def end_waiting_for_image(result: Repeated, batch: Batch) -> None:
    """Shorten the deadline of a pod whose image no registry serves: by default it waits for 15 minutes."""
    team = result.team

    def waits() -> bool:
        states = [
            pod["status"].get("containerStatuses", [{}])[0].get("state", {}) for pod in team.pods(batch)
        ]
        return [state.get("waiting", {}).get("reason") in NOT_PULLED for state in states] == [True]

    until(f"the image of {batch.name} cannot be pulled", waits, seconds=PATIENCE, pause=0.5)
    (pod,) = team.pods(batch)
    team.shorten_deadline(pod, 1)
    result.say(f"the pod of {batch.name} has waited long enough for its image")


@pytest.fixture(scope="module")
def repeated(team: Team, ground: Ground) -> Iterator[Repeated]:
    """Three sweeps: one refused by a node, one without an image for a while, one without an image for good."""
    have_pools(team)
    kubectl = ground.machine.server.kubectl
    node = start_node_without_trainer(ground, NODE, WITHOUT_IMAGE)
    team.write_spec("refused", parameters={"x": [1]}, pool=REFUSING, **SPEC)
    team.write_spec("unpulled", parameters={"x": [1]}, pool=WITHOUT_IMAGE, **SPEC)
    team.write_spec("hopeless", parameters={"x": [1]}, image=nowhere(team), **SPEC)
    batches = team.merge_specs("refused", "unpulled", "hopeless")
    result = Repeated(team, {batch.sweep: batch for batch in batches}, failed_runs(team))
    try:
        let_a_node_refuse_it(result, ground, node, result.first["refused"])
        for sweep in ("unpulled", "hopeless"):
            end_waiting_for_image(result, result.first[sweep])
        refused, again = (result.until_repeated(sweep) for sweep in ("refused", "unpulled"))
        node.load(ground.images.trainer.archive)
        result.say("the node has the image")
        hopeless = result.until_repeated("hopeless")
        end_waiting_for_image(result, hopeless)
        for batch in (refused, again, hopeless):
            team.until_recorded(batch, seconds=SECONDS)
            result.say(f"{batch.name} is recorded")
        yield result
    finally:
        kubectl("delete", "node", node.place.name, "--ignore-not-found")
        kubectl("label", "node", FIRST, f"{LABEL}-{REFUSING}-")


def failed_runs(team: Team) -> set[str]:
    """Name the runs of the collector that have failed, of those that the cluster still knows."""
    listed = team.server.ask(f"/apis/batch/v1/namespaces/{team.collectors}/jobs")
    assert listed is not None
    return {job["metadata"]["name"] for job in listed["items"] if job["status"].get("failed")}


def recorded(result: Repeated, sweep: str) -> list[tuple[str, str | None, str | None]]:
    """Give status, reason and node of each record of a sweep, by batch."""
    return [
        (record["status"], record["reason"], record["node"])
        for name in result.batches(sweep)
        for record in result.team.records(Batch(name, sweep, result.team.root / "overlays/archive" / name))
    ]


def test_a_trial_that_a_node_refused_ends_well_on_another_node(repeated: Repeated) -> None:
    assert recorded(repeated, "refused") == [
        ("failed", "refused-by-node", f"node-{NODE}"),
        ("ok", None, FIRST),
    ]
    (row,) = repeated.team.summary("refused")
    assert (row["status"], row["attempts"], row["batch"]) == ("ok", "1", repeated.batches("refused")[1])


def test_a_trial_whose_image_no_registry_served_ends_well_once_one_does(repeated: Repeated) -> None:
    (first, second) = recorded(repeated, "unpulled")

    assert first[:2] in {("failed", "start-failed"), ("failed", "image-not-pulled")}
    assert second == ("ok", None, f"node-{NODE}")
    (row,) = repeated.team.summary("unpulled")
    assert (row["status"], row["attempts"]) == ("ok", "1")


def test_what_never_began_is_charged_nothing(repeated: Repeated) -> None:
    for sweep in ("refused", "unpulled", "hopeless"):
        name = repeated.batches(sweep)[0]
        path = f"origin/main:results/{sweep}/records/{name}.jsonl"
        for line in repeated.team.git("show", path).splitlines()[1:]:
            start, end = json.loads(line)["observed"]
            assert start == end


def test_at_the_bound_nothing_more_is_requested_and_why_says_so(repeated: Repeated) -> None:
    team = repeated.team
    for _ in range(2):
        job = team.collect()
        until("the collector ran", partial(_has_run, team, job), seconds=PATIENCE, pause=1)

    assert len(repeated.batches("hopeless")) == 2
    assert {row["status"] for row in team.summary("hopeless")} == {"failed"}
    team.pull()
    said = " ".join(team.sweep("why", "hopeless").stdout.split())
    assert "infrastructure ended it in 2 batches" in said
    assert "run.infrastructure.retries was 1, so nothing requests it again" in said
    assert "sweep retry hopeless" in said


def test_no_run_of_the_collector_failed(repeated: Repeated) -> None:
    assert failed_runs(repeated.team) <= repeated.failed_before


def test_the_results_can_be_verified(repeated: Repeated) -> None:
    repeated.team.pull()
    for sweep in ("refused", "unpulled", "hopeless"):
        assert repeated.team.sweep("verify", sweep, check=False).returncode in {0, 5}
        output = repeated.team.sweep("verify", sweep, "--format=json", check=False).stdout
        (verified,) = json.loads(output)["data"]["sweeps"]
        assert verified["differences"] == []


def _has_run(team: Team, job: str) -> bool:
    made = team.get("job", job, team.collectors)
    return made is not None and bool(made["status"].get("succeeded"))
