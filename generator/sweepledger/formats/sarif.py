"""Problems as SARIF 2.1.0, which code hosts and editors read."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from generator.problems import Problem, one_line
from generator.structs.values import digest

VERSION = "2.1.0"
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
MOST = 5_000
"""As many as GitHub keeps of one run."""
ROOT = "%SRCROOT%"


def sarif(problems: Iterable[Problem], *, version: str) -> dict[str, Any]:
    """Write a run of one tool with a result a problem; whole files are their first line."""
    found = list(problems)[:MOST]
    codes = sorted({problem.code for problem in found})
    driver = {
        "name": "sweepledger",
        "version": version,
        "rules": [{"id": code, "shortDescription": {"text": code.replace("-", " ")}} for code in codes],
    }
    results = [_result(problem, codes.index(problem.code)) for problem in found]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": SCHEMA, "version": VERSION, "runs": [run]}


def _result(problem: Problem, rule: int) -> dict[str, Any]:
    where = f"{problem.path}: " if problem.path else ""
    hint = f"\n{one_line(problem.hint)}" if problem.hint else ""
    return {
        "ruleId": problem.code,
        "ruleIndex": rule,
        "level": str(problem.severity),
        "message": {"text": f"{one_line(f'{where}{problem.message}')}{hint}"},
        "locations": [{"physicalLocation": _place(problem)}] if problem.file else [],
        # Lines move from commit to commit; the place in the document seldom does.
        "partialFingerprints": {"problem/v1": digest([problem.code, one_line(problem.file), problem.path])},
    }


def _place(problem: Problem) -> dict[str, Any]:
    uri = quote(problem.file.encode("utf-8", "surrogateescape"))
    region = {"startLine": max(problem.line, 1), "startColumn": max(problem.column, 1)}
    return {"artifactLocation": {"uri": uri, "uriBaseId": ROOT}, "region": region}
