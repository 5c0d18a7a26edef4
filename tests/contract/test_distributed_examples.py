"""docs/how-to/distributed.md and examples/distributed: each kind, rendered, against policy and schemas."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from sweepledger.repo import kustomize
from sweepledger.structs.run_config import Shape
from tests.builders import present
from tests.render.judging import check_batch
from tests.repository import Sandbox

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples/distributed"
SPECS = sorted((FOLDER / "sweeps").glob("*.yaml"))
PAGE = (ROOT / "docs/how-to/distributed.md").read_text(encoding="utf-8")
SCRIPTS = ("train.py", "tf_benchmarks.py", "tf_cnn_benchmarks.py")


def made(sandbox: Sandbox, spec: str) -> tuple[Any, ...]:
    """Generate one example and build it; what comes of it must pass the policy."""
    shutil.copy(FOLDER / "sweepledger.yaml", sandbox.root)
    sandbox.write(f"sweeps/{spec}.yaml", (FOLDER / "sweeps" / f"{spec}.yaml").read_text(encoding="utf-8"))
    sandbox.write("trainer/__main__.py", "print('a stand-in')\n")
    for script in SCRIPTS:
        sandbox.write(f"code/{script}", "print('a stand-in')\n")
    sandbox.commit("Bring the example")
    (generated,) = sandbox.generate()
    assert generated.warnings == ()
    manifests = kustomize.build(sandbox.root / "overlays/active" / present(generated.batch).name)
    settings = sandbox.workspace.settings
    assert check_batch(present(generated.batch).name, settings, manifests, file=spec) == ()
    return tuple(manifest for manifest in manifests if manifest["kind"] != "ConfigMap")


@pytest.mark.sampled(1)
@pytest.mark.usefixtures("needs_kustomize")
@pytest.mark.parametrize("spec", [path.stem for path in SPECS])
def test_an_example_renders_and_passes_the_policy(spec: str, sandbox: Sandbox) -> None:
    queued = [thing for thing in made(sandbox, spec) if thing["kind"] != "TrainingRuntime"]

    labels = [thing["metadata"]["labels"] for thing in queued]
    assert {one["kueue.x-k8s.io/queue-name"] for one in labels} == {"research-queue"}
    assert sorted(int(one["sweepledger.dev/index"]) for one in labels) == list(range(len(queued)))


def test_there_is_an_example_of_every_kind_and_the_page_names_it() -> None:
    shapes = {
        line.split()[1] for path in SPECS for line in path.read_text().splitlines() if "  shape:" in line
    }

    assert shapes == {str(shape) for shape in Shape if shape.is_distributed}
    for path in SPECS:
        assert f"examples/distributed/sweeps/{path.name}" in PAGE
