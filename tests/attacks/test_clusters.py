"""The platform is changed beside what a reviewer expects: another repository, weaker policies, further objects."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sweepledger.operations.scaffold.bootstrap import BootstrapRequest, bootstrap
from tests.attacks.edits import Edit, codes, put
from tests.operations.test_bootstrap import URL
from tests.operations.test_check_platform import platform_sandbox, pristine
from tests.repository import Sandbox, append_to, replace_in

__all__ = ["platform_sandbox", "pristine"]  # the fixtures

OTHER = "https://other.example/sweeps.git"


def policies(root: Path) -> None:
    for path in (root / "clusters").rglob("*.yaml"):
        text = path.read_text()
        if "failurePolicy:" in text:
            path.write_text(text.replace('failurePolicy: "Fail"', 'failurePolicy: "Ignore"'))


BINDING = """apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: sweep-admin}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: sweep-trial, namespace: sweeps}]
"""
REMOTE = "resources: [https://evil.example/platform?ref=main]\n"
CHANGES: dict[str, Edit] = {
    "a policy that fails open": policies,
    "a binding": put("clusters/platform/binding.yaml", BINDING),
    "a binding in a folder of its own": put("clusters/more/binding.yaml", BINDING),
    "a remote resource": put("clusters/platform/kustomization.yaml", REMOTE),
    "kustomization.yml": put("clusters/platform/kustomization.yml", REMOTE),
    "Kustomization": put("clusters/platform/Kustomization", REMOTE),
    "the hook": put("clusters/pre-receive.sh", "#!/bin/sh\nexit 0\n"),
    "an emptied hook": put("clusters/pre-receive.sh", ""),
    "a patch beside it": put("clusters/platform/patch.json", "[]\n"),
    "a chart": put("clusters/platform/Chart.yaml", "name: x\n"),
    "the team's folder in other letters": put("clusters/Extra/binding.yaml", BINDING),
    "the team's folder with a dot": put("clusters/extra./binding.yaml", BINDING),
    "other line ends": lambda root: rewritten(root, lambda text: text.replace(b"\n", b"\r\n")),
    "a byte order mark": lambda root: rewritten(root, lambda text: b"\xef\xbb\xbf" + text),
    "an anchor in a remark": lambda root: rewritten(root, lambda text: text + b"# &a\n"),
    "a second document": lambda root: rewritten(root, lambda text: text + b"---\n" + BINDING.encode()),
    "no last line end": lambda root: rewritten(root, bytes.rstrip),
}


def rewritten(root: Path, change: Callable[[bytes], bytes]) -> None:
    file = root / "clusters/platform/kustomization.yaml"
    file.write_bytes(change(file.read_bytes()))


LINKS: dict[str, Callable[[Sandbox], object]] = {
    "clusters/extra": lambda sandbox: (sandbox.root / "clusters/extra").symlink_to("platform"),
    "clusters/extra/x.yaml": lambda sandbox: linked(sandbox.root / "clusters/extra/x.yaml"),
    "clusters/more": lambda sandbox: submodule(sandbox, "clusters/more"),
    "clusters/platform/kustomization.yaml": lambda sandbox: (
        sandbox.root / "clusters/platform/kustomization.yaml"
    ).chmod(0o755),
}


def linked(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.symlink_to("../platform/kustomization.yaml")


def submodule(sandbox: Sandbox, path: str) -> None:
    (sandbox.root / path).mkdir()
    sandbox.git("update-index", "--add", "--cacheinfo", f"160000,{sandbox.head()},{path}")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("path", LINKS)
def test_nothing_but_plain_files_is_in_the_folder_of_clusters(platform_sandbox: Sandbox, path: str) -> None:
    LINKS[path](platform_sandbox)
    if path != "clusters/more":
        platform_sandbox.git("add", "--all")

    problems = platform_sandbox.check(base="origin/main").problems

    assert (path, "file-mode") in {(problem.file, problem.code) for problem in problems}


def test_a_merge_with_an_edit_of_its_own_hides_none(platform_sandbox: Sandbox) -> None:
    platform_sandbox.git("checkout", "-q", "-b", "side")
    platform_sandbox.commit("A side", {"docs/a.md": "a\n"})
    platform_sandbox.git("checkout", "-q", "main")
    platform_sandbox.commit("Another", {"docs/b.md": "b\n"})
    platform_sandbox.git("merge", "-q", "--no-commit", "--no-ff", "side")
    CHANGES["a binding"](platform_sandbox.root)
    platform_sandbox.commit("Merge")

    assert codes(platform_sandbox) == {"platform-edited"}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("change", CHANGES)
def test_what_no_setting_gives_is_refused(platform_sandbox: Sandbox, change: str) -> None:
    CHANGES[change](platform_sandbox.root)
    assert codes(platform_sandbox) == {"platform-edited"}

    append_to(platform_sandbox.root / "sweepledger.yaml", "budgets: {everybody: {gpu_hours: 10}}\n")
    assert "platform-edited" in codes(platform_sandbox)


def test_a_teams_own_files_have_a_folder(platform_sandbox: Sandbox) -> None:
    put("clusters/extra/binding.yaml", BINDING)(platform_sandbox.root)

    assert codes(platform_sandbox) == set()


@pytest.mark.sampled(1)
def test_another_repository_is_named_by_the_settings(platform_sandbox: Sandbox) -> None:
    controller = platform_sandbox.workspace.settings.platform.controller
    bootstrap(platform_sandbox.workspace, BootstrapRequest(controller, OTHER))
    settings = platform_sandbox.root / "sweepledger.yaml"

    assert f"repository: {OTHER}" in settings.read_text()
    assert codes(platform_sandbox) == set()

    replace_in(settings, f"repository: {OTHER}\n", "")
    assert "repository-changed" in codes(platform_sandbox)
    append_to(settings, f"repository: {URL}\n")
    assert "repository-changed" in codes(platform_sandbox)


def test_another_repository_in_the_record_alone_is_refused(platform_sandbox: Sandbox) -> None:
    for path in (platform_sandbox.root / "clusters").rglob("*"):
        if path.is_file() and URL in path.read_text():
            replace_in(path, URL, OTHER)

    assert "repository-changed" in codes(platform_sandbox)
