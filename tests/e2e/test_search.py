"""A search in a real cluster: one spec is merged, and nobody does anything until its last results commit."""

from typing import Any

import yaml

from tests.cluster.children import until
from tests.e2e.controllers import Controller, until_in_sync
from tests.e2e.team import PERSON, Team

ROUNDS, SIZE = 4, 2
HILL = """import argparse, json, os
parser = argparse.ArgumentParser()
parser.add_argument("--x", type=float)
args = parser.parse_args()
with open(os.environ["SWEEP_RESULT"], "w") as file:
    json.dump({"score": 1 - (args.x - 2) ** 2}, file)
"""
SPEC = f"""name: hill
description: Where is the top of the hill?
method: tpe
seed: 7
rounds: {{size: {SIZE}, max: {ROUNDS}}}
metric: {{name: score, goal: maximize}}
parameters:
  x: {{min: -5.0, max: 5.0}}
command: [python3, code/hill.py, "${{args}}"]
run:
  code: {{path: code, mode: clone}}
  resources: {{cpu: 100m, memory: 128Mi, scratch: 16Mi}}
  parallelism: {SIZE}
  retries: 1
  timeout: 2m
"""


def is_over(team: Team) -> bool:
    team.git("fetch", "-q", "origin")
    return "\nNext: none (rounds: " in team.git("log", "--format=%n%B", "origin/main", "--", "results/hill")


def locks(team: Team) -> list[dict[str, Any]]:
    """Give the locks of the rounds in their order, from the archive."""
    found = (team.root / "overlays/archive").glob("hill-b*/batch.yaml")
    return sorted((yaml.safe_load(path.read_text()) for path in found), key=lambda lock: int(lock["round"]))


def test_from_one_merged_spec_every_round_is_asked_for_trained_and_recorded_with_no_hand_between(
    team: Team, controller: Controller
) -> None:
    team.pull()
    team.write("code/hill.py", HILL)
    team.commit("Let trials climb")
    team.write("sweeps/hill.yaml", SPEC)
    (first,) = team.asked("hill")
    begun = team.git("rev-parse", "HEAD").strip()

    until("the search is over", lambda: is_over(team), seconds=1500, pause=2)

    team.pull()
    history = team.git(
        "log", "--reverse", "--format=%an %s", f"{begun}..HEAD", "--", "results/hill"
    ).splitlines()
    assert len(history) == ROUNDS
    assert all(" results(hill): " in line and not line.startswith(PERSON) for line in history)
    found = locks(team)
    assert [lock["round"] for lock in found] == list(range(1, ROUNDS + 1))
    assert found[0]["name"] == first.name
    assert {lock["engine"].split(" ")[0] for lock in found} == {"optuna"}
    rows = team.summary("hill")
    assert [row["status"] for row in rows] == ["ok"] * (ROUNDS * SIZE)
    assert len({row["trial"] for row in rows}) == ROUNDS * SIZE
    assert not list((team.root / "overlays/active").glob("hill-*"))
    last = team.batch("hill", "archive")
    until("the last Job is pruned", lambda: not team.jobs(last), seconds=120)
    until_in_sync(controller, last)


def test_a_person_finds_by_a_clone_what_the_cluster_asked_for(team: Team) -> None:
    asked = team.sweep("next", "hill", "--explain", check=False)

    assert asked.returncode == 6, asked.stderr
    assert "over: rounds" in asked.stdout
    told = team.sweep("log", "hill").stdout
    assert f"round {ROUNDS}, tpe" in told
