"""`sweep new --command` takes what can be started without a shell, and says what to write instead of the rest."""

import os
import pty
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.command_line import ROOT, git, run_sweep

INSTALLED = ("env", "lightgbm", "make", "nice", "papermill", "poetry", "python", "sh", "torchrun", "uv", "vw")
FILES = (
    *(
        "main.py",
        "train.py",
        "Makefile",
        "train.ipynb",
        "fasttext",
        "train.conf",
        "train.dat",
        "cleanrl/ppo.py",
    ),
    *("mnist/main.py", "src/fitting/train.py", "tools/dist_train.sh", "config/gpt2.py", "configs/default.py"),
)
ACCEPTED = (
    "torchrun --standalone --nproc_per_node=8 train.py config/gpt2.py",
    "poetry run python cleanrl/ppo.py --seed 1 --env-id CartPole-v0",
    "uv run --directory mnist python main.py",
    "vw -d train.dat --passes 2 -c",
    "lightgbm config=train.conf num_trees=10",
    "bash ./tools/dist_train.sh configs/default.py 8",
    "python -m torch.distributed.run --nproc_per_node=4 main.py",
    "make -C mnist train",
    "env OMP_NUM_THREADS=1 python train.py",
    "nice -n 5 python train.py",
    "papermill train.ipynb out.ipynb",
    "python -c 'import train; train.main()'",
    "python -m fitting.train",
    "sh -c 'echo score=1'",
)
REFUSED = (
    "KERAS_BACKEND=jax OMP_NUM_THREADS=1 python train.py --lr '0.1 0.2'",
    "python train.py 2>&1 | tee train.log",
    "cd mnist && python main.py",
    "export A=1; python train.py < train.dat",
    "python train.py --lr 0.1 &",
)


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with many programs, on a machine that has some more."""
    lab, tools = tmp_path / "lab", tmp_path / "tools"
    for path in (*(lab / name for name in FILES), *(tools / name for name in INSTALLED)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(0o755)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}{os.environ['PATH']}")
    git(lab, "init", "-q", "-b", "main")
    return lab


@pytest.mark.parametrize("command", ACCEPTED)
def test_a_program_that_starts_without_a_shell_is_accepted(lab: Path, command: str) -> None:
    done = run_sweep("new", "fit", "--command", command, "--param", "x=1,2", cwd=lab)

    assert done.returncode == 0, done.stderr
    words = yaml.safe_load((lab / "sweeps/fit.yaml").read_text())["command"]
    assert words[-1] == ("${args_no_hyphens}" if command.startswith("make") else "${args}")
    first, second = shlex.split(command)[:2]
    assert (words[0].removeprefix(f"{lab.parent}/tools/"), words[1]) == (first, second)
    assert run_sweep("validate", "fit", cwd=lab).returncode == 0


@pytest.mark.parametrize("command", REFUSED)
def test_what_only_a_shell_reads_is_refused_with_a_command_that_is_accepted(lab: Path, command: str) -> None:
    refused = run_sweep("new", "fit", "--command", command, "--param", "x=1,2", cwd=lab)

    assert refused.returncode == 2
    assert "which only a shell reads" in refused.stderr
    hint = re.search(r"hint: --command (.*)", refused.stderr)
    assert hint
    (instead,) = shlex.split(hint[1])
    accepted = run_sweep("new", "fit", "--command", instead, "--param", "x=1,2", cwd=lab)
    assert accepted.returncode == 0, accepted.stderr


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("python t.py > log", 'python t.py "$@" > log'),
        ("python t.py 2>&1 | tee log", 'python t.py "$@" 2>&1 | tee log'),
        ('exec python t.py "$@" 2>&1', 'exec python t.py "$@" 2>&1'),
        ("echo 'a > b'", "echo 'a > b' \"$@\""),
    ],
)
def test_the_text_of_a_shell_gets_the_arguments_of_the_trial(lab: Path, text: str, written: str) -> None:
    run_sweep("new", "fit", "--command", f"sh -c {shlex.quote(text)}", "--param", "x=1,2", cwd=lab)

    words = yaml.safe_load((lab / "sweeps/fit.yaml").read_text())["command"]
    assert words == ["sh", "-c", written, "sh", "${args}"]


PROGRAMS = {
    "Hydra": (
        "import hydra\n@hydra.main(config_path='conf')\ndef main(cfg): ...",
        "x=1,2",
        "${args_no_hyphens}",
    ),
    "a switch of argparse": (
        "p.add_argument('--x', action='store_true')",
        "x=true,false",
        "${args_no_boolean_flags}",
    ),
    "on and off of argparse": (
        "p.add_argument('--x', action=argparse.BooleanOptionalAction)",
        "x=true,false",
        "${args_switches}",
    ),
    "a flag of click": (
        "@click.option('--x', is_flag=True)\ndef main(x): ...",
        "x=true",
        "${args_no_boolean_flags}",
    ),
    "typer": (
        "import typer\ndef main(lr: float, x: bool = True): ...\ntyper.run(main)",
        "x=true",
        "${args_switches}",
    ),
    "tyro": (
        "import tyro\n@dataclass\nclass Args:\n    lr: float = 1.0\n    x: bool = False\ntyro.cli(Args)",
        "x=true",
        "${args_switches}",
    ),
    "one hyphen": (
        "p.add_argument('-x', type=float)\np.add_argument('-lr', type=float)",
        "lr=1,2",
        "${args_single_hyphen}",
    ),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_macro_is_how_the_program_reads_its_arguments(lab: Path, program: str) -> None:
    source, parameter, macro = PROGRAMS[program]
    (lab / "train.py").write_text(f"{source}\n")

    run_sweep("new", "fit", "--command", "python train.py", "--param", parameter, cwd=lab)

    assert yaml.safe_load((lab / "sweeps/fit.yaml").read_text())["command"][-1] == macro


SOURCE = """
p.add_argument('--lr')
p.add_argument('--sizes', nargs='+')
p.add_argument('--amp', action=BooleanOptionalAction)
p.add_argument('--fast', action='store_true')
"""


def test_each_kind_of_option_gets_its_macro_in_one_command(lab: Path) -> None:
    (lab / "train.py").write_text(SOURCE)
    parameters = ("lr=1,2", "sizes=[8, 16],[32]", "amp=true,false", "fast=true,false")

    done = run_sweep(
        *("new", "fit", "--command", "python train.py --lr=3 -v --sizes 4"),
        *(word for each in parameters for word in ("--param", each)),
        cwd=lab,
    )

    assert (done.returncode, done.stderr) == (0, "")
    spec = yaml.safe_load((lab / "sweeps/fit.yaml").read_text())
    assert spec["parameters"]["sizes"] == {"values": [[8, 16], [32]]}
    macros = ["${args_switches}", "${args_spaced:sizes}", "${args_no_boolean_flags:fast}"]
    assert spec["command"] == ["python", "train.py", *macros, "-v"]
    assert run_sweep("validate", "fit", cwd=lab).returncode == 0


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("./fasttext supervised -x 16 -q", ["./fasttext", "supervised", "${args_single_hyphen:x}", "-q"]),
        ("vw -d train.dat --x 3", ["vw", "-d", "train.dat", "${args_spaced:x}"]),
        ("make x=3 run", ["make", "${args_no_hyphens}", "run"]),
    ],
)
def test_an_option_is_given_as_the_command_has_it(lab: Path, command: str, words: list[str]) -> None:
    run_sweep("new", "fit", "--command", command, "--param", "x=1,2", cwd=lab)

    first, *rest = yaml.safe_load((lab / "sweeps/fit.yaml").read_text())["command"]
    assert [first.removeprefix(f"{lab.parent}/tools/"), *rest] == words


def test_a_configuration_file_with_the_parameters_becomes_that_of_the_trial(lab: Path) -> None:
    (lab / "configs/fit.yaml").write_text("model: {lr: 0.1}\nx: 3\n")
    command = ("--command", "python train.py --config=configs/fit.yaml --x 3")

    run_sweep("new", "fit", *command, "--param", "model.lr=1,2", cwd=lab)
    run_sweep("new", "other", *command, "--param", "model.rate=1,2", cwd=lab)

    spec, other = (yaml.safe_load((lab / f"sweeps/{name}.yaml").read_text()) for name in ("fit", "other"))
    assert spec["command"] == ["python", "train.py", "--config=${config}", "--x", "3"]
    assert spec["run"]["config"] == {"base": "configs/fit.yaml"}
    assert other["command"][-1] == "${args}"
    assert "config" not in other["run"]


def test_a_parameter_in_braces_is_refused_with_the_macro(lab: Path) -> None:
    refused = run_sweep("new", "fit", "--command", "make run N={N}", "--param", "N=1,2", cwd=lab)

    assert refused.returncode == 2
    assert "got 'N={N}', which nothing replaces" in refused.stderr
    assert "write 'N=${param:N}'" in refused.stderr
    assert (
        run_sweep("new", "fit", "--command", "make N=${param:N}", "--param", "N=1", cwd=lab).returncode == 0
    )


HAS_UNSHARE = subprocess.run(
    ["sh", "-c", "unshare --user --map-root-user --net -- true"], check=False, capture_output=True
)


@pytest.mark.skipif(HAS_UNSHARE.returncode != 0, reason="takes the network from a program")
def test_an_installed_program_is_asked_for_its_options(lab: Path) -> None:
    tool = lab.parent / "tools/fit"
    tool.write_text(
        f"#!{sys.executable}\nimport argparse, os, socket\np = argparse.ArgumentParser()\n"
        "p.add_argument('--batch-size')\np.add_argument('--fast', action='store_true')\n"
        "p.add_argument('--' + '-'.join(sorted(os.listdir('.')) + [name for _, name in socket.if_nameindex()]))\n"
        "p.parse_args()\n"
    )

    tool.chmod(0o755)

    done = run_sweep(
        *("new", "fit", "--command", "fit train"),
        *("--param", "batch_size=1,2", "--param", "fast=true,false", "--param", "l=1"),
        cwd=lab,
    )

    spec = yaml.safe_load((lab / "sweeps/fit.yaml").read_text())
    assert [*spec["parameters"]] == ["batch-size", "fast", "l"]
    assert spec["command"][1:] == ["train", "${args_no_boolean_flags}"]
    assert "must be an option of fit, got 'l' [program-option]" in done.stderr
    assert "did you mean 'lo'?" in done.stderr, "an empty folder, and no network but its own"


def test_a_parameter_is_called_as_the_program_calls_it_and_an_unknown_one_is_a_warning(lab: Path) -> None:
    (lab / "train.py").write_text("p.add_argument('-b', '--batch-size')\np.add_argument('--depth')\n")

    long = run_sweep(
        *("new", "fit", "--command", "python train.py"),
        *("--param", "batch_size=1,2", "--param", "dept=1"),
        cwd=lab,
    )
    run_sweep("new", "short", "--command", "python train.py", "--param", "b=1,2", cwd=lab)
    unnamed = run_sweep("new", "unnamed", "--command", "python train.py", cwd=lab)
    (lab / "train.py").write_text("from .options import add\np.add_argument('--depth')\n")
    elsewhere = run_sweep("new", "other", "--command", "python train.py", "--param", "lr=1", cwd=lab)

    names = {
        name: [*yaml.safe_load((lab / f"sweeps/{name}.yaml").read_text())["parameters"]]
        for name in ("fit", "short")
    }
    assert names == {"fit": ["batch-size", "dept"], "short": ["batch-size"]}
    assert "must be an option of train.py, got 'dept' [program-option]" in long.stderr
    assert "did you mean 'depth'?" in long.stderr
    assert "got 'x' [program-option]" in unnamed.stderr, "the example is none of its parameters"
    assert elsewhere.stderr == "", "its options may be those of another module"


def test_options_of_the_command_decide_method_number_and_metric(lab: Path) -> None:
    new = ("new", "fit", "--command", "python train.py", "--param", "x=0.0..1.0")

    run_sweep(
        *new, "--method", "sobol", "--trials", "8", "--pattern", r"loss: (\S+)", "--metric", "loss", cwd=lab
    )

    spec = yaml.safe_load((lab / "sweeps/fit.yaml").read_text())
    assert (spec["method"], spec["run_cap"]) == ("sobol", 8)
    assert spec["metric"]["patterns"] == [r"loss: (?P<value>\S+)"]
    assert run_sweep("validate", "fit", cwd=lab).returncode == 0


@pytest.mark.parametrize(("path", "form"), [("logs/**/m.csv", "csv"), ("runs", "tensorboard")])
def test_the_name_of_a_file_with_the_metric_shows_its_format(lab: Path, path: str, form: str) -> None:
    run_sweep("new", "fit", "--command", "python train.py", "--param", "x=1", "--metric-path", path, cwd=lab)

    assert yaml.safe_load((lab / "sweeps/fit.yaml").read_text())["metric"]["format"] == form
    assert run_sweep("validate", "fit", cwd=lab).returncode == 0


def test_what_validate_refuses_is_never_written(lab: Path) -> None:
    done = run_sweep("new", "fit", "--command", "python train.py ${arg}", cwd=lab)

    assert done.returncode == 1
    assert "did you mean ${args}?" in done.stderr
    assert not (lab / "sweeps").exists()


def test_without_arguments_it_asks_on_a_terminal_alone(lab: Path) -> None:
    main, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "sweepledger.cli", "new"],
        cwd=lab,
        stdin=terminal,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT / "generator")},
    )
    os.close(terminal)
    os.write(main, b"python train.py\nlr=0.1,0.2\n\nloss\n\n")
    out, err = process.communicate(timeout=120)
    os.close(main)
    refused = run_sweep("new", cwd=lab)

    assert process.returncode == 0, err
    assert out.decode().endswith("next: `sweep try train`, then `sweep run train`\n")
    spec = yaml.safe_load((lab / "sweeps/train.yaml").read_text())
    assert (spec["metric"]["goal"], spec["parameters"]) == ("minimize", {"lr": {"values": [0.1, 0.2]}})
    assert (refused.returncode, "Missing argument 'NAME'" in refused.stderr) == (2, True)
