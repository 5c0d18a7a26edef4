import shutil

import pytest

from sweepledger.errors import ToolError
from sweepledger.problems import Severity
from sweepledger.verbs.check import CheckReport, check_change
from sweepledger.verbs.generate import generate_batches as generate
from sweepledger.verbs.validate import check_specs
from tests.command_line import run_sweep
from tests.repository import Sandbox


def codes(report: CheckReport) -> list[str]:
    return [problem.code for problem in report.problems]


def test_a_generated_and_committed_sweep_is_in_order(sandbox: Sandbox) -> None:
    sandbox.spec()
    generate(sandbox.workspace)
    sandbox.commit("Ask")

    report = check_change(sandbox.workspace)

    assert report.problems == ()
    assert (report.specs, len(report.builds.built), report.builds.unchanged) == (1, 1, ())


def test_what_stands_is_not_built_again_unless_all_is_asked_for(sandbox: Sandbox) -> None:
    name = sandbox.merged()

    assert check_change(sandbox.workspace).builds.unchanged == (name,)
    assert check_change(sandbox.workspace, everything=True).builds.built == (name,)


def test_a_spec_without_its_batch_is_drift(sandbox: Sandbox) -> None:
    sandbox.spec()

    report = check_change(sandbox.workspace)

    assert codes(report) == ["drift"]
    assert report.problems[0].file == "sweeps/peak.yaml"
    assert "3 trial(s) that no batch lists" in report.problems[0].message
    assert report.problems[0].hint == "run `sweep generate peak` and commit what it writes"


def test_warnings_of_merged_trials_are_not_repeated_in_every_check(sandbox: Sandbox) -> None:
    spec = sandbox.spec()
    spec.write_text(spec.read_text() + "replicates: 2\n")
    generate(sandbox.workspace)
    assert codes(check_change(sandbox.workspace)) == ["seed-unused"]

    sandbox.publish("Ask")

    assert codes(check_change(sandbox.workspace)) == []


@pytest.mark.parametrize("path", ["sweeps/sub/peak.yaml", "sweeps/a/b/peak.yml", "sweeps/peak.YAML"])
def test_a_file_that_looks_like_a_spec_where_none_is_read_is_reported(sandbox: Sandbox, path: str) -> None:
    spec = sandbox.spec()
    spec.rename(sandbox.write(path, ""))

    (problem,) = check_change(sandbox.workspace).problems
    assert (problem.file, problem.code, problem.severity) == (path, "spec-ignored", Severity.WARNING)
    assert check_specs(sandbox.workspace)[1] == (problem,)
    generated = run_sweep("generate", cwd=sandbox.root)
    assert f"{path}: warning: is no spec" in generated.stdout + generated.stderr

    sandbox.publish("Put it there all the same")
    assert codes(check_change(sandbox.workspace)) == []
    assert codes(check_change(sandbox.workspace, everything=True)) == ["spec-ignored"]


def test_a_stale_batch_is_drift(sandbox: Sandbox) -> None:
    sandbox.spec()
    generate(sandbox.workspace)
    sandbox.spec(xs="1, 2")

    assert codes(check_change(sandbox.workspace)) == ["drift", "drift"]


def test_a_batch_without_a_spec_is_drift(sandbox: Sandbox) -> None:
    path = sandbox.spec()
    generate(sandbox.workspace)
    path.unlink()

    assert "belongs to no spec" in check_change(sandbox.workspace).problems[0].message


def test_an_edited_merged_batch_is_refused(sandbox: Sandbox) -> None:
    name = sandbox.merged()
    (sandbox.root / "overlays/active" / name / "hyperparams.csv").write_text("other\n")

    report = check_change(sandbox.workspace)

    assert "batch-edited" in codes(report)
    assert f"overlays/active/{name}/hyperparams.csv" in {problem.file for problem in report.problems}


def test_a_vanished_merged_batch_is_refused(sandbox: Sandbox) -> None:
    shutil.rmtree(sandbox.root / "overlays/active" / sandbox.merged())

    assert codes(check_change(sandbox.workspace)) == ["batch-vanished"]


def test_a_merged_batch_moves_only_with_its_results(sandbox: Sandbox) -> None:
    name = sandbox.merged()
    sandbox.git("mv", f"overlays/active/{name}", f"overlays/archive/{name}")
    assert codes(check_change(sandbox.workspace)) == ["batch-moved"]

    sandbox.write(f"results/peak/records/{name}.jsonl", "")

    assert set(codes(check_change(sandbox.workspace))) == {
        "history-unsigned"
    }  # a person moved it, not the collector


def test_a_base_that_overlays_refer_to_is_frozen(sandbox: Sandbox) -> None:
    sandbox.merged()
    path = sandbox.root / "base/trial/v1/job.yaml"
    path.write_text(path.read_text() + "# one more comment\n")

    report = check_change(sandbox.workspace)

    assert codes(report) == ["base-changed"]
    assert report.problems[0].file == "base/trial/v1/job.yaml"
    assert report.problems[0].hint == "add a new version folder beside it"


@pytest.mark.parametrize(
    "path", ["overlays/active/stray.yaml", "overlays/archive/folder/file", "overlays/active/.sourceignore"]
)
def test_nothing_but_batches_lies_in_overlays(sandbox: Sandbox, path: str) -> None:
    sandbox.merged()
    sandbox.write(path, "x")

    assert codes(check_change(sandbox.workspace)) == ["overlay-layout"]


def test_the_kept_folders_must_stay(sandbox: Sandbox) -> None:
    sandbox.merged()
    (sandbox.root / "overlays/active/.gitkeep").unlink()

    assert codes(check_change(sandbox.workspace)) == ["overlay-layout"]


def test_code_that_only_a_lost_branch_holds_is_refused(sandbox: Sandbox) -> None:
    sandbox.git("switch", "-q", "-c", "ask")
    sandbox.write("code/train.py", "better code")
    sandbox.commit("Better code")
    sandbox.spec()
    generate(sandbox.workspace)
    kept = sandbox.root.parent / "kept"
    for name in ("overlays", "base"):
        shutil.copytree(sandbox.root / name, kept / name)
    sandbox.git("stash", "-q", "--include-untracked")
    sandbox.git("switch", "-q", "main")
    sandbox.git("branch", "-q", "-D", "ask")
    shutil.copytree(kept, sandbox.root, dirs_exist_ok=True)
    sandbox.spec()

    report = check_change(sandbox.workspace)

    assert codes(report) == ["code-unreachable"]
    assert report.problems[0].hint == "run `sweep generate peak --update`"


def test_without_kustomize_it_is_no_pass(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox.spec()
    generate(sandbox.workspace)
    monkeypatch.setenv("KUSTOMIZE", "/nowhere/kustomize")

    with pytest.raises(ToolError):
        check_change(sandbox.workspace)


def test_a_base_in_a_repository_of_its_own_wins_over_the_tools(sandbox: Sandbox) -> None:
    sandbox.spec()
    generate(sandbox.workspace)
    (sandbox.root / "base/trial/v1/job.yaml").write_text("apiVersion: batch/v1\nkind: Job\n")

    report = check_change(sandbox.workspace)

    assert sorted(codes(report)) == ["base-with-batch", "build-failed"]
    assert any("missing metadata.name" in problem.message for problem in report.problems)
