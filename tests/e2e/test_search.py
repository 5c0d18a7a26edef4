"""Searches in a real cluster: specs are merged, and nobody does anything until their last results commits.

Three at once: rounds of a model on real digits, rungs whose trials go on from checkpoints of others, and a
batch by whose curves trials of the next one end.
"""

from typing import Any

import pytest
import yaml

from tests.cluster.children import until
from tests.e2e.controllers import Controller, until_in_sync
from tests.e2e.team import MINUTE, PATIENCE, PERSON, Batch, Team
from tests.searches import SLOPE

ROUNDS, SIZE = 5, 2
RUN = """command: [python3, code/{script}.py, "${{args}}"]
run:
  code: {{path: code, mode: clone}}
  resources: {{cpu: 100m, memory: 128Mi, scratch: 16Mi}}
  parallelism: 4
  retries: 1
  timeout: 2m
"""

RATES_SPEC = f"""name: rates
description: Which learning rate and batch size suit one epoch of a small CNN?
method: tpe
seed: 7
rounds: {{size: {SIZE}, max: {ROUNDS}}}
metric: {{name: test_accuracy, goal: maximize}}
parameters:
  learning_rate: {{distribution: log_uniform_values, min: 0.005, max: 0.5}}
  batch_size: {{values: [32, 64, 128]}}
  epochs: {{value: 1}}
command: [python3, -m, trainer, mnist, "${{args}}"]
run:
  data: mnist
  code: {{path: code}}
  resources: {{cpu: 500m, memory: 768Mi, scratch: 64Mi}}
  parallelism: {SIZE}
  retries: 1
  timeout: 10m
"""

CLIMB = """import argparse, os
from pathlib import Path
parser = argparse.ArgumentParser()
parser.add_argument("--x", type=float)
parser.add_argument("--epochs", type=int)
args = parser.parse_args()
parent = os.environ.get("SWEEP_PARENT")
done = int(Path(parent, "epochs").read_text()) if parent else 0
wrote = 0
if parent:
    try:
        Path(parent, "epochs").write_text("999")
        wrote = 1
    except OSError as error:
        print(error)
print(f"done={done} trained={args.epochs - done} wrote={wrote} score={args.x * args.epochs}")
Path(os.environ["SWEEP_CHECKPOINTS"], "epochs").write_text(str(args.epochs))
"""
CLIMB_SPEC = f"""name: climb
description: Which x climbs fastest?
method: halving
seed: 7
rounds: {{size: 4}}
resource: {{parameter: epochs, min: 1, max: 4, eta: 2}}
metric: {{name: score, goal: maximize, source: stdout}}
parameters:
  x: {{min: 0.0, max: 1.0}}
{RUN.format(script="climb")}"""

SLOPE_SPEC = f"""name: slope
description: Which x is steepest?
method: grid
metric: {{name: score, goal: maximize, source: stdout}}
early_terminate: {{type: median, min_iter: 2}}
parameters:
  x: {{values: [VALUES]}}
{RUN.format(script="slope")}"""


@pytest.fixture(scope="module")
def merged_batches(team: Team) -> dict[str, Batch]:
    """Merge all three; of the slope two values more, once its first batch has shown what to expect."""
    team.pull()
    for name, script in {"climb": CLIMB, "slope": SLOPE}.items():
        team.write(f"code/{name}.py", script)
    team.commit("Let trials climb")
    specs = {"rates": RATES_SPEC, "climb": CLIMB_SPEC, "slope": SLOPE_SPEC.replace("VALUES", "1, 2, 3")}
    for name, spec in specs.items():
        team.write(f"sweeps/{name}.yaml", spec)
    batches = dict(zip(specs, team.merge_specs(*specs), strict=True))
    team.until_recorded(batches["slope"])
    team.write("sweeps/slope.yaml", SLOPE_SPEC.replace("VALUES", "1, 2, 3, -1, 4"))
    return batches | {"slope": team.merge_specs("slope")[0]}


def is_over(team: Team, sweep: str, why: str) -> bool:
    team.git("fetch", "-q", "origin")
    output = team.git("log", "--format=%n%B", "origin/main", "--", f"results/{sweep}")
    return f"\nNext: none ({why}: " in output


def locks(team: Team, sweep: str) -> list[dict[str, Any]]:
    """Give the locks of the rounds in their order, from the archive."""
    paths = (team.root / "overlays/archive").glob(f"{sweep}-b*/batch.json")
    return sorted((yaml.safe_load(path.read_text()) for path in paths), key=lambda lock: int(lock["round"]))


def test_one_spec_leads_to_all(
    team: Team, controller: Controller, merged_batches: dict[str, Batch]
) -> None:
    until("the search is over", lambda: is_over(team, "rates", "rounds"), seconds=25 * MINUTE, pause=2)

    team.pull()
    history = team.git("log", "--reverse", "--format=%an %s", "--", "results/rates").splitlines()
    assert len(history) == ROUNDS
    assert all(" results(rates): " in line and not line.startswith(PERSON) for line in history)
    documents = locks(team, "rates")
    assert [lock["round"] for lock in documents] == list(range(1, ROUNDS + 1))
    assert documents[0]["name"] == merged_batches["rates"].name
    assert {lock["engine"].split(" ")[0] for lock in documents} == {"optuna"}
    rows = team.summary("rates")
    assert [row["status"] for row in rows] == ["ok"] * (ROUNDS * SIZE)
    assert len({row["trial"] for row in rows}) == ROUNDS * SIZE
    assert not list((team.root / "overlays/active").glob("rates-*"))
    last = team.batch("rates", "archive")
    until("the last Job is pruned", lambda: not team.jobs(last), seconds=5 * MINUTE)
    until_in_sync(controller, last)


def test_a_person_finds_what_the_cluster_asked_for(
    team: Team, merged_batches: dict[str, Batch]
) -> None:
    done = team.sweep("cluster", "next", "rates", "--explain", check=False)

    assert done.returncode == 6, done.stderr
    assert "ended: rounds" in done.stdout
    output = team.sweep("log", "rates").stdout
    assert f"round {ROUNDS}, tpe" in output


def test_who_climbs_on_finds_the_checkpoint_read_only(
    team: Team, merged_batches: dict[str, Batch]
) -> None:
    until("the climb is over", lambda: is_over(team, "climb", "last-rung"), seconds=PATIENCE, pause=2)

    rows = [
        {key: int(row[key]) for key in ("params.epochs", "metrics.done", "metrics.trained", "metrics.wrote")}
        for row in team.summary("climb")
        if row["status"] == "ok"
    ]
    rungs = {4: (2, 2), 2: (1, 1), 1: (0, 1)}
    assert sorted(row["params.epochs"] for row in rows) == [1, 1, 1, 1, 2, 2, 4]
    assert all((row["metrics.done"], row["metrics.trained"]) == rungs[row["params.epochs"]] for row in rows)
    assert not any(row["metrics.wrote"] for row in rows)


def test_what_falls_behind_is_ended_and_recorded(
    team: Team, merged_batches: dict[str, Batch]
) -> None:
    team.until_recorded(merged_batches["slope"])

    result = {row["params.x"]: (row["status"], row["reason"]) for row in team.summary("slope")}
    assert result["-1"] == ("pruned", "median")
    assert {value: result[value] for value in ("1", "2", "3", "4")} == dict.fromkeys(
        ("1", "2", "3", "4"), ("ok", "")
    )
