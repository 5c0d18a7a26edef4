"""One repository, two clusters: each runs what its locks name, results of both meet on one branch, and one is given up.

Another team has its own repository, and its platform in the first cluster.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest

from tests.cluster import argocd, flux, platforms, second
from tests.cluster.children import until
from tests.cluster.machine import Machine
from tests.e2e.founding import Ground, digits, initialise, let_the_controller_in, load, secret, signing_key
from tests.e2e.storage import Storage
from tests.e2e.team import COLLECTOR, PATIENCE, Batch, Team

pytestmark = pytest.mark.full

NAMESPACE = "fleet"
SETTINGS = "controller: {controller}\nclusters:\n  eu: {{}}\n  us: {us}\n"
"""In place of the line that says that there is no controller."""
OF_THE_SERVER = ("managedFields", "resourceVersion")
WAITS = f'''"""A trial of which the second never ends in the cluster that is to be lost."""
import argparse, json, os, time
parser = argparse.ArgumentParser()
parser.add_argument("--x", type=float)
args = parser.parse_args()
while args.x > 1 and os.environ["SWEEP_NODE"] == "{second.PLACE.name}":
    time.sleep(1)
with open(os.environ["SWEEP_RESULT"], "w") as file:
    json.dump({{"score": args.x}}, file)
'''


@dataclass
class Fleet:
    """A team with two clusters."""

    ground: Ground
    eu: Team
    """The team before its first cluster, which other teams use, too."""
    us: Team
    """The same team before its second cluster."""
    second: Machine
    other: dict[str, Any]
    """The platform of the other team before this one came."""

    def settings_of_us(self, *more: str) -> str:
        server = f"argocd: {{cluster: '{self.second.server.address}', poll: 30s}}"
        return f"{{{', '.join([*more, *([server] if self.eu.controller == 'argocd' else [])])}}}"

    def look(self) -> None:
        """Have the controllers look at the branch, as a webhook does."""
        if self.eu.controller == "argocd":
            for name in ("eu", "us"):
                argocd.refresh_set(self.ground.machine, f"{NAMESPACE}-{name}")
        else:
            for machine in (self.ground.machine, self.second):
                if machine.children.is_alive(flux.KUSTOMIZE):
                    flux.refresh_all(machine, f"{NAMESPACE}-flux", "sweeps")


def platform_of(team: Team) -> dict[str, Any]:
    """Give the objects of a team's platform, without what the server itself writes."""
    listed = team.server.kubectl("get", "-o", "json", "-k", str(team.root / "clusters/platform")).stdout
    objects = {}
    for made in json.loads(listed)["items"]:
        metadata = {key: text for key, text in made["metadata"].items() if key not in OF_THE_SERVER}
        objects[f"{made['kind']} {metadata['name']}"] = {**made, "metadata": metadata, "status": None}
    return objects


@pytest.fixture(scope="module")
def machine_of_us(ground: Ground) -> Iterator[Machine]:
    made = second.start()
    assert made.node is not None
    load(ground.images, made.node)
    yield made
    made.children.end_all()


@pytest.fixture(scope="module")
def fleet(ground: Ground, team: Team, machine_of_us: Machine) -> Iterator[Fleet]:
    """Set the team up by the pages of its clusters; `team` is the other one, which a controller follows."""
    machine = machine_of_us
    if ground.controller == "flux":
        flux.start(machine)
    else:
        argocd.register(ground.machine, "us", machine.server)
    storage = Storage(machine.folder / "volumes")
    storage.make()
    root = ground.machine.folder / f"team-{NAMESPACE}"
    eu = Team(root, ground.forge, ground.machine.server, ground.controller, namespace=NAMESPACE)
    made = Fleet(ground, eu, replace(eu, server=machine.server), machine, platform_of(team))
    url = ground.forge.url(NAMESPACE)
    initialise(eu, ground, url)
    settings = (root / "sweepledger.yaml").read_text()
    several = SETTINGS.format(controller=ground.controller, us=made.settings_of_us())
    eu.write("sweepledger.yaml", settings.replace("controller: none\n", several))
    eu.sweep("cluster", "bootstrap", ground.controller, "--repo", url, "--branch", "main")
    eu.git("add", "--all")
    eu.git("commit", "-q", "-m", "Follow the branch in two clusters")
    eu.push()
    ground.forge.install_rule(NAMESPACE, (root / "clusters/pre-receive.sh").read_text())
    for name, own, volumes in (("eu", eu, ground.storage), ("us", made.us, storage)):
        *first, last = platforms.steps(root, name)
        for command in first:
            own.run(command)
        volumes.offer(own.server, NAMESPACE, own.collectors, {"mnist": digits(ground)})
        signing = signing_key(eu).read_text()
        secret(own, own.collectors, "sweep-git-write", COLLECTOR)
        secret(own, own.collectors, "sweep-git-signing", signing=signing)
        has_controller = ground.controller == "flux" or own is eu
        if has_controller:
            let_the_controller_in(own)
        (own if has_controller else eu).run(last)
    yield made
    _leave(made)


