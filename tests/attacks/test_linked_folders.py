"""A folder that is checked is replaced by a link, a submodule or a file: what it shows then is checked nowhere."""

import shutil

import pytest

from tests.attacks.edits import errors
from tests.operations.test_check_platform import platform_sandbox, pristine
from tests.repository import Sandbox

__all__ = ["platform_sandbox", "pristine"]  # the fixtures

FOLDERS = ("overlays", "base", "sweeps", "results", "clusters")


@pytest.mark.parametrize("target", ["code", "nowhere", "/etc", ".git", "a file", "a submodule"])
def test_no_link_submodule_or_file_is_in_the_place_of_a_checked_folder(target: str, sandbox: Sandbox) -> None:
    for folder in FOLDERS:
        match target:
            case "a file":
                sandbox.write(folder, "x\n")
            case "a submodule":
                (sandbox.root / folder).mkdir()
                sandbox.git("update-index", "--add", "--cacheinfo", f"160000,{'a' * 40},{folder}")
            case _:
                (sandbox.root / folder).symlink_to(target)

    assert {(folder, "file-mode") for folder in FOLDERS} <= errors(sandbox)


@pytest.mark.sampled(1)
def test_a_platform_behind_a_link_is_refused_before_and_after_a_merge(platform_sandbox: Sandbox) -> None:
    shutil.move(platform_sandbox.root / "clusters", platform_sandbox.root / "moved")
    (platform_sandbox.root / "clusters").symlink_to("moved")
    platform_sandbox.commit("Move the platform")
    before = errors(platform_sandbox)
    platform_sandbox.git("push", "-q", "origin", "HEAD:main")
    (policy,) = (platform_sandbox.root / "moved/platform").glob("network*.yaml")
    policy.write_text("# nothing is refused\n")
    platform_sandbox.commit("Edit what nobody owns")

    assert ("clusters", "file-mode") in before
    assert ("clusters", "file-mode") in errors(platform_sandbox)


def test_links_elsewhere_are_allowed(sandbox: Sandbox) -> None:
    sandbox.write("docs/overlays/page.md", "x\n")
    (sandbox.root / "docs/clusters").symlink_to("overlays")

    assert errors(sandbox) == set()
