"""What is wrong with a pattern of `metric.patterns`: not valid, without its groups, or slow on some line.

The launcher refuses the same patterns, because it also runs batches that no check has seen. It shares no code with
this package: `tests/attacks/test_slow_patterns.py` compares both on a seeded corpus.
"""

import re
from collections.abc import Iterable, Sequence
from re import _constants as kinds  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from sweepledger.structs.metric import LONGEST_MATCH

GROUPS = frozenset({"name", "value", "step"})
MAX_WAYS = 10 * LONGEST_MATCH**2
"""Two repeats without a limit, and few short ones. More could take hours on one line; `a?` 40 times, years."""
NON_ASCII = 128
"""Stands for all characters beyond ASCII."""
ALL = frozenset(range(NON_ASCII + 1))
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
        if len(text) > LONGEST_MATCH:
            return f"must have at most {LONGEST_MATCH} characters ({len(text)})"
        groups = re.compile(text, re.ASCII).groupindex
        if "value" not in groups or not groups.keys() <= GROUPS:
            return "must have the group value, and besides it only name and step"
        count_ways(parser.parse(text, re.ASCII), [0] * len(ALL))
    except SlowPatternError as error:
        return str(error)
    except (re.error, ValueError, RecursionError, OverflowError) as error:
        return f"must be a regular expression ({error})"
    return ""


def count_ways(sequence: Parsed, after: list[int], *, is_repeated: bool = False) -> list[int]:
    """Return, for each character that may come next, in how many ways a sequence can be tried before it fails.

    `after` has the same for what follows the sequence; zeros if nothing does, because then nothing can fail. The
    numbers are upper bounds. Raises `SlowPatternError` if one is too large.
    """
    ways = after
    for kind, argument in reversed(list(sequence)):
        name = str(kind)
        if name.startswith("GROUPREF"):
            raise SlowPatternError("must not refer to its own groups")
        if is_repeated and (name == "BRANCH" or name in REPEATS):
            raise SlowPatternError("must not repeat what has repeats or alternatives")
        if name in REPEATS:
            ways = _repeat(argument, ways)
        elif name == "BRANCH":
            branches = [count_ways(branch, ways) for branch in argument[1]]
            ways = [sum(counts) for counts in zip(*branches, strict=True)]
        elif name in {"SUBPATTERN", "ATOMIC_GROUP"}:
            body = argument[-1] if name == "SUBPATTERN" else argument
            ways = count_ways(body, ways, is_repeated=is_repeated)
        elif name.startswith("ASSERT"):
            inside = max(count_ways(argument[1], [0] * len(ALL), is_repeated=is_repeated))
            ways = [1 + inside + count for count in ways]
        elif name == "AT":
            ways = [max(1, count) for count in ways]
        else:
            most, characters = max(1, *ways), _characters(kind, argument)
            ways = [most if code in characters else 0 for code in range(len(ALL))]
        if max(ways) > MAX_WAYS:
            raise SlowPatternError(
                f"must not divide a line of {LONGEST_MATCH} characters in more than {MAX_WAYS} ways"
            )
    return ways


def _repeat(argument: tuple[int, int, Parsed], after: list[int]) -> list[int]:
    """Return the ways of a repeat: wherever it may stop, what follows is tried with the next character of its own."""
    low, high, body = int(argument[0]), int(argument[1]), argument[2]
    if high <= 1:
        once = count_ways(body, after)
        return once if low else [own + without for own, without in zip(once, after, strict=True)]
    begins = count_ways(body, [1] * len(ALL), is_repeated=True)
    stops = min(high, LONGEST_MATCH) - min(low, LONGEST_MATCH)
    early = max((count for begin, count in zip(begins, after, strict=True) if begin), default=0)
    ways = max(1, stops * early + max(after))
    return [ways if begin else 0 if low else count for begin, count in zip(begins, after, strict=True)]


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
