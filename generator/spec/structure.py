"""Structure by JSON Schema, in our own words: which keys, what kinds, which bounds.

Patterns are left to the rules, which say what is wrong instead of showing a regular expression.
"""

import json
from collections.abc import Iterator
from typing import Any

from generator.problems import Problem
from generator.reader import Document, Path, shown
from generator.spec.later import later_keys, later_values
from generator.spec.nearest import did_you_mean, quoted
from generator.spec.schemas import schema

KINDS = {
    "object": "a mapping",
    "array": "a list",
    "string": "text",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "null": "null",
}


def check(document: Document, name: str) -> tuple[tuple[Problem, ...], frozenset[Path]]:
    """Check a document against a schema; also say at which places nothing more can be said."""
    # Late: importing it takes a quarter of the time that a whole validation may take.
    from jsonschema import Draft202012Validator  # noqa: PLC0415

    problems: list[Problem] = []
    broken = set(document.unread)
    for error in Draft202012Validator(schema(name)).iter_errors(document.data):
        path: Path = tuple(error.absolute_path)
        if any(path[:end] in document.unread for end in range(len(path) + 1)):
            continue
        found = list(_problems(document, path, error, name=name))
        problems += found
        # An object that lacks or exceeds a key is still good for the rules about its other keys.
        if found and error.validator not in {"required", "additionalProperties"}:
            broken.add(path)
    return tuple(dict.fromkeys(problems)), frozenset(broken)


def _problems(document: Document, path: Path, error: Any, *, name: str) -> Iterator[Problem]:
    match error.validator:
        case "additionalProperties":
            yield from _unknown_keys(document, path, error, later=later_keys(name, path))
        case "required":
            for key in sorted(set(error.validator_value) - set(error.instance)):
                yield document.problem((*path, key), "must be given", code="missing-key", at_key=True)
        case "type":
            yield _wrong_kind(document, path, error)
        case "enum" if not isinstance(error.instance, str):
            pass  # its kind is wrong, which is said already
        case "enum" | "const":
            yield _wrong_value(document, path, error)
        case "pattern":
            pass
        case _:
            message = _bound(str(error.validator), error.validator_value, error.instance)
            yield document.problem(path, message, code="out-of-range")


def _unknown_keys(document: Document, path: Path, error: Any, *, later: frozenset[str]) -> Iterator[Problem]:
    known = error.schema["properties"]
    for key in error.instance:
        place = (*path, key)
        if key in known or place in document.unread:
            continue
        if key in later:
            yield document.problem(
                place, f"the key {key!r} is not supported yet", code="not-supported-yet", at_key=True
            )
        else:
            message = f"must be a known key, got {shown(key)}"
            hint = did_you_mean(key, known)
            yield document.problem(place, message, code="unknown-key", hint=hint, at_key=True)


def _wrong_kind(document: Document, path: Path, error: Any) -> Problem:
    wanted = error.validator_value
    names = [wanted] if isinstance(wanted, str) else list(wanted)
    words = [KINDS[name] for name in names]
    listed = " or ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]
    hint = None
    if path:
        hint = f"for example {json.dumps(error.schema['examples'][0], ensure_ascii=False)}"
    if isinstance(error.instance, str) and {"integer", "number"} & set(names):
        hint = f"quoted values are text; {hint}"
    return document.problem(
        path, f"must be {listed}, got {shown(error.instance)}", code="wrong-type", hint=hint
    )


def _wrong_value(document: Document, path: Path, error: Any) -> Problem:
    if error.validator == "const":
        message = f"must be {error.validator_value!r}, got {shown(error.instance)}"
        return document.problem(path, message, code="wrong-value")
    if error.instance in later_values(path):
        message = f"the value {error.instance!r} is not supported yet"
        hint = f"supported: {quoted(error.validator_value)}"
        return document.problem(path, message, code="not-supported-yet", hint=hint)
    message = f"must be one of {quoted(error.validator_value)}, got {shown(error.instance)}"
    nearest = did_you_mean(error.instance, error.validator_value)
    return document.problem(path, message, code="wrong-value", hint=nearest)


def _bound(rule: str, limit: Any, value: Any) -> str:
    match rule:
        case "minimum":
            return f"must be at least {limit}, got {shown(value)}"
        case "maximum":
            return f"must be at most {limit}, got {shown(value)}"
        case "minItems" | "minProperties":
            return f"must have at least {limit} entry, got {len(value)}"
        case "maxItems" | "maxProperties":
            return f"must have at most {limit} entries, got {len(value)}"
        case "maxLength":
            return f"must have at most {limit} characters, got {len(value)}"
        case _:
            raise AssertionError(f"the schema uses {rule}, for which there are no words")
