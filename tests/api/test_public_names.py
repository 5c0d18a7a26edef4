"""`sweepledger.__all__`: each name is loaded on request, documented, annotated, and on the page."""

import ast
import dataclasses
import inspect
import re
import subprocess
import sys
from pathlib import Path
from types import FunctionType

import pytest

import sweepledger

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/python.md").read_text(encoding="utf-8")
PUBLIC = [name for name in sweepledger.__all__ if name != "__version__"]


def members(value: type) -> dict[str, object]:
    """Return the public members that a class itself defines."""
    return {name: member for name, member in vars(value).items() if not name.startswith("_")}


def function_of(member: object) -> FunctionType | None:
    function = getattr(member, "fget", None) or getattr(member, "func", None) or member
    return function if isinstance(function, FunctionType) else None


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_documented_and_annotated(name: str) -> None:
    value = getattr(sweepledger, name)

    functions = {name: value} if inspect.isfunction(value) else members(value)
    assert inspect.getdoc(value)
    for member, definition in functions.items():
        function = function_of(definition)
        if function is not None:
            hints = function.__annotations__
            assert "return" in hints, f"{name}.{member}"
            assert inspect.signature(function).parameters.keys() - hints.keys() <= {"self"}
            assert inspect.getdoc(function), f"{name}.{member}"


@pytest.mark.parametrize("name", PUBLIC)
def test_the_page_names_every_public_name_and_member(name: str) -> None:
    value = getattr(sweepledger, name)
    names = [name]
    if inspect.isclass(value) and not issubclass(value, Exception):
        fields = (
            [field.name for field in dataclasses.fields(value)] if dataclasses.is_dataclass(value) else []
        )
        names += [member for member in {*members(value), *fields} if not member.startswith("_")]

    words = set(re.findall(r"`[^`]*`", PAGE))

    assert [one for one in names if not any(re.search(rf"\b{one}\b", word) for word in words)] == []


def test_type_checkers_see_the_same_names_as_importers() -> None:
    tree = ast.parse((ROOT / "generator/sweepledger/__init__.py").read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    checked = {
        alias.asname or alias.name
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    assert checked == {*PUBLIC}
    assert set(sweepledger.__all__) <= set(dir(sweepledger))
    with pytest.raises(AttributeError, match="no attribute 'opened'"):
        sweepledger.opened  # noqa: B018


def test_the_import_loads_nothing_else() -> None:
    code = (
        "import sys; before = set(sys.modules); import sweepledger; print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        env={"PYTHONPATH": str(ROOT / "generator")},
        check=True,
        capture_output=True,
        text=True,
    )

    assert {name for name in done.stdout.split() if name.startswith("sweepledger")} == {"sweepledger"}
    assert len(done.stdout.split()) < 40
