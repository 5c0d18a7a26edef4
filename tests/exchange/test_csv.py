"""CSV of assignments: exact on the way out, lenient but outspoken on the way in."""

from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sweepledger.exchange import csv
from sweepledger.exchange.conversion import Imported
from sweepledger.formats.foreign_yaml import ForeignError
from sweepledger.reader import characters
from sweepledger.reader.configurations import ConfigurationTable, read_configurations
from sweepledger.structs.values import Value, canonical_json
from tests.exchange.imported import a_list, assignments_of, combinations, sweep_of, whats
from tests.sweeps import a_sweep

FILES = Path(__file__).parent / "files/csv"

TEXTS = st.one_of(
    st.text(max_size=8),
    st.text(alphabet=" \",;:-1e.'#", max_size=8),
    st.sampled_from(["on", "null", "1e3", "010", "", "true", " x "]),
).filter(lambda text: "\n" not in text and not characters.INVISIBLE.search(text))
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False),
    TEXTS,
)
NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_.-]{0,8}", fullmatch=True)
ROWS = st.lists(st.dictionaries(NAMES, SCALARS, min_size=1, max_size=4), min_size=1, max_size=5)


def read(text: str) -> Imported:
    return csv.read(text.encode(), name="table")


def csv_text(rows: list[dict[str, Value]]) -> str:
    return csv.write(a_sweep(design=a_list(rows)), rows).text


@given(ROWS)
def test_written_rows_are_read_back_as_the_same_values(rows: list[dict[str, Value]]) -> None:
    assume(all(len(row) > 0 for row in rows))

    table = read_configurations(csv_text(rows).encode(), "table.csv")

    assert isinstance(table, ConfigurationTable), "\n".join(map(str, table))
    assert list(map(canonical_json, table.rows)) == list(map(canonical_json, rows))


def test_cells_are_typed_in_one_plain_way() -> None:
    rows: list[dict[str, Value]] = [
        {"lr": 1e-05, "n": 2.0, "flag": True, "gap": None, "text": 'a "b", c', "empty": ""},
        {"lr": -0.5},
    ]

    text = csv_text(rows)

    assert text == 'lr,n,flag,gap,text,empty\n1e-05,2.0,true,null,"a ""b"", c",""\n-0.5,,,,,\n'


def test_a_foreign_table_is_read_with_a_word_on_everything_that_was_guessed() -> None:
    content = (FILES / "pandas.csv").read_bytes()

    imported = csv.read(content, name="pandas")

    assert list(assignments_of(sweep_of(imported))) == [
        {"lr": 0.1, "layers": 2, "optimizer": "sgd", "amp": "on", "tag": "010"},
        {"lr": 1e-05, "optimizer": "adam", "amp": "off", "tag": "v1"},
        {"lr": -0.5, "layers": 4, "optimizer": 'a "b", c', "amp": True},
    ]
    assert whats(imported.losses) == ["metric", "program", "the first column", "amp: on", "tag: 010"]
    assert "YAML 1.1 reads true" in imported.losses[3].reason


def test_quoted_numbers_are_text_and_told_of_once_a_column() -> None:
    imported = read('"lr","n"\n"0.1","2"\n"0.2","3"\n')

    assert imported.spec["assignments"] == [{"lr": "0.1", "n": "2"}, {"lr": "0.2", "n": "3"}]
    assert whats(imported.losses)[2:] == ['lr: "0.1"', 'n: "2"']


def test_a_cell_may_hold_a_line_end_and_lines_after_it_keep_their_numbers() -> None:
    text = 'a,b\n"x\ny",1\n2\n'

    with pytest.raises(ForeignError) as refused:
        read(text)
    imported = read(text.removesuffix("2\n"))

    assert refused.value.line == 4
    assert imported.spec["assignments"] == [{"a": "x\ny", "b": 1}]


def test_a_table_too_large_for_a_spec_is_named_by_it() -> None:
    rows = combinations(lr=[0.1, 0.2], n=list(range(2000)))
    text = csv_text([dict(row) for row in rows])

    imported = read(text)
    sweep = sweep_of(imported, beside=lambda name: text.encode() if name == "table.csv" else None)

    assert imported.spec["assignments"] == "table.csv"
    assert imported.losses[-1].part == "4000 lines"
    assert list(assignments_of(sweep)) == list(rows)


def test_values_that_no_file_beside_a_spec_can_say_are_named() -> None:
    rows: list[dict[str, Value]] = [{"list": [1, "a"], "lines": "x\ny", "plain": 1}]

    exported = csv.write(a_sweep(design=a_list(rows)), rows)

    assert exported.text == 'list,lines,plain\n"[1, ""a""]","x\ny",1\n'
    assert whats(exported.losses) == ["metric, command, run", "list", "lines"]


def test_a_text_that_a_spreadsheet_would_run_is_named() -> None:
    rows: list[dict[str, Value]] = [{"a": "=cmd|' /C calc'!A0", "b": -1, "c": "x=1"}]

    sent = csv.write(a_sweep(design=a_list(rows)), rows)

    assert [loss.part for loss in sent.losses if "formula" in loss.reason] == ["a"]


@pytest.mark.full_suite("large inputs")
def test_a_foreign_table_is_bounded() -> None:
    header = ",".join(f"a{number}" for number in range(70))

    for text in (f"{header}\n" + ("1," * 69 + "1\n") * 30_000, "a\n" + "\n" * 1_000_001):
        with pytest.raises(ForeignError, match="must have at most"):
            read(text)
    with pytest.raises(ForeignError, match="wrong position"):
        read("a\n" + " " * 200_000 + '"x"y\n')  # hours, if read in every possible way
