"""examples/pools: three pools behind queues, and a sweep for each."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from sweepledger.formats import yaml
from sweepledger.operations.scaffold.bootstrap import BootstrapRequest, bootstrap
from sweepledger.repo import kustomize
from sweepledger.structs.settings import Controller
from tests.repository import Sandbox

EXAMPLE = Path(__file__).parents[2] / "examples/pools"
PAGE = Path(__file__).parents[2] / "docs/how-to/node-pools.md"
NODE_POOLS = tuple(yaml.load_all((EXAMPLE / "karpenter.yaml").read_bytes()))
YAML_BLOCK = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)
POOLS = {"features": ("cpu", None), "probe": ("gpu-light", "Tesla-T4")}
POOLS |= {"finetune": ("gpu-heavy", "NVIDIA-A100-SXM4-80GB")}


@pytest.fixture
def example(sandbox: Sandbox) -> Sandbox:
    shutil.copy(EXAMPLE / "sweepledger.yaml", sandbox.root)
    shutil.copytree(EXAMPLE / "sweeps", sandbox.root / "sweeps", dirs_exist_ok=True)
    sandbox.commit("Bring the example")
    return sandbox


def jobs(sandbox: Sandbox, sweep: str) -> list[dict[str, Any]]:
    (batch,) = [name for name in sandbox.active() if name.startswith(f"{sweep}-b")]
    built = kustomize.build(sandbox.root / "overlays/active" / batch)
    return [dict(manifest) for manifest in built if manifest["kind"] == "Job"]


@pytest.mark.usefixtures("needs_kustomize")
def test_each_sweep_waits_in_the_queue_of_its_pool_and_asks_for_its_gpu(example: Sandbox) -> None:
    example.generate()

    for sweep, (queue, gpu) in POOLS.items():
        for job in jobs(example, sweep):
            pod = job["spec"]["template"]["spec"]
            assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == queue
            assert "nodeSelector" not in pod
            assert "tolerations" not in pod
            assert "suspend" not in job["spec"]
            limits = pod["containers"][0]["resources"]["limits"]
            assert ("nvidia.com/gpu" in limits) == (gpu is not None)
            assert gpu is None or gpu in str(pod["affinity"])


def test_the_queues_that_the_sweeps_name_are_those_that_bootstrap_makes(example: Sandbox) -> None:
    bootstrap(
        example.workspace,
        BootstrapRequest(Controller.ARGOCD, "https://git.example/litbit/sweeps.git", "main"),
    )

    samples = yaml.load_all((example.root / "clusters/optional/kueue.yaml").read_bytes())

    queues = {made["metadata"]["name"] for made in samples if made["kind"] == "LocalQueue"}
    assert queues == {queue for queue, _ in POOLS.values()}
    (quota,) = [
        made
        for made in yaml.load_all((example.root / "clusters/platform/bounds.yaml").read_bytes())
        if made["kind"] == "ResourceQuota" and made["metadata"]["namespace"] == "litbit"
    ]
    assert quota["spec"]["hard"]["requests.nvidia.com/gpu"] == "900"


def test_the_page_on_node_pools_shows_node_pools_and_settings_of_the_example() -> None:
    blocks = [yaml.load(text) for text in YAML_BLOCK.findall(PAGE.read_text())]
    settings = yaml.load((EXAMPLE / "sweepledger.yaml").read_text())

    assert [block for block in blocks if "kind" in block] == [
        item for item in NODE_POOLS if item["metadata"]["name"] != "gpu-light"
    ]
    (shown,) = [block for block in blocks if "kind" not in block]
    assert shown["pools"] == settings["pools"]
