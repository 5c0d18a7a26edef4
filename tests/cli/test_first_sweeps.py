"""The first sweeps of repositories as people have them: what `sweep new` locks, and what the next step is named."""

import json
import os
import shlex
import signal
import subprocess
import sys
import venv
from pathlib import Path

import pytest
import yaml

from tests.builders import present
from tests.command_line import ROOT, git, run_sweep

PACKAGE = {
    "src/fitting/__init__.py": "",
    "src/fitting/model.py": "def loss(lr):\n    return (lr - 0.1) ** 2\n",
    "src/fitting/train.py": """import sys

from fitting.model import loss

print(f"val_loss={loss(float(sys.argv[1].partition('=')[2]))}")
""",
}
LAYOUTS = {
    "a module of a package in src": (PACKAGE | {"pyproject.toml": ""}, "{python} -m fitting.train", "."),
    "a package at the root": (
        {path.removeprefix("src/"): text for path, text in PACKAGE.items()},
        "python -m fitting.train",
        "fitting",
    ),
    "a Hydra application": (
        {
            "configs/train.yaml": "lr: 0.5\n",
            "src/train.py": """import hydra


@hydra.main(version_base="1.3", config_path="../configs", config_name="train")
def main(config):
    print(f"val_loss={(config.lr - 0.1) ** 2}")


main()
""",
        },
        "python src/train.py '${{args_no_hyphens}}'",
        ".",
    ),
    "a folder of scripts": (
        {"code/train.py": PACKAGE["src/fitting/train.py"], "code/fitting/model.py": PACKAGE["src/fitting/model.py"]},
        "python code/train.py",
        "code",
    ),
}  # fmt: skip


def repository(folder: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.name", "Ada")
    git(folder, "config", "user.email", "ada@example.org")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "Start")
    return folder


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """A repository whose script fails with x=3."""
    (tmp_path / "lab").mkdir()
    script = """import sys

x = float(sys.argv[1].partition("=")[2])
if x == 3:
    raise ValueError("x is three")
print(f"score={x}")
"""
    return repository(tmp_path / "lab", {"train.py": script})


def editable(folder: Path, project: Path) -> Path:
    """Return the Python of an environment in which `pip install -e` has installed a project."""
    venv.create(folder / "venv", symlinks=True)
    (packages,) = folder.glob("venv/lib/python*/site-packages")
    (packages / "__editable__.fitting.pth").write_text(f"{project}/src\n")
    return folder / "venv/bin/python"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_two_commands_sweep_a_repository_of_any_layout(tmp_path: Path, layout: str) -> None:
    files, command, code = LAYOUTS[layout]
    (tmp_path / "lab").mkdir()
    lab = repository(tmp_path / "lab", files)
    python = editable(tmp_path, lab) if "{python}" in command else None

    new = run_sweep(
        *("new", "fit", "--command", command.format(python=python), "--param", "lr=0.5"),
        *("--metric", "val_loss", "--minimize"),
        cwd=lab,
    )
    run = run_sweep("run", "fit", "--format", "json", cwd=lab)

    assert new.returncode == 0, new.stderr
    assert f"code: {{path: {code}" in (lab / "sweeps/fit.yaml").read_text()
    assert run.returncode == 0, run.stderr
    (trial,) = json.loads(run.stdout)["data"]["sweeps"][0]["trials"]
    assert (trial["status"], trial["metrics"]) == ("ok", {"val_loss": pytest.approx(0.16)})


@pytest.mark.parametrize(
    "words",
    [
        "--mask 0x10 012 1_000 .inf",
        "--empty '' --pair 'a: b' '#c' '[1, 2]' '{y}'",
    ],
)
def test_a_new_spec_has_the_words_of_its_command_whatever_yaml_reads_in_them(lab: Path, words: str) -> None:
    run_sweep("new", "fit", "--command", f"python train.py {words}", "--param", "x=1", cwd=lab)

    assert run_sweep("validate", "fit", cwd=lab).returncode == 0
    command = yaml.safe_load((lab / "sweeps/fit.yaml").read_text())["command"]
    assert command == ["python", "train.py", *shlex.split(words), "${args}"]


