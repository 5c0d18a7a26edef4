"""The structure of a document, checked against its JSON Schema: keys, types and bounds.

Messages are written here. Patterns come last: where a rule says what is wrong, nobody needs a regular expression.
"""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

from sweepledger.problems import Problem
from sweepledger.reader import Document, DocumentPath, safe_repr
from sweepledger.spec.schemas import load_schema
from sweepledger.spec.suggestions import did_you_mean, quoted_names

RUN_KEYS = frozenset({"artifacts"})

FOREIGN_KEYS = frozenset({"entity", "project"})
"""Keys that only W&B's sweep files have."""


def planned_keys(schema: str, path: DocumentPath) -> frozenset[str]:
    """Return the keys that a mapping at this path will support in a later version."""
    match (schema, *path):
        case ("sweep", "run"):
            return RUN_KEYS
        case _:
            return frozenset()


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


TYPE_NAMES = {
    "object": "a mapping",
    "array": "a list",
    "string": "text",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}


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
    parts: list[tuple[Any, Any]] = []
    if "$ref" in rules:
        path = rules["$ref"].removeprefix("#/").split("/")
        parts.append((value, reduce(lambda part, key: part[key], path, schema)))
    if isinstance(value, list):
        parts += ((item, rules.get("items", True)) for item in value)
    if isinstance(value, dict):
        known, others = rules.get("properties", {}), rules.get("additionalProperties", True)
        parts += ((name, rules.get("propertyNames", True)) for name in value)
        parts += ((item, known.get(name, others)) for name, item in value.items())
    return all(conforms(part, part_rules, schema) for part, part_rules in parts)


def check_forms(document: Document, name: str, reported: Collection[str]) -> Iterator[Problem]:
    """Yield a problem for each text that breaks a pattern of the schema, unless its path is reported already."""
    schema = load_schema(name)
    for path, text, rules, is_key in _texts((), document.data, schema, schema):
        if re.fullmatch(rules["pattern"], text) is None:
            form = f"for example {json.dumps(rules['examples'][0])}" if "examples" in rules else None
            message = f"must match {rules['pattern']}, got {safe_repr(text)}"
            problem = document.problem(path, message, code="wrong-form", hint=form, at_key=is_key)
            if problem.path not in reported:
                yield problem


def _texts(
    path: DocumentPath, value: Any, rules: Any, schema: Any
) -> Iterator[tuple[DocumentPath, str, Mapping[str, Any], bool]]:
    """Yield each text that must have a form, with its rules, and whether it is a key."""
    if not isinstance(rules, dict):
        return
    if "$ref" in rules:
        target = rules["$ref"].removeprefix("#/").split("/")
        yield from _texts(path, value, reduce(lambda part, key: part[key], target, schema), schema)
    if isinstance(value, str) and "pattern" in rules:
        yield path, value, rules, False
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from _texts((*path, number), item, rules.get("items"), schema)
    if isinstance(value, dict):
        known, others = rules.get("properties", {}), rules.get("additionalProperties")
        names = rules.get("propertyNames", {})
        for key, item in value.items():
            if "pattern" in names and isinstance(key, str):
                yield (*path, key), key, names, True
            yield from _texts((*path, key), item, known.get(key, others), schema)


SCHEMA_WORDS = frozenset(
    {"$defs", "$id", "$ref", "$schema", "additionalProperties", "default", "description", "examples"}
    | {"items", "pattern", "properties", "propertyNames", "title"}
)
"""Keywords that describe parts of a value, or check nothing."""


def _has_type(value: Any, types: str | Sequence[str]) -> bool:
    return any(type(value) in PYTHON_TYPES[name] for name in ([types] if isinstance(types, str) else types))


PYTHON_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def _is_in(value: Any, values: Sequence[Any]) -> bool:
    return any(type(value) is type(known) and value == known for known in values)


def _is_number(value: Any) -> bool:
    return type(value) in PYTHON_TYPES["number"]


CHECKS: Mapping[str, Callable[[Any, Any], bool]] = {
    "type": _has_type,
    "enum": _is_in,
    "const": lambda value, known: _is_in(value, [known]),
    "required": lambda value, names: not isinstance(value, dict) or value.keys() >= set(names),
    "minimum": lambda value, limit: not _is_number(value) or value >= limit,
    "maximum": lambda value, limit: not _is_number(value) or value <= limit,
    "exclusiveMinimum": lambda value, limit: not _is_number(value) or value > limit,
    "minLength": lambda value, limit: not isinstance(value, str) or len(value) >= limit,
    "maxLength": lambda value, limit: not isinstance(value, str) or len(value) <= limit,
    "minItems": lambda value, limit: not isinstance(value, list) or len(value) >= limit,
    "maxItems": lambda value, limit: not isinstance(value, list) or len(value) <= limit,
    "minProperties": lambda value, limit: not isinstance(value, dict) or len(value) >= limit,
    "maxProperties": lambda value, limit: not isinstance(value, dict) or len(value) <= limit,
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
            message = _exact_count_message(error) or _bound_message(
                str(error.validator), error.validator_value, error.instance
            )
            yield document.problem(path, message, code="out-of-range")


def _unknown_keys(document: Document, path: DocumentPath, error: Any, *, name: str) -> Iterator[Problem]:
    known, later = error.schema["properties"], planned_keys(name, path)
    for key in error.instance:
        place = (*path, key)
        if key in known or place in document.unread:
            continue
        if key in later:
            message, code, hint = f"the key {key!r} is not supported yet", "not-supported-yet", None
        else:
            message, code = f"must be a known key, got {safe_repr(key)}", "unknown-key"
            hint = foreign_hint(name, path, key) or did_you_mean(key, known)
        yield document.problem(place, message, code=code, hint=hint, at_key=True)


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
    words = [TYPE_NAMES[name] for name in names]
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


def _exact_count_message(error: Any) -> str | None:
    count = error.schema.get("minItems")
    if error.validator not in {"minItems", "maxItems"} or count != error.schema.get("maxItems"):
        return None
    example = json.dumps(error.schema["examples"][0])
    return f"must have {count} entries, such as {example}, got {len(error.instance)}"


def _bound_message(rule: str, limit: Any, value: Any) -> str:  # noqa: PLR0911 - a sentence a rule
    match rule:
        case "minimum":
            return f"must be at least {limit}, got {safe_repr(value)}"
        case "exclusiveMinimum":
            return f"must be more than {limit}, got {safe_repr(value)}"
        case "maximum":
            return f"must be at most {limit}, got {safe_repr(value)}"
        case "minItems" | "minProperties":
            return f"must have at least {limit} {'entry' if limit == 1 else 'entries'}, got {len(value)}"
        case "maxItems" | "maxProperties":
            return f"must have at most {limit} entries, got {len(value)}"
        case "minLength":
            return "must not be empty"
        case "maxLength":
            return f"must have at most {limit} characters, got {len(value)}"
        case _:
            raise AssertionError(f"the schema uses {rule}, which has no message")
