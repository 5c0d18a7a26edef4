"""Numbers as people read them; user text that stays text."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from sweepledger.results import display
from sweepledger.structs.values import Value


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.96, "0.96"),
        (1.0, "1"),
        (-0.0, "0"),
        (0.1 + 0.2, "0.3"),
        (0.123456789, "0.123457"),
        (1234567.0, "1.23457e+06"),
        (100000.0, "100000"),
        (1e-7, "1e-07"),
        (-0.5, "-0.5"),
        (float("inf"), "infinite"),
    ],
)
def test_a_number_is_as_short_as_six_digits_allow(number: float, text: str) -> None:
    assert display.format_number(number) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1 + 0.2, "0.30000000000000004"),
        (1.0, "1"),
        (True, "true"),
        (None, "null"),
        ("adam", "adam"),
        ("", '""'),
        ("a\nb", r'"a\nb"'),
        ([1, "a"], '[1,"a"]'),
    ],
)
def test_a_hyperparameter_is_shown_exactly_on_one_line(value: Value, text: str) -> None:
    assert display.format_value(value) == text


@pytest.mark.parametrize(
    ("number", "width", "text"),
    [
        (0.934425, 0.089, "0.9344"),
        (0.8999, 0.089, "0.8999"),
        (1234.5678, 300.0, "1235"),
        (0.1 + 0.2, 0.0, "0.3"),
        (5.0, float("inf"), "5"),
        (1e-9, 1e-300, "1e-09"),
        (123456.0, 1e9, "0"),
    ],
)
def test_numbers_have_the_digits_that_differ(number: float, width: float, text: str) -> None:
    assert display.format_within(number, width) == text


@pytest.mark.parametrize(
    ("part", "text"), [(0.0, "0 %"), (0.004, "< 1 %"), (0.01, "1 %"), (0.794, "79 %"), (1.0, "100 %")]
)
def test_a_part_is_told_in_percent(part: float, text: str) -> None:
    assert display.format_percent(part) == text


def test_what_is_invisible_becomes_visible() -> None:
    assert display.one_line("a\u202eb\x1b[31m\u200bc\x00\ufffe\ud800") == (
        "a\\u202eb\\u001b[31m\\u200bc\\u0000\\ufffe\\ud800"
    )
    assert display.one_line("  a\r\n\tb\u2028c ") == "a b c"
    assert display.one_line("Grüße \U0001f469\u200d\U0001f52c") == "Grüße \U0001f469\u200d\U0001f52c"


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ("How far do learning rate and batch size carry?", "How far do learning rate and batch size carry?"),
        ("52.0 s", "52.0 s"),
        ("a | b", r"a \| b"),
        ("see https://example.org", r"see https\://example.org"),
        ("www.example.org", r"www\.example.org"),
        ("@someone #12", r"\@someone \#12"),
        ("1. item", r"1\. item"),
        ("a\n\n# b", r"a \# b"),
    ],
)
def test_user_text_is_escaped(text: str, markdown: str) -> None:
    assert display.escape_markdown(text) == markdown


@settings(max_examples=200, deadline=None)
@given(st.text("ab1 .)-+=*_`~|<>[]()!&#\\\n:/w@$", max_size=14))
def test_user_text_renders_as_itself_alone_in_a_quote_and_in_a_cell(text: str) -> None:
    shown = display.one_line(text)
    renderer = MarkdownIt("commonmark").enable("table")
    escaped = display.escape_markdown(text)
    source = f"> {escaped}\n\n| {escaped} | x |\n|---|---|\n| {escaped} | x |\n"

    tokens = renderer.parse(source)

    kinds = [token.type for token in tokens if token.nesting >= 0 and token.type != "inline"]
    paragraph = ["paragraph_open"] if shown else []
    table = [
        *("table_open", "thead_open", "tr_open", "th_open"),
        *("th_open", "tbody_open", "tr_open", "td_open", "td_open"),
    ]
    assert kinds == ["blockquote_open", *paragraph, *table]
    inlines = [token.children or [] for token in tokens if token.type == "inline"]
    texts = ["".join(child.content for child in children) for children in inlines]
    assert texts == [*([shown] if shown else []), shown, "x", shown, "x"]
    assert {child.type for children in inlines for child in children} <= {"text", "text_special"}


@settings(max_examples=200, deadline=None)
@given(st.text("ab `|<>\\*&\n", min_size=1, max_size=10))
def test_code_stays_in_its_cell_and_opens_no_markup(text: str) -> None:
    source = f"| a | b |\n|---|---|\n| {display.markdown_code(text)} | x |\n"

    html = MarkdownIt("commonmark").enable("table").render(source)

    assert html.count("<td>") == 2
    assert "<td>x</td>" in html
    inside = html.split("<td>")[1].split("</td>")[0]
    assert inside.startswith("<code>")
    assert inside.endswith("</code>")
    assert inside.count("<") == 2


def test_code_of_a_plain_name_is_a_plain_span() -> None:
    assert display.markdown_code("learning_rate") == "`learning_rate`"
    assert display.markdown_code("a|b") == r"<code>a\|b</code>"


def test_different_values_never_look_the_same() -> None:
    values: list[Value] = ["a", " a", "a ", "a  b", "a b", "a\nb", "a\u00a0b", "", "~", "true", True, "null"]
    values += [None, "1", 1, "x=1", "1e3", 1000, "on", "[1]", [1], '"a"', ["a"], "a, b", "a ×1"]  # noqa: RUF001

    shown = [display.one_line(display.format_value(value)) for value in values]

    assert len(set(shown)) == len(values)


@pytest.mark.parametrize("value", ["::error ::x", "a::b", "a:::b", "##[error]x", ["::error::x"]])
def test_no_value_holds_what_a_ci_runner_obeys_wherever_its_line_is_folded(value: Value) -> None:
    shown = display.format_value(value)

    assert "::" not in shown
    assert "##[" not in shown
    assert json.loads(shown) == value
