"""The keys of JSON answers and the codes of problems use no word for which CONTRIBUTING.md has another."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "generator/sweepledger"
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
REPLACED = frozenset(
    word
    for line in re.findall(r"^- \*[^*]+\*, not (.+)$", PAGE, re.MULTILINE)
    for word in re.findall(r"`(\w+)`", line)
)
"""Words for which the page has another."""
ANSWERS = [
    *(path for path in (PACKAGE / "cli").glob("*.py") if path.name != "app.py"),
    *(PACKAGE / "verbs").rglob("*.py"),
    PACKAGE / "plan/review.py",
]
"""Where answers are made, whose keys are keys of mappings and fields of classes."""


def names(tree: ast.AST) -> Iterator[str]:
    """Yield the texts that are keys of mappings, or under which a mapping gets a member, and the fields of classes."""
    for node in ast.walk(tree):
        match node:
            case ast.Dict(keys):
                yield from (
                    key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)
                )
            case ast.Subscript(slice=ast.Constant(str(key)), ctx=ast.Store()):
                yield key
            case ast.ClassDef(body=body):
                yield from (
                    item.target.id
                    for item in body
                    if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
                )


def replaced_words(found: set[str]) -> list[str]:
    return sorted(name for name in found if REPLACED & set(re.split(r"[_-]", name)))


def test_no_key_of_a_json_answer_is_a_replaced_word() -> None:
    found = {name for path in ANSWERS for name in names(ast.parse(path.read_text(encoding="utf-8")))}

    assert {"reserved", "requested", "remaining", "configuration", "previous"} <= found
    assert replaced_words(found) == []


@pytest.mark.parametrize("key", ["promised", "best_assignment", "says"])
def test_a_replaced_word_is_noticed(key: str) -> None:
    assert replaced_words(set(names(ast.parse(f'{{"{key}": 1}}')))) == [key]


def test_no_code_of_a_problem_is_a_replaced_word() -> None:
    page = (ROOT / "docs/problems.md").read_text(encoding="utf-8")

    assert replaced_words(set(re.findall(r"^### `([^`]+)`$", page, re.MULTILINE))) == []
