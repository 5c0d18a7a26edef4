"""A recorded trial, run again from its locked code: equal to the last bit, or the difference is told."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sweepledger.errors import UsageError
from sweepledger.operations.reports.reproduction import TIMING_NAME, recipe, run_again
from sweepledger.repo.batches import StoredBatch
from tests.operations.test_collect import leave
from tests.operations.test_read import newest
from tests.repository import Sandbox, replace_in

SCORES = (-0.5, 0.5, -0.5)
"""What the sandbox's program reports for x = 1, 2, 3."""


@pytest.fixture
def batch(sandbox: Sandbox, tmp_path: Path, needs_kustomize: None) -> StoredBatch:
    return recorded(sandbox, tmp_path, SCORES)


def recorded(sandbox: Sandbox, tmp_path: Path, scores: tuple[float, ...]) -> StoredBatch:
    sandbox.merged()
    made = newest(sandbox)
    for index, score in enumerate(scores):
        leave(tmp_path / "volume", made, index, metrics={"score": score})
    assert sandbox.collect(tmp_path / "volume", {made.name}, push=False)
    return made


def test_a_recipe_has_code_commit_values_seed_and_commands_that_run(
    sandbox: Sandbox, batch: StoredBatch
) -> None:
    output = sandbox.head()
    sandbox.commit("Change the code", {"code/train.py": "raise SystemExit(9)\n"})

    result = recipe(sandbox.workspace, f"peak/{batch.rows[1].trial}")

    assert (dict(result.assignment), result.seed, result.ran) == ({"x": 2, "bias": 0.5}, 0, "process")
    assert sandbox.git("rev-parse", f"{result.commit}:code").strip() == batch.lock.program.code.tree
    assert result.commit != sandbox.head()
    assert sandbox.git("merge-base", output, str(result.commit)).strip() == result.commit
    assert result.lines[-1].endswith("python code/train.py --x=2 --bias=0.5")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # Debian alone has no `python`
    script, environment = "\n".join(result.lines), {**os.environ, "PATH": path}
    subprocess.run(["sh", "-e"], input=script.encode(), cwd=sandbox.root, env=environment, check=True)
    (left,) = sandbox.root.parent.glob("peak-t*/result.json")
    assert json.loads(left.read_text()) == {"score": 0.5}


def test_a_trial_comes_out_as_recorded(sandbox: Sandbox, batch: StoredBatch) -> None:
    sandbox.commit("Change the code", {"code/train.py": "raise SystemExit(9)\n"})

    reproduction = run_again(sandbox.workspace, batch.rows[1].trial)

    assert reproduction.is_equal
    assert [
        (comparison.name, comparison.recorded, comparison.rerun) for comparison in reproduction.metrics
    ] == [("score", 0.5, 0.5)]
    assert sandbox.git("status", "--porcelain") == ""
    assert sandbox.git("worktree", "list").count("\n") == 1


def test_one_ulp_is_a_difference(sandbox: Sandbox, batch: StoredBatch) -> None:
    path = f"results/peak/records/{batch.name}.jsonl"
    replace_in(sandbox.root / path, '"score":0.5', f'"score":{math.nextafter(0.5, 1)!r}')

    reproduction = run_again(sandbox.workspace, batch.rows[1].trial)

    assert not reproduction.is_equal
    assert {comparison.file for comparison in reproduction.metrics if not comparison.is_equal} == {path}


def test_what_ends_otherwise_is_told(sandbox: Sandbox, tmp_path: Path, needs_kustomize: None) -> None:
    sandbox.publish("Break it", {"code/train.py": "import sys\nprint('no such luck')\nsys.exit(7)\n"})
    batch = recorded(sandbox, tmp_path, SCORES)

    done = sandbox.sweep("show", batch.rows[0].trial, "--reproduce", "--run")

    assert done.returncode == 1
    assert "no such luck" in done.stdout
    shown = sandbox.sweep("show", batch.rows[0].trial, "--reproduce")
    assert f"sweep show peak/{batch.rows[0].trial} --reproduce --run" in shown.stdout


def test_a_trial_that_is_not_recorded_has_nothing_to_compare_with(sandbox: Sandbox) -> None:
    sandbox.merged()
    trial = newest(sandbox).rows[0].trial

    assert recipe(sandbox.workspace, trial).ran is None
    with pytest.raises(UsageError, match="no attempt at"):
        run_again(sandbox.workspace, trial)


@pytest.mark.parametrize(
    ("name", "is_timing"),
    [
        ("train_seconds", True),
        ("time", True),
        ("sometime_accuracy", False),
        ("items", False),
    ],
)
def test_how_long_it_took_decides_nothing(name: str, *, is_timing: bool) -> None:
    assert (TIMING_NAME.search(name) is not None) is is_timing
