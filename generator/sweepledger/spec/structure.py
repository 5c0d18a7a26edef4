"""The structure of a document, checked against its JSON Schema: keys, types and bounds.

Messages are written here. The forms of texts are checked by rules, which say in words what is wrong.
"""

import json
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
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


class Breach(NamedTuple):
    """A keyword of a schema that a part of a document breaks."""

    path: DocumentPath
    value: Any
    keyword: str
    rules: Mapping[str, Any]
    """The schema of the part."""

    @property
    def limit(self) -> Any:
        """What the keyword asks for."""
        return self.rules[self.keyword]


def check_structure(document: Document, name: str) -> tuple[tuple[Problem, ...], frozenset[DocumentPath]]:
    """Return the problems of a document by its schema, and the paths that rules must not read."""
    problems: list[Problem] = []
    broken = set(document.unread)
    schema = load_schema(name)
    for breach in breaches((), document.data, schema, schema):
        path = breach.path
        if any(path[:end] in document.unread for end in range(len(path) + 1)):
            continue
        of_breach = list(_problems(document, breach, name=name))
        problems += of_breach
        # An object that lacks or exceeds a key is still good for the rules about its other keys.
        if of_breach and breach.keyword not in {"required", "additionalProperties"}:
            broken.add(path)
    return tuple(dict.fromkeys(problems)), frozenset(broken)


def breaches(path: DocumentPath, value: Any, rules: Any, schema: Any) -> Iterator[Breach]:
    """Yield what a value and its parts break, as JSON Schema says, but for the forms of texts and of keys."""
    if isinstance(rules, bool):
        return  # an unknown key, which its mapping breaks
    yield from (
        Breach(path, value, key, rules) for key in rules if key in CHECKS and not CHECKS[key](value, rules)
    )
    for place, part, part_rules in _parts(path, value, rules, schema):
        yield from breaches(place, part, part_rules, schema)


def _parts(
    path: DocumentPath, value: Any, rules: Mapping[str, Any], schema: Any
) -> Iterator[tuple[DocumentPath, Any, Any]]:
    """Yield the parts of a value: the path of each, the part, and its rules."""
    if "$ref" in rules:
        target = rules["$ref"].removeprefix("#/").split("/")
        yield path, value, reduce(lambda part, key: part[key], target, schema)
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield (*path, number), item, rules.get("items", True)
    if isinstance(value, dict):
        known, others = rules.get("properties", {}), rules.get("additionalProperties", True)
        for key, item in value.items():
            yield (*path, key), item, known.get(key, others)


def _has_type(value: Any, rules: Mapping[str, Any]) -> bool:
    types = rules["type"]
    names = [types] if isinstance(types, str) else types
    return any(type(value) in TYPES[name][1] for name in names) or (
        "integer" in names and isinstance(value, float) and value.is_integer()
    )


def _is_among(value: Any, values: Sequence[Any]) -> bool:
    return any(value == known and isinstance(value, bool) is isinstance(known, bool) for known in values)


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


Check = Callable[[Any, Mapping[str, Any]], bool]


def _limit(keyword: str, kind: str, keeps: Callable[[Any, Any], bool]) -> Check:
    types = TYPES[kind][1]
    measure: Callable[[Any], Any] = (lambda number: number) if kind == "number" else len
    return lambda value, rules: type(value) not in types or keeps(measure(value), rules[keyword])


CHECKS: Mapping[str, Check] = {
    "type": _has_type,
    "enum": lambda value, rules: _is_among(value, rules["enum"]),
    "const": lambda value, rules: _is_among(value, [rules["const"]]),
    "required": lambda value, rules: not isinstance(value, dict) or value.keys() >= {*rules["required"]},
    "additionalProperties": lambda value, rules: (
        rules["additionalProperties"] is not False
        or not isinstance(value, dict)
        or value.keys() <= rules.get("properties", {}).keys()
    ),
    **{rule: _limit(rule, kind, keeps) for rule, (kind, keeps, _) in LIMITS.items()},
}
"""The schemas' keywords that check a value itself."""


def _problems(document: Document, breach: Breach, *, name: str) -> Iterator[Problem]:
    match breach.keyword:
        case "additionalProperties":
            yield from _unknown_keys(document, breach, name=name)
        case "required":
            for key in sorted(set(breach.limit) - set(breach.value)):
                yield document.problem((*breach.path, key), "must be given", code="missing-key", at_key=True)
        case "type":
            yield _wrong_type(document, breach)
        case "enum" if not isinstance(breach.value, str):
            pass  # its type is wrong, which is already reported
        case "enum" | "const":
            yield _wrong_value(document, breach)
        case _:
            yield document.problem(breach.path, _bound_message(breach), code="out-of-range")


def _unknown_keys(document: Document, breach: Breach, *, name: str) -> Iterator[Problem]:
    path, known = breach.path, breach.rules["properties"]
    for key in breach.value:
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


def _wrong_type(document: Document, breach: Breach) -> Problem:
    path, value = breach.path, breach.value
    names = [breach.limit] if isinstance(breach.limit, str) else list(breach.limit)
    words = [TYPES[name][0] for name in names]
    listed = " or ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]
    hint = None
    if path:
        hint = f"for example {json.dumps(breach.rules['examples'][0], ensure_ascii=False)}"
    if instead := INSTEAD.get((*path[-1:], str(value))):
        hint = instead
    elif isinstance(value, str) and {"integer", "number"} & set(names):
        hint = f"quoted values are text; {hint}"
    return document.problem(path, f"must be {listed}, got {safe_repr(value)}", code="wrong-type", hint=hint)


def _wrong_value(document: Document, breach: Breach) -> Problem:
    path, value, limit = breach.path, breach.value, breach.limit
    if breach.keyword == "const":
        message = f"must be {limit!r}, got {safe_repr(value)}"
        return document.problem(path, message, code="wrong-value")
    message = f"must be one of {quoted_names(limit)}, got {safe_repr(value)}"
    hint = INSTEAD.get((*path[-1:], str(value))) or did_you_mean(value, limit, lists_known=False)
    return document.problem(path, message, code="wrong-value", hint=hint)


def _bound_message(breach: Breach) -> str:
    limit, value, rules = breach.limit, breach.value, breach.rules
    if breach.keyword in {"minItems", "maxItems"} and rules.get("minItems") == rules.get("maxItems"):
        return f"must have {limit} entries, such as {json.dumps(rules['examples'][0])}, got {len(value)}"
    amount = safe_repr(value) if isinstance(value, int | float) else len(value)
    entries = "entry" if limit == 1 else "entries"
    return LIMITS[breach.keyword][2].format(limit=limit, amount=amount, entries=entries)
