"""A folder that is checked is replaced by a link, a submodule or a file: what it shows then is checked nowhere."""

import shutil

import pytest

from sweepledger.problems import Severity
from tests.operations.test_check_platform import platform_sandbox, pristine
from tests.repository import Sandbox

__all__ = ["platform_sandbox", "pristine"]  # the fixtures

FOLDERS = ("overlays", "base", "sweeps", "results", "clusters")


def refused(sandbox: Sandbox) -> set[tuple[str, str]]:
    found = sandbox.check(base="origin/main").problems
    return {(one.file, one.code) for one in found if one.severity is Severity.ERROR}


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize("target", ["code", "nowhere", "/etc", ".git", None])
def test_a_link_for_a_checked_folder_is_refused(target: str | None, folder: str, sandbox: Sandbox) -> None:
    if target is None:
        sandbox.write(folder, "x\n")
    else:
        (sandbox.root / folder).symlink_to(target)
    sandbox.git("add", "--all")

    assert (folder, "file-mode") in refused(sandbox)


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_submodule_in_the_place_of_a_checked_folder_is_refused(folder: str, sandbox: Sandbox) -> None:
    sandbox.git("update-index", "--add", "--cacheinfo", f"160000,{'a' * 40},{folder}")

    assert (folder, "file-mode") in refused(sandbox)


@pytest.mark.sampled(1)
def test_a_platform_behind_a_link_is_refused_before_and_after_a_merge(platform_sandbox: Sandbox) -> None:
    shutil.move(platform_sandbox.root / "clusters", platform_sandbox.root / "moved")
    (platform_sandbox.root / "clusters").symlink_to("moved")
    platform_sandbox.commit("Move the platform")
    before = refused(platform_sandbox)
    platform_sandbox.git("push", "-q", "origin", "HEAD:main")
    (policy,) = (platform_sandbox.root / "moved/platform").glob("network*.yaml")
    policy.write_text("# nothing is refused\n")
    platform_sandbox.commit("Edit what nobody owns")

    assert ("clusters", "file-mode") in before
    assert ("clusters", "file-mode") in refused(platform_sandbox)


def test_links_elsewhere_are_allowed(sandbox: Sandbox) -> None:
    sandbox.write("docs/overlays/page.md", "x\n")
    (sandbox.root / "docs/clusters").symlink_to("overlays")
    sandbox.git("add", "--all")

    assert refused(sandbox) == set()
