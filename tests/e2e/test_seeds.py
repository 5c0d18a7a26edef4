"""The sweeps of the examples that people come from, from commit to summary: their specs, their scripts' way.

The specs are those of `examples/`; only what the pods ask of the node is made small, and the scripts train
narrow networks on some digits.
"""

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.children import until
from tests.e2e.team import Team

pytestmark = pytest.mark.full

SCRIPTS = Path(__file__).parent / "seeds"
SMALL = {
    "data": "mnist",
    "resources": {"cpu": "400m", "memory": "768Mi", "scratch": "64Mi"},
    "parallelism": 4,
    "retries": 1,
    "timeout": "10m",
}


@pytest.fixture(scope="module", autouse=True)
def scripts(team: Team) -> None:
    """What the trials run, in the team's repository."""
    team.pull()
    shutil.copytree(SCRIPTS, team.root / "code", dirs_exist_ok=True)
    team.commit("Bring the scripts")


def asked_as(team: Team, example: Path, **run: Any) -> dict[str, Any]:
    """Take over the spec of an example, with what the pods of this cluster may ask for."""
    spec: dict[str, Any] = yaml.safe_load(example.read_text())
    spec["run"] |= SMALL | run
    spec["command"] = ["python3", *spec["command"][1:]]
    team.write(f"sweeps/{spec['name']}.yaml", yaml.safe_dump(spec, sort_keys=False))
    return spec


@pytest.mark.parametrize(
    ("example", "trials", "run"),
    [
        ("mnist-eidf/sweeps/mnist.yaml", 4, {}),
        ("cifar10/sweeps/cifar10.yaml", 16, {"parallelism": 16, "code": {"path": "code", "mode": "clone"}}),
    ],
    ids=["eidf", "nvidia"],
)
def test_the_sweep_of_an_example_comes_from_a_commit_to_its_summary(
    team: Team, repository_root: Path, example: str, trials: int, run: dict[str, Any]
) -> None:
    spec = asked_as(team, repository_root / "examples" / example, **run)
    (batch,) = team.merge_specs(spec["name"])

    team.until_recorded(batch, seconds=900)

    rows = team.summary(spec["name"])
    metric = f"metrics.{spec['metric']['name']}"
    varied = [f"params.{name}" for name, item in spec["parameters"].items() if "values" in item]
    assert [row["status"] for row in rows] == ["ok"] * trials
    assert len({tuple(row[name] for name in varied) for row in rows}) == trials
    assert max(float(row[metric]) for row in rows) > 0.3
    assert len({row[metric] for row in rows}) > 1  # the values reached the trials
    assert len(team.results_commits(batch)) == 1
    until("the Jobs are pruned", lambda: not team.jobs(batch), seconds=300)
