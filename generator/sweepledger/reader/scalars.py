"""The meaning of plain scalars. A scalar whose meaning depends on the YAML reader is rejected.

The types of YAML 1.1 are PyYAML's, with the `y` and `n` of the standard; those of YAML 1.2 are its core schema.
"""

import json
import math
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from sweepledger.reader.safe_repr import truncate
from sweepledger.structs.values import LARGEST_EXACT_INTEGER, Scalar

TEXT = "text"
MAX_CONVERTED_LENGTH = 100
"""In characters. Python refuses to convert more than 4,300 digits, and no message shows as many."""

BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
NULLS = frozenset({"null", "Null", "NULL"})
INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)", re.ASCII)
EXPONENT = r"[eE][-+]?[0-9]+"
FLOAT = re.compile(
    rf"-?(?:0|[1-9][0-9]*)(?:\.[0-9]*(?:{EXPONENT})?|{EXPONENT})|\.[0-9]+(?:{EXPONENT})?", re.ASCII
)
BASED = re.compile(r"[-+]?0[xXoObB][0-9a-fA-F_]+", re.ASCII)
NOT_FINITE = re.compile(r"[-+]?(?:\.?inf|infinity)|\.?nan", re.ASCII | re.IGNORECASE)

Y_AND_N = {"y": "true", "Y": "true", "n": "false", "N": "false"}
"""Booleans of the standard of YAML 1.1 that PyYAML reads as texts."""
YAML_1_1_KINDS = {"merge": "a merge key", "value": "a default value", "timestamp": "a date"}
YAML_1_2_FLOAT = re.compile(rf"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:{EXPONENT})?", re.ASCII)
YAML_1_2_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", re.ASCII)

OPENING, CLOSING = "([{", ")]}"


def rejoin_split(items: Iterable[object], quoted: Collection[int] = ()) -> tuple[str, ...] | None:
    """Return the texts that commas split, such as `(3, 5)` for `(3` and `5)`; None if every bracket is closed.

    Brackets in items whose index is in `quoted` do not count.
    """
    joined: list[str] = []
    depth = 0
    was_divided = False
    for place, item in enumerate(items):
        text = item if isinstance(item, str) else json.dumps(item)
        was_divided = was_divided or depth > 0
        if depth > 0:
            joined[-1] += f", {text}"
        else:
            joined.append(text)
        if isinstance(item, str) and place not in quoted:
            depth += sum((letter in OPENING) - (letter in CLOSING) for letter in text)
    return tuple(joined) if was_divided or depth else None


def describe_split(joined: Iterable[str]) -> str:
    """Return how to write the values that commas split."""
    texts = tuple(joined)
    tuples = [TUPLE.fullmatch(text) for text in texts]
    lists = ", ".join(f"[{match[1].strip(', ')}]" for match in tuples if match)
    if all(tuples):
        return f"YAML has no tuples: write lists as [{lists}], or each text in quotes"
    return f"write each text in quotes: [{', '.join(json.dumps(text, ensure_ascii=False) for text in texts)}]"


TUPLE = re.compile(r"[(\[]([^()\[\]{}]*)[)\]]")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a plain scalar is not accepted, and what to write instead."""

    message: str
    hint: str
    code: str


def resolve_scalar(text: str) -> Scalar | Refusal:
    """Return the meaning of a plain scalar, or why it is rejected."""
    if text in BOOLEANS:
        return BOOLEANS[text]
    if text in NULLS:
        return None
    if INTEGER.fullmatch(text):
        # Compared by length first: Python raises ValueError on texts of more than 4,300 digits.
        if len(text) <= len(str(-LARGEST_EXACT_INTEGER)) and abs(int(text)) <= LARGEST_EXACT_INTEGER:
            return int(text)
        return Refusal(
            f"must be an integer from -2^53 to 2^53, got {truncate(text)}",
            "readers that use doubles lose digits of larger ones; in quotes it is text",
            code="number-range",
        )
    if FLOAT.fullmatch(text):
        return _float(text)
    return _refusal(text) or text


def _float(text: str) -> float | Refusal:
    value = float(text)
    if math.isinf(value):
        return _not_finite(text)
    if value == 0 and re.search(r"[1-9]", re.split(r"[eE]", text)[0]):
        return Refusal(
            f"must not be so small that it becomes 0, got {truncate(text)}",
            "write 0, or a number of at least 5e-324",
            code="number-range",
        )
    return value + 0.0  # makes -0.0 0.0: two names for one number


def _not_finite(text: str) -> Refusal:
    return Refusal(
        f"must be a finite number, got {truncate(text)}", "in quotes it is text", code="not-finite"
    )


def _refusal(text: str) -> Refusal | None:
    if text in {"", "~"}:
        return Refusal(
            f"must have a value, got {text or 'nothing'}",
            'write null, or "" for empty text',
            code="empty-value",
        )
    if NOT_FINITE.fullmatch(text):
        return _not_finite(text)
    old, new = _yaml_1_1_reading(text), TEXT
    if YAML_1_2_INTEGER.fullmatch(text):
        base = 0 if text.startswith(("0o", "0x")) else 10
        new = "a very long number" if len(text) > MAX_CONVERTED_LENGTH else str(int(text, base))
    elif YAML_1_2_FLOAT.fullmatch(text):
        new = repr(float(text))
    if old != new:
        readings = f"got {truncate(text)}: YAML 1.1 reads {old}, YAML 1.2 reads {new}"
        return Refusal(
            f"must mean the same to every YAML reader, {readings}",
            _instead(text, old, new),
            code="ambiguous-scalar",
        )
    if old != TEXT or BASED.fullmatch(text):
        return Refusal(
            f"must be a plain decimal number, got {truncate(text)}",
            _instead(text, old, new),
            code="number-form",
        )
    return None


def _instead(text: str, *readings: str) -> str:
    values = [word for word in dict.fromkeys(readings) if word != TEXT and not word.startswith("a ")]
    quoted = f'"{truncate(text)}" for the text'
    return f"write {', '.join(values)} or {quoted}" if values else f"write {quoted}"


def _yaml_1_1_reading(text: str) -> str:
    # Most of those who evaluate expressions read no YAML.
    import yaml  # noqa: PLC0415

    if text in Y_AND_N:
        return Y_AND_N[text]
    resolver: Any = yaml.resolver.Resolver()
    kind = str(resolver.resolve(yaml.ScalarNode, text, (True, False))).rpartition(":")[2]
    if kind in YAML_1_1_KINDS:
        return YAML_1_1_KINDS[kind]
    if kind == "str":
        return TEXT
    if len(text) > MAX_CONVERTED_LENGTH and (kind == "int" or ":" in text):
        return "a very long number"
    try:
        construct = getattr(yaml.constructor.SafeConstructor(), f"construct_yaml_{kind}")
        return json.dumps(construct(yaml.ScalarNode("", text)))
    except ValueError:  # `0b_`
        return "0"
