"""The structure of a document, checked against its JSON Schema: keys, types and bounds.

Messages are written here. Rules check the forms of texts and explain errors in words.
"""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from sweepledger.model.keys import keys_of
from sweepledger.problems import Problem
from sweepledger.reader import Document, DocumentPath, safe_repr
from sweepledger.spec.schema_keys import example_hint, load_schema
from sweepledger.spec.suggestions import did_you_mean, quoted_names
from sweepledger.structs.metric import Metric

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


@cache
def _validator(name: str) -> Any:
    from jsonschema_rs import Draft202012Validator  # noqa: PLC0415 - only what reads specs or settings needs it

    return Draft202012Validator(load_schema(name))


def check_structure(document: Document, name: str) -> tuple[tuple[Problem, ...], frozenset[DocumentPath]]:
    """Return the problems of a document by its schema, and the paths that rules must not read."""
    problems: list[Problem] = []
    broken = set(document.unread)
    # Most documents are valid, which the faster library finds out before the other is imported.
    if _validator(name).is_valid(document.data):
        return (), frozenset(broken)
    from jsonschema import Draft202012Validator  # noqa: PLC0415

    for error in Draft202012Validator(load_schema(name)).iter_errors(document.data):
        path: DocumentPath = tuple(error.absolute_path)
        if any(path[:end] in document.unread for end in range(len(path) + 1)):
            continue
        found = list(_problems(document, path, error, name))
        problems += found
        # An object that lacks or exceeds a key is still good for the rules about its other keys.
        if found and error.validator not in {"required", "additionalProperties"}:
            broken.add(path)
    return tuple(dict.fromkeys(problems)), frozenset(broken)


def _problems(document: Document, path: DocumentPath, error: Any, name: str) -> Iterator[Problem]:
    """Yield the problems of the value at a path, which breaks a keyword of its schema."""
    limit, value = error.validator_value, error.instance
    match error.validator:
        case "additionalProperties":
            known, keys = error.schema["properties"], [part for part in path if isinstance(part, str)]
            for key in value.keys() - known.keys():
                if (*path, key) not in document.unread:
                    message = f"must be a known key, got {safe_repr(key)}"
                    hint = INSTEAD.get((name, *keys, key)) or did_you_mean(key, known)
                    yield document.problem((*path, key), message, code="unknown-key", hint=hint, at_key=True)
        case "required":
            for key in sorted(set(limit) - set(value)):
                hint = example_hint(error.schema["properties"][key], key)
                yield document.problem(
                    (*path, key), "must be given", code="missing-key", hint=hint, at_key=True
                )
        case "type":
            yield _wrong_type(document, path, error)
        case "const":
            message = f"must be {limit!r}, got {safe_repr(value)}"
            yield document.problem(path, message, code="wrong-value")
        case "enum" if isinstance(value, str):
            message = f"must be one of {quoted_names(limit)}, got {safe_repr(value)}"
            hint = INSTEAD.get((*path[-1:], value)) or did_you_mean(value, limit, lists_known=False)
            yield document.problem(path, message, code="wrong-value", hint=hint)
        case "enum" | "pattern":
            pass  # the type is wrong, which is already reported; rules say in words what form a text must have
        case _:
            yield document.problem(path, _bound_message(error), code="out-of-range")


INSTEAD: Mapping[DocumentPath, str] = {
    **dict.fromkeys(
        (("sweep", "entity"), ("sweep", "project")),
        "this is a key of W&B: convert the file with `sweep import wandb FILE`",
    ),
    **{("sweep", "other_metrics", key): "metric sets it for all" for key in keys_of(Metric)},
    ("sweep", "metrics"): "write the first as metric, and the others as other_metrics",
    ("method", "auto"): (
        "write 'bayes' for up to 256 configurations of up to 12 parameters and 16 at once, "
        "'asha' with a resource, else 'tpe'"
    ),
    ("pack", "auto"): "delete the key: `sweep plan` then prints the block to write",
    ("rounds", "none"): "delete the key: all trials are then requested at once",
}
"""What to write instead of a key of other tools, or of a word that left a choice to the generator, by key and word."""


def _wrong_type(document: Document, path: DocumentPath, error: Any) -> Problem:
    names, value = error.validator_value, error.instance
    *first, last = (TYPES[name] for name in ([names] if isinstance(names, str) else names))
    hint = example_hint(error.schema) if path else None
    if instead := INSTEAD.get((*path[-1:], str(value))):
        hint = instead
    elif isinstance(value, str) and {"an integer", "a number"} & {*first, last}:
        hint = f"quoted values are text; {hint}"
    message = f"must be {' or '.join(filter(None, (', '.join(first), last)))}, got {safe_repr(value)}"
    return document.problem(path, message, code="wrong-type", hint=hint)


def _bound_message(error: Any) -> str:
    keyword, limit, value, schema = error.validator, error.validator_value, error.instance, error.schema
    if keyword in {"minItems", "maxItems"} and schema.get("minItems") == schema.get("maxItems"):
        return f"must have {limit} entries, such as {json.dumps(schema['examples'][0])}, got {len(value)}"
    if keyword == "minLength":
        return "must not be empty"
    bound = {"min": "at least", "max": "at most", "exc": "more than"}[keyword[:3]]
    if keyword.endswith("imum"):
        return f"must be {bound} {limit}, got {safe_repr(value)}"
    unit = "characters" if keyword == "maxLength" else "entry" if limit == 1 else "entries"
    return f"must have {bound} {limit} {unit}, got {len(value)}"
