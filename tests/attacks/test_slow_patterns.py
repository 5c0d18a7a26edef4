"""A pattern of a metric could keep a processor busy for years on one line: it is refused before the merge."""

import random
import re
from collections.abc import Callable
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest

from sweepledger.reader import metric_patterns
from sweepledger.reader.metric_patterns import pattern_error
from sweepledger.structs.metric import LONGEST_MATCH
from tests.launcher.folders import launch
from tests.written_specs import bad, messages

SLOW = [
    r"(a+)+(?P<value>x)",
    r"(?P<value>(a|ab)*)c",
    r"(?P<value>(?:a?)*)b",
    r"(?:(?:xa*)y){2,}(?P<value>b)",
    r"(?P<value>.*)*",
    r"(?:a{0,99}){0,99}(?P<value>b)",
    r"(?P<value>x)\1",
    r"(?P<value>(?=a)a)(?P=value)",
    r"(?P<name>a)?(?(name)b|c)(?P<value>d)",
    r".*(?P<value>x).*y.*z",
    r"\d*\d*\d*\d*(?P<value>x)",
    r"(?i)x*X*x*(?P<value>X)",
    r"\S+(?P<value>[^a]+)\D*x",
    r"(?:.*)(?:.*)(?:.*)(?P<value>x)",
    r"[é-ü]*[é-ü]*[é-ü]*(?P<value>é)",
    r"[ab]*[ab]*[ab]*(?P<value>$)",
    r"(?P<value>[ab]*[ab]*[ab]*)$",
    r"(?P<value>[ab]*[ab]*[ab]*c?)\Z",
    r"(?P<value>[ab]*[ab]*[ab]*c*)\Z",
    r"(?P<value>x)" + "y" * 1000,
    r"(?P<value>\w*\w*\w*)\b",
    r"(?P<value>[ab]*[ab]*[ab]*)(?=x)",
    r"(?P<value>[ab]*[ab]*[ab]*)(?<!a)",
    "a?" * 40 + "(?P<value>" + "a" * 40 + ")",
    "(?:a|[ab]c?)" * 40 + "(?P<value>x)",
    "a{0,20}" * 9 + "(?P<value>x)",
    r"(?:\w?\w)" * 40 + "(?P<value>-)",
    "(?:a|b|)" * 40 + "(?P<value>a)",
    r"(?:\b|)" * 40 + r"(?P<value>\b)",
    r"[^ab]*[^cd]*[^ef]*(?P<value>x)",
]
INVALID = [r"loss=(.)", r"(?P<value>x)(?P<other>y)", "(", "(" * 5000, r"(?P<value>x{99999999999})", r"\p{L}"]
USUAL = [
    r"loss: (?P<value>\S+)",
    r"\[(?P<step>\d+)/\d+\] .* val loss = +(?P<value>[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?) *\| time=\S+ s",
    r"(?P<name>[\w/]+)\s*[=:]\s*(?P<value>[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)",
    r"^.*epoch (?P<step>\d{1,6}).*loss=(?P<value>[^,]{1,20})",
    r"(?:train|val) loss (?P<value>\d+)",
    r"(?i)LOSS (?P<value>\d+)(?=\s|$)",
    r"^epoch=(?P<step>\d+)\s.*loss=(?P<value>\S+)\s*$",
    r"(?P<value>.*)$",
    r"^[^,]*,[^,]*,(?P<value>\d+)",
]


@pytest.mark.parametrize("pattern", [*SLOW, *INVALID, *USUAL], ids=lambda pattern: pattern[:40])
def test_a_spec_and_the_launcher_judge_patterns_alike(pattern: str) -> None:
    try:
        launch.check_pattern(pattern)
    except launch.Refused:
        is_accepted = False
    else:
        is_accepted = True

    assert is_accepted == (pattern in USUAL)
    assert (pattern_error(pattern) == "") == is_accepted


ATOMS = [
    "a",
    "b",
    "[ab]",
    ".",
    r"\d",
    r"\S",
    r"[^a]",
    "é",
    "[a-é]",
    "^",
    "$",
    r"\b",
    "(?=a)",
    "(?<!b)",
    "(?P<step>a)",
]
REPEATS = ["", "", "", "?", "*", "+", "{0,9}", "{2,60}", "{40}", "*?", "{3,}?"]


def random_pattern(draw: random.Random, levels: int = 2) -> str:
    """Draw a pattern of atoms, repeats, groups and alternatives, valid or not."""
    if not levels:
        return draw.choice(ATOMS) + draw.choice(REPEATS)
    parts = [random_pattern(draw, levels - 1) for _ in range(draw.randint(1, 4))]
    match draw.randrange(4):
        case 0:
            return f"(?:{'|'.join(parts)})"
        case 1:
            return f"({''.join(parts)}){draw.choice(REPEATS)}"
        case _:
            return "".join(parts)


def judgement(judge: Callable[[Any, list[int]], list[int]], pattern: str) -> tuple[int, ...]:
    """Return the ways of a pattern for each next character; nothing if it is refused."""
    try:
        return tuple(judge(parser.parse(pattern, re.ASCII), [0] * len(metric_patterns.ALL)))
    except (launch.Refused, metric_patterns.SlowPatternError):
        return ()


def test_a_spec_and_the_launcher_count_alike_in_random_patterns() -> None:
    draw = random.Random(18)  # noqa: S311 - not for cryptography
    refused, counts = 0, set()
    for _ in range(5000):
        pattern = random_pattern(draw)
        try:
            re.compile(pattern, re.ASCII)
        except re.error:
            continue

        by_spec = judgement(metric_patterns.count_ways, pattern)

        assert by_spec == judgement(launch.count_ways, pattern), pattern
        refused += not by_spec
        counts.add(by_spec)
    assert refused > 500
    assert len(counts) > 500, "the corpus has many patterns with different numbers of ways"


def test_the_bounds_are_those_of_the_launcher() -> None:

    assert (metric_patterns.MAX_WAYS, LONGEST_MATCH) == (
        launch.MOST_WAYS,
        launch.LONGEST_MATCH,
    )


def test_a_pattern_of_many_levels_is_judged_once_per_level() -> None:
    """Each level doubled the time: forty of them would have kept `sweep check` busy for years."""
    pattern = "(?:x" * 40 + "a" + ")?" * 40 + "(?P<value>b)"

    assert pattern_error(pattern) == ""


def test_a_spec_with_a_slow_pattern_is_refused_in_its_place() -> None:
    metric = {
        "name": "loss",
        "goal": "minimize",
        "source": "stdout",
        "format": "regex",
        "patterns": [USUAL[0], SLOW[0]],
    }

    assert bad(metric=metric) == [("metric.patterns[1]", "metric-format")]
    assert messages(metric=metric)[0].startswith("must not repeat what has repeats or alternatives")
