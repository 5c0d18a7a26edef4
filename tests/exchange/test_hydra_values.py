"""Values of Hydra's overrides: what they become, what is refused, and texts that Hydra reads back."""

import random
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweepledger.errors import ToolError
from sweepledger.exchange.hydra.values import (
    as_argument,
    load_parser,
    parse_value,
    range_values,
)
from sweepledger.formats.foreign_yaml import ForeignError

types = pytest.importorskip("hydra.core.override_parser.types")


def a_choice(*values: Any, **given: Any) -> Any:
    return types.ChoiceSweep(list=list(values), **given)


def a_range(start: float, stop: float, step: float = 1, **given: Any) -> Any:
    return types.RangeSweep(start=start, stop=stop, step=step, **given)


VALUES: dict[str, Any] = {
    "1": 1,
    "007": "007",
    "1.5e+3": 1500.0,
    "-inf": float("-inf"),
    "null": None,
    "'1'": "1",
    r"'it\'s'": "it's",
    r"a\,b": "a,b",
    "${oc.env:USER,me}": "${oc.env:USER,me}",
    "[a,'b c',[1,2]]": ["a", "b c", [1, 2]],
    "{a:{b:'1'}}": {"a": {"b": "1"}},
    "sort([3,1,2])": [1, 2, 3],
    "1, b ,'2'": a_choice(1, "b", "2", simple_form=True),
    "choice(a,[1,2])": a_choice("a", [1, 2]),
    "sort(3,1,2,reverse=true)": a_choice(3, 2, 1, simple_form=True),
    "shuffle(1,2)": a_choice(1, 2, simple_form=True, shuffle=True),
    "range(start=1,stop=10,step=3)": a_range(1, 10, 3),
    "int(range(1.0,4.0))": a_range(1, 4),
    "tag(log,interval(1,10))": types.IntervalSweep(start=1.0, end=10.0, tags={"log"}),
    "glob([a*,b*],exclude=ab)": types.Glob(["a*", "b*"], ["ab"]),
}

REFUSED = [
    "a,", "(a)", "[1,2", "{a}", "'a'b", "choice()", "choice(choice(a,b))", "nothing(1)", "range(a)",
    "interval(1)", "int(a)", "bool(maybe)", "tag(1,range(2))", "a=b", "a#b", "é", "9" * 5000,
    "[" * 500 + "]" * 500, "a" + " a" * 10_000,
]  # fmt: skip


@pytest.mark.parametrize("text", VALUES)
def test_a_value_becomes_plain_data_or_a_sweep(text: str) -> None:
    value = parse_value(text)

    assert (type(value), value) == (type(VALUES[text]), VALUES[text])


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:20])
def test_a_value_that_hydra_refuses_is_an_error_of_the_file(text: str) -> None:
    with pytest.raises(ForeignError, match=r"must be (a value that Hydra reads, got|at most 20000)"):
        parse_value(text)


def test_a_shuffled_list_keeps_its_order_so_that_equal_files_give_equal_specs() -> None:
    random.seed(0)

    assert {tuple(parse_value("shuffle([1,2,3,4,5,6])")) for _ in range(5)} == {(1, 2, 3, 4, 5, 6)}
    assert parse_value("shuffle(list=[1,2])") == [1, 2]


@pytest.mark.parametrize(
    ("end", "words"),
    [(100_001, "at most 100000 values"), (10**400, "that a float can hold")],
    ids=["many", "large"],
)
def test_a_range_of_too_many_values_or_too_large_ones_is_refused(end: int, words: str) -> None:
    with pytest.raises(ForeignError, match=words):
        range_values(a_range(0, end))


def test_a_missing_parser_is_named_with_the_extra_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hydra.core.override_parser", None)
    load_parser.cache_clear()

    with pytest.raises(ToolError, match="hydra-core, which is not installed") as caught:
        parse_value("1,2")

    assert caught.value.hint == "`pip install 'sweepledger[hydra]'`"


PIECES = st.sampled_from(
    [
        *"a1-_ ,'\"[]{}:()=/+0", ".5", "e3", "\\,", "\\\\", "true", "null", "inf", "${x}", "range(",
        "choice(", "int(",
    ]
)  # fmt: skip


@given(st.lists(PIECES, max_size=8).map("".join))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_value(text)
    except ForeignError as error:
        assert "Hydra reads" in str(error)  # noqa: PT017 - either is right


@given(st.text(alphabet="ab1.-_ ,:'\"\\()[]{}=$+/\téx", max_size=10))
def test_a_text_reaches_hydra_as_that_text(text: str) -> None:
    assert parse_value(as_argument(text)) == text
