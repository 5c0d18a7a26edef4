"""Sweeps that wait for their turn in a queue of Kueue, while Argo CD or Flux looks at the same Jobs."""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from sweepledger.engine.cluster.kubectl import Kubectl
from sweepledger.formats import yaml
from sweepledger.operations.collection.cluster_evidence import find_cluster_batches
from sweepledger.repo import batches
from tests.cluster import controller_files, kueue, kwok
from tests.cluster.apiserver import NoClusterToolsError
from tests.cluster.children import until
from tests.cluster.fleet import Ask, Fleet, cluster, start_fleet
from tests.e2e.team import NAMESPACE

pytestmark = pytest.mark.usefixtures("needs_kustomize")

POOL = """
pools:
  fake:
    queue: fake
    node: {cpu: 2, memory: 1Gi}
    max_nodes: 1
"""
"""Room for two trials at once."""
SECONDS = 4
PATIENCE = 300

Job = Mapping[str, Any]


@pytest.fixture(scope="module", params=["flux", "argocd"])
def fleet(request: pytest.FixtureRequest) -> Iterator[Fleet]:
    """A team with a queue, whose trials take some seconds; skip by name where there can be none."""
    try:
        with cluster(nodes=2, seconds=SECONDS) as machine:
            kueue.start(machine)
            made = start_fleet(machine, request.param, pool=POOL)
            samples = yaml.load_all((made.team.root / "clusters/optional/kueue.yaml").read_bytes())
            machine.server.apply(*map(tolerant, samples))
            yield made
    except NoClusterToolsError as error:
        pytest.skip(f"skipped: {error}")


@pytest.fixture
def submit_sweeps(fleet: Fleet) -> Iterator[Callable[..., tuple[str, ...]]]:
    """Ask for sweeps, push them, and wait until each has a Job; withdraw them at the end."""
    sweeps: list[str] = []

    def ask(*asks: Ask) -> tuple[str, ...]:
        sweeps.extend(item.name for item in asks)
        names = fleet.ask(*asks)
        fleet.push()
        until("they came", lambda: all(jobs(fleet, name) for name in names), seconds=PATIENCE)
        return names

    yield ask
    for sweep in sweeps:
        fleet.team.sweep("cancel", sweep, check=False)
    fleet.push()
    until("all is pruned", lambda: not jobs(fleet), seconds=PATIENCE)


def tolerant(sample: Mapping[str, Any]) -> dict[str, Any]:
    """Let a flavor's pods onto the fake nodes: a platform team fills in the samples."""
    made = dict(sample)
    if made["kind"] == "ResourceFlavor":
        made["spec"] = made["spec"] | {"tolerations": [{"key": kwok.MARK, "operator": "Exists"}]}
    return made


def jobs(fleet: Fleet, *batches: str) -> list[Job]:
    every = controller_files.objects(fleet.machine, "jobs", NAMESPACE)
    label = "sweepledger.dev/batch"
    return [item for item in every if not batches or item["metadata"]["labels"][label] in batches]


def seen(fleet: Fleet, *batches: str) -> Iterator[list[Job]]:
    """Look at the Jobs of batches again and again until all are complete."""
    deadline = time.monotonic() + PATIENCE
    while True:
        documents = jobs(fleet, *batches)
        yield documents
        if all(map(is_complete, documents)):
            return
        assert time.monotonic() < deadline, documents


def is_complete(job: Job) -> bool:
    return condition(job, "Complete") == "True"


def condition(job: Job, kind: str) -> str | None:
    messages = {item["type"]: item["status"] for item in controller_files.conditions(job.get("status", {}))}
    return messages.get(kind)


def active(documents: list[Job]) -> int:
    return sum(job.get("status", {}).get("active", 0) for job in documents)


def writers(fleet: Fleet, field: str) -> set[str]:
    """Say who holds a field of the specs of all Jobs."""
    command = ("get", "jobs", "--namespace", NAMESPACE, "--show-managed-fields", "--output=json")
    items = json.loads(fleet.machine.server.kubectl(*command).stdout)["items"]
    return {
        entry["manager"]
        for job in items
        for entry in job["metadata"]["managedFields"]
        if f"f:{field}" in entry["fieldsV1"].get("f:spec", {})
    }


def ended(fleet: Fleet) -> frozenset[str]:
    active = [batch for batch in batches.in_work_tree(fleet.team.root) if batch.is_active]
    return find_cluster_batches(Kubectl(), NAMESPACE, active).ended


def test_two_single_jobs_run_at_once(fleet: Fleet, submit_sweeps: Callable[..., tuple[str, ...]]) -> None:
    submit_sweeps(Ask("singles", 5, 5, "jobs"))

    looks = list(seen(fleet))

    assert max(map(active, looks)) == 2
    assert len(looks[-1]) == 5
    assert {condition(job, "Suspended") for job in looks[-1]} == {"False"}  # each was, and was resumed


def test_a_batch_is_admitted_as_a_whole(fleet: Fleet, submit_sweeps: Callable[..., tuple[str, ...]]) -> None:
    submit_sweeps(Ask("earlier", 4, 2), Ask("later", 4, 2))

    looks = list(seen(fleet))

    assert max(map(active, looks)) == 2
    assert [job["status"]["succeeded"] for job in looks[-1]] == [4, 4]


def test_the_controller_and_kueue_do_not_fight_over_a_job(
    fleet: Fleet, submit_sweeps: Callable[..., tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(fleet.machine.server.kubeconfig))
    assert fleet.controller is not None
    runs, waits = submit_sweeps(Ask("runs", 4, 2), Ask("waits", 4, 2))
    until("one runs", lambda: active(jobs(fleet)), seconds=PATIENCE)
    before = {job["metadata"]["uid"]: job["spec"]["suspend"] for job in jobs(fleet)}

    fleet.controller.look()

    assert sorted(before.values()) == [False, True]
    assert fleet.controller.differences() == {}
    assert ended(fleet) == frozenset()
    until("both are complete", lambda: all(map(is_complete, jobs(fleet))), seconds=PATIENCE)
    complete = {job["metadata"]["uid"]: job["metadata"]["generation"] for job in jobs(fleet)}
    fleet.controller.look()
    after = {job["metadata"]["uid"]: job["metadata"]["generation"] for job in jobs(fleet)}
    assert fleet.controller.differences() == {}
    assert after == complete
    assert complete.keys() == before.keys()
    assert ended(fleet) == {runs, waits}
    assert writers(fleet, "suspend") == {"kueue"}


def test_a_withdrawn_batch_frees_places(fleet: Fleet, submit_sweeps: Callable[..., tuple[str, ...]]) -> None:
    submit_sweeps(Ask("holds", 4, 2), Ask("withdrawn", 4, 2))
    until("all wait or run", lambda: len(kueue.workloads(fleet.machine, NAMESPACE)) == 2, seconds=PATIENCE)
    fleet.team.sweep("cancel", "withdrawn")

    fleet.push()

    until("it is gone", lambda: len(jobs(fleet)) == 1, seconds=PATIENCE)
    until("its place is free", lambda: len(kueue.workloads(fleet.machine, NAMESPACE)) <= 1, seconds=PATIENCE)
