"""What `sweep check` says to somebody who means harm, and who knows how it works."""

import json
import shutil
from pathlib import Path

import pytest

from sweepledger.errors import StorageError
from sweepledger.operations.checks import layout
from sweepledger.repo import files
from sweepledger.repo.files import base_folder
from sweepledger.repo.git import Repository
from sweepledger.structs.values import blob_id, bytes_digest
from sweepledger.verbs.check import CheckReport, check_change
from tests.repository import Sandbox, append_to, followed_by, replace_in

FORGED = "zz-b1-deadbeef"


def files_of(report: CheckReport, code: str) -> set[str]:
    return {problem.file for problem in report.problems if problem.code == code}


def forge(sandbox: Sandbox, source: str, name: str, place: str = "active", **edits: tuple[str, str]) -> Path:
    """Copy a batch under another name, edit files, and make the digests of its lock fit."""
    folder = sandbox.root / "overlays" / place / name
    shutil.copytree(sandbox.root / "overlays/active" / source, folder)
    for path in sorted(folder.iterdir()):
        text = path.read_text().replace(source, name)
        if path.stem in edits:
            old, new = edits[path.stem]
            assert old in text
            text = text.replace(old, new)
        path.write_text(text)
    resign(folder)
    return folder


def resign(folder: Path) -> None:
    lock = folder / "batch.json"
    data = json.loads(lock.read_text())
    for key, identify in (("files", bytes_digest), ("blobs", blob_id)):
        data[key] |= {
            path: identify((folder / path).read_bytes()) for path in data[key] if (folder / path).is_file()
        }
    lock.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n")


@pytest.mark.parametrize("touched", [True, False], ids=["spec read", "spec as merged"])
def test_a_batch_that_calls_itself_another_sweeps_is_refused(sandbox: Sandbox, *, touched: bool) -> None:
    name = sandbox.merged()
    if touched:
        append_to(sandbox.root / "sweeps/peak.yaml", "# read me\n")
    forge(sandbox, name, FORGED, job=("256Mi", "512Mi"))
    sandbox.commit("Ask for something else")

    report = sandbox.check()

    (problem,) = [problem for problem in report.problems if problem.code == "drift"]
    assert problem.file == f"overlays/active/{FORGED}"
    assert problem.message == "belongs to no spec: sweeps/zz.yaml is missing"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["peak-b2-deadbeef", "peak-b1-deadbeef", "peak-b9-00000000"])
def test_a_batch_under_a_merged_spec_that_asks_for_nothing_is_refused(sandbox: Sandbox, name: str) -> None:
    forge(sandbox, sandbox.merged(), name)
    sandbox.commit("Ask for the same")

    assert f"overlays/active/{name}" in files_of(sandbox.check(), "drift")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("file", ["batch", "launch", "job", "kustomization", "hyperparams"])
def test_other_bytes_under_a_planned_name_are_refused(sandbox: Sandbox, file: str) -> None:
    sandbox.propose()
    folder = sandbox.root / "overlays/active" / sandbox.active()[0]
    (path,) = [path for path in folder.iterdir() if path.stem == file]
    replace_in(path, *('"retries": 0', '"retries": 9') if file == "batch" else ("\n", "\n\n"))
    resign(folder)
    sandbox.commit("Ask")

    assert sandbox.codes() == {"batch-forged"}


def test_a_new_batch_that_was_edited_is_refused_file_by_file_with_the_way_out(sandbox: Sandbox) -> None:
    sandbox.propose()
    (name,) = sandbox.active()
    folder = f"overlays/active/{name}"
    replace_in(sandbox.root / folder / "job.yaml", "parallelism: 2", "parallelism: 3")
    sandbox.write(f"{folder}/note.txt", "why")

    problems = sandbox.check().problems

    forged = {item.file: item for item in problems if item.code == "batch-forged"}
    assert set(forged) == {f"{folder}/job.yaml", f"{folder}/note.txt"}
    for problem in forged.values():
        assert "\\x0a" not in str(problem)
        assert f"`rm -r {folder}`, then `sweep generate peak`" in (problem.hint or "")


def test_a_name_that_is_not_the_digest_of_its_files_is_refused(sandbox: Sandbox) -> None:
    sandbox.propose()
    (name,) = sandbox.active()
    forge(sandbox, name, "peak-b1-deadbeef")
    shutil.rmtree(sandbox.root / "overlays/active" / name)
    sandbox.commit("Ask")

    assert files_of(sandbox.check(), "drift") == {"sweeps/peak.yaml", "overlays/active/peak-b1-deadbeef"}


