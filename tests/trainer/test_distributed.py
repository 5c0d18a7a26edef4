import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.trainings import run
from trainer.checkpoint import EpochMetrics
from trainer.compute import join_group
from trainer.contract import BAD_SWEEP, TrialError
from trainer.files import Dataset
from trainer.hyperparameters import Resnet9

ROOT = Path(__file__).resolve().parents[2]
NETWORK = Resnet9(width=2, batch_norm=False, batch_size=100, epochs=2)
IMAGES = {"train_images": 300, "test_images": 101}
ARGUMENTS = (
    *("mnist", "--network=resnet9", "--width=2", "--batch_norm=off", "--batch_size=100", "--epochs=2"),
    *("--train_images=300", "--test_images=101", "--precision=fp32"),
)


def start(*command: str, **environ: str) -> subprocess.Popen[str]:
    variables = {"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1", **environ}
    return subprocess.Popen(
        command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def start_two(folder: Path, namespace: int, *more: str) -> list[subprocess.Popen[str]]:
    return [
        start(
            *(sys.executable, "-m", "trainer", *ARGUMENTS, *more),
            OMPI_COMM_WORLD_RANK=str(rank),
            OMPI_COMM_WORLD_SIZE="2",
            OMPI_COMM_WORLD_LOCAL_RANK=str(rank),
            PMIX_NAMESPACE=str(namespace),
            SWEEP_CHECKPOINTS=str(folder),
            SWEEP_RESULT=str(folder / "result"),
        )
        for rank in (0, 1)
    ]


def output(process: subprocess.Popen[str]) -> list[dict[str, Any]]:
    """Return the lines of JSON of a process that succeeds."""
    out, errors = process.communicate()
    assert process.returncode == 0, errors
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


@pytest.fixture(scope="module")
def alone(mnist_5k: Dataset) -> EpochMetrics:
    """The last epoch of the same training in one process."""
    return run(NETWORK, mnist_5k, **IMAGES)[-1]


def same_training(document: dict[str, Any], alone: EpochMetrics) -> bool:
    metrics = document["metrics"]
    losses: list[float] = [metrics["train_loss"], metrics["test_loss"]]
    return losses == pytest.approx([alone.loss, alone.test_loss], rel=1e-4)


def test_two_processes_train_like_one_and_rank_0_writes(alone: EpochMetrics, tmp_path: Path) -> None:
    lines, nothing = (output(process) for process in start_two(tmp_path, 1))

    assert nothing == []
    assert [line.get("step") for line in lines] == [1, 2, None]
    assert json.loads((tmp_path / "result").read_text()) == lines[-1]
    assert lines[-1]["running"]["processes"] == 2
    assert same_training(lines[-1], alone)


@pytest.mark.full_suite
def test_processes_that_are_killed_resume_together(alone: EpochMetrics, tmp_path: Path) -> None:
    first = start_two(tmp_path, 1, "--checkpoint_every=0")
    assert first[0].stdout
    while "step" not in first[0].stdout.readline():
        pass
    for process in first:  # within an epoch, as when a node is lost
        process.kill()
        process.communicate()

    lines, nothing = (output(process) for process in start_two(tmp_path, 2))

    assert nothing == []
    assert lines[-1]["running"]["resumed"] == 1
    assert same_training(lines[-1], alone)


def test_processes_without_an_address_fail_with_a_hint() -> None:
    with pytest.raises(TrialError, match="MASTER_ADDR: must say where the 4 processes connect") as caught:
        join_group({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4"})

    assert caught.value.exit_code == BAD_SWEEP
