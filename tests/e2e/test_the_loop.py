"""The whole loop, as the README tells it: a spec is merged, trains in the cluster, is recorded, is gone."""

import pytest

from tests.cluster.children import until
from tests.e2e.controllers import Controller, until_in_sync
from tests.e2e.stores import trials_see_only_their_own_files
from tests.e2e.team import Team

DIGITS = """name: digits
description: How far does a learning rate carry a small CNN on MNIST?
method: grid
metric: {name: test_accuracy, goal: maximize}
parameters:
  learning_rate: {values: [0.04, 0.1]}
  batch_size: {values: [64, 128]}
  epochs: {value: 1}
command: [python3, -m, trainer, mnist, "${args}"]
run:
  data: mnist
  code: {path: code}
  resources: {cpu: 500m, memory: 768Mi, scratch: 64Mi}
  parallelism: 2
  retries: 1
  timeout: 10m
"""


def test_a_merged_spec_trains_on_digits_and_is_recorded(
    team: Team, controller: Controller
) -> None:
    team.write("sweeps/digits.yaml", DIGITS)
    (batch,) = team.merge_specs("digits")

    team.until_recorded(batch, seconds=600)

    rows = team.summary("digits")
    assert [row["status"] for row in rows] == ["ok"] * 4
    assert all(float(row["metrics.test_accuracy"]) > 0.5 for row in rows)
    assert {record["ran"] for record in team.records(batch)} == {team.image("trainer")}
    assert len(team.results_commits(batch)) == 1
    until("the Job is pruned", lambda: not team.jobs(batch), seconds=300)
    until_in_sync(controller, batch)
    assert "results(digits): 4/4 trials" in team.git("log", "--format=%s", "origin/main")


@pytest.mark.full
def test_trials_that_write_files_report_their_own_numbers(team: Team) -> None:
    trials_see_only_their_own_files(team, "volume")
