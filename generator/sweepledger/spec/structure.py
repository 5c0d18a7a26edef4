"""Structure by JSON Schema, in our own words: which keys, what kinds, which bounds.

Patterns are left to the rules, which say what is wrong instead of showing a regular expression.
"""

import json
from collections.abc import Iterator
from typing import Any

from generator.problems import Problem
from generator.reader import Document, Path, shown
from generator.spec.later import foreign_hint, later_keys
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


PLAIN_KINDS = (str, int, float, bool, type(None))
VALUE = "#/$defs/value"


def check(document: Document, name: str) -> tuple[tuple[Problem, ...], frozenset[Path]]:
    """Check a document against a schema; also say at which places nothing more can be said."""
    problems: list[Problem] = []
    broken = set(document.unread)
    for error in _errors(document.data, schema(name)):
        path: Path = tuple(error.absolute_path)
        if any(path[:end] in document.unread for end in range(len(path) + 1)):
            continue
        found = list(_problems(document, path, error, name=name))
        problems += found
        # An object that lacks or exceeds a key is still good for the rules about its other keys.
        if found and error.validator not in {"required", "additionalProperties"}:
            broken.add(path)
    return tuple(dict.fromkeys(problems)), frozenset(broken)


def _errors(data: Any, rules: dict[str, Any]) -> Iterator[Any]:
    # Late: importing it takes a quarter of the time that a whole validation may take.
    from jsonschema import Draft202012Validator, validators  # noqa: PLC0415

    follow = Draft202012Validator.VALIDATORS["$ref"]

    def reference(validator: Any, target: str, instance: Any, part: Any) -> Iterator[Any]:
        # Most of a large spec are plain values, and none of them can be wrong: a quarter of the time.
        if target != VALUE or not isinstance(instance, PLAIN_KINDS):
            yield from follow(validator, target, instance, part)

    extend: Any = validators.extend  # it has no types of its own
    yield from extend(Draft202012Validator, {"$ref": reference})(rules).iter_errors(data)


def _problems(document: Document, path: Path, error: Any, *, name: str) -> Iterator[Problem]:
    match error.validator:
        case "additionalProperties":
            yield from _unknown_keys(document, path, error, name=name)
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
            message = _exactly(error) or _bound(str(error.validator), error.validator_value, error.instance)
            yield document.problem(path, message, code="out-of-range")


def _unknown_keys(document: Document, path: Path, error: Any, *, name: str) -> Iterator[Problem]:
    known, later = error.schema["properties"], later_keys(name, path)
    for key in error.instance:
        place = (*path, key)
        if key in known or place in document.unread:
            continue
        if key in later:
            message, code, hint = f"the key {key!r} is not supported yet", "not-supported-yet", None
        else:
            message, code = f"must be a known key, got {shown(key)}", "unknown-key"
            hint = foreign_hint(name, path, key) or did_you_mean(key, known)
        yield document.problem(place, message, code=code, hint=hint, at_key=True)


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
    message = f"must be one of {quoted(error.validator_value)}, got {shown(error.instance)}"
    nearest = did_you_mean(error.instance, error.validator_value)
    return document.problem(path, message, code="wrong-value", hint=nearest)


def _exactly(error: Any) -> str | None:
    count = error.schema.get("minItems")
    if error.validator not in {"minItems", "maxItems"} or count != error.schema.get("maxItems"):
        return None
    example = json.dumps(error.schema["examples"][0])
    return f"must have {count} entries, such as {example}, got {len(error.instance)}"


def _bound(rule: str, limit: Any, value: Any) -> str:  # noqa: PLR0911 - a sentence a rule
    match rule:
        case "minimum":
            return f"must be at least {limit}, got {shown(value)}"
        case "exclusiveMinimum":
            return f"must be more than {limit}, got {shown(value)}"
        case "maximum":
            return f"must be at most {limit}, got {shown(value)}"
        case "minItems" | "minProperties":
            return f"must have at least {limit} {'entry' if limit == 1 else 'entries'}, got {len(value)}"
        case "maxItems" | "maxProperties":
            return f"must have at most {limit} entries, got {len(value)}"
        case "minLength":
            return "must not be empty"
        case "maxLength":
            return f"must have at most {limit} characters, got {len(value)}"
        case _:
            raise AssertionError(f"the schema uses {rule}, for which there are no words")
