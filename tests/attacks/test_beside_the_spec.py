"""A change keeps what a reviewer looks at, and edits what stands beside it: generated files, records, links."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from sweepledger.formats.bootstrap_yaml import BOOTSTRAP_FILE
from sweepledger.structs.values import bytes_digest
from tests.attacks.changing import Change
from tests.attacks.edits import errors
from tests.repository import replace_in

pytestmark = pytest.mark.usefixtures("needs_kustomize")


def batch(change: Change, sweep: str) -> Path:
    (folder,) = (change.sandbox.root / "overlays/active").glob(f"{sweep}-b1-*")
    return folder


def with_digests(folder: Path) -> None:
    """Enter the digests of edited files into the lock."""
    lock = json.loads((folder / "batch.json").read_text())
    lock["files"] = {name: bytes_digest((folder / name).read_bytes()) for name in lock["files"]}
    (folder / "batch.json").write_text(json.dumps(lock, indent=1, ensure_ascii=False) + "\n")


EDITS = {
    "job.yaml": ('cpu: "1"', 'cpu: "64"'),
    "launch.json": ("code/train.py", "code/evil.py"),
    "hyperparams.csv": ("0.5", "5.5"),
    "batch.json": ('"retries": 0', '"retries": 9'),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("sweep", "code"), [("running", "batch-edited"), ("new", "batch-forged")])
def test_an_active_overlay_with_other_locked_files_is_refused(sweep: str, code: str, change: Change) -> None:
    folder = batch(change, sweep)
    for name, (old, new) in EDITS.items():
        replace_in(folder / name, old, new)
    with_digests(folder)

    assert errors(change.sandbox) >= {(f"overlays/active/{folder.name}/{name}", code) for name in EDITS}


RECORDS: dict[str, Callable[[str], str]] = {
    "of another version": lambda text: text.replace("version: 1", "version: 2"),
    "whose version is no number": lambda text: text.replace("version: 1", "version: true"),
    "of a public repository": lambda text: text.replace("public: false", "public: true"),
    "with a shape": lambda text: text.replace("shapes: []", 'shapes: ["train-job"]'),
    "of another branch": lambda text: text.replace('branch: "main"', 'branch: "evil"'),
    "of another controller": lambda text: text.replace('"flux"', '"argocd"', 1),
    "with a further key": lambda text: f"{text}x: 1\n",
    "that omits files": lambda text: "".join(text.splitlines(keepends=True)[:-3]),
    "that omits the hook": lambda text: re.sub("  clusters/pre-receive.*\n", "", text),
    "that lists a team's own file": lambda text: f'{text}  clusters/extra/a.yaml: "sha256:{"0" * 64}"\n',
    "that lists a file above": lambda text: f'{text}  ../x: "sha256:{"0" * 64}"\n',
    "that is empty": lambda _: "",
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("record", RECORDS)
def test_a_record_of_the_platform_without_settings_is_refused(record: str, change: Change) -> None:
    file = change.sandbox.root / BOOTSTRAP_FILE
    text = file.read_text()
    file.write_text(RECORDS[record](text))
    assert file.read_text() != text

    assert (BOOTSTRAP_FILE, "drift") in errors(change.sandbox)


def test_a_hook_that_lets_all_pass_is_refused_though_the_record_has_its_digest(change: Change) -> None:
    hook, record = (change.sandbox.root / path for path in ("clusters/pre-receive.sh", BOOTSTRAP_FILE))
    before = bytes_digest(hook.read_bytes())
    hook.write_text("#!/bin/sh\nexit 0\n")
    replace_in(record, before, bytes_digest(hook.read_bytes()))

    assert {("clusters/pre-receive.sh", "drift"), (BOOTSTRAP_FILE, "drift")} <= errors(change.sandbox)


ADDED = {
    "side-file": (
        *(".sourceignore", "clusters/flux/.sourceignore", "clusters/extra/.SourceIgnore"),
        *(".argocd-source.yaml", "clusters/.argocd-source.yaml", "overlays/active/.sourceignore"),
        "overlays/active/{batch}/.argocd-source-{batch}.yaml",
    ),
    "overlay-layout": ("overlays/active/.helmignore", "overlays/active/kustomization.yaml"),
    "batch-edited": ("overlays/active/{batch}/.helmignore", "overlays/active/{batch}/kustomizeconfig.yaml"),
    "platform-edited": (
        *("clusters/kustomizeconfig.yaml", "clusters/platform/kustomizeconfig.yaml"),
        *("clusters/platform/.helmignore", "clusters/Extra/a.yaml"),
    ),
    "drift": ("clusters/flux/active/kustomization.yaml", "clusters/flux/active/Kustomization"),
}


@pytest.mark.parametrize("by_name", [True, False], ids=["by name", "by place"])
def test_files_that_tools_read_are_refused(*, by_name: bool, change: Change) -> None:
    running = batch(change, "running").name
    places = {code: paths for code, paths in ADDED.items() if (code == "side-file") == by_name}
    added = {(path.format(batch=running), code) for code, paths in places.items() for path in paths}
    for path, _ in added:
        change.sandbox.write(path, "* ident\n")
    change.sandbox.git("add", "--all", "--force")

    assert added <= errors(change.sandbox)


def test_the_folder_for_a_teams_own_files_is_no_link_and_no_submodule(change: Change) -> None:
    folder = change.sandbox.root / "clusters/extra"
    folder.mkdir()
    (folder / "etc").symlink_to("/etc")
    assert errors(change.sandbox) == {("clusters/extra/etc", "file-mode")}

    change.restore()
    folder.symlink_to("../overlays")
    assert errors(change.sandbox) == {("clusters/extra", "file-mode")}

    change.restore()
    folder.mkdir()
    change.sandbox.git("update-index", "--add", "--cacheinfo", f"160000,{change.start},clusters/extra")
    assert ("clusters/extra", "file-mode") in set(change.sandbox.problems(base="origin/main"))
