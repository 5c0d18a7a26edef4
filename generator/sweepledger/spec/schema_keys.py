"""The JSON Schemas of specs and settings, also for editors, and each key in them.

Only this module reads these package files.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

SCHEMA_FOLDER = Path(__file__).parent.parent / "schemas"
KINDS = {
    "string": "text",
    "boolean": "`true` or `false`",
    "object": "mapping",
    "array": "list",
    "null": "`null`",
}

Schema = Mapping[str, Any]


@cache
def load_schema(name: str) -> dict[str, Any]:
    """Return the schema of `sweep` or `settings`."""
    loaded: dict[str, Any] = json.loads(schema_text(name))
    return loaded


def schema_text(name: str) -> str:
    """Return the schema of `sweep` or `settings` as text for editors."""
    return (SCHEMA_FOLDER / f"{name}.schema.json").read_text(encoding="utf-8")


def example_hint(schema: Schema, key: str = "") -> str | None:
    """Return a hint with the example of a schema, and the key that has it; None if the schema has no example."""
    examples = schema.get("examples")
    start = f"for example {key}: " if key else "for example "
    return examples and f"{start}{json.dumps(examples[0], ensure_ascii=False)}"


@dataclass(frozen=True, slots=True)
class DocumentKey:
    """A key of a document, at any level."""

    path: str
    """NAME stands for a free name, and [] for an entry of a list."""
    schema: Schema
    is_required: bool
    same_as: str = ""
    """The path of the same mapping, whose keys are listed there."""

    @property
    def value(self) -> str:
        """Its type and bounds, whether it is required, and its default or an example."""
        parts = [_kind(self.schema)]
        if self.is_required:
            parts.append("required")
        if "default" in self.schema:
            default = json.dumps(self.schema["default"])
            parts.append(f"default `{default}`".replace('`"', "`").replace('"`', "`"))
        elif (examples := self.schema.get("examples")) and not isinstance(examples[0], dict | list):
            parts.append(f"such as `{examples[0]}`")
        return "; ".join(parts)


def document_keys(name: str) -> Iterator[DocumentKey]:
    """Yield the keys of `sweep` or `settings` in order; the keys of a mapping are listed only once."""
    whole = load_schema(name)
    yield from _keys_below(whole, whole["$defs"], "", {})


def find_keys(name: str, path: str) -> tuple[DocumentKey, ...]:
    """Return the key with this path, or the key with this entry, else all keys whose paths end in it."""
    keys = [*document_keys(name)]
    while repeated := [key for key in keys if key.same_as and re.match(rf"{_pattern(key.path)}[.\[]", path)]:
        path = re.sub(_pattern(repeated[0].path), repeated[0].same_as, path, count=1)
    # A key comes before a free name that is spelt like it.
    exact = [key for key in keys if re.fullmatch(_pattern(key.path, key.schema), path)]
    exact.sort(key=lambda key: key.path != path)
    return tuple(exact[:1] or [key for key in keys if key.path.endswith(f".{path}")])


def _pattern(path: str, schema: Schema = MappingProxyType({})) -> str:
    """Return the regular expression for the ways in which people write a key, and its entries if the schema has any."""
    entry = {"additionalProperties": r"(?:\.[^.\[]+)?", "items": r"(?:\[\d*\])?"}
    end = "".join(entry[part] for part in entry if isinstance(schema.get(part), dict))
    return re.escape(path).replace(r"\[\]", entry["items"]).replace("NAME", r"[^.\[]+") + end


def _keys_below(
    schema: Schema, definitions: Schema, above: str, seen: dict[str, str]
) -> Iterator[DocumentKey]:
    for name, entry in schema.get("properties", {}).items():
        path, is_required = above + name, name in schema.get("required", ())
        opened, link = _resolved(entry, definitions)
        if link in seen:
            yield DocumentKey(path, opened, is_required, seen[link])
            continue
        if link:
            seen[link] = path
        yield DocumentKey(path, opened, is_required)
        yield from _keys_below(opened, definitions, f"{path}.", seen)
        for members in ("additionalProperties", "items"):
            if isinstance(opened.get(members), dict):
                entries, link = _resolved(opened[members], definitions)
                if link not in seen:
                    part = ".NAME." if members == "additionalProperties" else "[]."
                    yield from _keys_below(entries, definitions, path + part, seen)


def _resolved(entry: Schema, definitions: Schema) -> tuple[Schema, str]:
    link = entry.get("$ref", "").rpartition("/")[2]
    own = {key: entry[key] for key in entry if key != "$ref"}
    return {**definitions.get(link, {}), **own}, link


def _kind(schema: Schema) -> str:
    if "enum" in schema:
        return ", ".join(f"`{word}`" for word in schema["enum"])
    kind = schema.get("type", "any value")
    if isinstance(kind, list):
        return " or ".join(_kind({**schema, "type": part}) for part in kind)
    return f"`{schema['const']}`" if "const" in schema else f"{KINDS.get(kind, kind)}{_bounds(schema)}"


def _bounds(schema: Schema) -> str:
    if schema["type"] == "string" and "maxLength" in schema:
        return f", at most {schema['maxLength']} characters"
    above, high = schema.get("exclusiveMinimum"), schema.get("maximum")
    from_low = f"{schema.get('minimum', '')}" if above is None else f"above {above}"
    if high is None:
        return f", {from_low}{' or more' if above is None else ''}" if from_low else ""
    return f", {from_low} to {high}" if from_low else f", at most {high}"
