"""A name that only some file systems take for a place that is checked."""

import pytest

from tests.repository import Sandbox

LIKE_A_CHECKED_PLACE = [
    "Overlays/active/evil/kustomization.yaml",
    "OVERLAYS/active/evil/job.yaml",
    "Sweeps/evil.yaml",
    "Base/trial/v1/job.yaml",
    "Results/peak/README.md",
    "Clusters/platform/rbac.yaml",
    "SweepLedger.yaml",
    "sweepledger.YAML",
    "sweepledger.yaml.",
    "overlays /active/x",
    "bas\u200de/trial/v1/job.yaml",
    "\uff53weeps/evil.yaml",
    ".GitAttributes",
    ".GITATTRIBUTES",
    ".gitattributes ",
]
LIKE_A_MERGED_FILE = [
    "base/launcher/V1/launch.py",
    "base/Launcher/v1/launch.py",
    "base/launcher/v1 /json.py",
    "base/launcher/v1/Launch.py",
    "base/launcher/v1/laun\u200dch.py",
    "base/launcher/\uff561/launch.py",
    "sweeps/Peak.yaml",
]
OF_OTHER_PROJECTS = {
    "Results/plots/a.png": "results/plots/README.md",
    "RESULTS/peak/README.md": "sweeps/peak.yaml",
    "Clusters/dev/nodes.yaml": "clusters/dev/kustomization.yaml",
    "Overlays/dev/kustomization.yaml": "overlays/dev",
    "Sweeps/README.md": "sweeps/README.md",
    "Base/models/resnet.py": "base/models/v1/job.yaml",
}
"""Files that look like those of sweeps, and the file by which a system would show them to somebody."""


def added(sandbox: Sandbox, path: str) -> list[tuple[str, str]]:
    """Return the problems of a further file."""
    sandbox.write(path, "* -diff\n")
    sandbox.git("-c", "core.protectNTFS=false", "add", "--all")
    return sandbox.problems()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("path", LIKE_A_CHECKED_PLACE)
def test_a_name_that_some_file_systems_take_for_a_checked_one_is_refused(path: str, sandbox: Sandbox) -> None:
    sandbox.spec()

    assert (path, "file-name") in added(sandbox, path)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("path", LIKE_A_MERGED_FILE)
def test_so_is_one_beside_a_merged_file_or_its_folder(path: str, sandbox: Sandbox) -> None:
    sandbox.merged()

    assert (path, "file-name") in added(sandbox, path)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("path", OF_OTHER_PROJECTS)
def test_folders_of_other_projects_may_look_like_those_of_sweeps(path: str, sandbox: Sandbox) -> None:
    sandbox.publish("Another project", {path: "x\n"})
    assert sandbox.check().problems == ()

    if OF_OTHER_PROJECTS[path] == "sweeps/peak.yaml":
        sandbox.spec()
        sandbox.git("add", "--all")
        assert (path, "file-name") in sandbox.problems()
    else:
        assert (path, "file-name") in added(sandbox, OF_OTHER_PROJECTS[path])


def test_other_names_are_allowed(sandbox: Sandbox) -> None:
    sandbox.merged()
    for path in ("base/mine/V2/Job.yaml", "sweeps/README.md", "results/NOTES.md", "Sweep/a.yaml"):
        sandbox.write(path, "x\n")
    sandbox.commit("Further files", {"code/Base/x.py": "x\n", "docs/Results/a.md": "", "sweepledger.yml": ""})

    assert "file-name" not in sandbox.codes(base="origin/main")
