"""Two queues of Kueue with real pods on tainted spot nodes: quota is lent and taken back, and priorities preempt."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from sweepledger.formats import yaml
from tests.cluster import kueue
from tests.cluster.children import until
from tests.e2e import losses
from tests.e2e.controllers import Controller
from tests.e2e.founding import Ground
from tests.e2e.pools import LABEL, TAINT, have_pools
from tests.e2e.stores import change_store
from tests.e2e.team import NAMESPACE, PATIENCE, Batch, Team, has_ended

pytestmark = pytest.mark.full

ROOM, NUMBER = "queue", 9
QUEUES = "pools:\n" + "".join(
    f"""  {name}:
    queue: {name}
    cohort: shared
    spot: true
    node: {{cpu: 1, memory: 8Gi}}
    max_nodes: 1
    selector: {{{LABEL}-{ROOM}: "yes"}}
    tolerations: [{{key: {TAINT}}}]
"""
    for name in ("day", "night")
)
"""Room for two trials each, on the same nodes."""
HOLDS = '''"""A trial that runs until its gate is open, or ends at once."""
import argparse, json, os, time
parser = argparse.ArgumentParser()
parser.add_argument("--x", type=float)
parser.add_argument("--holds", type=int)
args = parser.parse_args()
folder = os.environ["SWEEP_CHECKPOINTS"]
open(os.path.join(folder, "begun"), "w").close()  # an empty folder does not stay
while args.holds and not os.path.exists(os.path.join(folder, "open")):
    time.sleep(0.5)
with open(os.environ["SWEEP_RESULT"], "w") as file:
    json.dump({"score": args.x}, file)
'''
SCORES = (0.0, 1.0)


@dataclass(frozen=True)
class Queues:
    """A team whose sweeps wait in two queues."""

    team: Team
    ground: Ground

    def merged(self, name: str, pool: str, *, holds: bool, **run: Any) -> Batch:
        """Merge a sweep of two trials at once, which hold their places until somebody opens their gates."""
        self.team.write_spec(
            name,
            parameters={"x": list(SCORES), "holds": [int(holds)]},
            command=("python3", "code/holds.py", "${args}"),
            pool=pool,
            retries=0,
            timeout="40m",
            resources={"cpu": "500m", "memory": "128Mi", "scratch": "16Mi"},
            **{"parallelism": len(SCORES), **({} if "parallelism" in run else {"shape": "indexed"}), **run},
        )
        (batch,) = self.team.merge_specs(name)
        return batch

    def until_running(self, batch: Batch) -> None:
        until(
            f"{batch.name} runs", lambda: self.team.running(batch) == len(SCORES), seconds=PATIENCE, pause=1
        )

    def is_suspended(self, batch: Batch) -> bool:
        return [job["spec"].get("suspend", False) for job in self.team.jobs(batch)] == [True]

    def until_suspended(self, batches: Sequence[Batch]) -> Batch:
        """Wait until Kueue has taken its places away from one of the batches; return that one."""

        def stopped() -> list[Batch]:
            return [batch for batch in batches if self.is_suspended(batch) and not self.team.pods(batch)]

        until("one gives its places back", stopped, seconds=PATIENCE, pause=1)
        (batch,) = stopped()
        return batch

    def open(self, *batches: Batch) -> None:
        results = self.ground.storage.results
        folders = [results / batch.name / str(index) for batch in batches for index in range(len(SCORES))]
        for folder in (folder / "checkpoints" for folder in folders):
            until(f"{folder} is there", (folder / "begun").is_file, seconds=PATIENCE, pause=0.5)
            (folder / "open").touch()

    def is_recorded(self, batch: Batch, *, attempts: int = 1) -> None:
        """Demand one results commit, in which every trial has ended well; one that was stopped has begun twice."""
        self.team.until_recorded(batch)
        rows = self.team.summary(batch.sweep)
        assert [(row["status"], float(row["metrics.score"]), row["attempts"]) for row in rows] == [
            ("ok", score, str(attempts)) for score in SCORES
        ]
        assert len(self.team.results_commits(batch)) == 1


@pytest.fixture(scope="module")
def queues(team: Team, controller: Controller, ground: Ground) -> Iterator[Queues]:
    """Kueue, a tainted node, and two pools in one cohort on it."""
    kueue.start(ground.machine)
    have_pools(team)
    team.have_program("code/holds.py", HOLDS)
    losses.start_node(ground, NUMBER, ROOM)
    change_store(team, controller, "pools:\n", QUEUES)
    team.server.apply(*yaml.load_all((team.root / "clusters/optional/kueue.yaml").read_bytes()))
    yield Queues(team, ground)
    team.until_idle()
    team.pull()
    change_store(team, controller, QUEUES, "pools:\n")


def test_lent_places_are_taken_back_and_their_trials_begin_again_without_a_retry(queues: Queues) -> None:
    team = queues.team
    first = queues.merged("queue-first", "day", holds=True)
    queues.until_running(first)
    second = queues.merged("queue-second", "day", holds=True)
    queues.until_running(second)  # in the places that the other queue does not use
    third = queues.merged("queue-third", "day", holds=False)
    until("the third one waits", lambda: queues.is_suspended(third), seconds=PATIENCE, pause=1)

    nodes = {pod["spec"]["nodeName"] for batch in (first, second) for pod in team.pods(batch)}
    assert nodes == {f"node-{NUMBER}"}
    assert team.pods(third) == []
    assert "quota" in team.sweep("why", "queue-third").stdout

    owner = queues.merged("queue-owner", "night", holds=True)
    queues.until_running(owner)
    stopped = queues.until_suspended((first, second))
    (stays,) = [batch for batch in (first, second) if batch != stopped]
    assert team.running(stays) == len(SCORES)

    queues.open(first, second, owner)
    for batch in (first, second, third, owner):
        queues.is_recorded(batch, attempts=2 if batch == stopped else 1)
    assert not [
        job for batch in (first, second, third, owner) for job in team.jobs(batch) if not has_ended(job)
    ]


def test_a_sweep_of_a_higher_priority_takes_the_places_of_another(queues: Queues) -> None:
    low = queues.merged("queue-low", "day", holds=True, priority=f"{NAMESPACE}-low")
    other = queues.merged("queue-other", "night", holds=True)
    queues.until_running(low)
    queues.until_running(other)

    high = queues.merged("queue-high", "day", holds=True, priority=f"{NAMESPACE}-high")
    queues.until_running(high)

    assert queues.until_suspended((low,)) == low
    assert queues.team.running(other) == len(SCORES)
    queues.open(low, other, high)
    for batch in (low, other, high):
        queues.is_recorded(batch, attempts=2 if batch == low else 1)


def test_no_more_trials_run_at_once_than_the_spec_says_though_the_queue_has_room(queues: Queues) -> None:
    team = queues.team
    alone = queues.merged("queue-alone", "day", holds=True, parallelism=1)
    until("one trial runs", lambda: team.running(alone) == 1, seconds=PATIENCE, pause=1)
    beside = queues.merged("queue-beside", "day", holds=False, parallelism=1)

    queues.is_recorded(beside)  # by the place that the first batch must not use
    assert team.running(alone) == 1
    assert len(team.pods(alone)) == 1

    queues.open(alone)
    queues.is_recorded(alone)
