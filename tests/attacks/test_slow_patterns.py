"""A pattern of a metric could keep a processor busy for years on one line: it is refused before the merge."""

import pytest

from sweepledger.reader.metric_lines import pattern_error
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
    if pattern in USUAL:
        launch.check_pattern(pattern)
    else:
        with pytest.raises(launch.Refused):
            launch.check_pattern(pattern)

    assert (pattern_error(pattern) == "") == (pattern in USUAL)


def test_a_pattern_of_many_levels_is_judged_once_per_level() -> None:
    """Each level doubled the time: forty of them would have kept `sweep check` busy for years."""
    pattern = "(?:x" * 40 + "a" + ")?" * 40 + "(?P<value>b)"

    assert pattern_error(pattern) == ""


def test_a_spec_with_a_slow_pattern_is_refused_in_its_place() -> None:
    patterns = [USUAL[0], SLOW[0]]
    metric = {"name": "loss", "goal": "minimize", "source": "stdout", "format": "regex", "patterns": patterns}

    assert bad(metric=metric) == [("metric.patterns[1]", "metric-format")]
    assert messages(metric=metric)[0].startswith(
        "must not refer to its groups, nor repeat what has repeats or alternatives"
    )
