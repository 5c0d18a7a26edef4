import json
import math
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.command_line import captured
from tests.launcher.folders import launch
from trainer.__main__ import main
from trainer.contract import BAD_SWEEP, STORAGE_FAILED
from trainer.data import ROWS_FILE, ROWS_SHA256
from trainer.hyperparameters import WORKLOADS, hyperparameters_of

LINGERS = """
import os, runpy, sys, threading

def lingers():
    threading.main_thread().join()
    os.abort()

threading.Thread(target=lingers).start()
runpy.run_module("trainer", run_name="__main__", alter_sys=True)
"""


ROOT = Path(__file__).resolve().parents[2]
QUICK = ("mnist", "--learning_rate=0.1", "--batch_size=1000", "--epochs=1", "--width=2", "--precision=fp32")
TRAININGS = [(workload, network) for workload, networks in WORKLOADS.items() for network in networks]
Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], Path]:
    """A process with a nearly empty environment, as in a pod; warnings are errors."""
    path = tmp_path_factory.mktemp("trial") / "new folder" / "result.json"
    done = captured(
        [sys.executable, "-W", "error", "-m", "trainer", *QUICK],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "SWEEP_RESULT": str(path), "SWEEP_SEED": "5"},
    )
    return done, path


@pytest.fixture
def result(trial: tuple[subprocess.CompletedProcess[str], Path]) -> dict[str, Any]:
    content = json.loads(trial[1].read_text())
    assert isinstance(content, dict)
    return content


def test_a_trial_prints_a_line_per_epoch_and_no_warning(
    trial: tuple[subprocess.CompletedProcess[str], Path], result: dict[str, Any]
) -> None:
    done, _ = trial

    first, epoch, last = done.stdout.splitlines()
    assert done.returncode == 0
    assert done.stderr == ""
    assert first == (
        "mnist-5k: 4000 images to train with, 1000 to test with; network small, seed 5, 1 thread(s)"
    )
    assert json.loads(epoch) == {"step": 1, **result["metrics"]}
    assert json.loads(last) == result


def test_the_result_holds_metrics_and_what_they_came_from(result: dict[str, Any]) -> None:
    metrics, seconds = result.pop("metrics"), result.pop("cpu_seconds")

    assert sorted(metrics) == [
        *("images_per_second", "test_accuracy", "test_loss", "train_loss", "train_seconds")
    ]
    assert all(isinstance(value, float) and math.isfinite(value) for value in metrics.values())
    assert 0 < seconds["first_step"] < seconds["all"]
    assert result.pop("hyperparameters")["batch_size"] == 1000
    running = result.pop("running")
    assert {name: running[name] for name in ("precision", "processes", "resumed", "seed", "threads")} == {
        "precision": "fp32",
        "processes": 1,
        "resumed": 0,
        "seed": 5,
        "threads": 1,
    }
    assert result == {
        "data": {"name": "mnist-5k", "digest": f"sha256:{ROWS_SHA256}", "train": 4000, "test": 1000},
        "data_digest": f"sha256:{ROWS_SHA256}",
        "device": "cpu" if not torch.cuda.is_available() else torch.cuda.get_device_name(),
        "network": "small",
        "precision": "fp32",
        "versions": {"python": platform.python_version(), "torch": torch.__version__},
        "workload": "mnist",
    }


def test_the_lines_of_a_trial_are_a_curve_to_the_launcher(capsys: Capture, tmp_path: Path) -> None:
    main(["mnist", "--train_images=100", "--epochs=3", "--width=1"], {"SWEEP_RESULT": str(tmp_path / "r")})

    metric = {"name": "test_accuracy", "source": "stdout", "format": "jsonl", "reduce": "last"}
    stream = launch.Stream(metric)
    stream.feed(capsys.readouterr().out.encode())
    stream.finish()
    report = stream.report("on stdout", "")
    assert report.reason is None
    assert [step for step, _ in report.curves["test_accuracy"]] == [1, 2, 3]
    assert report.metrics == json.loads((tmp_path / "r").read_text())["metrics"]
    assert report.details["data"]["name"] == "mnist-5k"


def test_the_same_seed_gives_the_same_bits(capsys: Capture, tmp_path: Path, result: dict[str, Any]) -> None:
    environ = {"SWEEP_DATA": str(tmp_path), "SWEEP_SEED": "5"}

    codes = main(["prepare", "mnist"], environ), main(QUICK, environ)

    lines = capsys.readouterr().out.splitlines()
    assert codes == (0, 0)
    assert lines[0] == f"prepare: wrote {tmp_path}/{ROWS_FILE} (5000 MNIST digits, sha256:{ROWS_SHA256})"
    again = json.loads(lines[-1])
    assert again["data"] == result["data"]
    for name in ("test_accuracy", "test_loss", "train_loss"):
        assert again["metrics"][name] == result["metrics"][name]


def test_a_diverged_trial_succeeds_and_reports_nan(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "result.json"

    code = main(["mnist", "--learning_rate=1e30", "--width=1"], {"SWEEP_RESULT": str(path)})

    assert code == 0
    assert '"test_accuracy": NaN' in path.read_text()
    assert math.isnan(json.loads(path.read_text())["metrics"]["test_accuracy"])
    assert '"train_loss": NaN' in capsys.readouterr().out


def test_a_result_that_cannot_be_written_is_one_sentence(capsys: Capture, tmp_path: Path) -> None:
    code = main(QUICK, {"SWEEP_RESULT": str(tmp_path)})

    assert code == STORAGE_FAILED
    assert capsys.readouterr().err == f"trainer: {tmp_path}: cannot be written: Is a directory\n"
    assert not list(tmp_path.parent.glob("*.tmp"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "python -m trainer: expected cifar10, fashion-mnist, mnist, mnist-5k or prepare, got nothing"),
        (["prepare", "cifar"], "[--from FOLDER], got prepare cifar"),
        (["prepare", "mnist"], "SWEEP_DATA: must name the folder to prepare"),
    ],
)
def test_a_misused_command_says_what_it_expects(capsys: Capture, arguments: list[str], message: str) -> None:
    code = main(arguments, {})

    assert code == BAD_SWEEP
    assert message in capsys.readouterr().err


def test_a_seed_may_be_an_argument(capsys: Capture) -> None:
    main([*QUICK, "--train_images=1000", "--seed=7"], {"SWEEP_SEED": "5"})

    assert json.loads(capsys.readouterr().out.splitlines()[-1])["running"]["seed"] == 7


@pytest.mark.parametrize(("workload", "network"), TRAININGS)
def test_help_lists_every_hyperparameter(capsys: Capture, workload: str, network: str) -> None:
    assert main([workload, f"--network={network}", "--help"], {}) == 0
    lines = capsys.readouterr().out.splitlines()

    listed = [line.partition("=")[0].strip() for line in lines if line.startswith("  --")]
    assert listed == [f"--{name}" for name in hyperparameters_of(workload, network)]
    assert all(len(line) <= 80 for line in lines)


@pytest.mark.parametrize(("arguments", "code"), [(("--help",), 0), (("mnist", "--seed=x"), BAD_SWEEP)])
def test_threads_that_outlive_the_training_do_not_matter(arguments: tuple[str, ...], code: int) -> None:
    done = captured([sys.executable, "-c", LINGERS, *arguments], cwd=ROOT)

    assert done.returncode == code, done.stderr
    assert (done.stdout + done.stderr).endswith("\n")
