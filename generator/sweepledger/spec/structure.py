"""The structure of a document, checked against its JSON Schema: keys, types and bounds.

Messages are written here. The forms of texts are checked by rules, which say in words what is wrong.
"""

import json
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

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


TYPES: Mapping[str, tuple[str, tuple[type, ...]]] = {
    "object": ("a mapping", (dict,)),
    "array": ("a list", (list,)),
    "string": ("text", (str,)),
    "integer": ("an integer", (int,)),
    "number": ("a number", (int, float)),
    "boolean": ("true or false", (bool,)),
    "null": ("null", (type(None),)),
}
"""The types of the schema: what messages call each, and Python's types."""


SCALAR_TYPES = (str, int, float, bool, type(None))
VALUE_REFERENCE = "#/$defs/value"


def check_structure(document: Document, name: str) -> tuple[tuple[Problem, ...], frozenset[DocumentPath]]:
    """Return the problems of a document by its schema, and the paths that rules must not read."""
    problems: list[Problem] = []
    broken = set(document.unread)
    schema = load_schema(name)
    if conforms(document.data, schema, schema):
        return (), frozenset(broken)
    for error in _errors(document.data, schema):
        path: DocumentPath = tuple(error.absolute_path)
        if any(path[:end] in document.unread for end in range(len(path) + 1)):
            continue
        found = list(_problems(document, path, error, name=name))
        problems += found
        # An object that lacks or exceeds a key is still good for the rules about its other keys.
        if found and error.validator not in {"required", "additionalProperties"}:
            broken.add(path)
    return tuple(dict.fromkeys(problems)), frozenset(broken)


def conforms(value: Any, rules: Any, schema: Any) -> bool:
    """Return whether a value certainly breaks no rule, so that jsonschema need not be imported.

    False means only that jsonschema must decide. Patterns are not checked: they cause no problem here.
    """
    if isinstance(rules, bool):
        return rules
    if not all(key in SCHEMA_WORDS or (key in CHECKS and CHECKS[key](value, rules[key])) for key in rules):
        return False
    return all(conforms(part, part_rules, schema) for part, part_rules in _parts(value, rules, schema))


