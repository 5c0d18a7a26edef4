"""Small twins of public training programs, which write files as those do: two at once report what each does alone."""

import csv
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.repository import Sandbox
from tests.writing_programs import frame_of_events, plain_loop

SLOW = "import time; time.sleep(0.3)\n"
"""Lets neighbours write before this trial reads."""
CONFIGURED = f"""import ast, os, pathlib, sys
x, dropout, out_dir, init_from = 1.0, 0.0, "out", "scratch"
for word in sys.argv[1:]:
    key, value = word[2:].split("=")
    value = ast.literal_eval(value)
    assert type(value) is type(globals()[key]), word
    globals()[key] = value
os.makedirs(out_dir, exist_ok=True)
checkpoint = pathlib.Path(out_dir, "ckpt.txt")
loss = float(checkpoint.read_text()) if checkpoint.exists() else 9.0
for step in (0, 20, 40):
    loss = loss / 2 + x + dropout
    checkpoint.write_text(str(loss))
    print(f"step {{step}}: train loss 0.1, val loss {{loss:.4f}}")
{SLOW}
print(f"step 60: train loss 0.1, val loss {{float(checkpoint.read_text()):.4f}}")
"""
"""As a transformer whose settings are variables of a checked type, and which goes on from its checkpoint."""
EVENTS = f"""import argparse, pathlib, struct, time
parser = argparse.ArgumentParser()
parser.add_argument("--x", type=float)
x = parser.parse_args().x
folder = pathlib.Path(f"runs/CartPole__ppo__1__{{int(time.time())}}")
folder.mkdir(parents=True, exist_ok=True)
{{frame}}
with (folder / "events.out.tfevents.1.host").open("ab") as file:
    file.write(scalar("loss", x * 2, 1))
{SLOW}
print("final", x * 2)
"""
"""As an agent that names its folder of event files after the second."""
LOGGER = f"""import csv, pathlib, sys
options = dict(word.lstrip("-").split("=") for word in sys.argv[1:])
x = float(options["x"])
logs = pathlib.Path("{{logs}}")
version = len(list(logs.glob("version_*")))
folder = logs / f"version_{{{{version}}}}"
folder.mkdir(parents=True)
with (folder / "config.yaml").open("x") as file:
    file.write(f"x: {{{{x}}}}")
{SLOW}
with (folder / "metrics.csv").open("w") as file:
    csv.writer(file).writerows([["epoch", "loss"], [0, x], [1, x * 3]])
{SLOW}
print("final", x * 3)
"""
"""As an application whose logger numbers its folders."""
BOOSTING = f"""import pathlib, sys
settings = dict(line.split(" = ") for line in pathlib.Path("train.conf").read_text().splitlines())
settings |= dict(word.split("=") for word in sys.argv[1:])
pathlib.Path("train.conf").write_text("".join(f"{{key}} = {{value}}\\n" for key, value in settings.items()))
rows = pathlib.Path("../regression/train.txt").read_text().split()
pathlib.Path("model.txt").write_text(str(len(rows) * float(settings["x"])))
{SLOW}
print("The RMSE of prediction is:", pathlib.Path("model.txt").read_text())
"""
"""As boosted trees with a file of settings, which it writes, and data in a folder beside its own."""


@dataclass(frozen=True)
class Twin:
    """A program, the words after it, its metric, and the folder that it starts in."""

    program: str
    metric: str
    words: tuple[str, ...] = ("${args}",)
    workdir: str = "app"


def pattern(regex: str) -> str:
    return f"{{name: loss, goal: minimize, source: stdout, format: regex, patterns: ['{regex}']}}"


TABLE = '{{name: loss, goal: minimize, format: csv, path: "{}/**/metrics.csv"}}'
TWINS = {
    "typed settings": Twin(CONFIGURED, pattern(r"step (?P<step>\d+): .* val loss (?P<value>\S+)")),
    "event files": Twin(
        EVENTS.replace("{frame}", frame_of_events()),
        '{name: loss, goal: minimize, format: tensorboard, path: "runs/**"}',
    ),
    "numbered logs": Twin(LOGGER.format(logs="logs/train/csv"), TABLE.format("logs")),
    "boosting": Twin(
        BOOSTING, pattern(r"prediction is: (?P<value>\S+)"), ("${args_no_hyphens}",), "app/guide"
    ),
}
FILES = {
    "app/guide/train.conf": "leaves = 31\n",
    "app/regression/train.txt": "a b c d\n",
}
VALUES = (0.5, 4.0, 1.0, 2.0)
SPEC = """name: {name}
metric: {metric}
method: grid
parameters: {{x: {{values: [0.5, 4.0, 1.0, 2.0]}}}}
command: {command}
run: {{code: {{path: app}}, workdir: {workdir}, resources: {{cpu: 50m, memory: 64Mi}}, parallelism: 2}}
"""


def losses(sandbox: Sandbox, name: str) -> dict[float, tuple[str, float]]:
    """Return status and loss of each recorded trial by its value."""
    text = (sandbox.root / f"results/{name}/summary.csv").read_text()
    rows = csv.DictReader(text.splitlines())
    return {float(row["params.x"]): (row["status"], float(row["metrics.loss"])) for row in rows}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", TWINS)
def test_two_at_once_report_alike(kind: str, sandbox: Sandbox, tmp_path: Path, needs_kustomize: None) -> None:
    twin = TWINS[kind]
    sandbox.use_as_laptop()
    for path, text in {**FILES, f"{twin.workdir}/train.py": twin.program}.items():
        sandbox.write(path, text)
    sandbox.commit("Write the program")
    command = [sys.executable, "train.py", *twin.words]
    argv = {str(x): ["env", "-C", twin.workdir, *_started(command, x)] for x in VALUES}
    printed = plain_loop(sandbox.root, tmp_path / "plain", argv)
    plain = {
        float(x): float(re.findall(r"[0-9.]+", text.split("loss")[-1])[0]) for x, text in printed.items()
    }
    spec = SPEC.format(name="two", metric=twin.metric, command=command, workdir=twin.workdir)
    sandbox.write("sweeps/two.yaml", spec)

    list(sandbox.run("two", parallel=2))

    assert losses(sandbox, "two") == {x: ("ok", value) for x, value in plain.items()}


def _started(command: list[str], x: float) -> list[str]:
    """Return a command with the words that a trial is given."""
    words = {"${args}": f"--x={x}", "${args_no_hyphens}": f"x={x}"}
    return [words.get(word, word) for word in command]