def test_a_spec_stays_as_long_as_a_batch_of_it_is_active(sandbox: Sandbox) -> None:
    sandbox.merged()
    (sandbox.root / "sweeps/peak.yaml").unlink()
    sandbox.commit("Forget")

    assert sandbox.problems() == [("sweeps/peak.yaml", "spec-removed")]


def test_a_lock_that_names_no_bases_frees_none(sandbox: Sandbox) -> None:
    name = sandbox.merged(xs=", ".join(map(str, range(30))))
    lock = sandbox.root / "overlays/active" / name / "batch.json"
    lock.write_text(json.dumps({**json.loads(lock.read_text()), "bases": []}, indent=1))
    sandbox.publish("Merged by somebody who did not check")
    assert sandbox.check().problems == ()
    changed = ["base/launcher/v1/launch.py", "base/trial/v1/job.yaml"]
    for path in changed:
        append_to(sandbox.root / path, "# mine\n")

    report = sandbox.check()

    assert sorted(files_of(report, "base-changed")) == changed
    assert name not in report.unchanged


def test_a_base_that_only_the_kustomization_names_is_frozen(sandbox: Sandbox) -> None:
    name = sandbox.merged(xs=", ".join(map(str, range(30))))
    shutil.copytree(sandbox.root / "base/trial/v1", sandbox.root / "base/trial/v9")
    replace_in(
        sandbox.root / "overlays/active" / name / "kustomization.yaml", "base/trial/v1", "base/trial/v9"
    )
    sandbox.publish("Merged by somebody who did not check")
    path = sandbox.root / "base/trial/v9/job.yaml"
    path.write_text(path.read_text().replace("privileged: false", "privileged: true") + "# mine\n")

    assert files_of(sandbox.check(), "base-changed") == {"base/trial/v9/job.yaml"}


def test_what_the_platform_is_made_from_is_frozen_once_it_is_written(sandbox: Sandbox) -> None:
    sandbox.merged()
    shutil.copytree(base_folder() / "platform/team/v1", sandbox.root / "base/platform/team/v1")
    sandbox.commit("Platform")
    path = sandbox.root / "base/platform/team/v1/namespace.yaml"
    append_to(path, "# mine\n")
    sandbox.push()
    assert "base-changed" not in sandbox.codes()
    path.write_text(path.read_text().removesuffix("# mine\n"))

    sandbox.publish("Bootstrap", {"clusters/bootstrap.yaml": "version: 1\n"})
    append_to(path, "# mine\n")

    assert files_of(sandbox.check(), "base-changed") == {"base/platform/team/v1/namespace.yaml"}


@pytest.mark.parametrize("place", ["base/trial/v1", "overlays/active/{}", "results"])
def test_a_cache_of_python_in_git_is_refused(sandbox: Sandbox, place: str) -> None:
    name = sandbox.merged()
    path = f"{place.format(name)}/__pycache__/evil.yaml"
    sandbox.write(path, "kind: Pod\n")
    sandbox.git("add", "--force", path)
    sandbox.git("commit", "-q", "-m", "Cache")

    assert sandbox.problems() == [(path, "side-file")]


def test_a_cache_that_python_left_below_base_is_nobodys_fault(sandbox: Sandbox) -> None:
    sandbox.merged()
    sandbox.write("base/launcher/v1/__pycache__/launch.cpython-313.pyc", "x")
    sandbox.write("base/__pycache__/x", "x")

    assert sandbox.check().problems == ()


