"""What `sweep check` leaves for a pull request: annotations, SARIF, JSON, a summary, the patch that mends."""

import json
import subprocess
from pathlib import Path

import pytest

from sweepledger.problems import Problem, Severity
from sweepledger.verbs.check import check_markdown, github_annotations
from tests.repository import Sandbox, replace_in


def reported(sandbox: Sandbox, *more: str) -> tuple[subprocess.CompletedProcess[str], Path]:
    report = sandbox.root.parent / "a report"
    summary = sandbox.root.parent / "a summary.md"
    summary.write_text("before\n")
    options = ("--format", "github", "--report", str(report), "--summary", str(summary), *more)
    return sandbox.sweep("check", *options), report


def test_a_bad_spec_is_annotated_on_the_line_of_the_mistake(sandbox: Sandbox) -> None:
    replace_in(sandbox.spec(), "[1, 2, 3]", "[1, 2, 2]")

    done, report = reported(sandbox)

    place = "file=sweeps/peak.yaml,line=6,col=22,title=duplicate-value"
    assert done.returncode == 1
    assert done.stdout.startswith(f"::error {place}::parameters.x.values[2]: ")
    (result,) = json.loads((report / "check.sarif").read_text())["runs"][0]["results"]
    assert result["ruleId"] == "duplicate-value"
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 6, "startColumn": 22}
    assert json.loads((report / "check.json").read_text())["problems"][0]["line"] == 6
    (entry,) = json.loads((report / "code-quality.json").read_text())
    assert (entry["check_name"], entry["severity"]) == ("duplicate-value", "major")
    assert entry["location"] == {"path": "sweeps/peak.yaml", "lines": {"begin": 6}}
    assert not (report / "mend.patch").exists()
    page = (sandbox.root.parent / "a summary.md").read_text()
    assert page.startswith("before\n## Not ready to merge: 1 problem\n")
    assert "`sweeps/peak.yaml:6:22`" in page


def test_a_valid_change_has_no_annotation_and_no_patch(sandbox: Sandbox) -> None:
    sandbox.merged()

    done, report = reported(sandbox)

    assert (done.returncode, "::" in done.stdout) == (0, False)
    expected = ["check.json", "check.sarif", "code-quality.json"]
    assert sorted(path.name for path in report.iterdir()) == expected
    assert json.loads((report / "check.sarif").read_text())["runs"][0]["results"] == []


@pytest.mark.parametrize("state", ["missing", "edited"])
def test_the_patch_writes_what_generate_writes(sandbox: Sandbox, needs_kustomize: None, state: str) -> None:
    sandbox.merged("other")
    sandbox.spec()
    if state == "edited":
        assert sandbox.sweep("generate").returncode == 0
        (folder,) = (sandbox.root / "overlays/active").glob("peak-*")
        (folder / "job.yaml").write_text("a: 1")
        (folder / 'odd "name"').write_text("x")
    sandbox.commit("Ask")

    done, report = reported(sandbox)

    assert done.returncode == 5
    sandbox.git("apply", "--index", str(report / "mend.patch"))
    sandbox.git("commit", "-q", "-m", "Mend")
    assert sandbox.check().problems == ()
    assert sandbox.git("status", "--porcelain") == ""


def test_a_merged_batch_is_restored_by_hand_and_not_by_a_patch(sandbox: Sandbox) -> None:
    name = sandbox.merged()
    (sandbox.root / f"overlays/active/{name}/job.yaml").write_text("a: 1\n")
    sandbox.spec("other")

    done, report = reported(sandbox)

    assert done.returncode == 5
    assert not (report / "mend.patch").exists()


@pytest.mark.parametrize(
    "quoted",
    ["\n::error::x", "##[error]x", "50%0A::error::x"],
)
def test_untrusted_text_begins_no_workflow_command(quoted: str) -> None:
    problem = Problem(f"sweeps/{quoted}.yaml", 3, 4, quoted, quoted, "wrong-type", quoted)

    lines = "\n".join(github_annotations([problem])).replace("%0A", "\n").splitlines()

    assert [line for line in lines if line.lstrip().startswith("::")] == lines[:1]
    assert lines[0].startswith("::error file=sweeps/")
    assert "##[" not in lines[0]
    assert "\u202e" not in check_markdown([problem], patch=None)


def test_annotations_beyond_the_limit_are_counted() -> None:
    problems = [Problem("a.yaml", line, 1, "", "wrong", "x") for line in range(1, 30)]
    problems += [Problem("a.yaml", 1, 1, "", "odd", "x", None, Severity.WARNING)]

    lines = list(github_annotations(problems))

    assert len(lines) == 11
    assert "::error title=more::20 more are in the summary of this workflow run" in lines


def test_a_batch_is_annotated_at_its_lock() -> None:
    problem = Problem("overlays/active/peak-b1-00000000", 0, 0, "", "wrong", "drift")

    assert list(github_annotations([problem])) == [
        "::error file=overlays/active/peak-b1-00000000/batch.json,line=1,title=drift::wrong"
    ]


def test_untracked_paths_are_listed_with_git_add(sandbox: Sandbox) -> None:
    sandbox.spec()
    sandbox.commit("Ask which x is best")
    sandbox.sweep("generate")
    sandbox.write("sweeps/a note of mine.txt", "")
    sandbox.write("notes.md", "not ours to look at")

    forgotten = sandbox.sweep("check")
    added = [line.split(maxsplit=2)[2] for line in forgotten.stdout.splitlines() if "git add" in line]

    assert forgotten.returncode == 0
    assert "3 paths not in git yet" in forgotten.stdout
    assert added == ["base/", "overlays/", "'sweeps/a note of mine.txt'"]
    sandbox.git("add", *(path.strip("'") for path in added))
    assert "git add" not in sandbox.sweep("check").stdout
