import shutil

import pytest

from sweepledger.errors import ToolError
from sweepledger.problems import Severity
from sweepledger.verbs.check import CheckReport
from tests.repository import Sandbox, append_to, check_specs


def codes(report: CheckReport) -> list[str]:
    return [problem.code for problem in report.problems]


def test_a_generated_and_committed_sweep_is_in_order(sandbox: Sandbox) -> None:
    sandbox.spec()
    sandbox.commit_batches("Ask")

    report = sandbox.check()

    assert report.problems == ()
    assert (report.specs, len(report.built), report.unchanged) == (1, 1, ())


def test_what_stands_is_not_built_again_unless_all_is_asked_for(sandbox: Sandbox) -> None:
    name = sandbox.merged()

    assert sandbox.check().unchanged == (name,)
    assert sandbox.check(everything=True).built == (name,)


def test_a_spec_without_its_batch_is_drift(sandbox: Sandbox) -> None:
    sandbox.spec()

    report = sandbox.check()

    assert codes(report) == ["drift"]
    assert report.problems[0].file == "sweeps/peak.yaml"
    assert "3 trial(s) that no batch lists" in report.problems[0].message
    assert report.problems[0].hint == "run `sweep generate peak` and commit what it writes"


def test_warnings_of_merged_trials_are_not_repeated_in_every_check(sandbox: Sandbox) -> None:
    append_to(sandbox.spec(), "replicates: 2\n")
    sandbox.generate()
    assert codes(sandbox.check()) == ["seed-unused"]

    sandbox.publish("Ask")

    assert codes(sandbox.check()) == []


@pytest.mark.parametrize("path", ["sweeps/sub/peak.yaml", "sweeps/a/b/peak.yml", "sweeps/peak.YAML"])
def test_a_file_that_looks_like_a_spec_where_none_is_read_is_reported(sandbox: Sandbox, path: str) -> None:
    spec = sandbox.spec()
    spec.rename(sandbox.write(path, ""))

    (problem,) = sandbox.check().problems
    assert (problem.file, problem.code, problem.severity) == (path, "spec-ignored", Severity.WARNING)
    assert check_specs(sandbox.workspace)[1] == (problem,)
    generated = sandbox.sweep("generate")
    assert f"{path}: warning: is no spec" in generated.stdout + generated.stderr

    sandbox.publish("Put it there all the same")
    assert codes(sandbox.check()) == []
    assert codes(sandbox.check(everything=True)) == ["spec-ignored"]


def test_a_stale_batch_is_drift(sandbox: Sandbox) -> None:
    sandbox.propose()
    sandbox.spec(xs="1, 2")

    assert codes(sandbox.check()) == ["drift", "drift"]


def test_a_merged_batch_moves_only_with_its_results(sandbox: Sandbox) -> None:
    name = sandbox.merged()
    sandbox.git("mv", f"overlays/active/{name}", f"overlays/archive/{name}")
    assert codes(sandbox.check()) == ["batch-moved"]

    sandbox.write(f"results/peak/records/{name}.jsonl", "")

    assert set(codes(sandbox.check())) == {"history-unsigned"}  # a person moved it, not the collector


@pytest.mark.parametrize("path", ["base/trial/v1/job.yaml", "base/launcher/v1/launch.py"])
def test_a_base_that_overlays_refer_to_is_frozen(sandbox: Sandbox, path: str) -> None:
    sandbox.merged()
    append_to(sandbox.root / path, "# one more comment\n")

    report = sandbox.check()

    assert codes(report) == ["base-changed"]
    assert report.problems[0].file == path
    assert report.problems[0].hint == "add a new version folder beside it"


@pytest.mark.parametrize(
    "path", ["overlays/active/stray.yaml", "overlays/archive/folder/file", "overlays/active/.sourceignore"]
)
def test_nothing_but_batches_lies_in_overlays(sandbox: Sandbox, path: str) -> None:
    sandbox.merged()
    sandbox.write(path, "x")

    assert codes(sandbox.check()) == ["overlay-layout"]


def test_the_kept_folders_must_stay(sandbox: Sandbox) -> None:
    sandbox.merged()
    (sandbox.root / "overlays/active/.gitkeep").unlink()

    assert codes(sandbox.check()) == ["overlay-layout"]


def test_code_that_only_a_lost_branch_holds_is_refused(sandbox: Sandbox) -> None:
    sandbox.git("switch", "-q", "-c", "ask")
    sandbox.commit("Better code", {"code/train.py": "better code"})
    sandbox.propose()
    kept = sandbox.root.parent / "kept"
    for name in ("overlays", "base"):
        shutil.copytree(sandbox.root / name, kept / name)
    sandbox.git("stash", "-q", "--include-untracked")
    sandbox.git("switch", "-q", "main")
    sandbox.git("branch", "-q", "-D", "ask")
    shutil.copytree(kept, sandbox.root, dirs_exist_ok=True)
    sandbox.spec()

    report = sandbox.check()

    assert codes(report) == ["code-unreachable"]
    assert report.problems[0].hint == "run `sweep generate peak --update`"


def test_without_kustomize_it_is_no_pass(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox.propose()
    monkeypatch.setenv("KUSTOMIZE", "/nowhere/kustomize")

    with pytest.raises(ToolError):
        sandbox.check()


def test_a_base_in_a_repository_of_its_own_wins_over_the_tools(sandbox: Sandbox) -> None:
    sandbox.propose()
    (sandbox.root / "base/trial/v1/job.yaml").write_text("apiVersion: batch/v1\nkind: Job\n")

    report = sandbox.check()

    assert sorted(codes(report)) == ["base-with-batch", "build-failed"]
    assert any("missing metadata.name" in problem.message for problem in report.problems)
