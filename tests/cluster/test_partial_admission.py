"""A batch that wants more at once than its queue ever has starts with what there is."""

from collections.abc import Iterator

import pytest

from sweepledger.formats import yaml
from tests.cluster import kueue
from tests.cluster.apiserver import NoClusterToolsError
from tests.cluster.children import until
from tests.cluster.fleet import Ask, Fleet, cluster, start_fleet
from tests.cluster.test_kueue import PATIENCE, POOL, SECONDS, active, jobs, seen, tolerant, writers

pytestmark = pytest.mark.usefixtures("needs_kustomize")


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    """A team with a queue for two trials, which may admit one alone."""
    pool = POOL.replace("queue: fake\n", "queue: fake\n    min_parallelism: 1\n    cohort: shared\n")
    try:
        with cluster(nodes=2, seconds=SECONDS) as machine:
            kueue.start(machine)
            made = start_fleet(machine, "argocd", pool=pool)
            samples = yaml.load_all((made.team.root / "clusters/optional/kueue.yaml").read_bytes())
            machine.server.apply(*map(tolerant, samples))
            yield made
    except NoClusterToolsError as error:
        pytest.skip(f"skipped: {error}")


def test_a_batch_runs_with_fewer_trials_at_once_and_nobody_writes_it_back(fleet: Fleet) -> None:
    assert fleet.controller is not None
    (batch,) = fleet.ask(Ask("wide", 6, 4))
    fleet.push()
    until("it came", lambda: jobs(fleet, batch), seconds=PATIENCE)
    until("it runs", lambda: active(jobs(fleet, batch)), seconds=PATIENCE)
    fleet.controller.look()
    running = jobs(fleet, batch)

    looks = list(seen(fleet, batch))

    assert [job["spec"]["parallelism"] for job in running] == [2]
    assert max(map(active, looks)) == 2
    assert [job["status"]["succeeded"] for job in looks[-1]] == [6]
    assert "kueue" in writers(fleet, "parallelism")
    assert fleet.controller.differences() == {}
