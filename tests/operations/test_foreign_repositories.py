"""Training repositories as they are published, small: each is swept without a change to its files."""

import json

import pytest

from sweepledger.operations.cluster_local import RefusedBatch
from sweepledger.operations.run import BatchesCommitted
from tests.repository import Sandbox

SPEC_PATH = "sweeps/fit.yaml"
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
    SPEC_PATH: """name: fit
method: grid
metric: {name: val_loss, goal: minimize, source: stdout}
parameters: {learning_rate: {values: [0.1, 0.6]}}
command: [python, train.py, config/tiny.py, "${args}"]
run: {code: {path: ., exclude: [data/, "*.md"]}, resources: {memory: 256Mi}, timeout: 1m}
""",
}


LOGS_TO_WANDB = {
    "train.py": """import sys

import wandb

lr = float(sys.argv[1].removeprefix("--lr="))
run = wandb.init(project="fits", config={"lr": lr})
for epoch in range(3):
    wandb.log({"val_loss": lr + 1 / (epoch + 1)})
wandb.finish()
""",
    SPEC_PATH: """name: fit
method: grid
metric: {name: val_loss, goal: minimize, format: jsonl, capture: true}
parameters: {lr: {values: [0.1, 0.6]}}
command: [python, train.py, "${args}"]
run: {code: {path: ., include: ["*.py"]}, resources: {memory: 256Mi}, timeout: 1m}
""",
}


PROJECTS = {
    "script at the root": (ROOT_SCRIPT, (0.5, 0.75)),
    "metrics logged to W&B": (LOGS_TO_WANDB, (0.433333333, 0.933333333)),
}
"""The files of each, and the losses of its trials."""


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("files", "losses"), PROJECTS.values(), ids=PROJECTS)
def test_a_published_layout_is_swept_unchanged(
    sandbox: Sandbox, files: dict[str, str], losses: tuple[float, ...]
) -> None:
    sandbox.git("rm", "-q", "-r", "code")
    sandbox.commit("The project", {path: text for path, text in files.items() if path != SPEC_PATH})
    sandbox.use_as_laptop()
    sandbox.write(SPEC_PATH, files[SPEC_PATH])

    events = list(sandbox.run("fit"))

    (committed,) = (event for event in events if isinstance(event, BatchesCommitted))
    assert [generated.warnings for generated in committed.generated] == [()]
    assert not any(isinstance(event, RefusedBatch) for event in events)
    (records,) = sandbox.root.glob("results/fit/records/*.jsonl")
    lines = map(json.loads, records.read_text().splitlines())
    results = [line for line in lines if "status" in line]
    assert [result["status"] for result in results] == ["ok", "ok"]
    measured = tuple(round(result["metrics"]["val_loss"], 9) for result in results)
    assert measured == pytest.approx(losses)
