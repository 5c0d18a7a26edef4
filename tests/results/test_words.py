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
        (-0.0, "0"),
        (0.1 + 0.2, "0.3"),
        (0.123456789, "0.123457"),
        (1e-7, "1e-07"),
        (float("inf"), "infinite"),
    ],
)
def test_a_number_is_as_short_as_six_digits_allow(number: float, text: str) -> None:
    assert display.format_number(number) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.1 + 0.2, "0.30000000000000004"),
        (True, "true"),
        (None, "null"),
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
        (1234.5678, 300.0, "1235"),
        (5.0, float("inf"), "5"),
        (123456.0, 1e9, "0"),
    ],
)
def test_numbers_have_the_digits_that_differ(number: float, width: float, text: str) -> None:
    assert display.format_within(number, width) == text


def test_what_is_invisible_becomes_visible() -> None:
    assert display.one_line("a\u202eb\x1b[31m\u200bc\x00\ufffe\ud800") == (
        "a\\u202eb\\u001b[31m\\u200bc\\u0000\\ufffe\\ud800"
    )
    assert display.one_line("  a\r\n\tb\u2028c ") == "a b c"
    assert display.one_line("Grüße \U0001f469\u200d\U0001f52c") == "Grüße \U0001f469\u200d\U0001f52c"


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ("a | b", r"a \| b"),
        ("<img src=x onerror=1>", r"\<img src=x onerror=1\>"),
        ("**bold** _it_ `code`", r"\*\*bold\*\* \_it\_ \`code\`"),
        ("[a](javascript:1)", r"\[a\](javascript:1)"),
        ("see https://example.org", r"see https\://example.org"),
        ("@someone #12", r"\@someone \#12"),
        ("- item", r"\- item"),
        ("1. item", r"1\. item"),
        ("# head", r"\# head"),
        ("=====", r"\====="),
        ("a\n\n# b", r"a \# b"),
    ],
)
def test_user_text_is_escaped(text: str, markdown: str) -> None:
    assert display.escape_markdown(text) == markdown


@settings(max_examples=100, deadline=None)
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


@settings(max_examples=100, deadline=None)
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


def test_different_values_never_look_the_same() -> None:
    values: list[Value] = ["a", " a", "a ", "a  b", "a b", "a\nb", "a\u00a0b", "", "~", "true", True, "null"]
    values += [None, "1", 1, "x=1", "1e3", 1000, "on", "[1]", [1], '"a"', ["a"], "a, b", "a ×1"]  # noqa: RUF001

    shown = [display.one_line(display.format_value(value)) for value in values]

    assert len(set(shown)) == len(values)


@pytest.mark.parametrize("value", ["::error ::x", "##[error]x", ["::error::x"]])
def test_no_value_holds_what_a_ci_runner_obeys_wherever_its_line_is_folded(value: Value) -> None:
    shown = display.format_value(value)

    assert "::" not in shown
    assert "##[" not in shown
    assert json.loads(shown) == value
