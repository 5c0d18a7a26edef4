"""A node that is gone: its trials wait, alone or in a pack, and are tried again once somebody gives the node up."""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.cluster.children import until
from tests.cluster.node import Node
from tests.e2e.founding import Ground
from tests.e2e.losses import running_pod, start_node
from tests.e2e.pools import LABEL, ROOMS, have_pools
from tests.e2e.team import NAMESPACE, Batch, Team

pytestmark = pytest.mark.full

TOLERATION = 15
"""Seconds for which a pod of these tests bears that its node does not answer: by default 300."""
QUIET = 45
"""Seconds after which nobody would wait any more who wanted to try again by himself."""
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
SPEC: Mapping[str, Any] = {"shape": "indexed", "timeout": "15m", "retries": 0}
PACKED = ROOMS[1]
"""The room of a pod with two trials, of which the first runs when the node is lost."""


@dataclass
class Lost:
    """A sweep whose only pod runs on a node that is gone."""

    batch: Batch
    node: Node
    pod: str
    """Its uid."""
    trials: int
    """Of the pod, and so of the sweep."""
    began: float = field(default_factory=time.monotonic)

    def say(self, what: str) -> None:
        """Print when something was seen, counted from the loss."""
        print(f"{self.batch.sweep}: {what} after {time.monotonic() - self.began:.0f} s", flush=True)


@pytest.fixture(scope="module")
def lost(team: Team, ground: Ground) -> Iterator[Mapping[str, Lost]]:
    """Two nodes, each with a trial, both gone; the first node would now take the trials in."""
    have_pools(team)
    nodes = {room: start_node(ground, number, room) for number, room in enumerate(ROOMS, start=2)}
    for room in ROOMS:
        xs, run = ([1, 2], {**SPEC, "pack": {"trials": 2}}) if room == PACKED else ([1], SPEC)
        team.write_spec(f"lost-{room}", parameters={"x": xs, "seconds": [60]}, pool=room, **run)
    batches = dict(zip(ROOMS, team.merge_specs(*(f"lost-{room}" for room in ROOMS)), strict=True))
    losses = {
        room: Lost(batch, nodes[room], running_pod(team, batch), trials=2 if room == PACKED else 1)
        for room, batch in batches.items()
    }
    for room, item in losses.items():
        _be_impatient(team, item)
        item.node.lose()
        item.began = time.monotonic()
        ground.machine.server.kubectl("label", "node", "node-1", f"{LABEL}-{room}=yes")
    try:
        yield losses
    finally:
        for room, item in losses.items():
            ground.machine.server.kubectl("delete", "node", item.node.place.name, "--ignore-not-found")
            ground.machine.server.kubectl("label", "node", "node-1", f"{LABEL}-{room}-")


def test_the_status_names_the_lost_node_and_the_ways_out(
    team: Team, lost: Mapping[str, Lost]
) -> None:
    def are_missed() -> bool:
        return all(_tally(team, entry)["node_lost"] == entry.trials for entry in lost.values())

    until("the status says so", are_missed, seconds=300, pause=2)
    for item in lost.values():
        item.say("`sweep status --cluster` says node lost")

        (remark,) = _tally(team, item)["remarks"]
        assert remark["kind"] == "node lost"
        assert item.node.place.name in remark["message"]
        assert "kubectl delete node" in remark["hint"]
        assert OUT_OF_SERVICE in remark["hint"]
        assert "node lost" in team.sweep("status", item.batch.sweep, "--cluster").stdout


def test_the_trial_of_a_lost_node_waits(
    team: Team, lost: Mapping[str, Lost]
) -> None:
    until("the pods are to go", lambda: all(_is_doomed(team, entry) for entry in lost.values()), seconds=300)
    for item in lost.values():
        item.say("the control plane gives up the pod")

    time.sleep(QUIET)

    for item in lost.values():
        assert [pod["metadata"]["uid"] for pod in team.pods(item.batch)] == [item.pod]
        assert not team.is_recorded(item.batch)
        assert _tally(team, item)["node_lost"] == item.trials
        item.say("its trial still waits")


@pytest.mark.parametrize(
    ("room", "way"),
    [
        pytest.param(ROOMS[0], ("delete", "node"), id="the node is deleted"),
        pytest.param(ROOMS[1], ("taint", "node"), id="the node is out of service"),
    ],
)
def test_once_its_node_is_given_up_a_trial_is_tried_again_once_and_recorded(
    team: Team, lost: Mapping[str, Lost], room: str, way: tuple[str, ...]
) -> None:
    item = lost[room]
    taint = (OUT_OF_SERVICE,) if "taint" in way else ()
    pods = {item.pod}

    team.server.kubectl(*way, item.node.place.name, *taint)
    item.say(f"`kubectl {' '.join(way)}`")

    until("it is recorded", lambda: _is_recorded(team, item, pods), seconds=600, pause=1)
    item.say("recorded")
    records = team.records(item.batch)
    assert [row["status"] for row in team.summary(item.batch.sweep)] == ["ok"] * item.trials
    assert [record["node"] for record in records] == ["node-1"] * item.trials
    disrupted = [record["disruptions"] for record in sorted(records, key=lambda record: record["index"])]
    assert disrupted == [1, 0][: item.trials], "a trial that had not begun has lost nothing"
    assert len(pods) == 2
    assert len(team.results_commits(item.batch)) == 1
    until("the Job is pruned", lambda: not team.jobs(item.batch), seconds=300, pause=1)


def _be_impatient(team: Team, item: Lost) -> None:
    """Shorten the time for which a pod bears that its node does not answer."""
    (pod,) = team.pods(item.batch)
    borne = [
        {**each, "tolerationSeconds": TOLERATION} if "tolerationSeconds" in each else each
        for each in pod["spec"]["tolerations"]
    ]
    patch = json.dumps({"spec": {"tolerations": borne}})
    name, space = pod["metadata"]["name"], f"--namespace={NAMESPACE}"
    team.server.kubectl("patch", "pod", name, space, "--type=merge", f"--patch={patch}")


def _tally(team: Team, item: Lost) -> dict[str, Any]:
    output = team.sweep("status", item.batch.sweep, "--cluster", "--format=json").stdout
    (sweep,) = json.loads(output)["data"]["sweeps"]
    assert isinstance(sweep, dict)
    return sweep


def _is_doomed(team: Team, item: Lost) -> bool:
    return all("deletionTimestamp" in pod["metadata"] for pod in team.pods(item.batch))


def _is_recorded(team: Team, item: Lost, pods: set[str]) -> bool:
    known = len(pods)
    pods |= {pod["metadata"]["uid"] for pod in team.pods(item.batch)}
    if len(pods) > known:
        item.say("its trial is tried again")
    return team.is_recorded(item.batch)
