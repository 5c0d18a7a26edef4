"""Every golden overlay renders the same in the oldest and in the newest kustomize that is supported."""

import subprocess
import sys
from pathlib import Path

import pytest

from sweepledger.operations.scaffold.bootstrap import BootstrapRequest, bootstrap
from sweepledger.structs.settings import Controller
from tests.cluster import building
from tests.cluster.overlays import CASES, laid_out
from tests.repository import Sandbox

WHEELS = (str(Path(sys.executable).parent / "kubectl"), "kustomize")


def kustomize(group: building.Group) -> tuple[str, ...]:
    folder = building.built(group)
    if folder is None:
        pytest.skip(f"skipped: {group.name} is not built (run `make cluster-tools`)")
    return (str(folder / "kustomize"), "build")


def rendered(command: tuple[str, ...], overlay: Path) -> bytes:
    return subprocess.run([*command, str(overlay)], capture_output=True, check=True).stdout


def version(command: tuple[str, ...]) -> str:
    argv = (command[0], "version") if command[1] == "build" else (command[0], "version", "--client")
    return subprocess.run(argv, capture_output=True, check=True, text=True).stdout


def test_the_tested_kustomize_versions_are_the_documented_ones() -> None:
    assert "v5.5.0" in version(kustomize(building.OLDEST_KUSTOMIZE))
    assert "v5.8.1" in version(kustomize(building.NEWEST_KUSTOMIZE))
    assert "v5.8.1" in version(WHEELS)


@pytest.fixture
def every_kustomize() -> tuple[tuple[str, ...], ...]:
    return kustomize(building.OLDEST_KUSTOMIZE), kustomize(building.NEWEST_KUSTOMIZE), WHEELS


@pytest.mark.sampled(2)
@pytest.mark.parametrize("overlay", CASES, ids=lambda path: path.parents[1].name)
def test_every_kustomize_renders_the_same(
    overlay: Path, tmp_path: Path, every_kustomize: tuple[tuple[str, ...], ...]
) -> None:
    folder = laid_out(tmp_path, overlay)

    oldest, *others = (rendered(command, folder) for command in every_kustomize)

    assert others == [oldest, oldest]
    assert oldest.count(b"\nkind: ") >= 2


@pytest.mark.sampled(1)
@pytest.mark.parametrize("controller", [Controller.ARGOCD, Controller.FLUX], ids=str)
def test_the_platform_is_the_same_in_every_kustomize(
    controller: Controller, sandbox: Sandbox, every_kustomize: tuple[tuple[str, ...], ...]
) -> None:
    bootstrap(sandbox.workspace, BootstrapRequest(controller, "https://git.example/team/sweeps.git", "main"))

    for name in ("platform", str(controller)):
        folder = sandbox.root / "clusters" / name
        oldest, *others = (rendered(command, folder) for command in every_kustomize)
        assert others == [oldest, oldest]
