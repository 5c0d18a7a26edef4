"""The JSON Schemas of documents from their classes: `python -m tools.json_schemas` writes them, a test compares them.

It also writes the tables of keys, and of the summary's columns, in the documentation.

`sweepledger.model.keys` says how a class states its keys. A description is the text below an attribute in its source.
"""

import inspect
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, get_args, get_origin

from msgspec import NODEFAULT, UNSET, Meta, Struct

from sweepledger.model.keys import UNIONS, EntryName, EntryOf, KeyOf, Type, is_struct, keys_of, type_of
from sweepledger.spec.keys import DEFINITIONS, Spec
from sweepledger.structs.settings import Settings
from tools import key_tables
from tools.key_tables import texts

FOLDER = Path(__file__).parents[1] / "generator/sweepledger/schemas"
DOCUMENTS = {"settings": Settings, "sweep": Spec}
TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}
BOUNDS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "pattern": "pattern",
}
LENGTHS = {"string": "Length", "array": "Items", "object": "Properties"}

VERSION = {"description": "Version of the language. Default: 1.", "const": 1, "default": 1, "examples": [1]}
"""The key that every document that people write may have."""

Schema = dict[str, Any]


def classes_in(annotation: Any) -> Iterator[type]:
    """Yield each class in a part of a document, as often as it occurs."""
    kind = type_of(annotation).kind
    if type_of(annotation).form is None and is_struct(kind):
        yield kind
        for key in keys_of(kind).values():
            yield from classes_in(key.annotation)
    for inner in get_args(kind):
        yield from classes_in(inner)


class Schemas:
    """Makes the schema of a document; a class that occurs at several keys becomes a definition."""

    def __init__(self, document: type, definitions: Mapping[str, Any] = MappingProxyType({})) -> None:
        self.definitions = dict(definitions)
        counts = Counter(classes_in(document))
        self.shared = {kind: definition_name(kind) for kind, count in counts.items() if count > 1}
        inner = {part for kind in self.shared for part in [*classes_in(kind)][1:]}
        # What is only in a definition is written once anyway.
        self.shared = {kind: name for kind, name in self.shared.items() if kind not in inner}
        self.shared |= {
            type_of(part).kind: name for name, part in definitions.items() if is_struct(type_of(part).kind)
        }

    def of_key(self, key: KeyOf, text: str | None) -> Schema:
        stated = type_of(key.annotation)
        schema = self.of(key.annotation, text)
        form = stated.form
        is_written = isinstance(key.default, str | int | float | tuple if form else str | int | float)
        if "$ref" not in schema and is_written and key.default not in {NODEFAULT, None, ""}:
            schema["default"] = stated.form.write(key.default) if stated.form else key.default
        return in_order(schema)

    def of(self, annotation: Any, text: str | None = None) -> Schema:
        stated = type_of(annotation)
        if stated.kind in self.shared and stated.form is None:
            return {"$ref": f"#/$defs/{self.shared[stated.kind]}"}
        described = {"description": text} if text else {}
        return in_order({**self.parts(stated), **described, **metadata_of(stated)})

    def parts(self, stated: Type) -> Schema:
        """Return what the type says, with examples made of those of its parts."""
        kind, origin = stated.kind, get_origin(stated.kind)
        if stated.form is not None:
            names = [
                TYPES[name]
                for name in stated.form.types
                if {name, float} - {*stated.form.types} or name is not int
            ]
            pattern = {"pattern": f"^{stated.form.pattern}$"} if stated.form.pattern else {}
            return {"type": names[0] if len(names) == 1 else names, **pattern}
        if is_struct(kind):
            return self.of_class(kind)
        if origin in UNIONS:
            schemas = [self.of(part) for part in get_args(kind)]
            merged = {key: schema[key] for schema in schemas for key in schema if key != "examples"}
            return {**merged, "type": [schema["type"] for schema in schemas]}
        if origin in {tuple, frozenset}:
            items = self.of_entry(
                get_args(kind)[0], [part for list_ in examples_of(stated) for part in list_]
            )
            return {"type": "array", "items": items, "examples": [[self.example(items)]]}
        if origin is Mapping:
            return self.of_mapping(stated)
        is_enum = isinstance(kind, type) and issubclass(kind, StrEnum)
        simple = {"type": TYPES[kind]} if kind in TYPES else {}
        return {"type": "string", "enum": sorted(kind)} if is_enum else simple

    def of_mapping(self, stated: Type) -> Schema:
        names, entries = get_args(stated.kind)
        values = [value for mapping in examples_of(stated) for value in mapping.values()]
        inner = self.of_entry(entries, values)
        form = self.of(names)
        rules = {key: form[key] for key in ("pattern", "enum") if key in form}
        entry = next((part.name for part in stated.metadata if isinstance(part, EntryName)), None)
        name = entry or next(iter(form.get("enum", ["name"])))
        return {
            "type": "object",
            **({"propertyNames": rules} if rules else {}),
            "additionalProperties": inner,
            "examples": [{name: self.example(inner)}],
        }

    def of_entry(self, annotation: Any, examples: list[Any]) -> Schema:
        """Return the schema of an entry of a list or mapping, whose examples may be those of the whole."""
        described = {"description": "One entry.", **({"examples": examples} if examples else {})}
        inner = self.of(annotation)
        stated = type_of(annotation)
        if examples and stated.form and not any(meta.examples for meta in metas_of(stated)):
            inner.pop("examples", None)  # that of the form is less telling
        is_defined = inner.get("$ref", "").rpartition("/")[2] in self.definitions
        return inner if is_defined else in_order(described | inner)

    def of_class(self, kind: type) -> Schema:
        keys = keys_of(kind)
        required = [name for name, key in keys.items() if key.is_required]
        properties = {name: self.of_key(key, text_of(key.owner, key.attribute)) for name, key in keys.items()}
        shown = [name for name, key in keys.items() if key.is_required or key.absent is not NODEFAULT]
        shown = shown or [*properties][:1]
        return {
            "description": " ".join((inspect.getdoc(kind) or "").split("\n\n")[0].split()),
            "type": "object",
            "additionalProperties": False,
            "properties": properties,
            **({"required": required} if required else {}),
            "examples": [{name: self.example(properties[name]) for name in shown}],
        }

    def example(self, schema: Schema) -> Any:
        if "$ref" not in schema:
            return schema["examples"][0]
        return self.of_definition(schema["$ref"].rpartition("/")[2])["examples"][0]

    def of_definition(self, name: str) -> Schema:
        """Return the schema to which others refer by a name."""
        kinds = {shared: kind for kind, shared in self.shared.items()}
        stated = type_of(self.definitions.get(name, kinds.get(name)))
        return in_order({**self.parts(stated), **metadata_of(stated)})


