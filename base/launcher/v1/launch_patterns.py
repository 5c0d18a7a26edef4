"""Patterns of metrics: which ones are accepted, since they could take long on a line of the trial."""

from __future__ import annotations

import re
from typing import Any

from launch_files import Refused
from launch_json import LONGEST_MATCH

MOST_WAYS = 10 * LONGEST_MATCH**2  # of a pattern to divide a line: two long repeats and few short ones


def check_pattern(pattern: Any) -> None:
    """Refuse a pattern that is not valid, lacks its group, or could take long on a line of limited length."""
    if isinstance(pattern, str) and len(pattern) > LONGEST_MATCH:
        raise Refused(f"launch.json: metric: a pattern has more than {LONGEST_MATCH} characters")
    try:
        groups = re.compile(pattern, re.ASCII).groupindex
    except (re.error, TypeError, ValueError, RecursionError, OverflowError) as error:
        raise Refused(f"launch.json: metric: {pattern!r:.100} is not a pattern: {error}") from error
    if "value" not in groups or not set(groups) <= {"name", "value", "step"}:
        raise Refused(
            f"launch.json: metric: a pattern must have the group value, and may have name and step, "
            f"got {pattern!r:.100}"
        )
    try:
        from re import _parser as parser  # type: ignore[attr-defined]
    except ImportError:
        import sre_parse as parser
    count_ways(parser.parse(pattern, re.ASCII), [0] * len(ALL))


def count_ways(sequence: Any, after: list[int], *, is_repeated: bool = False) -> list[int]:
    """Return, for each character that may come next, in how many ways a sequence can be tried until it fails.

    `after` has the same for what follows the sequence; zeros if nothing does, because then nothing can fail.
    The numbers are upper bounds. Raises Refused for what could be tried too often. Specs are checked for the
    same patterns.
    """
    ways = after
    for kind, argument in reversed(list(sequence)):
        name = str(kind)
        if name.startswith("GROUPREF") or (is_repeated and (name == "BRANCH" or name.endswith("REPEAT"))):
            raise Refused(
                "launch.json: metric: a pattern must not refer to its groups, "
                "nor repeat what has repeats or alternatives"
            )
        if name.endswith("REPEAT"):
            ways = count_repeat(argument, ways)
        elif name == "BRANCH":
            ways = [sum(counts) for counts in zip(*(count_ways(each, ways) for each in argument[1]))]
        elif name in ("SUBPATTERN", "ATOMIC_GROUP"):
            body = argument[-1] if name == "SUBPATTERN" else argument
            ways = count_ways(body, ways, is_repeated=is_repeated)
        elif name.startswith("ASSERT"):
            inside = max(count_ways(argument[1], [0] * len(ALL), is_repeated=is_repeated))
            ways = [1 + inside + count for count in ways]
        elif name == "AT":
            ways = [max(1, count) for count in ways]
        else:
            most, matched = max(1, *ways), characters(name, argument)
            ways = [most if code in matched else 0 for code in range(len(ALL))]
        if max(ways) > MOST_WAYS:
            raise Refused(
                "launch.json: metric: a pattern could take too long, because it can divide a line in more "
                f"than {MOST_WAYS} ways"
            )
    return ways


def count_repeat(argument: Any, after: list[int]) -> list[int]:
    """Return the ways of a repeat: wherever it may stop, what follows is tried at a character of its own."""
    low, high, body = int(argument[0]), int(argument[1]), argument[2]
    if high <= 1:
        once = count_ways(body, after)
        return once if low else [own + without for own, without in zip(once, after)]
    begins = count_ways(body, [1] * len(ALL), is_repeated=True)
    stops = min(high, LONGEST_MATCH) - min(low, LONGEST_MATCH)
    early = max((count for begin, count in zip(begins, after) if begin), default=0)
    ways = max(1, stops * early + max(after))
    return [ways if begin else 0 if low else count for begin, count in zip(begins, after)]


CATEGORIES = {
    "DIGIT": r"\d",
    "SPACE": r"\s",
    "WORD": r"\w",
    "NOT_DIGIT": r"\D",
    "NOT_SPACE": r"\S",
    "NOT_WORD": r"\W",
}
OTHERS = 128  # stands for all characters beyond ASCII
ALL = frozenset(range(OTHERS + 1))


def characters(name: str, argument: Any) -> frozenset[int]:
    """Return the ASCII characters, or OTHERS, that one part of a parsed pattern matches, in either case."""
    if name == "LITERAL":
        letter = chr(argument)
        return frozenset(min(ord(each), OTHERS) for each in (letter, letter.lower()[:1], letter.upper()[:1]))
    if name == "RANGE":
        return frozenset().union(
            *(
                characters("LITERAL", min(each, OTHERS))
                for each in range(min(argument[0], OTHERS), min(argument[1], OTHERS) + 1)
            )
        )
    if name == "CATEGORY":
        pattern = re.compile(CATEGORIES[str(argument).replace("CATEGORY_", "")], re.ASCII)
        return frozenset(each for each in ALL if pattern.match(chr(each)))
    if name == "IN":
        parts = [(str(kind), value) for kind, value in argument]
        found = frozenset().union(*(characters(*part) for part in parts if part[0] != "NEGATE"))
        return (ALL - found) | {OTHERS} if parts[0][0] == "NEGATE" else found
    return ALL  # ANY, NOT_LITERAL
