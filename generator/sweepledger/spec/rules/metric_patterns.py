"""What is wrong with a pattern of `metric.patterns`: not valid, without its groups, or slow on some line.

The launcher refuses such patterns, too, so a spec with one would fail in each of its trials. It shares no code with
this package: `tests/attacks/test_slow_patterns.py` compares both. This module is stricter with checks such as `$`.
"""

import re
from collections.abc import Iterable, Sequence
from re import _constants as kinds  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

GROUPS = frozenset({"name", "value", "step"})
MAX_LOOSE_REPEATS = 2
"""Each loose repeat multiplies the time by the length of the line, of which the launcher reads 1,000 characters."""
FEW_REPETITIONS = 30
"""A repeat of so few is not counted as loose."""
NON_ASCII = 128
"""Stands for all characters beyond ASCII."""
ALL = frozenset(range(NON_ASCII + 1))
CHECK = -1
"""Stands for a check that consumes nothing and may fail, such as `$`: then repeats before it are tried again."""
REPEATS = frozenset({"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"})
CATEGORIES = {
    kinds.CATEGORY_DIGIT: r"\d",
    kinds.CATEGORY_SPACE: r"\s",
    kinds.CATEGORY_WORD: r"\w",
    kinds.CATEGORY_NOT_DIGIT: r"\D",
    kinds.CATEGORY_NOT_SPACE: r"\S",
    kinds.CATEGORY_NOT_WORD: r"\W",
}

Parsed = Iterable[tuple[Any, Any]]
"""A parsed pattern, as Python's `re` has it: kinds and arguments of its parts."""


class SlowPatternError(ValueError):
    """A pattern could take longer than the bounds allow."""


def pattern_error(text: str) -> str:
    """Return what is wrong with a pattern; nothing if the launcher accepts it."""
    try:
        groups = re.compile(text, re.ASCII).groupindex
        if "value" not in groups or not groups.keys() <= GROUPS:
            return "must have the group value, and besides it only name and step"
        _, loose = _beginning(parser.parse(text, re.ASCII), frozenset())
    except SlowPatternError as error:
        return str(error)
    except (re.error, ValueError, RecursionError, OverflowError) as error:
        return f"must be a regular expression ({error})"
    if loose > MAX_LOOSE_REPEATS:
        return f"must have at most {MAX_LOOSE_REPEATS} repeats that can match what follows them ({loose})"
    return ""


def _beginning(
    sequence: Parsed, after: frozenset[int], *, is_repeated: bool = False
) -> tuple[frozenset[int], int]:
    """Return the characters and checks that a sequence can begin with, and the number of its loose repeats.

    A repeat is loose if what follows it can begin with the same characters, or can fail without consuming any: then
    a line is divided in many ways.
    """
    first, loose = after, 0
    for kind, argument in reversed(list(sequence)):
        name = str(kind)
        if name.startswith("GROUPREF"):
            raise SlowPatternError("must not refer to its own groups")
        if is_repeated and (name == "BRANCH" or name in REPEATS):
            raise SlowPatternError("must not repeat what has repeats or alternatives")
        if name in REPEATS:
            low, high, body = argument
            own, _ = _beginning(body, frozenset(), is_repeated=int(high) > 1)
            rest, inner = _beginning(body, first, is_repeated=int(high) > 1)
            is_loose = int(high) > FEW_REPETITIONS and (CHECK in first or bool(own & first))
            loose += inner + is_loose
            # A check makes only the last of several repeats loose; earlier ones are if they can match the same text.
            first = rest if low else rest | (first - {CHECK} if is_loose else first)
        elif name == "BRANCH":
            branches = [_beginning(branch, first, is_repeated=is_repeated) for branch in argument[1]]
            first = frozenset().union(*(beginning for beginning, _ in branches))
            loose += max(inner for _, inner in branches)
        elif name in {"SUBPATTERN", "ATOMIC_GROUP"}:
            body = argument[-1] if name == "SUBPATTERN" else argument
            first, inner = _beginning(body, first, is_repeated=is_repeated)
            loose += inner
        elif name.startswith("ASSERT"):
            loose += _beginning(argument[1], first, is_repeated=is_repeated)[1]
            first |= {CHECK}
        elif name == "AT":
            first |= {CHECK}
        else:
            first = _characters(kind, argument)
    return first, loose


def _characters(kind: Any, argument: Any) -> frozenset[int]:
    """Return the characters that one part of a pattern matches, in either case."""
    if kind == kinds.LITERAL:
        letter = chr(argument)
        return frozenset(
            min(ord(form), NON_ASCII) for form in (letter, letter.lower()[:1], letter.upper()[:1])
        )
    if kind == kinds.RANGE:
        low, high = argument
        return _union((kinds.LITERAL, code) for code in range(min(low, NON_ASCII), min(high, NON_ASCII) + 1))
    if kind == kinds.CATEGORY:
        category = re.compile(CATEGORIES[argument], re.ASCII)
        return frozenset(code for code in ALL if category.match(chr(code)))
    if kind == kinds.IN:
        parts: Sequence[tuple[Any, Any]] = argument
        named = _union(part for part in parts if part[0] != kinds.NEGATE)
        return (ALL - named) | {NON_ASCII} if parts[0][0] == kinds.NEGATE else named
    return ALL


def _union(parts: Parsed) -> frozenset[int]:
    return frozenset().union(*(_characters(*part) for part in parts))