@pytest.mark.parametrize("command", ["python -m fitting.trian", "python ../train.py"])
def test_a_program_outside_the_repository_is_refused(lab: Path, command: str) -> None:
    done = run_sweep("new", "fit", "--command", command, cwd=lab)

    assert done.returncode == 2
    assert "--command must name a file of the repository or an installed program, got " in done.stderr
    assert "or the module after `python -m`" in done.stderr


def test_a_parameter_whose_name_yaml_reads_as_a_truth_value_is_quoted(lab: Path) -> None:
    run_sweep("new", "fit", "--command", "python train.py", "--param", "n=1,2", "--param", "on=true", cwd=lab)

    assert run_sweep("validate", "fit", cwd=lab).stdout == "sweeps/fit.yaml: ok, 2 trials\n"


def test_evidence_that_is_not_committed_is_refused_before_a_round_goes_without_it(lab: Path) -> None:
    run_sweep("new", "fit", "--command", "python train.py", "--param", "x=1,2", cwd=lab)
    spec = lab / "sweeps/fit.yaml"
    text = spec.read_text().replace("method: grid", "method: tpe\nseed: 7\nrounds: {size: 2, max: 1}")
    spec.write_text(text.replace("{values: [1, 2]}", "{min: 0.0, max: 2.0}"))
    (lab.parent / "runs.csv").write_text("x,score,state\n1.5,1.5,finished\n")
    run_sweep("import", "trials", str(lab.parent / "runs.csv"), "--name", "fit", cwd=lab)

    refused = run_sweep("run", "fit", cwd=lab)

    assert refused.returncode == 1
    assert "start: sweeps/runs.evidence.jsonl is not committed" in refused.stderr
    assert git(lab, "log", "--format=%s") == "Start\n"
    git(lab, "add", "sweeps")
    git(lab, "commit", "-q", "-m", "Start from earlier runs")
    assert "2/2" in run_sweep("run", "fit", cwd=lab).stdout


def test_a_metric_is_not_read_from_output_of_another_environment(lab: Path) -> None:
    run_sweep("new", "fit", "--command", "python train.py", "--param", "x=1,2", "--metric", "loss", cwd=lab)
    run_sweep("run", "fit", cwd=lab)
    spec = lab / "sweeps/fit.yaml"
    text = spec.read_text().replace("name: loss", "name: score")
    spec.write_text(text.replace("\nrun:\n", "\nrun:\n  environment: {MODE: other}\n"))
    git(lab, "commit", "-q", "-m", "Mend the metric", "sweeps")

    retried = run_sweep("retry", "fit", cwd=lab)

    assert "MODE" in spec.read_text()
    assert retried.returncode == 0, retried.stderr
    assert "not trained" not in retried.stdout


def test_the_last_output_of_a_failed_trial_is_shown_whatever_its_attempts_are_called(lab: Path) -> None:
    run_sweep("new", "fit", "--command", "python train.py", "--param", "x=3", cwd=lab)
    run_sweep("run", "fit", cwd=lab)
    (output,) = lab.glob(".sweepledger/results/*/0/*.err")
    interrupted = output.with_name("ffffffff-0000-4000-8000-000000000000.err")
    interrupted.touch()
    interrupted.with_suffix(".out").touch()
    os.utime(interrupted, (1, 1))
    os.utime(interrupted.with_suffix(".out"), (1, 1))

    failed = run_sweep("logs", "fit", "--failed", cwd=lab).stdout
    (row,) = json.loads(run_sweep("results", "fit", "--format", "json", cwd=lab).stdout)["data"]["trials"]
    every = run_sweep("logs", row["trial"], cwd=lab).stdout

    assert failed.splitlines()[-1] == "ValueError: x is three"
    assert every.index(interrupted.stem) < every.index(output.stem)


