"""Checks objects against the schemas of the oldest and the newest Kubernetes, and of releases of custom kinds.

The files in schemas/ are written by tools/schemas.py.
"""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweepledger.contract.rendered_objects import Finding
from sweepledger.reader.safe_repr import safe_repr
from sweepledger.structs import kubernetes
from sweepledger.structs.kubernetes import NEWEST_VERSION, OLDEST_VERSION

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator, ValidationError

FOLDER = Path(__file__).parent / "schemas"
CORE = tuple(
    f"kubernetes-{kubernetes.format_version(version)}.json" for version in (OLDEST_VERSION, NEWEST_VERSION)
)
CUSTOM = "custom.json"
DIALECT = "https://json-schema.org/draft/2020-12/schema"

MALFORMED = "manifest-malformed"

TYPE_NAMES = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "null": "null",
    "number": "a number",
    "object": "a mapping",
    "string": "a text",
}


def findings(api: str, kind: str, data: Any, *, since: tuple[int, int] = OLDEST_VERSION) -> Iterator[Finding]:
    """Yield violations of a known kind's schemas: of any Kubernetes from `since` on, or of every custom release."""
    name = f"{api} {kind}"
    is_custom = name in _file(CUSTOM)["kinds"]
    asked = [check for check in _checks(name) if is_custom or kubernetes.parse_version(check[0]) >= since]
    failed = [check for check in asked if not check[1].is_valid(data)]
    if not failed or (is_custom and len(failed) < len(_checks(name))):
        return
    release, check = failed[-1]
    product = release if is_custom else f"Kubernetes {release}"
    yield from _schema_findings(check, data, product)


def _schema_findings(check: "Draft202012Validator", data: Any, product: str) -> Iterator[Finding]:
    from jsonschema_rs import ValidationErrorKind  # noqa: PLC0415 - most commands check no manifest

    for error in check.iter_errors(data):
        path = tuple(error.instance_path)
        match error.kind:
            case ValidationErrorKind.AdditionalProperties(unexpected):
                for key in unexpected:
                    message = f"must be absent: {product} has no such field"
                    yield Finding((*path, key), message, MALFORMED, is_surplus=True)
            case ValidationErrorKind.Required(key):
                yield Finding(path, f"must have {key!r}", MALFORMED)
            case kind:
                is_bare = isinstance(error.instance, bool | int | float)
                is_text = is_bare and path and path[-1] not in {"replicas", "parallelism"}
                hint = "put it in quotes if it is a text" if is_text else None
                yield Finding(path, _message(kind, error), MALFORMED, hint)


def _message(kind: Any, error: "ValidationError") -> str:
    from jsonschema_rs import ValidationErrorKind  # noqa: PLC0415

    value = safe_repr(error.instance)
    match kind:
        case ValidationErrorKind.Type(types):
            return f"must be {' or '.join(TYPE_NAMES[each] for each in types)}, got {value}"
        case ValidationErrorKind.Enum(options):
            return f"must be one of {', '.join(map(repr, options))}, got {value}"
        case ValidationErrorKind.Pattern(pattern):
            return f"must match {pattern}, got {value}"
        case _:
            limit = next(iter(kind.as_dict().values()), None)
            return f"breaks {kind.name} {limit}, got {value}"


@cache
def _checks(name: str) -> tuple[tuple[str, "Draft202012Validator"], ...]:
    from jsonschema_rs import Draft202012Validator  # noqa: PLC0415

    checks = []
    for file in (*CORE, CUSTOM):
        definitions = (
            _file(file)["$defs"] if file != CUSTOM else _file(CORE[0])["$defs"] | _file(CUSTOM)["$defs"]
        )
        for release, definition in _file(file)["kinds"].get(name, ()):
            schema = {"$schema": DIALECT, "$ref": f"#/$defs/{definition}", "$defs": definitions}
            checks.append((release, Draft202012Validator(schema, validate_formats=False)))
    return tuple(checks)


@cache
def _file(name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((FOLDER / name).read_bytes())
    return read
