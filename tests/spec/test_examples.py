"""Example files: adding one adds a test. Beside each invalid one stands what is said of it, beside each valid
one what it asks for. A file of assignments is found beside the spec that names it.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from sweepledger.problems import Problem, Severity
from sweepledger.search import Expansion, explore
from sweepledger.spec import ParsedSpec, parse, parse_settings
from sweepledger.structs.node_pool import GpuShares, GpuSharing, NodeCapacity, PodSettings, Pool
from sweepledger.structs.settings import (
    BucketSettings,
    Controller,
    Dataset,
    ResultsSettings,
    ResultsStore,
    Settings,
    SweepLimits,
)
from sweepledger.structs.settings.platform import ClusterSettings
from sweepledger.structs.values import Value
from tests import written_specs
from tests.sweeps import with_keys

SPECS = Path(__file__).parent.parent / "specs"
VALID = sorted((SPECS / "valid").glob("*.yaml"))
INVALID = sorted((SPECS / "invalid").glob("*.yaml"))

SETTINGS = with_keys(
    written_specs.SETTINGS,
    code=None,
    datasets={"mnist": Dataset("mnist", "mnist", "sha256:" + "0" * 64)},
    limits=SweepLimits(max_trials=90_000, max_gpu_hours=4e9),
)


WITHOUT_FILES = replace(SETTINGS, results=ResultsSettings(store=ResultsStore.API))
IN_A_BUCKET = replace(
    SETTINGS,
    results=ResultsSettings(store=ResultsStore.BUCKET, bucket=BucketSettings("s3://sweeps/vision", "bucket")),
)
WITH_CLAIMS = with_keys(
    SETTINGS,
    pools={
        "cpu-small": replace(SETTINGS.trials.pools["cpu-small"], pod=PodSettings(claims={"gpu": "one-gpu"}))
    },
)
WITH_SHARES = with_keys(
    SETTINGS,
    pools={
        "shared": Pool(
            "shared", NodeCapacity("15", "56Gi", 4), gpu_shares=GpuShares(GpuSharing.MPS, 4), price=2.0
        )
    },
)
ONLY_BY_NAME = with_keys(SETTINGS, clusters={"eu": ClusterSettings("eu", weight=0)})
STORES = "store-unsupported"
"""Examples of these names are wrong only where results have no files."""
CONTROLLED = with_keys(SETTINGS, controller=Controller.ARGOCD)
IN_A_CLUSTER = ("image-missing", "interpreter-", "environment-name-hook", "environment-name-devices")
"""Examples of these names are wrong only where a controller applies overlays."""


def read(path: Path) -> ParsedSpec | Settings | tuple[Problem, ...]:
    def beside(name: str) -> bytes | None:
        return (path.parent / name).read_bytes() if (path.parent / name).is_file() else None

    if path.name.endswith(".settings.yaml"):
        return parse_settings(path.read_bytes(), "sweepledger.yaml")
    settings = CONTROLLED if path.name.startswith(IN_A_CLUSTER) else SETTINGS
    settings = WITHOUT_FILES if path.name.startswith(STORES) else settings
    settings = IN_A_BUCKET if path.name.startswith("store-unsupported-shape-bucket") else settings
    settings = WITH_CLAIMS if path.name == "shape-claims.yaml" else settings
    settings = WITH_SHARES if path.name == "gpu-share.yaml" else settings
    settings = ONLY_BY_NAME if path.name == "not-in-settings-cluster-none.yaml" else settings
    return parse(path.read_bytes(), f"sweeps/{path.name}", settings, beside=beside)


def problems(path: Path) -> tuple[Problem, ...]:
    """Say everything that is said of a file, warnings included, as `sweep validate` does."""
    spec = read(path)
    if isinstance(spec, Settings):
        return spec.warnings
    if not isinstance(spec, ParsedSpec):
        return spec
    expansion = explore(spec.sweep, spec.source)
    explored = expansion.warnings if isinstance(expansion, Expansion) else expansion
    return tuple(sorted((*spec.warnings, *explored)))


def asked_for(path: Path) -> Iterator[str]:
    """Write down what a sweep comes to: how many trials, by which method, the first and the last; and its warnings.

    A new warning thus changes this text, which is derived, and no example.
    """
    spec = read(path)
    assert isinstance(spec, ParsedSpec)
    sweep, expansion = spec.sweep, explore(spec.sweep)
    assert isinstance(expansion, Expansion)
    yield f"{len(expansion.configurations) * sweep.replicates} trials, {sweep.replicates} an assignment"
    count = expansion.count
    yield f"{sweep.method}: {count.kept} of {count.candidates}, {count.rejected} rejected"
    if expansion.configurations:  # a search by rounds has them a round at a time
        yield f"first {line(expansion.configurations[0])}"
        yield f"last {line(expansion.configurations[-1])}"
    said = problems(path)
    assert all(problem.severity is Severity.WARNING for problem in said)
    yield from map(str, said)


def line(assignment: Mapping[str, Value]) -> str:
    return json.dumps(dict(assignment), ensure_ascii=False)


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.name)
def test_a_valid_example_asks_for_the_trials_that_stand_beside_it(
    path: Path, request: pytest.FixtureRequest
) -> None:
    result, recorded = "".join(f"{text}\n" for text in asked_for(path)), path.with_suffix(".txt")
    if request.config.getoption("--update-golden"):
        recorded.write_text(result, encoding="utf-8")

    assert result == recorded.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.name)
def test_an_invalid_example_has_exactly_its_problems(path: Path, request: pytest.FixtureRequest) -> None:
    errors = problems(path)
    said, recorded = "".join(f"{problem}\n" for problem in errors), path.with_suffix(".txt")
    if request.config.getoption("--update-golden"):
        recorded.write_text(said, encoding="utf-8")

    assert said == recorded.read_text(encoding="utf-8")
    assert any(path.name.startswith(problem.code) for problem in errors)
    for problem in errors:
        assert problem.message[0] == problem.message[0].lower()
        assert not problem.message.endswith(".")
        assert problem.hint is None or not problem.hint.endswith(".")


@pytest.mark.parametrize("folder", ["valid", "invalid"])
def test_every_text_stands_beside_an_example(folder: str) -> None:
    examples, texts = ((SPECS / folder).glob(pattern) for pattern in ("*.yaml", "*.txt"))

    assert {path.stem for path in texts} == {path.stem for path in examples}
