"""Training repositories as they are published, small: each is swept without a change to its files."""

import json
import venv
from dataclasses import dataclass
from pathlib import Path

import pytest

from sweepledger.commands.local import RefusedBatch
from sweepledger.commands.run import BatchesCommitted
from tests.repository import Sandbox

ROOT_SCRIPT = {
    "README.md": "# smallGPT\n\n`python train.py config/tiny.py --learning_rate=0.1`\n",
    "configurator.py": """import sys
from ast import literal_eval

for arg in sys.argv[1:]:
    if "=" not in arg:
        exec(open(arg).read())
    else:
        key, value = arg.removeprefix("--").split("=")
        globals()[key] = literal_eval(value)
""",
    "model.py": "def loss(learning_rate, n_layer):\n    return (learning_rate - 0.1) ** 2 + 1 / n_layer\n",
    "config/tiny.py": "n_layer = 2\n",
    "data/tiny/prepare.py": "print('tokens')\n",
    "train.py": """from model import loss

learning_rate = 0.5
n_layer = 12
exec(open("configurator.py").read())
print(f"step 0: train loss 9.9")
print(f"val_loss={loss(learning_rate, n_layer)}")
""",
    "sweeps/fit.yaml": """name: fit
method: grid
metric: {name: val_loss, goal: minimize, source: stdout}
parameters: {learning_rate: {values: [0.1, 0.6]}}
command: [python, train.py, config/tiny.py, "${args}"]
run: {code: {path: ., exclude: [data/, "*.md"]}, resources: {memory: 256Mi}, timeout: 1m}
""",
}

SOURCE_PACKAGE = {
    "pyproject.toml": '[project]\nname = "fitting"\nversion = "0.1"\nscripts = {fit = "fitting.cli:main"}\n',
    "src/fitting/__init__.py": "",
    "src/fitting/cli.py": """import argparse
import json

from fitting.model import loss
from fitting.data.table import ROWS


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, required=True)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    with open(options.out, "w") as file:
        json.dump({"val_loss": loss(options.lr) / ROWS}, file)


if __name__ == "__main__":
    main()
""",
    "src/fitting/model.py": "def loss(lr: float) -> float:\n    return (lr - 0.1) ** 2 + 1.0\n",
    "src/fitting/data/__init__.py": "",
    "src/fitting/data/table.py": "ROWS = 2\n",
    "tests/test_model.py": "from fitting.model import loss\n",
    "docs/index.md": "# Fitting\n",
    "sweeps/fit.yaml": """name: fit
method: grid
metric: {{name: val_loss, goal: minimize}}
parameters: {{lr: {{values: [0.1, 0.6]}}}}
command: ["{python}", -m, fitting.cli, "${{args}}", "--out=${{envvar:SWEEP_RESULT}}"]
run: {{code: {{path: [src]}}, resources: {{memory: 256Mi}}, timeout: 1m}}
""",
}

HYDRA_APPLICATION = {
    "configs/train.yaml": "defaults:\n  - model: small\n  - _self_\nseed: 0\nlr: 0.5\n",
    "configs/model/small.yaml": "width: 2\n",
    "configs/model/large.yaml": "width: 4\n",
    "src/__init__.py": "",
    "src/utils/__init__.py": "",
    "src/utils/metrics.py": "def loss(lr, width):\n    return (lr - 0.1) ** 2 + 1 / width\n",
    "src/train.py": """import sys
from pathlib import Path

import hydra

sys.path.append(str(Path(__file__).parents[1]))
from src.utils.metrics import loss


@hydra.main(version_base="1.3", config_path="../configs", config_name="train")
def main(config):
    print(f"val_loss={loss(config.lr, config.model.width)}")


if __name__ == "__main__":
    main()
""",
    "notebooks/explore.ipynb": "{}\n",
    "sweeps/fit.yaml": """name: fit
method: grid
metric: {name: val_loss, goal: minimize, source: stdout}
parameters:
  lr: {values: [0.1, 0.6]}
  model: {value: large}
command: [python, src/train.py, "${args_no_hyphens}", "hydra.run.dir=${envvar:SWEEP_ARTIFACTS}"]
run: {code: {path: ., include: ["*.py", "*.yaml"]}, resources: {memory: 512Mi}, timeout: 1m}
""",
}