def test_a_watch_ends_with_ctrl_c_and_interrupts_nothing(lab: Path) -> None:
    run_sweep("new", "fit", "--command", "python train.py", "--param", "x=1", cwd=lab)
    run_sweep("generate", "fit", cwd=lab)
    git(lab, "add", ".")
    git(lab, "commit", "-q", "-m", "Ask")
    watch = subprocess.Popen(
        [sys.executable, "-m", "sweepledger.cli", "status", "--watch"],
        cwd=lab,
        env={**os.environ, "PYTHONPATH": str(ROOT / "generator"), "COLUMNS": "120"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    present(watch.stderr).readline()

    watch.send_signal(signal.SIGINT)
    out, err = watch.communicate(timeout=120)

    assert watch.returncode == 0
    assert "interrupted" not in err
    assert "fit-b1-" in out


def test_the_first_commit_of_a_script_is_what_its_sweep_needs(lab: Path) -> None:
    run_sweep("new", "fit", "--command", "python train.py", "--param", "x=1,2", cwd=lab)
    run_sweep("run", "fit", cwd=lab)

    first = git(lab, "log", "--reverse", "--format=%H", "--diff-filter=A", "--", "sweeps").split()[0]
    added = [line.split("\t") for line in git(lab, "show", "--numstat", "--format=", first).splitlines()]

    assert sum(int(lines) for lines, _, _ in added) <= 400
    assert not any(path.startswith("base/") or path.endswith(".schema.json") for _, _, path in added)
    assert run_sweep("verify", cwd=lab).returncode == 0
    assert run_sweep("check", cwd=lab).returncode == 0


NEIGHBOURS = ("notes.md", "look.ipynb", "logs/run.log", "site/index.html", "site/site.json", "other.py")


def test_neighbours_neither_stop_a_sweep_nor_count_as_code(lab: Path) -> None:
    run_sweep("new", "fit", "--command", "python train.py", "--param", "x=1,2", cwd=lab)
    for path in NEIGHBOURS:
        (lab / path).parent.mkdir(exist_ok=True)
        (lab / path).write_text("{}")

    run = run_sweep("run", "fit", cwd=lab)
    assert run.returncode == 0, run.stderr
    assert "not committed, so trials run without it: other.py" in run.stdout
    git(lab, "add", "notes.md", "look.ipynb")
    git(lab, "commit", "-q", "-m", "Add notes")
    again = run_sweep("run", "fit", "--update", cwd=lab)

    assert "--update requests nothing of fit" in again.stdout


def test_code_that_the_program_reads_is_committed_first(lab: Path) -> None:
    run_sweep("new", "fit", "--command", "python train.py", "--param", "x=1,2", cwd=lab)
    (lab / "train.py").write_text((lab / "train.py").read_text() + "import helper\n")
    git(lab, "commit", "-q", "-a", "-m", "Import")
    (lab / "helper.py").touch()

    refused = run_sweep("run", "fit", cwd=lab)
    (lab / "site").mkdir()
    (lab / "site/site.json").write_text("{}")
    accepted = run_sweep("run", "fit", "--commit-code", cwd=lab)

    assert refused.returncode == 3
    assert "helper.py" in refused.stderr
    assert accepted.returncode == 0, accepted.stderr
    assert "site" not in git(lab, "ls-files")


def test_python_is_that_of_the_activated_environment(tmp_path: Path) -> None:
    active = tmp_path / "active"
    venv.create(active, symlinks=True)
    (packages,) = active.glob("lib/python*/site-packages")
    (packages / "only_here.py").write_text("SCORE = 0.5\n")
    (tmp_path / "lab").mkdir()
    lab = repository(tmp_path / "lab", {"train.py": "import only_here\nprint(f'score={only_here.SCORE}')\n"})
    run_sweep(
        "new", "fit", "--command", "python train.py", "--param", "x=1", cwd=lab, VIRTUAL_ENV=str(active)
    )

    tried = run_sweep("try", "fit", cwd=lab, VIRTUAL_ENV=str(active))
    run = run_sweep("run", "fit", cwd=lab, VIRTUAL_ENV=str(active))

    assert (tried.returncode, run.returncode) == (0, 0), tried.stderr + run.stderr
    assert "score" in run_sweep("results", "fit", cwd=lab).stdout
