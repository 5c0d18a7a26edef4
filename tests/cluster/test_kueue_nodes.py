"""Queues that know how nodes are connected, and queues that ask an autoscaler for nodes before they admit.

The autoscaler is the test, which writes the status of the requests that Kueue makes.
"""

import json
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from sweepledger.formats import yaml
from tests.cluster import building, controller_files, jobset, kueue, kwok
from tests.cluster.apiserver import NoClusterToolsError, tool
from tests.cluster.children import until
from tests.cluster.fleet import Ask, Fleet, cluster, start_fleet
from tests.cluster.test_kueue import PATIENCE, is_complete, jobs
from tests.e2e.team import NAMESPACE

pytestmark = pytest.mark.usefixtures("needs_kustomize")

RACK = "example.org/rack"
POOLS = f"""
pools:
  fake:
    queue: fake
    tolerations: [{{key: {kwok.MARK}, value: fake}}]
    node: {{cpu: 1, memory: 1Gi}}
    max_nodes: 6
    topology: {{levels: [example.org/block, {RACK}, kubernetes.io/hostname], require: {RACK}}}
  asked:
    queue: asked
    tolerations: [{{key: {kwok.MARK}, value: fake}}]
    node: {{cpu: 1, memory: 1Gi}}
    max_nodes: 2
    provisioning: {{class: check-capacity.autoscaling.x-k8s.io, retries: 0}}
"""
"""Three racks of two nodes, each with room for one pod; and two nodes that the autoscaler vouches for."""
RACKS = {"a1": "a", "a2": "a", "b1": "b"}
"""The block of each rack."""
SECONDS = 20
REQUESTS = "provisioningrequests.autoscaling.x-k8s.io"
MOMENT = "2026-01-01T00:00:00Z"


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    """A team with both queues; skip by name where there can be none."""
    try:
        with cluster(nodes=0, seconds=SECONDS) as machine:
            kwok.add(
                machine,
                *(
                    kwok.node(f"{rack}-{number}", "fake", cpu="1", rack=rack, block=block)
                    for rack, block in RACKS.items()
                    for number in range(2)
                ),
                *(kwok.node(f"asked-{number}", "asked", cpu="1") for number in range(2)),
            )
            machine.server.define(tool(building.AUTOSCALER_CRDS), ("provisioningrequests",))
            kueue.start(machine, kueue.JOBS, kueue.JOB_SETS)
            jobset.start(machine)
            made = start_fleet(machine, "flux", pool=POOLS, shapes=("job-set",))
            samples = [*yaml.load_all((made.team.root / "clusters/optional/kueue.yaml").read_bytes())]
            machine.server.apply(*samples)  # again, as whoever changes a quota does
            yield made
    except NoClusterToolsError as error:
        pytest.skip(f"skipped: {error}")


def submit(fleet: Fleet, *asks: Ask) -> tuple[str, ...]:
    batches = fleet.ask(*asks)
    fleet.push()
    return batches


def withdraw(fleet: Fleet, sweep: str) -> None:
    fleet.team.sweep("cancel", sweep)
    fleet.push()


def racks_of_trials(fleet: Fleet, batch: str) -> dict[str, list[str]]:
    racks = {
        node["metadata"]["name"]: node["metadata"]["labels"].get(RACK, "none")
        for node in controller_files.objects(fleet.machine, "nodes")
    }
    found = defaultdict[str, list[str]](list)
    for pod in controller_files.objects(fleet.machine, "pods", NAMESPACE):
        labels, node = pod["metadata"]["labels"], pod["spec"].get("nodeName")
        if labels.get("sweepledger.dev/batch") == batch and node:
            found[labels["sweepledger.dev/index"]].append(racks[node])
    return dict(found)


def explained(fleet: Fleet, sweep: str) -> tuple[Mapping[str, int], str, str]:
    """Give the trials by cause, what is observed, and what to do."""
    data = json.loads(fleet.team.sweep("why", sweep, "--format", "json").stdout)["data"]
    groups = [group for batch in data["batches"] for group in batch["causes"]]
    counts = {group["cause"]: group["count"] for group in groups}
    says, remedy = (" | ".join(str(group[key]) for group in groups) for key in ("message", "remedy"))
    return counts, says, remedy


def until_explained(fleet: Fleet, sweep: str, words: str) -> tuple[Mapping[str, int], str, str]:
    until(f"it says {words!r}", lambda: words in explained(fleet, sweep)[1], seconds=PATIENCE)
    return explained(fleet, sweep)


