import shutil

import pytest

from sweepledger.errors import ToolError
from sweepledger.problems import Severity
from sweepledger.verbs.check import CheckReport
from tests.repository import Sandbox, append_to, check_specs


def codes(report: CheckReport) -> list[str]:
    return [problem.code for problem in report.problems]


def test_a_generated_and_committed_sweep_is_in_order_and_built_again_only_on_request(
    sandbox: Sandbox,
) -> None:
    sandbox.spec()
    sandbox.commit_batches("Ask")

    new = sandbox.check()
    sandbox.push()

    assert new.problems == ()
    assert (new.specs, len(new.built), new.unchanged) == (1, 1, ())
    assert sandbox.check().unchanged == new.built
    assert sandbox.check(everything=True).built == new.built


def test_a_spec_without_its_batch_is_drift(sandbox: Sandbox) -> None:
    sandbox.spec()

    report = sandbox.check()

    assert codes(report) == ["drift"]
    assert report.problems[0].file == "sweeps/peak.yaml"
    assert "3 trial(s) that no batch lists" in report.problems[0].message
    assert report.problems[0].hint == "run `sweep generate peak` and commit what it writes"
    sandbox.generate()
    sandbox.spec(xs="1, 2")
    assert codes(sandbox.check()) == ["drift", "drift"], "the batch is stale, and another is due"


def test_warnings_of_merged_trials_are_not_repeated_in_every_check(sandbox: Sandbox) -> None:
    append_to(sandbox.spec(), "replicates: 2\n")
    sandbox.generate()
    assert codes(sandbox.check()) == ["seed-unused"]

    sandbox.publish("Ask")

    assert codes(sandbox.check()) == []


@pytest.mark.parametrize("path", ["sweeps/a/b/peak.yml", "sweeps/peak.YAML"])
def test_a_file_that_looks_like_a_spec_where_none_is_read_is_reported(sandbox: Sandbox, path: str) -> None:
    spec = sandbox.spec()
    spec.rename(sandbox.write(path, ""))

    (problem,) = sandbox.check().problems
    assert (problem.file, problem.code, problem.severity) == (path, "spec-ignored", Severity.WARNING)
    assert check_specs(sandbox.workspace)[1] == (problem,)

    sandbox.publish("Put it there all the same")
    assert codes(sandbox.check()) == []
    assert codes(sandbox.check(everything=True)) == ["spec-ignored"]


def test_a_merged_batch_moves_only_with_its_results(sandbox: Sandbox) -> None:
    name = sandbox.merged()
    sandbox.git("mv", f"overlays/active/{name}", f"overlays/archive/{name}")
    assert codes(sandbox.check()) == ["batch-moved"]

    sandbox.write(f"results/peak/records/{name}.jsonl", "")

    assert set(codes(sandbox.check())) == {"history-unsigned"}  # a person moved it, not the collector


def test_a_base_that_overlays_refer_to_is_frozen(sandbox: Sandbox) -> None:
    sandbox.merged()
    append_to(sandbox.root / "base/trial/v1/job.yaml", "# one more comment\n")

    (problem,) = sandbox.check().problems

    assert (problem.file, problem.code) == ("base/trial/v1/job.yaml", "base-changed")
    assert problem.hint == "add a new version folder beside it"


def test_nothing_but_batches_and_what_keeps_their_folders_lies_in_overlays(sandbox: Sandbox) -> None:
    sandbox.merged()
    stray = ["overlays/active/.sourceignore", "overlays/active/stray.yaml", "overlays/archive/folder/file"]
    for path in stray:
        sandbox.write(path, "x")
    (sandbox.root / "overlays/active/.gitkeep").unlink()

    assert codes(sandbox.check()) == ["overlay-layout"] * 4


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
