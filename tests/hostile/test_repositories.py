"""States of a repository that a stranger, a crash or an odd machine leaves: rows G1 to G16, and S16.

A row that another test covers names it; one that does not apply says why.
"""

import os
import shutil
import socket
import sys
from pathlib import Path

import pytest

from sweepledger.errors import SpecError, StorageError
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.problems import Problem
from sweepledger.spec import ParsedSpec
from sweepledger.verbs.check import check_change
from tests.command_line import captured, run_sweep
from tests.repository import SPEC, Sandbox

ROOT = Path(__file__).parents[2]

ELSEWHERE = {
    "G2 hard link": "reason: no commit can hold one; on a disk it is a plain file like any other",
    "G3 configuration": "tests/attacks/test_hostile_clones.py"
    "::test_nothing_that_a_clone_configures_runs_with_a_sweep",
    "G3 files": "tests/attacks/test_attributes.py"
    "::test_files_that_git_or_a_controller_obeys_are_refused_at_the_top_and_among_sweeps, "
    "tests/attacks/test_attributes.py::test_attributes_that_rewrite_files_are_refused_in_every_spelling",
    "G5": "tests/operations/test_check_forced.py::test_a_broken_batch_may_be_removed_and_a_sound_one_may_not",
    "G6": "tests/operations/test_generate.py"
    "::test_an_added_value_makes_a_second_batch_with_only_the_new_trials",
    "G8": "tests/repo/test_publish.py::test_a_change_lands_as_one_commit_and_nothing_of_the_clone_with_it",
    "G12 titles": "tests/cli/test_responses.py::test_control_characters_in_commit_messages_are_escaped",
    "G13 figures": "tests/hostile/test_repositories.py::test_g13_ten_thousand_old_specs_are_not_read",
    "G15": "tests/repo/test_publish.py::test_a_lost_race_repeats_the_change_on_the_new_commit",
    "S16 in a spec": "tests/hostile/test_specs.py::test_a_hostile_spec_is_refused_in_its_place",
}


IDENTITY = ("-c", "user.name=Test", "-c", "user.email=test@example.org")


def test_rows_that_are_covered_elsewhere_are_there() -> None:
    for message in ELSEWHERE.values():
        for place in () if message.startswith("reason:") else message.split(", "):
            path, _, name = place.partition("::")
            assert f"def {name}(" in (ROOT / path).read_text()


PLACES = ["sweeps/odd.yaml", "results/peak/odd", "overlays/active/odd", "base/trial/v1/odd", "clusters/odd"]
TARGETS = ["/etc/passwd", "..", "../../..", "odd", "/dev/zero"]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("place", PLACES, ids=lambda place: f"G1 {place}")
@pytest.mark.parametrize("target", TARGETS)
def test_a_link_in_git_is_refused_unopened(sandbox: Sandbox, place: str, target: str) -> None:
    sandbox.merged()
    path = sandbox.root / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)
    sandbox.commit("Link")

    (problem,) = check_change(sandbox.workspace).problems

    assert (problem.file, problem.code) == (place, "file-mode")
    assert "got a symbolic link" in problem.message


def test_g1_a_link_that_was_checked_out_as_text_is_one_still(sandbox: Sandbox) -> None:
    sandbox.merged()
    sandbox.git("config", "core.symlinks", "false")
    (sandbox.root / "target").write_text("/etc/passwd")
    identity = sandbox.git("hash-object", "-w", "target").strip()
    (sandbox.root / "target").unlink()
    sandbox.git("update-index", "--add", "--cacheinfo", f"120000,{identity},overlays/active/odd")
    sandbox.git("commit", "-q", "-m", "Link")
    sandbox.git("checkout", "-q", "--", "overlays")

    assert sandbox.codes() == {"file-mode"}


