"""Problems for code hosts: SARIF 2.1.0, which editors also read, and GitLab's Code Quality report."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from sweepledger.problems import Problem, Severity, escape_line
from sweepledger.structs.values import digest

VERSION = "2.1.0"
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
MAX_RESULTS = 5_000
"""GitHub's limit for one run."""
ROOT = "%SRCROOT%"
SEVERITIES = {Severity.ERROR: "major", Severity.WARNING: "minor"}
"""Of Code Quality."""


def sarif(problems: Iterable[Problem], *, version: str) -> dict[str, Any]:
    """Return a SARIF run with one result per problem; a problem of a whole file is at its first line."""
    reported = list(problems)[:MAX_RESULTS]
    codes = sorted({problem.code for problem in reported})
    driver = {
        "name": "sweepledger",
        "version": version,
        "rules": [{"id": code, "shortDescription": {"text": code.replace("-", " ")}} for code in codes],
    }
    results = [_result(problem, codes.index(problem.code)) for problem in reported]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": SCHEMA, "version": VERSION, "runs": [run]}


def _result(problem: Problem, rule: int) -> dict[str, Any]:
    path = f"{problem.path}: " if problem.path else ""
    hint = f"\n{escape_line(problem.hint)}" if problem.hint else ""
    uri = quote(problem.file.encode("utf-8", "surrogateescape"))
    region = {"startLine": max(problem.line, 1), "startColumn": max(problem.column, 1)}
    location = {"artifactLocation": {"uri": uri, "uriBaseId": ROOT}, "region": region}
    return {
        "ruleId": problem.code,
        "ruleIndex": rule,
        "level": str(problem.severity),
        "message": {"text": f"{escape_line(f'{path}{problem.message}')}{hint}"},
        "locations": [{"physicalLocation": location}] if problem.file else [],
        # Lines change from commit to commit; the path in the document seldom does.
        "partialFingerprints": {
            "problem/v1": digest([problem.code, escape_line(problem.file), problem.path])
        },
    }


def code_quality(problems: Iterable[Problem]) -> list[dict[str, Any]]:
    """Return a Code Quality report: one entry per problem of a file; a problem of a whole file is at its first line."""
    return [_entry(problem) for problem in problems if problem.file]


def _entry(problem: Problem) -> dict[str, Any]:
    path = f"{problem.path}: " if problem.path else ""
    hint = f" ({problem.hint})" if problem.hint else ""
    return {
        "description": escape_line(f"{path}{problem.message}{hint}"),
        "check_name": problem.code,
        # GitLab compares reports by it: lines change from commit to commit, the path in the document seldom does.
        "fingerprint": digest([problem.code, escape_line(problem.file), problem.path, problem.message]),
        "severity": SEVERITIES[problem.severity],
        "location": {"path": escape_line(problem.file), "lines": {"begin": max(problem.line, 1)}},
    }
