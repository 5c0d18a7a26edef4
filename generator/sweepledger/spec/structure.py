"""The structure of a document, checked against its JSON Schema: keys, types and bounds.

Messages are written here. The forms of texts are checked by rules, which say in words what is wrong.
"""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from sweepledger.problems import Problem
from sweepledger.reader import Document, DocumentPath, safe_repr
from sweepledger.spec.schemas import load_schema
from sweepledger.spec.suggestions import did_you_mean, quoted_names

FOREIGN_KEYS = frozenset({"entity", "project"})
"""Keys that only W&B's sweep files have."""


def foreign_hint(schema: str, path: DocumentPath, key: str) -> str | None:
    """Return how to convert another tool's file with this key; None for other keys."""
    match (schema, *path, key):
        case ("sweep", _) if key in FOREIGN_KEYS:
            return "this is a key of W&B: convert the file with `sweep import wandb FILE`"
        case ("sweep", "metrics"):
            return "write the first as metric, and the others as other_metrics"
        case ("sweep", "other_metrics", _, _) if (
            key in load_schema(schema)["properties"]["metric"]["properties"]
        ):
            return "metric sets it for all"
        case _:
            return None


TYPES = {
    "object": "a mapping",
    "array": "a list",
    "string": "text",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}
"""What messages call the types of the schema."""

LIMITS = {
    "minimum": "must be at least {limit}, got {amount}",
    "maximum": "must be at most {limit}, got {amount}",
    "exclusiveMinimum": "must be more than {limit}, got {amount}",
    "minLength": "must not be empty",
    "maxLength": "must have at most {limit} characters, got {amount}",
    "minItems": "must have at least {limit} {entries}, got {amount}",
    "maxItems": "must have at most {limit} entries, got {amount}",
    "minProperties": "must have at least {limit} {entries}, got {amount}",
    "maxProperties": "must have at most {limit} entries, got {amount}",
}
"""Messages of the keywords that limit a value, or its length."""


class Fault(NamedTuple):
    """A keyword of a schema that a value breaks."""

    path: DocumentPath
    keyword: str
    rules: Mapping[str, Any]
    """The schema of the value."""
    value: Any

    @property
    def limit(self) -> Any:
        """What the keyword says."""
        return self.rules[self.keyword]


def _errors(data: Any, name: str) -> Iterator[Any]:
    # Most documents are valid, which the faster library finds out before the other is imported.
    if _validator(name).is_valid(data):
        return
    from jsonschema import Draft202012Validator  # noqa: PLC0415

    yield from Draft202012Validator(load_schema(name)).iter_errors(data)


@cache
def _validator(name: str) -> Any:
    from jsonschema_rs import Draft202012Validator  # noqa: PLC0415 - only what reads specs or settings needs it

    return Draft202012Validator(load_schema(name))


def check_structure(document: Document, name: str) -> tuple[tuple[Problem, ...], frozenset[DocumentPath]]:
    """Return the problems of a document by its schema, and the paths that rules must not read."""
    problems: list[Problem] = []
    broken = set(document.unread)
    for error in _errors(document.data, name):
        path: DocumentPath = tuple(error.absolute_path)
        if any(path[:end] in document.unread for end in range(len(path) + 1)):
            continue
        fault = Fault(path, error.validator, error.schema, error.instance)
        found = list(_problems(document, fault, name))
        problems += found
        # An object that lacks or exceeds a key is still good for the rules about its other keys.
        if found and fault.keyword not in {"required", "additionalProperties"}:
            broken.add(path)
    return tuple(dict.fromkeys(problems)), frozenset(broken)


def _problems(document: Document, fault: Fault, name: str) -> Iterator[Problem]:
    match fault.keyword:
        case "additionalProperties":
            yield from _unknown_keys(document, fault, name)
        case "required":
            for key in sorted(set(fault.limit) - set(fault.value)):
                yield document.problem((*fault.path, key), "must be given", code="missing-key", at_key=True)
        case "type":
            yield _wrong_type(document, fault)
        case "enum" if not isinstance(fault.value, str):
            pass  # its type is wrong, which is already reported
        case "enum" | "const":
            yield _wrong_value(document, fault)
        case "pattern":
            pass
        case _:
            yield document.problem(fault.path, _bound_message(fault), code="out-of-range")


def _unknown_keys(document: Document, fault: Fault, name: str) -> Iterator[Problem]:
    known = fault.rules["properties"]
    for key in fault.value:
        place = (*fault.path, key)
        if key in known or place in document.unread:
            continue
        message = f"must be a known key, got {safe_repr(key)}"
        hint = foreign_hint(name, fault.path, key) or did_you_mean(key, known)
        yield document.problem(place, message, code="unknown-key", hint=hint, at_key=True)


INSTEAD: Mapping[DocumentPath, str] = {
    ("method", "auto"): (
        "write 'bayes' for up to 256 configurations of up to 12 parameters and 16 at once, "
        "'asha' with a resource, else 'tpe'"
    ),
    ("pack", "auto"): "delete the key: `sweep plan` then prints the block to write",
    ("rounds", "none"): "delete the key: all trials are then requested at once",
}
"""What to write instead of a word that left a choice to the generator, by key and word."""


def _wrong_type(document: Document, fault: Fault) -> Problem:
    path, value = fault.path, fault.value
    names = [fault.limit] if isinstance(fault.limit, str) else fault.limit
    words = [TYPES[name] for name in names]
    listed = " or ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]
    hint = None
    if path:
        hint = f"for example {json.dumps(fault.rules['examples'][0], ensure_ascii=False)}"
    if instead := INSTEAD.get((*path[-1:], str(value))):
        hint = instead
    elif isinstance(value, str) and {"integer", "number"} & set(names):
        hint = f"quoted values are text; {hint}"
    return document.problem(path, f"must be {listed}, got {safe_repr(value)}", code="wrong-type", hint=hint)


def _wrong_value(document: Document, fault: Fault) -> Problem:
    path, value = fault.path, fault.value
    if fault.keyword == "const":
        message = f"must be {fault.limit!r}, got {safe_repr(value)}"
        return document.problem(path, message, code="wrong-value")
    message = f"must be one of {quoted_names(fault.limit)}, got {safe_repr(value)}"
    hint = INSTEAD.get((*path[-1:], str(value)))
    hint = hint or did_you_mean(value, fault.limit, lists_known=False)
    return document.problem(path, message, code="wrong-value", hint=hint)


def _bound_message(fault: Fault) -> str:
    limit, value, schema = fault.limit, fault.value, fault.rules
    if fault.keyword in {"minItems", "maxItems"} and schema.get("minItems") == schema.get("maxItems"):
        return f"must have {limit} entries, such as {json.dumps(schema['examples'][0])}, got {len(value)}"
    amount = safe_repr(value) if isinstance(value, int | float) else len(value)
    entries = "entry" if limit == 1 else "entries"
    return LIMITS[fault.keyword].format(limit=limit, amount=amount, entries=entries)
