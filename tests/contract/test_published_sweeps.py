"""sweeps/: the published grids, with this repository's trainer; each plans, generates and checks."""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from sweepledger.formats import yaml
from sweepledger.search import Expansion, explore
from tests.repository import Sandbox
from trainer.data import CIFAR10
from trainer.hyperparameters import parse

ROOT = Path(__file__).parents[2]
TRIALS = {"eidf-grid": 4, "fashion-grid": 16, "mnist-grid": 16, "nvidia-grid": 16, "nvidia-grid-48": 48}
SEARCH = "mnist-search"
"""Its trials follow from its records, so none can be listed here."""
TABLE = [
    (rate, momentum, cutout, batch)
    for rate in (0.4, 0.6)
    for momentum in (0.9, 0.99)
    for cutout in (5, 12)
    for batch in (128, 512)
]
"""The rows of the published table, from job 1 to job 16."""


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """Give a repository that holds what this one holds, without its history."""
    sandbox = Sandbox.create(tmp_path_factory.mktemp("published sweeps"))
    shutil.copy(ROOT / "sweepledger.yaml", sandbox.root)
    for folder in ("sweeps", "trainer"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, sandbox.root / folder, dirs_exist_ok=True, ignore=ignored)
    sandbox.commit("Bring the published sweeps")
    return sandbox


def assignments(sandbox: Sandbox, name: str) -> Sequence[Mapping[str, Any]]:
    (parsed,) = sandbox.workspace.sweeps([name])
    expansion = explore(parsed)
    assert isinstance(expansion, Expansion)
    return expansion.configurations


def content(path: str) -> Mapping[str, Any]:
    (result,) = yaml.load_all((ROOT / path).read_bytes())
    return dict(result)


def test_each_plans_its_published_number_of_trials(published: Sandbox) -> None:
    done = published.sweep("plan", "--format", "json")

    assert done.returncode == 0, done.stderr
    assert {plan["name"]: plan["trials"] for plan in json.loads(done.stdout)["data"]["sweeps"]} == {
        **TRIALS,
        SEARCH: 0,
    }


@pytest.mark.full_suite("larger examples")
@pytest.mark.usefixtures("needs_kustomize")
def test_pending_sweeps_are_no_problem_and_generated_ones_check(published: Sandbox) -> None:
    pending = published.sweep("check")
    made = published.sweep("generate")
    published.commit("Write their batches")
    checked = published.sweep("check", "--base", "HEAD~1")

    assert pending.returncode == 0
    assert (pending.stdout + pending.stderr).count("[pending]") == len({*TRIALS, SEARCH})
    assert made.returncode == 0, made.stderr
    assert (checked.returncode, checked.stderr) == (0, "")
    assert {name.rpartition("-b1-")[0] for name in published.active()} == {*TRIALS, SEARCH}


def test_the_nvidia_grid_is_numbered_as_in_the_table_and_the_extension_holds_it(published: Sandbox) -> None:
    names = ("max_learning_rate", "momentum", "data_aug_cutout_size", "batch_size")
    grid, extension = (assignments(published, name) for name in ("nvidia-grid", "nvidia-grid-48"))

    assert [tuple(assignment[name] for name in names) for assignment in grid] == TABLE
    table, extended = ({frozenset(assignment.items()) for assignment in each} for each in (grid, extension))
    assert table < extended
    assert len(extended - table) == 32


@pytest.mark.parametrize("name", sorted(TRIALS))
def test_the_trainer_takes_every_value_of_every_trial(published: Sandbox, name: str) -> None:
    *start, last = content(f"sweeps/{name}.yaml")["command"]
    workload, *fixed = start[3:]

    for assignment in assignments(published, name):
        knobs = parse(workload, [*fixed, *(f"--{key}={value}" for key, value in assignment.items())])

        for key, value in assignment.items():
            assert getattr(knobs.network, key) == {"on": True, "off": False}.get(str(value), value)
    assert last == "${args}"


def test_data_is_named_by_the_digest_of_what_the_trainer_verifies() -> None:
    datasets = content("sweepledger.yaml")["datasets"]

    assert datasets["cifar10"]["digest"] == CIFAR10.digest
    for name in ("nvidia-grid", "nvidia-grid-48"):
        assert content(f"sweeps/{name}.yaml")["run"]["data"] == "cifar10"
