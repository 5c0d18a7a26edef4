"""Capturing what a program logs to W&B or MLflow, installed or not, without an edit and without harm."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.launcher.folders import LAUNCHER, TrialFolder, launch, shell

METRIC = {"name": "val/acc", "source": "result", "format": "jsonl"}


@pytest.fixture
def captured(trial_folder: TrialFolder, any_python: str) -> TrialFolder:
    trial_folder.interpreter = any_python
    trial_folder.columns = [("lr", "number"), ("opt.name", "string")]
    trial_folder.rows = ['t00000000000,0.25,"adam"']
    trial_folder.changes = {"metric": METRIC, "capture": True}
    return trial_folder


def program(folder: TrialFolder, script: str) -> None:
    """Let a trial run a Python program as its author wrote it, without its own site-packages."""
    folder.code.mkdir(exist_ok=True)
    (folder.code / "train.py").write_text(script)
    folder.command = [folder.interpreter, "train.py"]


WANDB = """
import importlib.util, wandb
class Tensor:
    def __init__(self, *values): self.values = values
    def item(self):
        (value,) = self.values
        return value
assert importlib.util.find_spec("mlflow") is None, "a library that checks for a package gets the truth"
with wandb.init(project="x", config={"epochs": 3}) as run:
    for epoch in range(run.config.epochs):
        wandb.log({"val/acc": 0.5 + epoch / 8, "note": "text", "nested": {"loss": 1}, "flag": True})
    run.log({"val/acc": 0.9}, step=10)
    wandb.log({"extra": 7}, commit=False)
    assert (wandb.config.lr, wandb.config["opt.name"]) == (0.25, "adam")
    run.summary["best"] = 1
    wandb.watch(run, log="all").anything(1)[2].other
    table = wandb.Table(columns=["a"])
    wandb.log({"table": table, "image": wandb.Image(1)})
    wandb.log({"one": Tensor(0.5), "many": Tensor(1, 2), "nan": float("nan")}, commit=False)
