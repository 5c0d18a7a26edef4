import json
import math
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.launcher.folders import launch
from trainer import data
from trainer.__main__ import main
from trainer.contract import BAD_HYPERPARAMETERS, BAD_SWEEP, STORAGE_FAILED
from trainer.digits import ROWS_FILE, ROWS_SHA256

ROOT = Path(__file__).resolve().parents[2]
QUICK = (
    "mnist",
    "--learning_rate=0.1",
    "--batch_size=1000",
    "--epochs=1",
    "--width=2",
    "--precision=fp32",
)
Capture = pytest.CaptureFixture[str]


def trainer(
    *arguments: str, options: tuple[str, ...] = (), **environ: str
) -> subprocess.CompletedProcess[str]:
    """Run the trainer as a trial does: a process with a nearly empty environment."""
    return subprocess.run(
        [sys.executable, *options, "-m", "trainer", *arguments],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], **environ},
        capture_output=True,
        text=True,
        check=False,
    )


LINGERS = """
import os, runpy, sys, threading

def lingers():
    threading.main_thread().join()
    os.abort()

threading.Thread(target=lingers).start()
runpy.run_module("trainer", run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize(("arguments", "code"), [(("--help",), 0), (("mnist", "--seed=x"), BAD_SWEEP)])
def test_threads_that_outlive_the_training_change_nothing_of_its_end(
    arguments: tuple[str, ...], code: int
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LINGERS, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.returncode == code, done.stderr
    assert (done.stdout + done.stderr).endswith("\n")


def refused(done: subprocess.CompletedProcess[str]) -> list[str]:
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.stderr.splitlines()


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], Path]:
    """Run one quick trial with a result file; every Python warning is an error."""
    path = tmp_path_factory.mktemp("trial") / "new folder" / "result.json"
    done = trainer(*QUICK, options=("-W", "error"), SWEEP_RESULT=str(path), SWEEP_SEED="5")
    return done, path


@pytest.fixture
def result(trial: tuple[subprocess.CompletedProcess[str], Path]) -> dict[str, Any]:
    content = json.loads(trial[1].read_text())
    assert isinstance(content, dict)
    return content


def test_a_trial_ends_well_with_a_line_an_epoch_and_without_a_warning(
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


def test_the_result_holds_numbers_and_what_they_came_from(result: dict[str, Any]) -> None:
    metrics, seconds = result.pop("metrics"), result.pop("cpu_seconds")

    assert sorted(metrics) == [
        "images_per_second",
        "test_accuracy",
        "test_loss",
        "train_loss",
        "train_seconds",
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
    assert [step for step, _ in report.curve] == [1, 2, 3]
    assert report.metrics == json.loads((tmp_path / "r").read_text())["metrics"]
    assert report.details["data"]["name"] == "mnist-5k"


def test_the_result_is_alone_in_its_folder(
    trial: tuple[subprocess.CompletedProcess[str], Path],
) -> None:
    assert list(trial[1].parent.iterdir()) == [trial[1]]


def test_the_same_seed_gives_the_same_bits_in_another_process_without_loading_the_compiler(
    result: dict[str, Any],
) -> None:
    done = trainer(*QUICK, options=("-X", "importtime"), SWEEP_SEED="5")

    again = json.loads(done.stdout.splitlines()[-1])["metrics"]
    for name in ("test_accuracy", "test_loss", "train_loss"):
        assert again[name] == result["metrics"][name]
    assert "trainer.train" in done.stderr
    assert "torch._dynamo" not in done.stderr, "loading it takes longer than a trial"


def test_a_prepared_folder_trains_as_the_package_does(
    capsys: Capture, tmp_path: Path, result: dict[str, Any]
) -> None:
    environ = {"SWEEP_DATA": str(tmp_path), "SWEEP_SEED": "5"}

    codes = main(["prepare", "mnist"], environ), main(QUICK, environ)

    lines = capsys.readouterr().out.splitlines()
    assert codes == (0, 0)
    assert lines[0] == f"prepare: wrote {tmp_path}/{ROWS_FILE} (5000 MNIST digits, sha256:{ROWS_SHA256})"
    again = json.loads(lines[-1])
    assert again["metrics"]["test_loss"] == result["metrics"]["test_loss"]
    assert again["data"] == result["data"]


def test_unknown_knobs_are_told_all_at_once_and_make_the_sweep_bad() -> None:
    done = trainer("mnist", "--lerning_rate=0.1", "--bach_size=3", "--epochs=0")

    assert refused(done) == [
        "trainer: --lerning_rate: is no hyperparameter of this trainer",
        "  hint: did you mean --learning_rate?",
        "trainer: --bach_size: is no hyperparameter of this trainer",
        "  hint: did you mean --batch_size?",
        "trainer: --epochs: must be at least 1 and finite, got '0'",
    ]
    assert done.returncode == BAD_SWEEP


def test_bad_values_have_an_exit_code_of_their_own() -> None:
    done = trainer("mnist", "--learning_rate=-1", "--batch_size", "0")

    assert refused(done) == [
        "trainer: --learning_rate: must be greater than 0 and finite, got '-1'",
        "trainer: --batch_size: must be at least 1 and finite, got '0'",
    ]
    assert done.returncode == BAD_HYPERPARAMETERS


def test_a_damaged_data_file_stops_the_sweep_in_one_sentence(
    folder_with: Callable[[str, bytes], Path], rows: bytes
) -> None:
    folder = folder_with(ROWS_FILE, rows[:1000])

    done = trainer("mnist", SWEEP_DATA=str(folder))

    assert refused(done)[0].startswith(
        f"trainer: {folder}/{ROWS_FILE}: must have SHA-256 {ROWS_SHA256}, got "
    )
    assert done.returncode == BAD_SWEEP


def test_a_diverged_trial_ends_well_and_reports_nan(capsys: Capture, tmp_path: Path) -> None:
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
        (["mnits"], "did you mean mnist?"),
        (
            ["prepare"],
            "python -m trainer: expected prepare cifar10|fashion-mnist|mnist|mnist-5k [--from FOLDER], got",
        ),
        (["prepare", "cifar"], "[--from FOLDER], got prepare cifar"),
        (["prepare", "mnist"], "SWEEP_DATA: must name the folder to prepare"),
    ],
)
def test_a_misused_command_says_what_it_expects(capsys: Capture, arguments: list[str], message: str) -> None:
    code = main(arguments, {})

    assert code == BAD_SWEEP
    assert message in capsys.readouterr().err


def test_help_lists_every_knob_with_its_default(capsys: Capture) -> None:
    code = main(["mnist", "-h"], {})

    said = capsys.readouterr().out
    assert code == 0
    assert "--learning_rate=0.1" in said
    assert "--width=16" in said


def test_help_names_the_workloads_and_their_networks(capsys: Capture) -> None:
    code = main(["--help"], {})

    said = capsys.readouterr().out
    assert code == 0
    assert ", ".join(data.WORKLOADS) in said
    assert "--network=eidf (fashion-mnist, mnist, mnist-5k): PyTorch's MNIST example" in said
    assert all(len(line) <= 80 for line in said.splitlines())


def test_a_seed_may_be_an_argument(capsys: Capture) -> None:
    main([*QUICK, "--train_images=1000", "--seed=7"], {"SWEEP_SEED": "5"})

    assert json.loads(capsys.readouterr().out.splitlines()[-1])["running"]["seed"] == 7


def test_an_argument_that_is_no_seed_is_refused_as_one(capsys: Capture) -> None:
    assert main([*QUICK, "--seed=x"], {}) == BAD_SWEEP
    assert "SWEEP_SEED: must be a whole number" in capsys.readouterr().err
