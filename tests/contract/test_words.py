"""The keys of JSON answers and the codes of problems use no word for which CONTRIBUTING.md has another."""

import ast
import dataclasses
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sweepledger.engine.cluster.health import HealthFinding
from sweepledger.exchange.conversion import Loss
from sweepledger.operations.reports.comparison import Spent
from sweepledger.operations.reports.difference_causes import Proposal
from sweepledger.operations.reports.outputs import AttemptOutput, FetchedArtifacts
from sweepledger.operations.reports.recorded_status import BestValue
from sweepledger.operations.reports.reproduction import MetricComparison
from sweepledger.operations.reports.status import BatchOrigin, Origin, Remark
from sweepledger.operations.repository.spec_edit import BatchesChange
from sweepledger.operations.rounds.progress import SearchProgress
from sweepledger.operations.verification.file_diff import FileDifference
from sweepledger.plan.budgets import Balance, Cost, PodDisk, RoundBounds
from sweepledger.plan.coverage import Discrepancy, Histogram, ParameterCoverage
from sweepledger.plan.forecast import Forecast, Quantiles
from sweepledger.plan.review import DesignReview, FileChange, Note, OutdatedPart, Rejection, TrialCounts
from sweepledger.repo.datasets import ReadFiles
from sweepledger.results.causes import FactorFinding
from sweepledger.results.inference import Interval
from sweepledger.structs.run_config import Pack
from sweepledger.structs.sweep import Budget
from sweepledger.verbs.verify import UnsignedChange

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "generator/sweepledger"
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
REPLACED = frozenset(
    word
    for line in re.findall(r"^- \*[^*]+\*, not (.+)$", PAGE, re.MULTILINE)
    for word in re.findall(r"`(\w+)`", line)
)
"""Words for which the page has another."""

WRITTEN_BY_ASDICT: dict[str, list[Any]] = {
    "operations/reports/difference_causes.py": [FactorFinding],
    "operations/reports/reproduction.py": [MetricComparison],
    "plan/review.py": [
        *(OutdatedPart, Cost, Cost, TrialCounts, Pack, RoundBounds, Forecast, Note),
        *(PodDisk, Budget, FileChange, Discrepancy, DesignReview, ParameterCoverage),
    ],
    "verbs/cluster/data.py": [ReadFiles],
}
"""The class of each value whose fields become keys, by the module that writes it: `asdict` does not name them."""
WRITTEN_BY_VERBS = (
    *(AttemptOutput, Balance, BatchOrigin, BatchesChange, BestValue, FetchedArtifacts, FileDifference),
    *(
        HealthFinding,
        Histogram,
        Interval,
        Loss,
        Origin,
        Proposal,
        Quantiles,
        Rejection,
        Remark,
        SearchProgress,
        Spent,
        UnsignedChange,
    ),
)
"""The classes of other packages that a verb gives as its result, or as a part of it."""


def is_answer(path: Path, function: ast.FunctionDef | ast.Module) -> bool:
    folder = path.relative_to(PACKAGE).parts[0]
    if isinstance(function, ast.Module):
        is_command = folder == "cli" and "text" not in path.parts and path.name != "app.py"
        return is_command or folder == "verbs" or path.match("plan/review.py")
    return folder in {"operations", "engine"} and function.name.endswith("_data")


def is_method(node: ast.stmt, name: str) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name == name


def written_keys(node: ast.AST) -> Iterator[str]:
    """Yield the texts that are keys of mappings, or under which a mapping gets a member, and the fields of results."""
    for part in ast.walk(node):
        if isinstance(part, ast.ClassDef) and not any(is_method(item, "as_data") for item in part.body):
            fields = (item.target for item in part.body if isinstance(item, ast.AnnAssign))
            yield from (field.id for field in fields if isinstance(field, ast.Name))
        keys: list[ast.expr | None] = part.keys if isinstance(part, ast.Dict) else []
        if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store):
            keys = [part.slice]
        yield from (key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str))


def answers() -> Iterator[tuple[str, ast.FunctionDef | ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        module = ast.parse(path.read_text(encoding="utf-8"))
        functions = (node for node in ast.walk(module) if isinstance(node, ast.FunctionDef))
        name = path.relative_to(PACKAGE).as_posix()
        parts: list[ast.FunctionDef | ast.Module] = [module, *functions]
        yield from ((name, part) for part in parts if is_answer(path, part))


def json_keys() -> frozenset[str]:
    fields = {
        name
        for kinds in (*WRITTEN_BY_ASDICT.values(), WRITTEN_BY_VERBS)
        for kind in kinds
        for name in getattr(kind, "__struct_fields__", getattr(kind, "_fields", ()))
        or (field.name for field in dataclasses.fields(kind))
    }
    return frozenset({key for _, node in answers() for key in written_keys(node)} | fields)


def replaced_words(names: frozenset[str]) -> list[str]:
    return sorted(name for name in names if REPLACED & set(re.split(r"[_-]", name)))


def test_no_key_of_a_json_answer_is_a_replaced_word() -> None:
    keys = json_keys()

    assert {"reserved", "requested", "remaining", "configuration", "previous"} <= keys
    assert replaced_words(keys) == []


def test_each_class_whose_fields_become_keys_is_looked_at() -> None:
    calls = Counter(
        name
        for name, node in answers()
        for part in ast.walk(node)
        if "asdict" in {getattr(part, "id", ""), getattr(part, "attr", "")}
    )

    assert calls == {name: len(kinds) for name, kinds in WRITTEN_BY_ASDICT.items()}


@pytest.mark.parametrize("key", ["promised", "best_assignment", "says"])
def test_a_replaced_word_is_noticed(key: str) -> None:
    module = ast.parse(f'def as_data(self): return {{"{key}": 1}}')

    assert replaced_words(frozenset(written_keys(module))) == [key]


def test_no_code_of_a_problem_is_a_replaced_word() -> None:
    page = (ROOT / "docs/problems.md").read_text(encoding="utf-8")

    assert replaced_words(frozenset(re.findall(r"^### `([^`]+)`$", page, re.MULTILINE))) == []
