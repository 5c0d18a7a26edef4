"""The notebooks of the docs: stored without output, and each cell runs.

A cell runs in this process as Jupyter runs it: its last expression is shown. No kernel and no browser take part.
"""

import ast
import json
import linecache
from pathlib import Path
from typing import Any

import pytest

from tests.builders import present

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs/notebooks").glob("*.ipynb"))


def code_cells(notebook: Path) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def run_cell(source: str, names: dict[str, Any]) -> object:
    """Run a cell, and return the value of its last line, which must be an expression."""
    tree, cell = ast.parse(source), f"<cell {hash(source)}>"
    linecache.cache[cell] = (len(source), None, source.splitlines(keepends=True), cell)  # as Jupyter does
    last = tree.body.pop()
    exec(compile(tree, cell, "exec"), names)  # noqa: S102 - the notebook is ours
    assert isinstance(last, ast.Expr)
    return eval(compile(ast.Expression(last.value), cell, "eval"), names)  # noqa: S307 - likewise


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_of_a_notebook_shows_something(notebook: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(notebook.parent)
    names: dict[str, Any] = {"__name__": "__main__"}

    shown = [run_cell("".join(cell["source"]), names) for cell in code_cells(notebook)]

    assert len(shown) > 1
    for value in shown:
        assert getattr(value, "_repr_html_", present(value).__repr__)()


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_output(notebook: Path) -> None:
    assert all((cell["outputs"], cell["execution_count"]) == ([], None) for cell in code_cells(notebook))
