"""Searches whose rounds overlap, in a real cluster: from one merged spec to the end, whatever becomes of collectors."""

import pytest
import yaml

from tests.cluster.children import until
from tests.e2e import collecting
from tests.e2e.collecting import Run
from tests.e2e.team import MINUTE, Team
from tests.e2e.test_search import CLIMB, RUN, is_over, locks

pytestmark = pytest.mark.full

AHEAD, MOST = 3, 8
OVERLAP_SPEC = f"""name: overlap
description: Which x is highest, one trial at a time?
method: tpe
seed: 7
rounds: {{size: 1, ahead: {AHEAD}, max: {MOST}, startup: 3}}
metric: {{name: score, goal: maximize, source: stdout}}
parameters:
  x: {{min: 0.0, max: 1.0}}
  epochs: {{value: 1}}
{RUN.format(script="climb")}"""

LADDER_SPEC = f"""name: ladder
description: Which x climbs fastest, promoted as soon as it may be?
method: asha
seed: 7
rounds: {{size: 2, ahead: 2}}
run_cap: 9
resource: {{parameter: epochs, min: 1, max: 4, eta: 2}}
metric: {{name: score, goal: maximize, source: stdout}}
parameters:
  x: {{min: 0.0, max: 1.0}}
{RUN.format(script="climb")}"""

STATIC_SPEC = f"""name: portions
description: Seven values, three at a time, until one is good enough.
method: grid
rounds: {{size: 3}}
metric: {{name: score, goal: maximize, source: stdout, target: 0.55}}
parameters:
  x: {{values: [0.1, 0.2, 0.3, 0.4, 0.6, 0.5, 0.7]}}
  epochs: {{value: 1}}
{RUN.format(script="climb")}"""


@pytest.fixture(scope="module")
def searched(team: Team) -> Team:
    """Merge three sweeps with rounds, and kill the collector twice while two run at once."""
    team.pull()
    team.write("code/climb.py", CLIMB)
    team.commit("Let trials climb")
    specs = {"overlap": OVERLAP_SPEC, "ladder": LADDER_SPEC, "portions": STATIC_SPEC}
    for name, spec in specs.items():
        team.write(f"sweeps/{name}.yaml", spec)
    team.merge_specs(*specs)
    for step in (collecting.is_asking_the_cluster, collecting.is_pushing):
        first, second = Run.start(team), Run.start(team)
        try:
            first.until_it("takes a step", step)
        except AssertionError:  # it had nothing to push
            print(f"{first.job} ended before it was killed")
        first.kill()
        second.ended()
    until(
        "all searches are over",
        lambda: all(
            is_over(team, name, why)
            for name, why in (("overlap", "rounds"), ("ladder", "run-cap"), ("portions", "target"))
        ),
        seconds=25 * MINUTE,
        pause=2,
    )
    team.pull()
    return team


def requested(team: Team, sweep: str) -> list[str]:
    tables = sorted((team.root / "overlays/archive").glob(f"{sweep}-b*/hyperparams.csv"))
    return [row.split(",")[0] for table in tables for row in table.read_text().splitlines()[1:]]


def most_active(team: Team, sweep: str) -> int:
    """Return how many batches of a sweep were active at most at a commit of the branch."""
    commits = team.git("rev-list", "HEAD", "--", "overlays/active").split()
    listings = (team.git("ls-tree", "--name-only", commit, "overlays/active/") for commit in commits)
    return max(listing.count(f"/{sweep}-b") for listing in listings)


def test_overlapping_rounds_of_a_model_run_to_the_end_and_no_trial_twice(searched: Team) -> None:
    documents = locks(searched, "overlap")

    assert [lock["round"] for lock in documents] == list(range(1, MOST + 1))
    assert {lock["ahead"] for lock in documents} == {AHEAD}
    trials = requested(searched, "overlap")
    assert len(trials) == len({*trials}) == MOST
    assert [row["status"] for row in searched.summary("overlap")] == ["ok"] * MOST
    assert 1 < most_active(searched, "overlap") <= AHEAD


def test_asha_promotes_across_overlapping_rounds_and_continues_from_checkpoints(searched: Team) -> None:
    trials = requested(searched, "ladder")
    rows = searched.summary("ladder")

    assert len(trials) == len({*trials}) == 9
    assert {row["status"] for row in rows} == {"ok"}
    promoted = [row for row in rows if row["params.epochs"] != "1"]
    assert promoted, "none was promoted"
    assert all(int(row["metrics.done"]) * 2 == int(row["params.epochs"]) for row in promoted)


def test_a_static_sweep_ends_after_the_round_that_reaches_its_target(searched: Team) -> None:
    assert [row["params.x"] for row in searched.summary("portions")] == [
        *("0.1", "0.2", "0.3", "0.4", "0.6", "0.5")
    ]
    documents = sorted(
        (
            yaml.safe_load(path.read_text())
            for path in (searched.root / "overlays/archive").glob("portions-b*/batch.json")
        ),
        key=lambda lock: int(lock["round"]),
    )
    assert [(lock["round"], lock["trials"]) for lock in documents] == [(1, 3), (2, 3)]
