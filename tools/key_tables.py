"""The tables of keys in docs/spec.md and docs/settings.md: `python -m tools.json_schemas` writes them.

A page says where: the table of some keys of a document, and of all below them, is between two comments,

    <!-- keys: limits budgets -->
    <!-- end of keys -->

and what it contains comes from the JSON Schema that the document's class gives.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
SCHEMAS = ROOT / "generator/sweepledger/schemas"
PAGES = {ROOT / "docs/settings.md": "settings", ROOT / "docs/spec.md": "sweep"}
MARKED = re.compile(r"(<!-- keys: ([^>]+) -->\n).*?(<!-- end of keys -->)", re.DOTALL)
HEAD = "\n| key | value | meaning |\n|---|---|---|\n"
KINDS = {
    "string": "text",
    "boolean": "`true` or `false`",
    "object": "mapping",
    "array": "list",
    "null": "`null`",
}

Schema = Mapping[str, Any]


class Row(NamedTuple):
    """A key of a document, wherever it is."""

    path: str
    schema: Schema
    is_required: bool
    again: str = ""
    """The path at which the same mapping is described already."""


def rows(document: str) -> Iterator[Row]:
    """Yield the keys of a document in its order; a mapping whose keys are known already is not opened again."""
    whole = json.loads((SCHEMAS / f"{document}.schema.json").read_text())
    yield from _rows(whole, whole["$defs"], "", {})


def page(text: str, document: str) -> str:
    """Return the text of a page with its tables. Raises ValueError if it has no table, or two, for a key."""
    by_top: dict[str, list[Row]] = {}
    for row in rows(document):
        by_top.setdefault(re.split(r"[.\[]", row.path)[0], []).append(row)
    places = [name for _, names, _ in MARKED.findall(text) for name in names.split()]
    if sorted(places) != sorted(by_top):
        raise ValueError(f"the tables name {sorted(places)}, but the keys are {sorted(by_top)}")

    def filled(match: re.Match[str]) -> str:
        begin, names, end = match.groups()
        lines = "".join(_line(row) for name in names.split() for row in by_top[name])
        return f"{begin}{HEAD}{lines}\n{end}"

    return MARKED.sub(filled, text)


def _rows(schema: Schema, definitions: Schema, above: str, seen: dict[str, str]) -> Iterator[Row]:
    for name, entry in schema.get("properties", {}).items():
        path, is_required = above + name, name in schema.get("required", ())
        opened, link = _resolved(entry, definitions)
        if link in seen:
            yield Row(path, opened, is_required, seen[link])
            continue
        if link:
            seen[link] = path
        yield Row(path, opened, is_required)
        yield from _rows(opened, definitions, f"{path}.", seen)
        for members in ("additionalProperties", "items"):
            if isinstance(opened.get(members), dict):
                entries, link = _resolved(opened[members], definitions)
                if link not in seen:
                    part = ".NAME." if members == "additionalProperties" else "[]."
                    yield from _rows(entries, definitions, path + part, seen)


def _resolved(entry: Schema, definitions: Schema) -> tuple[Schema, str]:
    link = entry.get("$ref", "").rpartition("/")[2]
    return (
        {**definitions[link], **{key: entry[key] for key in entry if key != "$ref"}} if link else entry
    ), link


def _line(row: Row) -> str:
    meaning = re.sub(r"\n+", "<br>", row.schema.get("description", ""))
    if row.again:
        meaning = f"As [`{row.again}`](#{_anchor(row.again)}). {meaning}"
    cells = (f'<a id="{_anchor(row.path)}"></a>`{row.path}`', _value(row), meaning)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def _anchor(path: str) -> str:
    return re.sub(r"[^a-z0-9_-]", "", path.lower())


def _value(row: Row) -> str:
    schema = row.schema
    said = [_kind(schema)]
    if row.is_required:
        said.append("required")
    if "default" in schema:
        said.append(f"default `{json.dumps(schema['default'])}`".replace('`"', "`").replace('"`', "`"))
    elif (examples := schema.get("examples")) and not isinstance(examples[0], dict | list):
        said.append(f"such as `{examples[0]}`")
    return "; ".join(said)


def _kind(schema: Schema) -> str:
    for key, read in (("enum", lambda part: f"`{part}`"), ("anyOf", _kind), ("oneOf", _kind)):
        if key in schema:
            return (", " if key == "enum" else " or ").join(dict.fromkeys(map(read, schema[key])))
    kind = schema.get("type", "any value")
    if isinstance(kind, list):
        return " or ".join(_kind({**schema, "type": part}) for part in kind)
    return f"`{schema['const']}`" if "const" in schema else f"{KINDS.get(kind, kind)}{_bounds(schema)}"


def _bounds(schema: Schema) -> str:
    low, above = schema.get("minimum", ""), schema.get("exclusiveMinimum")
    high, below = schema.get("maximum"), schema.get("exclusiveMaximum")
    from_low = f"above {above}" if above is not None else f"{low}"
    to_high = f"below {below}" if below is not None else f"{high}"
    if high is None and below is None:
        return f", {from_low}{' or more' if above is None else ''}" if from_low else ""
    return f", {from_low} to {to_high}" if from_low else f", at most {to_high}"


def main() -> None:
    """Write the tables of all pages."""
    for path, document in PAGES.items():
        path.write_text(page(path.read_text(), document), encoding="utf-8")
