"""Plain scalars: one meaning for every YAML reader, or a refusal that says both."""

import re

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sweepledger.reader.scalars import EXPONENT, Refusal, resolve_scalar

TEXTS = (
    *("relu", "nO", "1.2.3", "v1", "1e", "e3", "08:30", "1:75", "2024-1-1", "0x", "0xg", "-", ".", "_1"),
    *("infinite", "a=b", "<<<", "--lr", "$x"),
)
FLOATS = (
    *("0.1", "-0.5", "2.", ".5", ".5e3", "1e-3", "1E-3", "1e3", "-1e+3", "1.5e3", "1.0e-05", "5e-324"),
    *("0e5", "0.0"),
)
ACCEPTED: dict[str, object] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("null", "Null", "NULL"), None),
    **{text: text for text in TEXTS},
    **{text: int(text) for text in ("0", "-0", "7", "-12", "9007199254740992", "-9007199254740992")},
    **{text: float(text) for text in FLOATS},
}


@pytest.mark.parametrize(("text", "value"), ACCEPTED.items(), ids=ACCEPTED)
def test_what_all_readers_take_alike_has_that_meaning(text: str, value: object) -> None:
    result = resolve_scalar(text)

    assert result == value
    assert type(result) is type(value)


def ambiguous(text: str, old: str, new: str, hint: str) -> Refusal:
    result = f"got {text}: YAML 1.1 reads {old}, YAML 1.2 reads {new}"
    return Refusal(f"must mean the same to every YAML reader, {result}", hint, code="ambiguous-scalar")


AMBIGUOUS = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON"), ("true", "text")),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF"), ("false", "text")),
    "010": ("8", "10"),
    "08": ("text", "8"),
    "0o10": ("text", "8"),
    "1_000": ("1000", "text"),
    "0b101": ("5", "text"),
    "12:30:45": ("45045", "text"),
    "1:30": ("90", "text"),
    "1:30.5": ("90.5", "text"),
    **dict.fromkeys(("2024-01-01", "2024-1-1 1:02:03", "2024-01-01T01:02:03.5Z"), ("a date", "text")),
    "=": ("a default value", "text"),
    "<<": ("a merge key", "text"),
    "-.5": ("text", "-0.5"),
    "+1e3": ("text", "1000.0"),
}
"""What YAML 1.1 and 1.2 read; a hint names the readings that can be written, and the text in quotes."""
UNWRITTEN = {"text", "a date", "a default value", "a merge key"}


@pytest.mark.parametrize("text", AMBIGUOUS)
def test_what_readers_take_differently_is_refused_with_both_readings_and_the_way_out(text: str) -> None:
    written = [reading for reading in AMBIGUOUS[text] if reading not in UNWRITTEN]
    hint = (
        f'write {", ".join(written)} or "{text}" for the text' if written else f'write "{text}" for the text'
    )

    assert resolve_scalar(text) == ambiguous(text, *AMBIGUOUS[text], hint)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("+5", 'write 5 or "+5" for the text'),
        ("0x1F", 'write 31 or "0x1F" for the text'),
        ("01.5", 'write 1.5 or "01.5" for the text'),
        ("0X1F", 'write "0X1F" for the text'),
        ("-0o17", 'write "-0o17" for the text'),
    ],
)
def test_numbers_in_unusual_forms_are_refused_with_the_decimal(text: str, hint: str) -> None:
    assert resolve_scalar(text) == Refusal(
        f"must be a plain decimal number, got {text}", hint, code="number-form"
    )


@pytest.mark.parametrize(
    "text",
    [".inf", "-.inf", "+.Inf", ".INF", ".nan", ".NaN", "NaN", "nan", "inf", "-Infinity", "1e400", "-1e309"],
)
def test_numbers_that_are_not_finite_are_refused(text: str) -> None:
    refusal = Refusal(f"must be a finite number, got {text}", "in quotes it is text", code="not-finite")

    assert resolve_scalar(text) == refusal


LARGE = "must be an integer from -2^53 to 2^53"
DIGITS = "readers that use doubles lose digits of larger ones; in quotes it is text"
SMALL, ZERO = "must not be so small that it becomes 0", "write 0, or a number of at least 5e-324"


@pytest.mark.parametrize(
    ("text", "says", "hint"),
    [
        *((text, LARGE, DIGITS) for text in ("9007199254740993", "-9007199254740993", "1234567890" * 3)),
        *((text, SMALL, ZERO) for text in ("1e-400", "-0.1e-999", "2e-324")),
    ],
)
def test_numbers_that_doubles_cannot_hold_are_refused(text: str, says: str, hint: str) -> None:
    assert resolve_scalar(text) == Refusal(f"{says}, got {text}", hint, code="number-range")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("1" * 5000, "number-range"),
        ("1_" + "1" * 5000, "ambiguous-scalar"),
        ("0" + "7" * 5000, "number-form"),
        ("0x" + "f" * 5000, "number-form"),
        ("1" + ":1" * 5000, "ambiguous-scalar"),
        ("1" + ":1" * 5000 + ".5", "ambiguous-scalar"),
        ("1" * 5000 + ".5", "not-finite"),
    ],
)
def test_numbers_of_thousands_of_digits_are_refused_in_a_short_message(text: str, code: str) -> None:
    value = resolve_scalar(text)

    assert isinstance(value, Refusal)
    assert value.code == code
    assert len(value.message) < 250
    assert len(value.hint) < 150


plain = st.one_of(
    st.text("0123456789+-_.:eExXoObBaf", min_size=1, max_size=8),
    st.sampled_from(["yes", "no", "on", "off", "true", "null", "y", "~", ".inf", "2024-01-01", "=", "<<"]),
    st.integers().map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
)


@given(plain)
def test_an_accepted_scalar_means_the_same_to_a_reader_of_yaml_1_1(text: str) -> None:
    value = resolve_scalar(text)

    if isinstance(value, Refusal) or re.search(EXPONENT, text):
        return
    try:
        other = yaml.safe_load(text)
    except yaml.YAMLError:
        return
    if isinstance(other, list | dict):
        return  # no scalar at all: a dash or a colon
    assert value == other
    assert isinstance(value, bool) == isinstance(other, bool)
