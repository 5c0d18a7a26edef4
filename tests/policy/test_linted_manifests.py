"""Each rule by a pair of files: a manifest that it rejects, with lines and codes, and a valid twin."""

from pathlib import Path

import pytest

from sweepledger import policy
from sweepledger.policy import LintReport
from sweepledger.problems import Problem, Severity
from sweepledger.reader import manifests

HERE = Path(__file__).parent / "manifests"
ROWS = sorted(path.stem for path in (HERE / "invalid").glob("*.yaml"))
ROW = pytest.mark.parametrize("row", ROWS)

FAULTS = 28
"""Single faults; no available validator finds nineteen of them."""

PLACEHOLDERS = {"HALF_MEBIBYTE": "x" * 2**19, "ONE_MEBIBYTE": "x" * 2**20}
"""Written in place of long texts."""


def linted(folder: str, row: str) -> tuple[LintReport, tuple[Problem, ...]]:
    text = (HERE / folder / f"{row}.yaml").read_text()
    for mark, letters in PLACEHOLDERS.items():
        text = text.replace(mark, letters)
    read = manifests.read(text.encode(), f"{row}.yaml")
    report = policy.lint(read.documents)
    return report, (*read.problems, *report.problems)


def errors(problems: tuple[Problem, ...]) -> list[Problem]:
    return [problem for problem in problems if problem.severity is Severity.ERROR]


@ROW
def test_what_a_rule_refuses_is_found_by_its_code_at_its_line(row: str) -> None:
    """Of a missing field, the line is that of the mapping that must have it."""
    expected = (HERE / "invalid" / f"{row}.txt").read_text().splitlines()

    _, problems = linted("invalid", row)

    assert sorted({f"{problem.line}: {problem.code}" for problem in errors(problems)}) == sorted(expected)
    assert all(problem.line > 0 and problem.column > 0 for problem in problems)


@ROW
def test_its_valid_twin_is_not_refused(row: str) -> None:
    report, problems = linted("valid", row)

    assert errors(problems) == []
    assert report.objects or report.skipped


def test_every_file_has_its_twin_and_its_codes() -> None:
    assert sorted(path.stem for path in (HERE / "valid").glob("*.yaml")) == ROWS
    assert sorted(path.stem for path in (HERE / "invalid").glob("*.txt")) == ROWS


def test_all_single_faults_are_among_them() -> None:
    numbers = [int(row.split("-")[1]) for row in ROWS if row.startswith("fault-")]

    assert numbers == list(range(1, FAULTS + 1))


@pytest.mark.parametrize("value", ["null", "x", "1", "[]", "{}", "[x]", "[{}]", "{name: [x]}"])
@pytest.mark.parametrize("kind", ["Job", "MPIJob", "TrainJob", "JobSet", "ConfigMap", "Role"])
def test_a_kind_without_a_schema_may_have_any_value_under_known_keys(kind: str, value: str) -> None:
    """Rules apply to kinds with a checked schema: a `Job` of another API group is not one of them."""
    for key in ("metadata", "spec", "rules", "data", "spec: {template: {spec: {containers: []}, metadata"):
        text = f"apiVersion: example.com/v1\nkind: {kind}\n{key}: {value}{'}}' if '{' in key else ''}\n"

        report = policy.lint(manifests.read(text.encode(), "x").documents)

        assert len(report.skipped) == 1
