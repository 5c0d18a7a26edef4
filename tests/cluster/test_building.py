"""The cluster's programs, packages and files: pinned, built once, ended in time, missed by name."""

import os
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.cluster import building, packages, preparing
from tests.cluster.building import Group
from tests.cluster.children import until
from tests.cluster.deadline import Deadline, DeadlinePassedError

PROGRAMS = [group for group in building.KNOWN if isinstance(group, Group)]
REQUIRED = re.compile(r"^\t?(?:require )?([a-z][^ ]*/[^ ]*) (v[^ \n]+)(?: // indirect)?$", re.MULTILINE)


def pins(group: str) -> dict[str, str]:
    return dict(REQUIRED.findall((building.PINS / group / "go.mod").read_text()))


def script(path: Path, *lines: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(("#!/bin/sh", *lines, "")))
    path.chmod(0o755)


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where nothing is built yet."""
    monkeypatch.setattr(building, "BUILT", tmp_path / "tools")
    return tmp_path / "tools"


@pytest.mark.parametrize("group", PROGRAMS, ids=lambda group: group.name)
def test_every_program_is_a_pinned_tool(group: Group) -> None:
    text = (building.PINS / group.name / "go.mod").read_text()
    tools = re.search(r"^tool (?:\(\n(.*?)^\)|(\S+)$)", text, re.MULTILINE | re.DOTALL)

    assert tools
    assert set((tools[1] or tools[2]).split()) == set(group.programs.values())


def test_what_programs_say_of_themselves_is_what_is_pinned() -> None:
    for release, group in building.CONTROL_PLANES.items():
        assert pins(group.name)["k8s.io/kubernetes"] == f"v{release}"
    assert pins("argocd")["github.com/argoproj/argo-cd/v3"] == f"v{building.ARGO_CD}"
    for group, release in zip(
        (building.OLDEST_KUSTOMIZE_CONTROLLER, building.FLUX), building.FLUXES.values(), strict=True
    ):
        assert pins(group.name)["github.com/fluxcd/kustomize-controller"] == f"v{release}"


def test_a_version_that_is_not_pinned_is_refused_with_those_that_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES", raising=False)
    assert building.chosen("KUBERNETES", building.RELEASES, "1.36") == "1.36"
    monkeypatch.setenv("KUBERNETES", "1.29")
    with pytest.raises(SystemExit, match=r"^KUBERNETES: must be one of 1\.30, 1\.36, 1\.37, got '1\.29'$"):
        building.chosen("KUBERNETES", building.RELEASES, "1.36")


@pytest.mark.parametrize(
    "group",
    [building.ARGOCD, building.FLUX, building.JOBSET, building.KUEUE],
    ids=lambda group: group.name,
)
def test_a_controller_meets_the_definitions_of_its_own_release(group: Group) -> None:
    defined, programs = pins("crds"), pins(group.name)
    own = {
        module for module in defined if any(package.startswith(module) for package in group.programs.values())
    }

    assert own
    assert {module: defined[module] for module in own} == {module: programs[module] for module in own}


def test_a_build_that_takes_too_long_is_ended_with_all_that_it_started(
    elsewhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = tmp_path / "compiler"
    script(tmp_path / "bin/go", f"sleep 600 & echo $! > {compiler}.new; mv {compiler}.new {compiler}; wait")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    moments = iter((0.0, 1.0))

    def now() -> float:
        """Return first that there is time, and then, once the compiler runs, that it is over."""
        moment = next(moments)
        if moment:
            until("the compiler runs", compiler.exists, seconds=120, pause=0.01)
        return moment

    monkeypatch.setattr("tests.cluster.deadline.time", SimpleNamespace(monotonic=now))

    with pytest.raises(DeadlinePassedError):
        building.build(building.KWOK, Deadline(1.0))

    assert not has_process(int(compiler.read_text()))
    assert building.built(building.KWOK) is None
    assert not list(elsewhere.iterdir())


def has_process(pid: int) -> bool:
    """Tell whether a process still runs; the dead may wait for the one who buries them."""
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return bool(shown.stdout.strip()) and not shown.stdout.startswith("Z")


def test_without_root_it_says_so_and_builds_no_cluster(
    elsewhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(tmp_path))
        assert preparing.main([]) == 0

    assert (
        "skipped: no cluster tools (root is needed): the tests on a cluster are skipped"
        in capsys.readouterr().out
    )
    assert preparing.lacking() == "root is needed"


def test_a_step_that_fails_is_no_skip(
    elsewhere: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script(tmp_path / "bin/go", "exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setattr(preparing, "out_of_reach", lambda: "")
    monkeypatch.setattr(preparing, "IMAGES", "tests.cluster.no_such_module")
    monkeypatch.setattr(packages, "missing", tuple)

    assert preparing.main([]) == 1

    assert "it failed for crds, crds-newest" in capsys.readouterr().out