@pytest.mark.parametrize("kind", ["pipe", "socket", "sparse"], ids=lambda kind: f"G2 {kind}")
@pytest.mark.parametrize("place", ["sweeps/odd.yaml", "base/trial/v1/odd"])
def test_only_plain_files(sandbox: Sandbox, place: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox.merged()
    path = sandbox.root / place
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "socket":
            monkeypatch.chdir(path.parent)
            with socket.socket(socket.AF_UNIX) as server:
                server.bind(path.name)
        case _:
            with path.open("wb") as file:
                file.truncate(2**40)

    with pytest.raises((StorageError, SpecError)):
        check_change(sandbox.workspace)


def test_g2_a_pipe_in_a_batch_is_neither_read_nor_part_of_any_commit(sandbox: Sandbox) -> None:
    name = sandbox.merged()
    os.mkfifo(sandbox.root / f"overlays/active/{name}/odd")

    assert sandbox.codes() == set()
    assert sandbox.git("status", "--porcelain") == ""


def test_g3_a_submodule_in_a_place_of_sweeps_is_refused(sandbox: Sandbox) -> None:
    sandbox.merged()
    head = sandbox.head()
    sandbox.git("update-index", "--add", "--cacheinfo", f"160000,{head},base/theirs")
    sandbox.write(".gitmodules", '[submodule "x"]\n\tpath = base/theirs\n\turl = ext::sh -c id\n')
    sandbox.git("add", ".gitmodules")
    sandbox.git("commit", "-q", "-m", "Submodule")

    assert sandbox.codes() == {"file-mode"}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("edit", ["hand", "extra", "missing", "crlf"], ids=lambda edit: f"G4 {edit}")
@pytest.mark.parametrize("is_merged", [True, False], ids=["merged", "new"])
def test_what_is_generated_is_not_edited(sandbox: Sandbox, edit: str, *, is_merged: bool) -> None:
    if is_merged:
        name = sandbox.merged()
    else:
        sandbox.propose()
        (name,) = sandbox.active()
    folder = sandbox.root / "overlays/active" / name
    job = folder / "job.yaml"
    match edit:
        case "hand":
            job.write_text(job.read_text() + "# mine\n")
        case "extra":
            (folder / "more.yaml").write_text("a: 1\n")
        case "missing":
            job.unlink()
        case _:
            job.write_bytes(job.read_bytes().replace(b"\n", b"\r\n"))

    done = run_sweep("check", cwd=sandbox.root)

    assert done.returncode == 5, done.stderr
    assert ("batch-edited" if is_merged else "batch-forged") in done.stderr
    assert "restore it from the base commit" in done.stderr or "`rm -r overlays/active/" in done.stderr


def test_g4_an_executable_bit_is_an_edit(sandbox: Sandbox) -> None:
    name = sandbox.merged()
    sandbox.git("update-index", "--chmod=+x", f"overlays/active/{name}/launch.json")
    sandbox.git("commit", "-q", "-m", "Executable")

    assert sandbox.codes() == {"file-mode"}


@pytest.mark.parametrize("state", ["detached", "staged", "edited", "rebasing", "locked"])
def test_g7_an_unusual_state_changes_no_verdict(sandbox: Sandbox, state: str) -> None:
    sandbox.merged()
    match state:
        case "detached":
            sandbox.git("checkout", "-q", "--detach")
        case "rebasing":
            sandbox.git("switch", "-q", "-c", "side", "HEAD~1")
            sandbox.commit("Side", {"README.md": "x"})
            captured(["git", *IDENTITY, "rebase", "-q", "--exec", "false", "main"], cwd=sandbox.root)
            assert (sandbox.root / ".git/rebase-merge").is_dir()
        case "locked":
            (sandbox.root / ".git/index.lock").touch()
        case _:
            sandbox.write("code/train.py", "other")
            if state == "staged":
                sandbox.git("add", "--all")

    assert sandbox.codes() == set()


def test_g7_a_shallow_clone_and_a_worktree_work_alike(sandbox: Sandbox, tmp_path: Path) -> None:
    sandbox.merged()
    shallow = tmp_path / "shallow"
    url = f"file://{sandbox.remote}"
    captured(["git", "clone", "-q", "--depth=1", url, str(shallow)], check=True)
    sandbox.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "tree"))

    for root in (shallow, tmp_path / "tree"):
        assert check_change(Sandbox(sandbox.remote, root).workspace).problems == ()