"""


def test_wandb_is_captured_where_it_is_not_installed(captured: TrialFolder) -> None:
    (captured.code / "wandb/offline-run-1").mkdir(parents=True)  # is not taken for the package
    program(captured, WANDB)

    record = captured.try_once()

    assert (record["status"], record["said"]) == ("ok", ["t00000000000: ok: val/acc=0.9"])
    assert record["metrics"] == {"val/acc": 0.9, "nested.loss": 1.0, "extra": 7.0, "one": 0.5}
    assert record["details"]["nan"] == "nan"
    assert record["curves"]["val/acc"] == [[0, 0.5], [1, 0.625], [2, 0.75], [10, 0.9]]


def test_mlflow_is_captured_where_it_is_not_installed(captured: TrialFolder) -> None:
    program(
        captured,
        "import mlflow, mlflow.pytorch\n"
        "from mlflow import log_metric\n"
        "mlflow.set_experiment('x'); mlflow.pytorch.autolog()\n"
        "with mlflow.start_run() as run:\n"
        "    mlflow.log_params({'a': 1}); str(run.info.run_id)\n"
        "    log_metric('val/acc', 0.5, step=1)\n"
        "    mlflow.log_metrics({'val/acc': 0.75, 'loss': 2}, step=5)\n"
        "    mlflow.log_metric('other', 3)\n"
        "@mlflow.trace\n"
        "def work(): return 1\n"
        "assert work() == 1\n",
    )

    record = captured.try_once()

    assert record["metrics"] == {"val/acc": 0.75, "loss": 2.0, "other": 3.0}
    assert record["curves"]["val/acc"] == [[1, 0.5], [5, 0.75]]


def packages(folder: TrialFolder) -> dict[str, str]:
    """Write packages with the structure of the real ones; return the environment that has them."""
    for path, content in {
        "wandb/__init__.py": "from .sdk import wandb_run\nfrom .sdk.wandb_run import Run\nrun = None\n"
        "def init(config=None, **_):\n"
        "    global run, log\n"
        "    run = Run(); run.config.update(config or {}); log = run.log\n"
        "    return run\n",
        "wandb/sdk/__init__.py": "",
        "wandb/sdk/wandb_run.py": "class Run:\n"
        "    def __init__(self): self.config = {}; self.logged = []\n"
        "    def log(self, data, step=None, commit=None): self.logged.append((data, step)); return 'logged'\n",
        "mlflow/__init__.py": "def log_metric(key, value, step=None, synchronous=None): return ('real', key)\n"
        "def log_metrics(metrics, step=None): return 'real'\n",
    }.items():
        (folder.root / "lib" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder.root / "lib" / path).write_text(content)
    return {"PYTHONPATH": str(folder.root / "lib")}


def test_installed_packages_do_what_they_did_and_are_captured(captured: TrialFolder) -> None:
    captured.environment = packages(captured)
    program(
        captured,
        "import mlflow, wandb\n"
        "run = wandb.init(config={'lr': 0.5})\n"
        "assert run.config == {'lr': 0.5, 'opt.name': 'adam'}\n"
        "assert wandb.log({'val/acc': 0.5}) == run.log(data={'val/acc': 0.75}, step=4) == 'logged'\n"
        "assert len(run.logged) == 2\n"
        "assert mlflow.log_metric('loss', 1, synchronous=True) == ('real', 'loss')\n"
        "assert wandb.__spec__.loader is wandb.__loader__ and type(wandb.__loader__).__name__ == 'SourceFileLoader'\n",
    )

    run = captured.run()

    assert run.code == 0, run.err
    assert captured.record()["metrics"] == {"val/acc": 0.75, "loss": 1.0}
    assert captured.record()["curves"]["val/acc"] == [[0, 0.5], [4, 0.75]]
    assert "wandb.config has lr=0.5, and the trial has 0.25" in run.said


def test_an_error_in_capturing_is_one_line_and_not_the_programs(captured: TrialFolder) -> None:
    program(
        captured,
        "import os, wandb\n"
        "wandb.log({'val/acc': 1})\n"
        "path = os.environ['SWEEP_RESULT']\n"
        "os.rename(path, path + '.kept'); os.mkdir(path)\n"
        "for step in range(9): wandb.log({'val/acc': 2})\n"
        "wandb.log(5); wandb.log({'val/acc': 2}, step='x'); wandb.log(None)\n"
        "os.rmdir(path); os.rename(path + '.kept', path)\n",
    )

    run = captured.run()

    assert run.code == 0, run.err
    assert len([line for line in run.said if "metrics may not be captured" in line]) == 1
    assert captured.record()["metrics"] == {"val/acc": 1.0}


def test_another_sitecustomize_still_runs(captured: TrialFolder) -> None:
    (captured.root / "lib").mkdir()
    (captured.root / "lib" / "sitecustomize.py").write_text("import sys; sys.hidden = 'ran'\n")
    captured.environment = {"PYTHONPATH": str(captured.root / "lib")}
    program(captured, "import sys, wandb\nassert sys.hidden == 'ran'\nwandb.log({'val/acc': 1})\n")

    run = captured.run(PYTHONDONTWRITEBYTECODE="1")

    assert run.code == 0, run.err


def test_no_account_and_no_network_are_needed_unless_the_trial_says_so(captured: TrialFolder) -> None:
    script = (
        "import os, wandb\n"
        "wandb.log({'val/acc': 1})\n"
        "print(os.environ['WANDB_MODE'], os.environ['MLFLOW_TRACKING_URI'])\n"
    )
    program(captured, script)

    first = captured.run()
    second = captured.run(
        WANDB_MODE="online",
        MLFLOW_TRACKING_URI="http://x",
        SWEEP_POD_UID="uid-2",
        SWEEP_RESULTS=str(captured.root / "2"),
    )

    assert first.out.decode().split()[0] == "offline"
    assert first.out.decode().split()[1].startswith(f"file:{captured.root}/scratch/trial-")
    assert second.out == b"online http://x\n"


@pytest.mark.parametrize(
    "metric",
    [{"source": "result"}, {"source": "result", "format": "jsonl", "path": "x"}],
)
def test_captured_metrics_need_their_format(metric: dict[str, Any], trial_folder: TrialFolder) -> None:
    trial_folder.changes = {"capture": True, "metric": {"name": "x", **metric}}

    run = trial_folder.run()

    assert (run.code, run.said) == (
        43,
        ["launch.json: capture: metric must have the source result, the format jsonl and no path"],
    )


def test_without_capture_nothing_is_changed(trial_folder: TrialFolder) -> None:
    trial_folder.command = shell(
        '[ -z "$PYTHONPATH$WANDB_MODE$MLFLOW_TRACKING_URI" ] && printf \'{"test_accuracy": 1}\' > $SWEEP_RESULT'
    )

    assert trial_folder.try_once()["status"] == "ok"


def test_the_part_that_captures_lies_beside_what_was_started_and_needs_nothing_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = LAUNCHER.with_name("launch_capture.py").read_text() + "# of this batch"
    (tmp_path / "launch_capture.py").write_text(part)
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "launch.py")])
    variables: dict[bytes, bytes] = {}
    launch.capture_in(str(tmp_path), variables)

    run = subprocess.run(
        [sys.executable, "-c", "import sys; print('wandb' in sys.modules, type(sys.meta_path[0]).__name__)"],
        env={"PYTHONPATH": os.fsdecode(variables[b"PYTHONPATH"]), "SWEEP_RESULT": "x"},
        capture_output=True,
        text=True,
        check=True,
    )

    assert (tmp_path / "capture/sitecustomize.py").read_text() == part
    assert (run.stdout, run.stderr) == ("False CapturingFinder\n", "")
