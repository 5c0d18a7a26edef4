"""docs/example-templates.md: the sweeps of NVIDIA's and EIDF's examples, as their templates meant them."""

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from sweepledger.operations.collection.results_commit import ResultsCommit
from sweepledger.repo import kustomize
from tests.repository import Sandbox

EXAMPLES = Path(__file__).parents[2] / "examples"

SCRIPT = '''"""Look up item JOB_ID of hyperparams.yml, as the examples' scripts do, and say what was found."""
import hashlib, os, yaml
with open("hyperparams.yml") as stream:
    text = stream.read()
hyperparams = yaml.safe_load(text)[int(os.environ["JOB_ID"]) - 1]["hyperparam_set"]
print("set", sorted(hyperparams.items()))
print("digest", hashlib.sha256(text.encode()).hexdigest())
print("{metric}=" + str(hyperparams["batch_size"] / 1000))
with open(os.environ["SWEEP_RESULT"], "w") as log:
    log.write("{metric},".replace("_", " ") + str(hyperparams["batch_size"] / 1000) + "\\r\\n")
'''

SIXTEEN_TRIALS = pytest.mark.full_suite("larger examples")

CASES = {"cifar10": ("cifar10_train.py", "test_acc", 16), "mnist-eidf": ("main.py", "accuracy", 4)}


def example(sandbox: Sandbox, name: str) -> Sandbox:
    """Give the sandbox an example's settings, sweeps, and a script with the interface of the original."""
    script, metric, _ = CASES[name]
    shutil.rmtree(sandbox.root / "code")
    shutil.copy(EXAMPLES / name / "sweepledger.yaml", sandbox.root)
    shutil.copytree(EXAMPLES / name / "sweeps", sandbox.root / "sweeps")
    sandbox.publish("Bring the example", {f"code/{script}": SCRIPT.replace("{metric}", metric)})
    return sandbox


def rendered(sandbox: Sandbox) -> list[dict[str, Any]]:
    sandbox.commit_batches("Ask for it")
    (batch,) = sandbox.active()
    return [dict(manifest) for manifest in kustomize.build(sandbox.root / "overlays/active" / batch)]


def jobs(manifests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [manifest for manifest in manifests if manifest["kind"] == "Job"]


@pytest.mark.usefixtures("needs_kustomize")
@pytest.mark.parametrize(("name", "trials"), [("cifar10", 16), ("mnist-eidf", 4)])
def test_the_example_asks_for_its_trials_and_passes_every_check(
    name: str, trials: int, sandbox: Sandbox
) -> None:
    made = jobs(rendered(example(sandbox, name)))

    assert sum(job["spec"].get("completions", 1) for job in made) == trials
    assert sandbox.check().problems == ()
    assert not [job for job in made if "suspend" in job["spec"]], "a queue suspends what it holds back"


@pytest.mark.sampled(1)
@pytest.mark.usefixtures("needs_kustomize")
@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("mnist-eidf", "indexed"),
        pytest.param("cifar10", "jobs", marks=SIXTEEN_TRIALS),
    ],
)
def test_the_script_finds_its_set_in_either_shape(name: str, shape: str, sandbox: Sandbox) -> None:
    example(sandbox, name)
    (path,) = (sandbox.root / "sweeps").glob("*.yaml")
    data = yaml.safe_load(path.read_text())
    run = {"code": {"path": "code"}, "hyperparams_file": True, "shape": shape, "parallelism": 16}
    changed = {"command": [sys.executable, f"code/{CASES[name][0]}"], "run": run}
    path.write_text(yaml.safe_dump(data | changed, sort_keys=False))
    sandbox.commit("Run it here, without a cluster", {"sweepledger.yaml": "version: 1\n"})
    sandbox.publish_batches("Ask for it")

    (collected,) = [event for event in sandbox.local() if isinstance(event, ResultsCommit)]

    outcomes = collected.summary.outcomes
    assert len(outcomes) == CASES[name][2]
    for outcome in outcomes:
        metric = outcome.metric(CASES[name][1])
        assert metric == outcome.assignment["batch_size"] / 1000
