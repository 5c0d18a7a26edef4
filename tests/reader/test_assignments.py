"""Files of assignments: strict where people and programs would read them differently."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweepledger.problems import Problem
from sweepledger.reader import read_document
from sweepledger.reader.configurations import ConfigurationTable, read_configurations


def rows(text: str) -> list[dict[str, object]]:
    table = read_configurations(text.encode(), "a.csv")
    assert isinstance(table, ConfigurationTable), "\n".join(map(str, table))
    return [dict(row) for row in table.rows]


def problems(content: bytes) -> tuple[Problem, ...]:
    table = read_configurations(content, "a.csv")
    assert isinstance(table, tuple)
    return table


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("1", 1),
        (" 1.5 ", 1.5),
        ("1e-3", 0.001),
        ("true", True),
        ("null", None),
        ("adam", "adam"),
        ("two words", "two words"),
        ('"1"', "1"),
        ('"true"', "true"),
        ('""', ""),
        ('"a,b"', "a,b"),
        ('"a ""b"""', 'a "b"'),
        (' "a" ', "a"),
    ],
)
def test_a_cell_means_what_a_scalar_means_in_a_spec(cell: str, value: object) -> None:
    documents = rows(f"a,b\n{cell},2\n")

    assert documents == [{"a": value, "b": 2}]
    assert type(documents[0]["a"]) is type(value)


def test_an_empty_cell_is_absent() -> None:
    assert rows('a,b,c\n,"",null\n1,,\n') == [{"b": "", "c": None}, {"a": 1}]


@pytest.mark.parametrize(
    ("text", "place", "code"),
    [
        ("a,b\n1,on\n", (2, 3), "ambiguous-scalar"),
        ("a,b\n1, 010\n", (2, 4), "ambiguous-scalar"),
        ("a\n.inf\n", (2, 1), "not-finite"),
        ("a\n9007199254740993\n", (2, 1), "number-range"),
        ("a\n+5\n", (2, 1), "number-form"),
        ("a\n~\n", (2, 1), "empty-value"),
        *((f"a\n{row}\n", (2, 1), "list-file") for row in ("[1]", "{x: 1}", "'1'", "x: y")),
        *((f"a\n{row}\n", (2, 1), "list-file") for row in ('"open', 'x"y', '"x"y')),
        *((f"a,b\n{row}\n", (2, 1), "list-file") for row in ("1", "1,2,3")),
        ("a\n1\n\n2\n", (3, 1), "list-file"),
        *((f"{head}\n1,2\n", (1, 3), "list-file") for head in ("a,a", "a,")),
        *(('a"\n1\n', (1, 1), "list-file"), ("a\n", (0, 0), "list-file"), ("", (0, 0), "list-file")),
        ("a\n1\u200b\n", (2, 2), "invisible-character"),
    ],
)
def test_what_is_wrong_is_told_at_its_place(text: str, place: tuple[int, int], code: str) -> None:
    (problem,) = problems(text.encode())

    assert (problem.line, problem.column, problem.code) == (*place, code)


def test_all_problems_are_told_but_no_more_than_anyone_reads() -> None:
    errors = problems(b"a\n" + b"on\n" * 100_000)

    assert len(errors) == 51
    assert errors[-1].code == "too-many-problems"


@pytest.mark.parametrize(
    "content", [b"a\n" + b"1\n" * 100_001, b"x" * (16 * 1024 * 1024 + 1)], ids=["lines", "bytes"]
)
def test_a_file_is_bounded(content: bytes) -> None:
    assert problems(content)[0].code == "too-large"


def test_columns_are_bounded() -> None:
    header = ",".join(f"a{number}" for number in range(101))

    assert "at most 100 columns" in problems(f"{header}\n1\n".encode())[0].message


@pytest.mark.parametrize(
    "cell", ["a:", "5:", "::", "a: b", "a:\tb", "a #b", "a\t#b", "a\tb", "? a", "-", "%a", "@a", "`a"]
)
def test_a_bare_cell_that_yaml_reads_as_more_than_a_scalar_is_refused(cell: str) -> None:
    errors = problems(f"a,b\n5,{cell}\n{cell},5\n".encode())

    assert [(problem.line, problem.column, problem.code) for problem in errors] == [
        (2, 3, "list-file"),
        (3, 1, "list-file"),
    ]


BARE = st.text("ab5 :#-?.[]{}&*!|>%@`'=~<\t", min_size=1, max_size=6).map(str.strip).filter(bool)


@given(BARE)
def test_no_bare_cell_is_read_that_a_plain_scalar_of_yaml_is_not(cell: str) -> None:
    table = read_configurations(f"a,b\n5,{cell}\n".encode(), "a.csv")
    reading = read_document(f"b: {cell}\n".encode(), "a.yaml")

    if isinstance(table, ConfigurationTable):
        assert reading.problems == ()
        assert reading.document is not None
        assert reading.document.data == {"b": table.rows[0]["b"]}


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    table = read_configurations(content, "a.csv")

    assert isinstance(table, ConfigurationTable) or table


def test_a_table_is_bounded_in_cells_and_a_line_in_bytes() -> None:
    header = ",".join(f"a{number}" for number in range(21))
    wide = f"{header}\n" + ("," * 20 + "\n") * 99_999
    long = 'a\n"' + "x" * 70_000 + '"\n'

    assert "at most 2000000 cells" in problems(wide.encode())[0].message
    assert problems(long.encode())[0] == Problem(
        "a.csv", 2, 1, "", "must be at most 65536 bytes, got a line of 70002", "too-large"
    )


def test_reading_stops_where_nobody_reads_on() -> None:
    errors = problems(b"a\n" + "\u202e".encode() * 10_000 + b"\n" + b"@\n" * 90_000)

    assert len(errors) == 51
    assert {problem.line for problem in errors} == {2}


def test_a_cell_that_begins_with_many_blanks_is_read_once() -> None:
    # Read in every possible way, these lines would take hours.
    errors = problems(b"a\n" + (b" " * 60_000 + b'"x"y\n') * 200)

    assert errors[0].code == "list-file"


def test_what_is_no_utf8_is_told_at_its_place() -> None:
    (problem,) = problems("a\nü".encode() + b"\xff\n")

    assert (problem.line, problem.column, problem.code) == (2, 2, "not-utf8")
