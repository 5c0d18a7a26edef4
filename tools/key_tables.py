"""The tables of keys in docs/spec.md and docs/settings.md: `python -m tools.json_schemas` writes them.

A page says where: the table of some keys of a document, and of all below them, is between two comments,

    <!-- keys: limits budgets -->
    <!-- end of keys -->

and what it contains comes from the JSON Schema that the document's class gives.
"""

import re
from pathlib import Path

from sweepledger.spec.schemas import DocumentKey, document_keys

ROOT = Path(__file__).parents[1]
PAGES = {ROOT / "docs/settings.md": "settings", ROOT / "docs/spec.md": "sweep"}
MARKED = re.compile(r"(<!-- keys: ([^>]+) -->\n).*?(<!-- end of keys -->)", re.DOTALL)
HEAD = "\n| key | value | meaning |\n|---|---|---|\n"


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
