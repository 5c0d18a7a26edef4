"""A pattern of a metric could keep a processor busy for years on one line: it is refused before the merge."""

import pytest

from sweepledger.spec.rules.metric_patterns import pattern_error
from tests.launcher.folders import LAUNCHERS
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
]
STRICTER = [
    r"[é-ü]*[é-ü]*[é-ü]*(?P<value>é)",
    r"[ab]*[ab]*[ab]*(?P<value>$)",
    r"(?P<value>[ab]*[ab]*[ab]*)$",
    r"(?P<value>[ab]*[ab]*[ab]*c?)\Z",
    r"(?P<value>\w*\w*\w*)\b",
    r"(?P<value>[ab]*[ab]*[ab]*)(?=x)",
    r"(?P<value>[ab]*[ab]*[ab]*)(?<!a)",
]
"""The launcher accepts these, of which one line can take minutes; the deadline of the pod ends it."""
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
]


@pytest.mark.parametrize("pattern", [*SLOW, *INVALID, *USUAL], ids=lambda pattern: pattern[:40])
def test_a_spec_and_the_launcher_judge_patterns_alike(pattern: str) -> None:
    launcher = LAUNCHERS["v2"].module
    try:
        launcher.check_pattern(pattern)
    except launcher.Refused:
        is_accepted = False
    else:
        is_accepted = True

    assert is_accepted == (pattern in USUAL)
    assert (pattern_error(pattern) == "") == is_accepted


@pytest.mark.parametrize("pattern", STRICTER)
def test_a_spec_is_stricter_with_checks_that_fail_and_ranges_beyond_ascii(pattern: str) -> None:
    assert "at most 2 repeats" in pattern_error(pattern)


def test_a_spec_with_a_slow_pattern_is_refused_in_its_place() -> None:
    metric = {"name": "loss", "source": "stdout", "format": "regex", "patterns": [USUAL[0], SLOW[0]]}

    assert bad(metric=metric) == [("metric.patterns[1]", "metric-format")]
    assert messages(metric=metric)[0].startswith("must not repeat what has repeats or alternatives")
