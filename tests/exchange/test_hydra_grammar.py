"""Hydra's own parser is the oracle: what it makes of an override, so do we."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.exchange.hydra.functions import Glob, Interval, Range, value
from generator.exchange.hydra.grammar import Choices
from generator.exchange.hydra.overrides import as_argument
from generator.exchange.loss import ForeignError

parsers = pytest.importorskip("hydra.core.override_parser.overrides_parser")
types = pytest.importorskip("hydra.core.override_parser.types")
HydraException = pytest.importorskip("hydra.errors").HydraException

PARSER = parsers.OverridesParser.create()

SAME = [
    "1,2,3",
    "a, b , c",
    "1",
    "-1,+2,1_000",
    "007",
    "1e-3,1E5,.5,5.,1.5e+3",
    "1x,x1,1-2,-x",
    "inf,-inf",
    "true,False,TRUE,null,NULL",
    "truely,nullable,infinite",
    "'1',\"2\",'a b'",
    r"""'it\'s',"no" """.strip(),
    r"'back\\',x",
    r"'a\\\'b'",
    r"'a\nb'",
    r"a\,b,c\ d,\(x\)",
    "a b,c  d",
    "a:b,http://x.y/z",
    "${foo.bar},${oc.env:USER,me}",
    "/data/x,$HOME,50%,a@b,a*b,a?b,x|y,a+b,a-b",
    "[1,2],[3,4]",
    "[a,'b c',[1,2]],[]",
    "{a:1,b:c},{}",
    "{a:{b:[1,2]}}",
    "choice(a,b,c)",
    "choice( a , b )",
    "choice (1,2)",
    "choice([1,2],[3,4])",
    "choice(a)",
    "range(5)",
    "range(1,10)",
    "range(1,10,2)",
    "range(10,1,-3)",
    "range(start=1,stop=10,step=3)",
    "range(0,1,0.1)",
    "range(0.1,0.7,0.1)",
    "range(1.0,4)",
    "range(5,1)",
    "sort(3,1,2)",
    "sort(3,1,2,reverse=true)",
    "sort(choice(c,a,b))",
    "sort(range(10,1,-3))",
    "sort(range(1,10,3),reverse=true)",
    "sort([3,1,2])",
    "tag(x,y,choice(a,b))",
    "tag(range(3))",
    "int(1.5,2.5)",
    "int(choice(1.0,2.0))",
    "float(1,2)",
    "float(range(1,4))",
    "int(range(1.0,4.0))",
    "str(1,2.5,true)",
    "str([1,2])",
    "bool(true,'false')",
    "int({a:1.5})",
    "interval(0,1)",
    "interval(start=1e-5,end=0.1)",
    "tag(log,interval(1,10))",
    "int(interval(1,10))",
    "int(tag(log,interval(1,10)))",
    "glob(*)",
    "glob([a*,b*],exclude=ab)",
    "",
    "function x",
    "a=b",
]

REFUSED = [
    "a,",
    ",a",
    "(a)",
    "[1,2",
    "[1] x",
    "{a}",
    "'a",
    "'a'b",
    "choice()",
    "choice(choice(a,b))",
    "nothing(1)",
    "range(a)",
    "interval(1)",
    "interval(a,b)",
    "int(a)",
    "bool(maybe)",
    "tag(a)",
    "tag(1,range(2))",
    "range(start=1,2)",
    "a#b",
    "é",
]


def plain(found: Any) -> Any:  # noqa: PLR0911 - a line a kind
    """Give what Hydra found in our words; quotes have done their work."""
    match found:
        case types.QuotedString():
            return found.text
        case types.RangeSweep():
            return [plain(each) for each in found.range()]
        case types.ChoiceSweep():
            return [plain(each) for each in found.list]
        case types.IntervalSweep():
            return (found.start, found.end, frozenset(found.tags))
        case types.Glob():
            return Glob()
        case list():
            return [plain(each) for each in found]
        case dict():
            return {plain(key): plain(each) for key, each in found.items()}
        case _:
            return found


def ours(found: Any) -> Any:
    match found:
        case Choices(values):
            return list(values)
        case Range():
            return list(found.values())
        case Interval(start, end, tags):
            return (start, end, tags)
        case _:
            return found


def theirs(text: str) -> Any:
    return plain(PARSER.parse_override(f"x={text}")._value)  # noqa: SLF001 - the oracle


def same(left: Any, right: Any) -> bool:
    return repr(left) == repr(right) or (left == right and type(left) is type(right) is tuple)


@pytest.mark.parametrize("text", [text for text in SAME if text != "a=b"])
def test_a_value_is_what_hydra_makes_of_it(text: str) -> None:
    assert same(ours(value(text)), theirs(text))


@pytest.mark.parametrize("text", [*REFUSED, "a=b"])
def test_what_hydra_refuses_is_refused(text: str) -> None:
    with pytest.raises(HydraException):
        theirs(text)

    with pytest.raises(ForeignError):
        ours(value(text))


LETTERS = "a1-_ ,'\"[]{}:()=/+0"
WORDS = [
    ".5",
    "e3",
    "\\,",
    "\\\\",
    "true",
    "null",
    "inf",
    "1.0",
    "${x}",
    "range(",
    "choice(",
    "sort(",
    "int(",
]
PIECES = st.sampled_from([*LETTERS, *WORDS])


@given(st.lists(PIECES, max_size=8).map("".join))
def test_no_text_is_read_otherwise_than_by_hydra(text: str) -> None:
    try:
        expected = theirs(text)
    except (HydraException, AssertionError, RecursionError):
        return  # where we are more lenient, nobody's sweep changes

    assert same(ours(value(text.lstrip(" "))), expected)


@given(st.text(alphabet="ab1.-_ ,:'\"\\()[]{}=$+/\téx", max_size=10))
def test_a_text_reaches_hydra_as_that_text(text: str) -> None:
    written = as_argument(text)

    assert value(written) == text
    assert theirs(written) == text