@pytest.mark.parametrize("state", ["none", "bare", "no git"], ids=lambda state: f"G7 {state}")
def test_what_is_no_repository_is_told_in_a_sentence(sandbox: Sandbox, tmp_path: Path, state: str) -> None:
    folder = {"none": tmp_path, "bare": sandbox.remote, "no git": sandbox.root}[state]
    path = str(tmp_path) if state == "no git" else os.environ["PATH"]

    done = run_sweep("check", cwd=folder, PATH=path)

    assert done.returncode == 3
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) <= 3


def test_g7_an_unborn_branch_is_a_start(sandbox: Sandbox) -> None:
    sandbox.git("checkout", "-q", "--orphan", "new")
    sandbox.git("remote", "remove", "origin")

    assert sandbox.codes() == set()


def test_g9_different_sweeps_merge_without_conflict(sandbox: Sandbox) -> None:
    sandbox.merged("first")
    for name in ("one", "two"):
        sandbox.git("switch", "-q", "-c", name, "main")
        sandbox.spec(name)
        sandbox.commit_batches(name)
    sandbox.git("switch", "-q", "main")
    for name in ("one", "two"):
        sandbox.git("merge", "-q", "--no-ff", "-m", name, name)

    assert sandbox.codes() == set()


@pytest.mark.parametrize(
    "name", ["Peak.yaml", "PEAK.yaml", "\uff50eak.yaml"], ids=lambda name: f"G10 {name!r}"
)
def test_no_two_names_differ_only_where_a_file_system_folds_them(sandbox: Sandbox, name: str) -> None:
    sandbox.merged()
    sandbox.write(f"sweeps/{name}", SPEC.format(name=name[:-5], xs="1", parallelism=1))

    with pytest.raises(SpecError) as refused:
        check_change(sandbox.workspace)

    assert {problem.code for problem in refused.value.problems} & {"sweep-name", "name-mismatch"}


NAMES = [b"new\nline", b"-rf", b"\xff\xfe", b"tab\there", b"::error::", b"--upload-pack=x"]


def test_g11_odd_names_are_told_and_obeyed_by_nothing(sandbox: Sandbox) -> None:
    sandbox.merged()
    folder = sandbox.root / "overlays/active/odd"
    folder.mkdir()
    for name in NAMES:
        (folder / os.fsdecode(name)).write_text("x")
    sandbox.commit("Odd")

    done = run_sweep("check", cwd=sandbox.root)

    assert done.returncode == 5, done.stderr
    assert "Traceback" not in done.stderr
    assert not any(line.lstrip().startswith("::") for line in done.stderr.splitlines())


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "branch",
    ["$(id)", "a;id", "--upload-pack=x", "`id`", "a&&b", "{{x}}", "-x"],
    ids=lambda item: f"G12 {item}",
)
def test_a_branch_of_any_name_is_a_name(sandbox: Sandbox, branch: str) -> None:
    sandbox.merged()
    sandbox.git("update-ref", f"refs/heads/{branch}", "HEAD")

    done = run_sweep("check", f"--base={branch}", cwd=sandbox.root)

    assert done.returncode == 0, done.stderr
    assert "as merged" in done.stdout