def test_no_caches_are_laid_down(sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = tmp_path / "base"
    shutil.copytree(base_folder(), ours)
    (ours / "launcher/v1/__pycache__").mkdir(exist_ok=True)
    (ours / "launcher/v1/__pycache__/x.pyc").write_text("x")
    monkeypatch.setattr("sweepledger.repo.base_files.base_folder", lambda: ours)

    sandbox.propose()

    assert (sandbox.root / "base/launcher/v1/launch.py").is_file()
    assert not list((sandbox.root / "base").rglob("__pycache__"))


def test_settings_are_merged_before_the_batches_that_need_them(sandbox: Sandbox) -> None:
    sandbox.merged()
    sandbox.write("sweepledger.yaml", "version: 1\nlimits: {max_trials: 10}\n")
    assert sandbox.check().problems == ()
    sandbox.propose(xs="1, 2, 3, 4")
    sandbox.write("sweepledger.yaml", "version: 1\n# for everybody\n")
    assert sandbox.check().problems == (), "a comment changes nothing for new batches"

    sandbox.write("sweepledger.yaml", "version: 1\nlimits: {max_trials: 10}\n")

    assert sandbox.problems() == [("sweepledger.yaml", "settings-changed")]


def test_what_stands_is_judged_by_the_settings_that_stand(sandbox: Sandbox, needs_kustomize: None) -> None:
    name = sandbox.merged()
    sandbox.write("sweepledger.yaml", "version: 1\nnamespace: elsewhere\n")

    report = sandbox.check(everything=True)

    assert (report.problems, report.built) == ((), (name,))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("controller", ["none", "argocd"])
def test_another_controller_opens_no_way_to_flux(sandbox: Sandbox, controller: str) -> None:
    sandbox.publish("Flux", {"sweepledger.yaml": followed_by("flux")})
    name = sandbox.merged()
    replace_in(sandbox.root / "sweepledger.yaml", "controller: flux", f"controller: {controller}")
    assert "drift" not in sandbox.codes()
    sandbox.write("clusters/flux/active/evil.yaml", "kind: Kustomization\n")
    replace_in(sandbox.root / f"clusters/flux/active/{name}.yaml", "prune: true", "prune: false")

    assert files_of(sandbox.check(), "drift") == {
        "clusters/flux/active/evil.yaml",
        f"clusters/flux/active/{name}.yaml",
    }


def test_a_branch_behind_the_base_may_not_merge_old_results_over_newer_ones(sandbox: Sandbox) -> None:
    sandbox.commit("results(a)", {"results/a": "old\n"})
    old = sandbox.head()
    sandbox.commit("results(a): more", {"results/a": "new\n"})
    sandbox.git("switch", "-q", "-c", "evil")
    tree = sandbox.git("rev-parse", f"{old}^{{tree}}").strip()
    merge = sandbox.git("commit-tree", tree, "-p", "HEAD", "-p", old, "-m", "Merge").strip()
    sandbox.git("switch", "-q", "main")
    sandbox.commit("More", {"README.md": "moved on\n"})
    sandbox.git("switch", "-q", "evil")
    sandbox.git("reset", "-q", "--hard", merge)

    assert sandbox.problems(base="main") == [("results/a", "history-unsigned")]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("text", ["[" * 100_000, "- " * 100_000, "{a: " * 50_000, "a: &a [*a]", "a\0b", ""])
def test_a_lock_that_would_end_the_process_is_refused(sandbox: Sandbox, text: str) -> None:
    sandbox.merged()
    sandbox.commit("Deep", {f"overlays/active/{FORGED}/batch.json": text})

    assert sandbox.problems() == [(f"overlays/active/{FORGED}/batch.json", "batch-forged")]


@pytest.mark.parametrize("path", ["base/zz/v1/zeros", f"overlays/active/{FORGED}/zeros", "sweeps/zeros.yaml"])
def test_gigabytes_are_refused_unread(sandbox: Sandbox, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox.merged()
    (sandbox.write(path, "")).write_bytes(bytes(2**20))
    for number in range(3):
        shutil.copy(sandbox.root / path, sandbox.write(f"{path}{number}", ""))
    sandbox.commit("Zeros")
    monkeypatch.setattr(layout, "LARGEST_CHANGE", 3 * 2**20)
    workspace = sandbox.workspace
    monkeypatch.setattr(files, "read_regular", lambda path, _: pytest.fail(f"{path} was read"))

    (problem,) = check_change(workspace).problems

    assert problem.code == "change-too-large"
    assert problem.file.startswith(path)
    assert "in 4 MiB of changes; at most 3 are read" in problem.message


def test_a_heap_below_base_that_git_does_not_hold_is_refused_unread(sandbox: Sandbox) -> None:
    sandbox.merged()
    with sandbox.write("base/zz/v1/zeros", "").open("wb") as file:
        file.truncate(2**34)

    with pytest.raises(StorageError, match="must have at most 8 MiB, got 16384"):
        sandbox.check()


def test_a_clone_that_shows_another_commit_in_place_of_the_base_is_not_believed(sandbox: Sandbox) -> None:
    base = sandbox.commit("results(a)", {"results/a": "old\n"})
    sandbox.push()
    forged = sandbox.commit("Forge", {"results/a": "forged\n"})
    sandbox.git("replace", base, forged)

    assert sandbox.codes() == {"history-unsigned"}


def test_a_clone_that_was_told_of_other_parents_is_not_believed(sandbox: Sandbox) -> None:
    base = sandbox.commit("results(a)", {"results/a": "old\n"})
    sandbox.push()
    sandbox.git("switch", "-q", "-c", "ask", f"{base}~1")
    head = sandbox.commit("Behind", {"README.md": "x"})
    assert sandbox.check(base=base).problems == ()
    (sandbox.root / ".git/info/grafts").write_text(f"{head} {base}\n")

    assert not Repository.find(sandbox.root).contains("HEAD", base)
