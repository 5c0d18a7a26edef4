import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from trainer.contract import BAD_SWEEP, TrialError
from trainer.group import Group, join

ROOT = Path(__file__).resolve().parents[2]
ARGUMENTS = (
    "mnist",
    "--network=resnet9",
    "--width=2",
    "--batch_norm=off",
    "--train_images=300",
    "--test_images=101",
    "--batch_size=100",
    "--epochs=2",
    "--precision=fp32",
)


def start(*command: str, **environ: str) -> subprocess.Popen[str]:
    variables = {"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1", **environ}
    return subprocess.Popen(
        command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def finished(running: subprocess.Popen[str]) -> list[dict[str, Any]]:
    """Give the lines of JSON of a process that ends well."""
    out, errors = running.communicate()
    assert running.returncode == 0, errors
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


@pytest.fixture(scope="module")
def alone() -> dict[str, Any]:
    return finished(start(sys.executable, "-m", "trainer", *ARGUMENTS))[-1]


def same_training(found: dict[str, Any], expected: dict[str, Any]) -> bool:
    names = ("test_loss", "train_loss")
    return all(found["metrics"][name] == pytest.approx(expected["metrics"][name], rel=1e-4) for name in names)


def test_two_processes_under_torchrun_train_what_one_trains_and_rank_0_writes(
    alone: dict[str, Any], tmp_path: Path
) -> None:
    torchrun = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")
    result = tmp_path / "result"

    lines = finished(start(*torchrun, "-m", "trainer", *ARGUMENTS, SWEEP_RESULT=str(result)))

    assert [line.get("step") for line in lines] == [1, 2, None]
    assert json.loads(result.read_text()) == lines[-1]
    assert lines[-1]["running"]["processes"] == 2
    assert same_training(lines[-1], alone)


def test_processes_of_mpirun_meet_in_a_folder_that_they_share_and_go_on_together(
    alone: dict[str, Any], tmp_path: Path
) -> None:
    def both(start_number: int, *more: str) -> list[subprocess.Popen[str]]:
        return [
            start(
                *(sys.executable, "-m", "trainer", *ARGUMENTS, *more),
                OMPI_COMM_WORLD_RANK=str(rank),
                OMPI_COMM_WORLD_SIZE="2",
                OMPI_COMM_WORLD_LOCAL_RANK=str(rank),
                PMIX_NAMESPACE=str(start_number),
                SWEEP_CHECKPOINTS=str(tmp_path),
            )
            for rank in (0, 1)
        ]

    first = both(1, "--checkpoint_every=0")
    assert first[0].stdout
    while "step" not in first[0].stdout.readline():
        pass
    for process in first:  # mid-epoch, as a lost node would
        process.kill()
        process.communicate()
    lines, nothing = (finished(process) for process in both(2))

    assert nothing == []
    assert lines[-1]["running"]["resumed"] == 1
    assert same_training(lines[-1], alone)


def test_a_process_without_company_is_alone() -> None:
    assert join({}) == Group(rank=0, size=1, local_rank=0)
    assert join({"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}) == Group()


def test_processes_that_cannot_meet_are_told_how_they_could() -> None:
    with pytest.raises(TrialError, match="MASTER_ADDR: must say where the 4 processes meet") as caught:
        join({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4"})

    assert caught.value.exit_code == BAD_SWEEP
