"""What makespan.py asks of `sweep cluster local`, asked of a cluster: of a node with containers, and of fake ones.

python -m tests.cluster.box python benchmarks/makespan_cluster.py node|fake [RUNS] [--controller NAME]

`node`: the same sweeps, each pushed when the one before has ended; Flux or Argo CD applies them, the launcher
times the trials, the collector records them. `fake`: larger sweeps on kwok's nodes, where nothing runs that
could leave a record; it is made of what the pods say. A run lasts from its Job's start to its completion.
"""

import argparse
import random
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.cluster_collect import a_record
from benchmarks.cluster_meter import status_of
from benchmarks.makespan import PROGRAM, RUNS, Held, judged, random_sweeps, recorded
from sweepledger.operations.repository.batch_records import expected_trials
from sweepledger.repo import batches
from sweepledger.structs.record import Record
from tests.cluster import fleet, kwok, machine
from tests.cluster.children import until
from tests.cluster.fleet import Ask
from tests.e2e.collecting import only_by_hand
from tests.e2e.controllers import CONTROLLERS
from tests.e2e.founding import followed_team, prepared
from tests.e2e.team import PATIENCE, Batch, Team, has_ended

PAUSE = 0.5
SHORTEST, LONGEST = 3.0, 9.0
"""Seconds of a pod on a fake node: any time between them."""


def node(runs: int, controller: str) -> bool:
    """Run sweeps on a node of its own, and judge them."""
    made = machine.start()
    team = followed_team(prepared(made, controller))
    team.write("code/work.py", PROGRAM)
    team.commit("Write a program")
    took = {}
    with only_by_hand(team):  # a Job may be pruned as soon as it is recorded
        for name, epochs, widths, at_once in random_sweeps(runs):
            team.write_spec(
                name,
                parameters={"epochs": epochs, "width": widths},
                parallelism=at_once,
                shape="indexed",
                resources={"cpu": "100m", "memory": "64Mi", "scratch": "16Mi"},
            )
            (batch,) = team.merge_specs(name)
            took[name] = _ended(team, batch)
            print(f"{name} took {took[name]:.0f} s", flush=True)
        requested = [team.batch(name) for name in took]
        team.collect()
        for batch in requested:
            team.until_recorded(batch)
    return judged(team.root, recorded(team.root), took)


def fake(runs: int, controller: str) -> bool:
    """Run sweeps on fake nodes, and judge them by what their pods say."""
    chance = random.Random(20261122)  # noqa: S311 - no secret
    with fleet.cluster() as made:
        kwok.restart(made, seconds=SHORTEST, most=LONGEST)
        team = (grown := fleet.start_fleet(made, controller)).team
        took: dict[str, float] = {}
        held: list[Held] = []
        for number in range(runs):
            trials = chance.choice([20, 40, 80])
            ask = Ask(f"run-{number:02d}", trials, chance.choice([5, 10, 20]))
            grown.ask(ask)
            grown.push()
            batch = team.batch(ask.name)
            took[ask.name] = _ended(team, batch)
            held.append(recorded_by_pods(team, batch))
            print(f"{ask.name} took {took[ask.name]:.0f} s", flush=True)
        return judged(team.root, held, took)


def _ended(team: Team, batch: Batch) -> float:
    """Wait until a batch's Job has ended; give the seconds that it took."""

    def job() -> Mapping[str, Any] | None:
        return next((item["status"] for item in team.jobs(batch) if has_ended(item)), None)

    until(f"{batch.name} has ended", job, seconds=PATIENCE, pause=PAUSE)
    status = job()
    assert status is not None
    return _at(status["completionTime"]) - _at(status["startTime"])


def recorded_by_pods(team: Team, batch: Batch) -> Held:
    """Make records of a batch's trials, of the times of their pods."""
    (stored,) = (item for item in batches.in_work_tree(team.root) if item.name == batch.name)
    trials = {trial.index: trial for trial in expected_trials(stored)}
    records: list[Record] = []
    for pod in team.pods(batch):
        trial = trials[int(pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"])]
        (container,) = pod["status"]["containerStatuses"]
        started, finished = pod["status"]["startTime"], container["state"]["terminated"]["finishedAt"]
        records.append(
            replace(
                a_record(stored, trial, pod["metadata"]["uid"]),
                started=started,
                finished=finished,
                seconds=_at(finished) - _at(started),
            )
        )
    return stored, tuple(records)


def _at(time: str) -> float:
    return datetime.fromisoformat(time).timestamp()


def main() -> int:
    """Run and judge; 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("where", choices=["node", "fake"])
    parser.add_argument("runs", nargs="?", type=int, default=RUNS)
    parser.add_argument("--controller", choices=sorted(CONTROLLERS), default="flux")
    chosen = parser.parse_args()
    judge = {"node": node, "fake": fake}[chosen.where]
    return int(not judge(chosen.runs, chosen.controller))


if __name__ == "__main__":
    sys.exit(status_of(main))
