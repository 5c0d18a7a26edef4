"""Specs for tests: valid by default, one change a test; and what is said of them."""

import json
from typing import Any

from sweepledger.problems import Problem
from sweepledger.spec import ParsedSpec, parse
from sweepledger.spec.rules.configurations import SiblingReader
from sweepledger.structs.node_pool import NodeCapacity, Pool
from sweepledger.structs.settings import (
    CodeSource,
    Dataset,
    Egress,
    Image,
    SecretReference,
    Settings,
    SweepLimits,
)
from sweepledger.structs.settings.platform import ClusterSettings
from sweepledger.structs.sweep import Sweep
from tests.sweeps import with_keys

DIGEST = "sha256:" + "0123456789abcdef" * 4
POOLS = (
    Pool("cpu-small", NodeCapacity("8", "32Gi"), selector={"example.org/pool": "cpu-small"}, max_nodes=100),
    Pool("gpu-light", NodeCapacity("16", "64Gi", 1), queue="gpu-light"),
    Pool("gpu-heavy", NodeCapacity("96", "800Gi", 8), queue="gpu-heavy", max_nodes=4),
)
CLUSTERS = (
    ClusterSettings("eu", weight=3),
    ClusterSettings("us", pools=("cpu-small",)),
    ClusterSettings("lost", is_lost=True),
)
SECRETS = (
    SecretReference("hf-write", "hugging-face-write", "token", "HF_TOKEN"),
    SecretReference("hugging-face", "hugging-face", "token", "HF_TOKEN"),
    SecretReference("wandb", "wandb", "key", "WANDB_API_KEY"),
)
SETTINGS = with_keys(
    Settings(),
    limits=SweepLimits(max_gpu_hours=5000),
    code=CodeSource("https://git.example.org/team/sweeps.git", "git"),
    images={name: Image(name, f"registry.example.org/{name}", DIGEST) for name in ("git", "train")},
    datasets={name: Dataset(name, name, DIGEST) for name in ("cifar", "mnist")},
    secrets={secret.name: secret for secret in SECRETS},
    egress={"data-store": Egress("data-store", ("203.0.113.0/24",), (443,))},
    pools={pool.name: pool for pool in POOLS},
    clusters={cluster.name: cluster for cluster in CLUSTERS},
)


def a_spec(**changes: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "name": "lr",
        "method": "grid",
        "metric": {"name": "accuracy", "goal": "minimize"},
        "parameters": {"rate": {"values": [0.1, 0.2]}},
        "command": ["train", "${args}"],
    }
    return {key: value for key, value in {**spec, **changes}.items() if value is not ...}


def spec_bytes(spec: dict[str, Any]) -> bytes:
    """Write a spec as JSON, which is YAML with every text in quotes: these tests are not about the reader."""
    return json.dumps(spec, indent=1, ensure_ascii=False).encode()


def parsed(spec: dict[str, Any], *, path: str = "sweeps/lr.yaml") -> Sweep | tuple[Problem, ...]:
    return parse_sweep(spec_bytes(spec), path, SETTINGS)


def parse_sweep(
    content: bytes, path: str, settings: Settings, *, beside: SiblingReader = lambda _: None
) -> Sweep | tuple[Problem, ...]:
    spec = parse(content, path, settings, beside=beside)
    return spec.sweep if isinstance(spec, ParsedSpec) else spec


def problems_of(spec: dict[str, Any], *, beside: SiblingReader = lambda _: None) -> tuple[Problem, ...]:
    """Return all problems of a spec: warnings alone if it is valid."""
    result = parse(spec_bytes(spec), "sweeps/lr.yaml", SETTINGS, beside=beside)
    return result.warnings if isinstance(result, ParsedSpec) else result


def good_spec(**changes: Any) -> ParsedSpec:
    path = f"sweeps/{changes.get('name', 'lr')}.yaml"
    spec = parse(spec_bytes(a_spec(**changes)), path, SETTINGS)
    assert isinstance(spec, ParsedSpec), "\n".join(map(str, spec))
    return spec


def good(**changes: Any) -> Sweep:
    return good_spec(**changes).sweep


def bad(**changes: Any) -> list[tuple[str, str]]:
    sweep = parsed(a_spec(**changes), path=f"sweeps/{changes.get('name', 'lr')}.yaml")
    assert isinstance(sweep, tuple)
    return [(problem.path, problem.code) for problem in sweep]


def messages(**changes: Any) -> list[str]:
    sweep = parsed(a_spec(**changes))
    assert isinstance(sweep, tuple)
    return [problem.message for problem in sweep]


def hints(**changes: Any) -> list[str | None]:
    sweep = parsed(a_spec(**changes))
    assert isinstance(sweep, tuple)
    return [problem.hint for problem in sweep]


def axis(count: int) -> dict[str, Any]:
    return {"values": list(range(count))}
