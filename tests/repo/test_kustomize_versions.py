"""Every golden overlay renders the same in the oldest and in the newest kustomize that is supported."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster import building
from tests.cluster.overlays import CASES, laid_out

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


@pytest.mark.sampled(2)
@pytest.mark.parametrize("overlay", CASES, ids=lambda path: path.parents[1].name)
def test_the_oldest_kustomize_renders_what_the_newest_renders(overlay: Path, tmp_path: Path) -> None:
    commands = (kustomize(building.OLDEST_KUSTOMIZE), kustomize(building.NEWEST_KUSTOMIZE))
    folder = laid_out(tmp_path, overlay)

    oldest, newest = (rendered(command, folder) for command in commands)

    assert oldest == newest
    assert oldest.count(b"\nkind: ") >= 2


@pytest.mark.sampled(2)
@pytest.mark.parametrize("overlay", CASES, ids=lambda path: path.parents[1].name)
def test_the_wheels_kubectl_renders_what_kustomize_renders(overlay: Path, tmp_path: Path) -> None:
    alone = kustomize(building.NEWEST_KUSTOMIZE)
    folder = laid_out(tmp_path, overlay)

    assert rendered(WHEELS, folder) == rendered(alone, folder)
