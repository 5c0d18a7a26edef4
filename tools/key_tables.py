"""The tables of keys in docs/spec.md and docs/settings.md, of the summary's columns in docs/results.md, and of the
fields of pods that keys decide in docs/manifests.md.

`python -m tools.json_schemas` writes them.

A page says where: the table of some keys of a document, and of all below them, is between two comments,

    <!-- keys: limits budgets -->
    <!-- end of keys -->

and what it contains comes from the JSON Schema that the document's class gives. The columns are the members of
`SummaryRow`, between `<!-- columns -->` and `<!-- end of columns -->`; the fields of pods are those that a `PodField`
states, between `<!-- fields of pods -->` and `<!-- end of fields -->`.
"""

import ast
import inspect
import re
from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path

from sweepledger.formats.summary_csv import PREFIXES
from sweepledger.spec.schemas import DocumentKey, document_keys
from sweepledger.structs.pod_fields import field_paths
from sweepledger.structs.record import SummaryRow
from sweepledger.structs.run_config import RunConfig
from sweepledger.structs.settings import TrialSettings

ROOT = Path(__file__).parents[1]
PAGES = {ROOT / "docs/settings.md": "settings", ROOT / "docs/spec.md": "sweep"}
MARKED = re.compile(r"(<!-- keys: ([^>]+) -->\n).*?(<!-- end of keys -->)", re.DOTALL)
RESULTS_PAGE = ROOT / "docs/results.md"
COLUMNS = re.compile(r"(<!-- columns -->\n).*?(<!-- end of columns -->)", re.DOTALL)
COLUMNS_HEAD = "\n| column | content |\n|---|---|\n"
MANIFESTS_PAGE = ROOT / "docs/manifests.md"
FIELDS = re.compile(r"(<!-- fields of pods -->\n).*?(<!-- end of fields -->)", re.DOTALL)
FIELDS_HEAD = "\n| field | decided by |\n|---|---|\n"
HEAD = "\n| key | value | meaning |\n|---|---|---|\n"


@cache
def texts(kind: type) -> Mapping[str, str]:
    """Return the texts below the attributes of a class."""
    (body,) = ast.parse(inspect.getsource(kind)).body
    assert isinstance(body, ast.ClassDef)
    return {
        before.target.id: " ".join(inspect.cleandoc(after.value.value).split())
        for before, after in zip(body.body, body.body[1:], strict=False)
        if isinstance(before, ast.AnnAssign) and isinstance(before.target, ast.Name)
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        if isinstance(after.value.value, str)
    }


def results_page(text: str) -> str:
    """Return the text of docs/results.md with the table of the summary's columns."""
    lines = ""
    for column in fields(SummaryRow):
        name = f"{PREFIXES[column.name]}NAME" if column.name in PREFIXES else column.name
        only = " Only if a trial has it." if column.default is None else ""
        lines += f"| `{name}` | {texts(SummaryRow)[column.name]}{only} |\n"
    return COLUMNS.sub(lambda match: f"{match[1]}{COLUMNS_HEAD}{lines}\n{match[2]}", text)


def manifests_page(text: str) -> str:
    """Return the text of docs/manifests.md with the table of the fields that keys decide."""
    links: dict[str, list[str]] = {}
    for kind, document, *above in ((TrialSettings, "settings"), (RunConfig, "spec", "run")):
        for field, paths in field_paths(kind).items():
            keys = [".".join((*above, *path)).replace("*", "NAME") for path in paths]
            links.setdefault(field, []).extend(f"[`{key}`]({document}.md#{_anchor(key)})" for key in keys)
    lines = "".join(f"| `{field}` | {', '.join(keys)} |\n" for field, keys in sorted(links.items()))
    return FIELDS.sub(lambda match: f"{match[1]}{FIELDS_HEAD}{lines}\n{match[2]}", text)


def page(text: str, document: str) -> str:
    """Return the text of a page with its tables. Raises ValueError if they name a key twice, or one that is none.

    A key that no table names stands below the key that its class states before it.
    """
    by_top: dict[str, list[DocumentKey]] = {}
    for row in document_keys(document):
        by_top.setdefault(re.split(r"[.\[]", row.path)[0], []).append(row)
    places = [name for _, names, _ in MARKED.findall(text) for name in names.split()]
    before = places[0]
    for name in [*by_top]:
        if name in places:
            before = name
        else:
            by_top[before] += by_top.pop(name)
    if sorted(places) != sorted(by_top):
        raise ValueError(f"the tables name {sorted(places)}, but the keys are {sorted(by_top)}")

    def filled(match: re.Match[str]) -> str:
        begin, names, end = match.groups()
        lines = "".join(_line(row) for name in names.split() for row in by_top[name])
        return f"{begin}{HEAD}{lines}\n{end}"

    return MARKED.sub(filled, text)


def _line(row: DocumentKey) -> str:
    meaning = re.sub(r"\n+", "<br>", row.schema.get("description", ""))
    if row.same_as:
        meaning = f"As [`{row.same_as}`](#{_anchor(row.same_as)}). {meaning}"
    cells = (f'<a id="{_anchor(row.path)}"></a>`{row.path}`', row.value, meaning)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def _anchor(path: str) -> str:
    return re.sub(r"[^a-z0-9_-]", "", path.lower())


def main() -> None:
    """Write the tables of all pages."""
    for path, document in PAGES.items():
        path.write_text(page(path.read_text(), document), encoding="utf-8")
    RESULTS_PAGE.write_text(results_page(RESULTS_PAGE.read_text()), encoding="utf-8")
    MANIFESTS_PAGE.write_text(manifests_page(MANIFESTS_PAGE.read_text()), encoding="utf-8")