def _parts(value: Any, rules: Mapping[str, Any], schema: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the parts of a value, keys included, with their rules."""
    if "$ref" in rules:
        target = rules["$ref"].removeprefix("#/").split("/")
        yield value, reduce(lambda part, key: part[key], target, schema)
    if isinstance(value, list):
        for item in value:
            yield item, rules.get("items", True)
    if isinstance(value, dict):
        known, others = rules.get("properties", {}), rules.get("additionalProperties", True)
        for key, item in value.items():
            yield key, rules.get("propertyNames", True)
            yield item, known.get(key, others)


SCHEMA_WORDS = frozenset(
    {"$defs", "$id", "$ref", "$schema", "additionalProperties", "default", "description", "examples"}
    | {"items", "pattern", "properties", "propertyNames", "title"}
)
"""Keywords that describe parts of a value, or check nothing."""


def _has_type(value: Any, types: str | Sequence[str]) -> bool:
    return any(type(value) in TYPES[name][1] for name in ([types] if isinstance(types, str) else types))


def _is_in(value: Any, values: Sequence[Any]) -> bool:
    return any(type(value) is type(known) and value == known for known in values)


LIMITS: Mapping[str, tuple[str, Callable[[Any, Any], bool], str]] = {
    "minimum": ("number", operator.ge, "must be at least {limit}, got {amount}"),
    "maximum": ("number", operator.le, "must be at most {limit}, got {amount}"),
    "exclusiveMinimum": ("number", operator.gt, "must be more than {limit}, got {amount}"),
    "minLength": ("string", operator.ge, "must not be empty"),
    "maxLength": ("string", operator.le, "must have at most {limit} characters, got {amount}"),
    "minItems": ("array", operator.ge, "must have at least {limit} {entries}, got {amount}"),
    "maxItems": ("array", operator.le, "must have at most {limit} entries, got {amount}"),
    "minProperties": ("object", operator.ge, "must have at least {limit} {entries}, got {amount}"),
    "maxProperties": ("object", operator.le, "must have at most {limit} entries, got {amount}"),
}
"""Limits of a type's values, or of their lengths, each with its message."""


def _limit(kind: str, keeps: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    measure: Callable[[Any], Any] = (lambda number: number) if kind == "number" else len
    return lambda value, limit: not _has_type(value, kind) or keeps(measure(value), limit)


CHECKS: Mapping[str, Callable[[Any, Any], bool]] = {
    "type": _has_type,
    "enum": _is_in,
    "const": lambda value, known: _is_in(value, [known]),
    "required": lambda value, names: not isinstance(value, dict) or value.keys() >= set(names),
    **{rule: _limit(kind, keeps) for rule, (kind, keeps, _) in LIMITS.items()},
}
"""The schemas' keywords that check a value itself."""


def _errors(data: Any, rules: dict[str, Any]) -> Iterator[Any]:
    # Late: importing it takes a quarter of the time that a whole validation may take.
    from jsonschema import Draft202012Validator, validators  # noqa: PLC0415

    follow = Draft202012Validator.VALIDATORS["$ref"]

    def reference(validator: Any, target: str, instance: Any, part: Any) -> Iterator[Any]:
        # Most of a large spec are plain values, and none of them can be wrong: a quarter of the time.
        if target != VALUE_REFERENCE or not isinstance(instance, SCALAR_TYPES):
            yield from follow(validator, target, instance, part)

    extend: Any = validators.extend  # it has no types of its own
    yield from extend(Draft202012Validator, {"$ref": reference})(rules).iter_errors(data)


def _problems(document: Document, path: DocumentPath, error: Any, *, name: str) -> Iterator[Problem]:
    match error.validator:
        case "additionalProperties":
            yield from _unknown_keys(document, path, error, name=name)
        case "required":
            for key in sorted(set(error.validator_value) - set(error.instance)):
                yield document.problem((*path, key), "must be given", code="missing-key", at_key=True)
        case "type":
            yield _wrong_type(document, path, error)
        case "enum" if not isinstance(error.instance, str):
            pass  # its type is wrong, which is already reported
        case "enum" | "const":
            yield _wrong_value(document, path, error)
        case "pattern":
            pass
        case _:
            yield document.problem(path, _bound_message(error), code="out-of-range")


def _unknown_keys(document: Document, path: DocumentPath, error: Any, *, name: str) -> Iterator[Problem]:
    known = error.schema["properties"]
    for key in error.instance:
        place = (*path, key)
        if key in known or place in document.unread:
            continue
        message = f"must be a known key, got {safe_repr(key)}"
        hint = foreign_hint(name, path, key) or did_you_mean(key, known)
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


def _wrong_type(document: Document, path: DocumentPath, error: Any) -> Problem:
    wanted = error.validator_value
    names = [wanted] if isinstance(wanted, str) else list(wanted)
    words = [TYPES[name][0] for name in names]
    listed = " or ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]
    hint = None
    if path:
        hint = f"for example {json.dumps(error.schema['examples'][0], ensure_ascii=False)}"
    if instead := INSTEAD.get((*path[-1:], str(error.instance))):
        hint = instead
    elif isinstance(error.instance, str) and {"integer", "number"} & set(names):
        hint = f"quoted values are text; {hint}"
    return document.problem(
        path, f"must be {listed}, got {safe_repr(error.instance)}", code="wrong-type", hint=hint
    )


def _wrong_value(document: Document, path: DocumentPath, error: Any) -> Problem:
    if error.validator == "const":
        message = f"must be {error.validator_value!r}, got {safe_repr(error.instance)}"
        return document.problem(path, message, code="wrong-value")
    message = f"must be one of {quoted_names(error.validator_value)}, got {safe_repr(error.instance)}"
    hint = INSTEAD.get((*path[-1:], str(error.instance)))
    hint = hint or did_you_mean(error.instance, error.validator_value, lists_known=False)
    return document.problem(path, message, code="wrong-value", hint=hint)


def _bound_message(error: Any) -> str:
    limit, value, schema = error.validator_value, error.instance, error.schema
    if error.validator in {"minItems", "maxItems"} and schema.get("minItems") == schema.get("maxItems"):
        return f"must have {limit} entries, such as {json.dumps(schema['examples'][0])}, got {len(value)}"
    amount = safe_repr(value) if isinstance(value, int | float) else len(value)
    entries = "entry" if limit == 1 else "entries"
    return LIMITS[error.validator][2].format(limit=limit, amount=amount, entries=entries)