def _leave(fleet: Fleet) -> None:
    """Remove what of the team would trouble other tests in the first cluster."""
    if fleet.eu.controller == "argocd":
        application = f"{NAMESPACE}-us-platform"
        delete = ("delete", "--namespace=argocd", "--ignore-not-found")
        fleet.eu.server.kubectl(*delete, "applicationset", f"{NAMESPACE}-us", "--cascade=orphan")
        fleet.eu.server.kubectl(*delete, "application", application)


def test_results_of_both_clusters_come_to_one_branch(fleet: Fleet, team: Team) -> None:
    eu, us = fleet.eu, fleet.us
    for name in ("eu", "us"):
        eu.write_spec(f"in-{name}", parameters={"x": [1, 2]}, cluster=name)
    team.write_spec("beside", parameters={"x": [1]})
    here, there = eu.merge_specs("in-eu", "in-us")
    (beside,) = team.merge_specs("beside")
    fleet.look()

    for own, batch, other in ((eu, here, us), (us, there, eu)):
        until(f"{batch.name} has a Job", partial(own.jobs, batch), seconds=PATIENCE)
        assert not other.jobs(batch)
    for batch in (here, there):
        eu.until_recorded(batch)
    team.until_recorded(beside)

    nodes = {batch.sweep: {record["node"] for record in eu.records(batch)} for batch in (here, there)}
    assert nodes == {"in-eu": {"node-1"}, "in-us": {second.PLACE.name}}
    for batch in (here, there):
        assert [row["status"] for row in eu.summary(batch.sweep)] == ["ok", "ok"]
        assert len(eu.results_commits(batch)) == 1
    assert eu.active() == [".gitkeep"]


def test_no_object_of_the_other_team_was_touched(fleet: Fleet, team: Team) -> None:
    assert fleet.other
    assert platform_of(team) == fleet.other


@pytest.fixture(scope="module")
def lost(fleet: Fleet) -> Batch:
    """A batch of two trials, one of which has ended, in a cluster that is gone since."""
    eu, us = fleet.eu, fleet.us
    eu.have_program("code/waits.py", WAITS)
    command = ("python3", "code/waits.py", "${args}")
    eu.write_spec("lost", parameters={"x": [1, 2]}, command=command, cluster="us", timeout="30m")
    (batch,) = eu.merge_specs("lost")
    fleet.look()

    def is_halfway() -> bool:
        return sorted(pod["status"]["phase"] for pod in us.pods(batch)) == ["Running", "Succeeded"]

    until("one trial has ended, and one runs", is_halfway, seconds=PATIENCE)
    second.lose(fleet.second)
    return batch


@pytest.fixture(scope="module")
def again(fleet: Fleet, lost: Batch) -> Batch:
    """The batch that runs the trials of the lost cluster in the other one, by the steps of the page."""
    eu = fleet.eu
    eu.pull()
    settings = (eu.root / "sweepledger.yaml").read_text()
    before, after = f"us: {fleet.settings_of_us()}", f"us: {fleet.settings_of_us('lost: true')}"
    assert before in settings
    eu.write("sweepledger.yaml", settings.replace(before, after))
    path = f"sweeps/{lost.sweep}.yaml"
    eu.write(path, (eu.root / path).read_text().replace('  cluster: "us"\n', ""))
    eu.git("commit", "-q", "--all", "-m", "Give us up")
    eu.sweep("cancel", lost.sweep, "--replace")
    eu.sweep("cluster", "bootstrap", eu.controller)
    eu.commit("It is no more")
    eu.until_recorded(lost)
    eu.git("branch", "-q", "-d", f"ask-{lost.sweep}")
    (batch,) = eu.merge_specs(lost.sweep)
    fleet.look()
    eu.until_recorded(batch)
    return batch


def test_trials_of_a_lost_cluster_run_once_in_the_other(fleet: Fleet, lost: Batch, again: Batch) -> None:
    eu = fleet.eu

    assert lost.name != again.name
    assert eu.batch("lost", "archive").lock["cluster"] == "eu"
    assert [record["node"] for record in eu.records(again)] == ["node-1"] * 2
    assert not [record for record in eu.records(lost) if record["status"] == "ok"]
    assert [(row["status"], row["batch"]) for row in eu.summary("lost")] == [("ok", again.name)] * 2
    assert [len(eu.results_commits(batch)) for batch in (lost, again)] == [1, 1]


def test_a_cluster_that_comes_back_runs_and_records_nothing(fleet: Fleet, lost: Batch, again: Batch) -> None:
    eu, us = fleet.eu, fleet.us
    before = eu.git("rev-parse", "origin/main")

    second.resume(fleet.second)
    assert us.jobs(lost), "it knows of no loss"
    if eu.controller == "flux":
        flux.restart(fleet.second)

    def is_stopped() -> bool:
        fleet.look()
        return not us.jobs(lost)

    until("the Job is deleted", is_stopped, seconds=PATIENCE)
    until("its pods are gone", lambda: not us.pods(lost), seconds=PATIENCE)
    job = us.collect()

    def refuses() -> bool:
        logs = us.server.kubectl("logs", f"job/{job}", f"--namespace={us.collectors}", check=False)
        return "us was given up" in " ".join(logs.stdout.split())

    until("its collector refuses", refuses, seconds=PATIENCE)
    eu.git("fetch", "-q", "origin")
    assert eu.git("rev-parse", "origin/main") == before