def text_of(kind: type, attribute: str) -> str | None:
    """Return the text below an attribute in a class, or in the base that has it."""
    kinds = kind.__mro__[: kind.__mro__.index(Struct)]
    return next((texts(each)[attribute] for each in kinds if attribute in texts(each)), None)


def definition_name(kind: type) -> str:
    """Return the name of a definition, from that of its class."""
    return kind.__name__.removesuffix("Settings").lower()


def examples_of(stated: Type) -> list[Any]:
    """Return the examples that a type states; the last that has some counts, else that of its form."""
    usual = [stated.form.example] if stated.form and stated.form.example else []
    usual += [example_of_entry(part.key) for part in stated.metadata if isinstance(part, EntryOf)]
    return next((meta.examples for meta in reversed(metas_of(stated)) if meta.examples), usual)


def example_of_entry(key: str) -> str:
    """Return a name in a mapping or a list of the settings, from the mapping's `EntryName` or the list's example."""
    stated = type_of(keys_of(Settings)[key].annotation)
    names = [part.name for part in stated.metadata if isinstance(part, EntryName)]
    example: str = names[0] if names else examples_of(stated)[0][0]
    return example


def metas_of(stated: Type) -> list[Meta]:
    """Return bounds, pattern and examples of a type."""
    return [part for part in stated.metadata if isinstance(part, Meta)]


def metadata_of(stated: Type) -> Schema:
    """Return bounds, pattern, description and examples of a type."""
    schema: Schema = {}
    sort = {tuple: "Items", frozenset: "Items", Mapping: "Properties"}.get(get_origin(stated.kind), "Length")
    if is_struct(stated.kind) and stated.form is None:
        sort = "Properties"
    names = {**BOUNDS, "min_length": f"min{sort}", "max_length": f"max{sort}", "description": "description"}
    for meta in metas_of(stated):
        schema |= {
            names[name]: getattr(meta, name) for name in names if getattr(meta, name) not in {None, UNSET}
        }
        schema |= meta.extra_json_schema or {}
    stated_examples = examples_of(stated)
    return schema | ({"examples": stated_examples} if stated_examples else {})


ORDER = (
    "description",
    "type",
    "enum",
    "const",
    "minLength",
    "maxLength",
    "pattern",
    "minimum",
    "exclusiveMinimum",
)
LAST = ("default", "examples")


def in_order(schema: Schema) -> Schema:
    """Return a schema with its keywords in the order in which people read them."""
    first = [key for key in ORDER if key in schema]
    inner = [key for key in schema if key not in {*ORDER, *LAST}]
    return {key: schema[key] for key in (*first, *inner, *(key for key in LAST if key in schema))}


def schema_of(name: str) -> Schema:
    """Return the JSON Schema of a document."""
    document = DOCUMENTS[name]
    schemas = Schemas(document, DEFINITIONS if document is Spec else {})
    whole = schemas.of_class(document)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:sweepledger:{name}:1",
        "title": name.capitalize(),
        **whole,
        "properties": {"version": VERSION, **whole["properties"]},
        "$defs": {
            definition: schemas.of_definition(definition)
            for definition in dict.fromkeys((*schemas.definitions, *schemas.shared.values()))
        },
    }


def text(name: str) -> str:
    """Return the file of a document's schema."""
    return json.dumps(schema_of(name), indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    """Write the schemas, and the tables of keys that come from them."""
    for name in DOCUMENTS:
        (FOLDER / f"{name}.schema.json").write_text(text(name), encoding="utf-8")
    key_tables.main()


if __name__ == "__main__":
    main()