def requests(fleet: Fleet) -> dict[str, dict[str, Any]]:
    shown = fleet.machine.server.kubectl("get", REQUESTS, f"--namespace={NAMESPACE}", "--output=json").stdout
    return {one["metadata"]["name"]: one for one in json.loads(shown)["items"]}


def answer(fleet: Fleet, name: str, type_: str, message: str) -> None:
    """Do what an autoscaler does: say what became of a request."""
    fields = {"status": "True", "reason": type_, "message": message, "lastTransitionTime": MOMENT}
    conditions = [{"type": kind, **fields} for kind in ("Accepted", type_)]
    patch = json.dumps({"status": {"conditions": conditions}})
    where = (f"--namespace={NAMESPACE}", "--subresource=status", "--type=merge", "--patch", patch)
    fleet.machine.server.kubectl("patch", REQUESTS, name, *where)


def requested(fleet: Fleet, known: set[str]) -> str:
    until("Kueue asks the autoscaler", lambda: uids(fleet) - known, seconds=PATIENCE)
    (name,) = (name for name, one in requests(fleet).items() if one["metadata"]["uid"] not in known)
    return name


def uids(fleet: Fleet) -> set[str]:
    return {one["metadata"]["uid"] for one in requests(fleet).values()}


def test_the_pods_of_each_distributed_trial_are_in_one_rack(fleet: Fleet) -> None:
    (batch,) = submit(fleet, Ask("racks", 3, 3, "job-set", nodes=2))

    until(
        "three trials of two pods run",
        lambda: sorted(map(len, racks_of_trials(fleet, batch).values())) == [2, 2, 2],
        seconds=PATIENCE,
    )

    racks = racks_of_trials(fleet, batch)
    assert all(first == second for first, second in racks.values()), racks
    assert {first for first, _ in racks.values()} == RACKS.keys()
    withdraw(fleet, "racks")


def test_a_trial_that_fits_in_no_rack_waits_and_why_says_so(fleet: Fleet) -> None:
    (batch,) = submit(fleet, Ask("large", 1, 1, "job-set", nodes=3))

    counts, says, _ = until_explained(fleet, "large", "topology")

    assert counts == {"suspended": 1}
    assert "it waits in queue fake" in says
    assert "2 out of 3" in says
    assert racks_of_trials(fleet, batch) == {}
    withdraw(fleet, "large")


def test_independent_trials_run_in_any_racks(fleet: Fleet) -> None:
    (batch,) = submit(fleet, Ask("anywhere", 6, 6))

    until("they came", lambda: jobs(fleet, batch), seconds=PATIENCE)
    until("all have run", lambda: all(map(is_complete, jobs(fleet, batch))), seconds=PATIENCE)

    (job,) = jobs(fleet, batch)
    assert job["status"]["succeeded"] == 6


def test_a_batch_starts_when_the_autoscaler_has_provided_its_nodes(fleet: Fleet) -> None:
    known = uids(fleet)
    (batch,) = submit(fleet, Ask("provided", 2, 2, pool="asked"))
    name = requested(fleet, known)

    counts, says, remedy = until_explained(fleet, "provided", "Pending")

    (job,) = jobs(fleet, batch)
    assert job["spec"]["suspend"] is True
    assert requests(fleet)[name]["spec"]["provisioningClassName"] == "check-capacity.autoscaling.x-k8s.io"
    assert counts == {"suspended": 2}
    assert "with its quota reserved: admission check" in says
    assert "get provisioningrequests" in remedy
    answer(fleet, name, "Provisioned", "capacity was found")
    until("all have run", lambda: all(map(is_complete, jobs(fleet, batch))), seconds=PATIENCE)


def test_a_batch_that_the_autoscaler_refuses_is_given_up_until_a_person_acts(
    fleet: Fleet,
) -> None:
    known = uids(fleet)
    (batch,) = submit(fleet, Ask("refused", 2, 2, pool="asked"))
    name = requested(fleet, known)
    answer(fleet, name, "Failed", "no zone has such machines")

    counts, says, remedy = until_explained(fleet, "refused", "has given it up")

    assert counts == {"suspended": 2}
    assert "were rejected" in says
    command = remedy.split("`")[1]
    assert command.startswith("kubectl ")
    known = uids(fleet)
    fleet.team.run(shlex.split(command))
    answer(fleet, requested(fleet, known), "Provisioned", "capacity was found")
    until("all have run", lambda: all(map(is_complete, jobs(fleet, batch))), seconds=PATIENCE)