def test_g13_ten_thousand_old_specs_are_not_read(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        sandbox.spec(f"sweep-{number}")
    sandbox.publish_batches("Ask")
    sandbox.spec("sweep-7", xs="1, 2, 3, 4")
    workspace = sandbox.workspace
    read: list[str] = []
    parse = Workspace.parse

    def noted(self: Workspace, path: Path) -> ParsedSpec | tuple[Problem, ...]:
        read.append(path.name)
        return parse(self, path)

    monkeypatch.setattr(Workspace, "parse", noted)

    report = check_change(workspace)

    assert read == ["sweep-7.yaml"]
    assert [problem.code for problem in report.problems] == ["drift"]
    assert report.specs == 20


KUSTOMIZATIONS = {
    "url": "resources: [https://127.0.0.1:9/x.yaml]",
    "git": "resources: ['git::ssh://127.0.0.1:9/a']",
    "ext": "resources: ['ext::sh -c id']",
    "helm": "helmCharts: [{name: x, repo: 'https://127.0.0.1:9'}]",
    "generators": "generators: [https://127.0.0.1:9/x]",
    "openapi": "openapi: {path: ../../../../../etc/passwd}",
    "outside": "resources: [../../../../..]",
    "prefix": "namePrefix: ../",
    "namespace": "patches: [{path: job.yaml, target: {kind: Job, namespace: kube-system}}]",
    "component": "components: ['https://127.0.0.1:9/c']",
    "S16 bomb": "a: &a [x]\nb: &b [*a,*a]\nc: &c [*b,*b]",
    "S16 circle": "a: &a [*a]",
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("text", KUSTOMIZATIONS.values(), ids=[f"G14 {name}" for name in KUSTOMIZATIONS])
@pytest.mark.parametrize("place", ["overlay", "base"])
def test_kustomize_is_idle(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, place: str, text: str) -> None:
    sandbox.propose()
    (name,) = sandbox.active()
    path = "base/trial/v1" if place == "base" else f"overlays/active/{name}"
    file = sandbox.root / path / "kustomization.yaml"
    key = text.partition(":")[0]
    lines = [line for line in file.read_text().splitlines() if not line.startswith((f"{key}:", "  - job"))]
    kept = [line for line in lines if not line.startswith((" ", "-"))] if key == "resources" else lines
    file.write_text("\n".join([*kept, text, ""]))
    spy = sandbox.root.parent / "kustomize"
    spy.write_text(f"#!/bin/sh\ntouch '{spy}.started'\n")
    spy.chmod(0o755)
    monkeypatch.setenv("KUSTOMIZE", str(spy))

    assert "kustomization-unsafe" in sandbox.codes()
    assert not Path(f"{spy}.started").exists()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("place", ["overlay", "clean", "base"])
def test_g14_no_socket_is_opened(sandbox: Sandbox, tmp_path: Path, needs_kustomize: None, place: str) -> None:
    trace = tmp_path / "trace"
    words = ["strace", "-f", "-qq", "-e", "trace=socket,connect", "-o", str(trace)]
    if not shutil.which("strace") or captured([*words, "true"]).returncode:
        pytest.skip("skipped: strace cannot be used here")
    sandbox.propose()
    (name,) = sandbox.active()
    if place != "clean":
        path = "base/trial/v1" if place == "base" else f"overlays/active/{name}"
        file = sandbox.root / path / "kustomization.yaml"
        file.write_text(
            file.read_text().replace("resources:\n", "resources:\n- https://127.0.0.1:9/x.yaml\n")
        )

    captured(
        [*words, sys.executable, "-m", "sweepledger.cli", "check", "--all"],
        cwd=sandbox.root,
        env={**os.environ, "PYTHONPATH": str(ROOT / "generator")},
    )

    assert "AF_INET" not in trace.read_text()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("date", ["2099-01-01T00:00:00Z", "1971-01-01T00:00:00Z", "2016-12-31T23:59:60Z"])
@pytest.mark.parametrize(
    "zone", ["", "Pacific/Kiritimati", "America/Caracas"], ids=lambda zone: f"G16 {zone}"
)
def test_no_clock_has_a_say(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, date: str, zone: str) -> None:
    monkeypatch.setenv("TZ", zone)
    monkeypatch.setenv("GIT_AUTHOR_DATE", date)
    monkeypatch.setenv("GIT_COMMITTER_DATE", date)
    first = sandbox.merged(xs="1, 2")
    second = sandbox.merged(xs="1, 2, 3")

    assert sandbox.codes() == set()
    assert [name[:8] for name in (first, second)] == ["peak-b1-", "peak-b2-"]