SPEC = """name: fit
method: grid
metric: {{name: val_loss, goal: minimize, {reported}}}
parameters: {{lr: {{values: [0.1, 0.6]}}}}
command: [python, train.py, "${{args}}"]
run: {{code: {{path: ., include: ["*.py"]}}, resources: {{memory: 256Mi}}, timeout: 1m}}
"""

LOGS_TO_WANDB = {
    "train.py": """import sys

import wandb

lr = float(sys.argv[1].removeprefix("--lr="))
run = wandb.init(project="fits", config={"lr": lr})
for epoch in range(3):
    wandb.log({"val_loss": lr + 1 / (epoch + 1)})
wandb.finish()
""",
    "sweeps/fit.yaml": SPEC.format(reported="format: jsonl, capture: true"),
}

LOGS_TO_A_TABLE = {
    "train.py": """import os
import sys
from pathlib import Path

lr = float(sys.argv[1].removeprefix("--lr="))
folder = Path(os.environ["SWEEP_ARTIFACTS"], "lightning_logs/version_0")
folder.mkdir(parents=True)
rows = [f"{step},{9 - step},\\n{step},,{lr + 1 / (step + 1)}\\n" for step in range(3)]
(folder / "metrics.csv").write_text("step,train_loss,val_loss\\n" + "".join(rows))
""",
    "sweeps/fit.yaml": SPEC.format(reported='format: csv, path: "$SWEEP_ARTIFACTS/**/metrics.csv"'),
}


@dataclass(frozen=True)
class Project:
    files: dict[str, str]
    losses: tuple[float, ...]
    is_installed: bool = False
    """Whether its users install it with `pip install -e .`."""


PROJECTS = {
    "script at the root": Project(ROOT_SCRIPT, (0.5, 0.75)),
    "package in src": Project(SOURCE_PACKAGE, (0.5, 0.625), is_installed=True),
    "hydra application": Project(HYDRA_APPLICATION, (0.25, 0.5)),
    "metrics logged to W&B": Project(LOGS_TO_WANDB, (0.433333333, 0.933333333)),
    "metrics in Lightning's table": Project(LOGS_TO_A_TABLE, (0.433333333, 0.933333333)),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("project", PROJECTS.values(), ids=PROJECTS)
def test_a_published_layout_is_swept_unchanged(sandbox: Sandbox, tmp_path: Path, project: Project) -> None:
    python = "python"
    if project.is_installed:
        venv.create(tmp_path / "venv", symlinks=True)
        python = str(tmp_path / "venv/bin/python")
        (packages,) = tmp_path.glob("venv/lib/python*/site-packages")
        (packages / "__editable__.fitting-0.1.pth").write_text(f"{sandbox.root}/src\n")
    sandbox.git("rm", "-q", "-r", "code")
    spec = project.files["sweeps/fit.yaml"]
    for path in project.files.keys() - {"sweeps/fit.yaml"}:
        sandbox.write(path, project.files[path])
    sandbox.commit("The project")
    sandbox.use_as_laptop()
    sandbox.write("sweeps/fit.yaml", spec.format(python=python) if project.is_installed else spec)

    events = list(sandbox.run("fit"))

    (committed,) = (event for event in events if isinstance(event, BatchesCommitted))
    assert [generated.warnings for generated in committed.generated] == [()]
    assert not any(isinstance(event, RefusedBatch) for event in events)
    (records,) = sandbox.root.glob("results/fit/records/*.jsonl")
    lines = map(json.loads, records.read_text().splitlines())
    results = [line for line in lines if "status" in line]
    assert [result["status"] for result in results] == ["ok", "ok"]
    losses = tuple(round(result["metrics"]["val_loss"], 9) for result in results)
    assert losses == pytest.approx(project.losses)
