from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweepledger.formats import hyperparams_csv
from sweepledger.formats.hyperparams_csv import Column, ColumnType, Row
from sweepledger.structs.values import Value, canonical_json

SCALAR = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
VALUE = SCALAR | st.lists(SCALAR, max_size=3)
NAMES = ("a", "b.c", "d-e")
ROWS = st.lists(st.dictionaries(st.sampled_from(NAMES), VALUE), min_size=1, max_size=5)


def rows_of(*assignments: Mapping[str, Value]) -> list[Row]:
    return [Row(f"t{number:011d}", values) for number, values in enumerate(assignments)]


@given(ROWS)
def test_every_table_reads_back_exactly(assignments: list[dict[str, Value]]) -> None:
    rows = rows_of(*assignments)
    table = hyperparams_csv.write_table(NAMES, rows)
    results = [
        row for shard in table.shards for row in hyperparams_csv.parse_shard(shard.text, table.columns)
    ]

    assert all(len(shard.text.splitlines()) == shard.count + 1 for shard in table.shards), "a row is one line"
    assert [row.trial for row in results] == [row.trial for row in rows]
    assert [canonical_json(dict(row.values)) for row in results] == [
        canonical_json(dict(row.values)) for row in rows
    ]


def test_the_forms_of_cells() -> None:
    rows = rows_of(
        {"n": 1, "s": "on", "b": True, "j": None, "x": 0.5},
        {"n": 1e-05, "s": 'say "hi", you', "b": False, "j": [1, "a"]},
        {"n": 2.0, "s": "", "j": "text"},
    )
    (shard,) = hyperparams_csv.write_table(("n", "s", "b", "j", "x"), rows).shards

    assert shard.text == (
        "trial,n,s,b,j,x\n"
        't00000000000,1,"on",true,"null",0.5\n'
        't00000000001,1e-05,"say ""hi"", you",false,"[1, ""a""]",\n'
        't00000000002,2.0,"",,"""text""",\n'
    )
    assert (shard.file, shard.first, shard.count) == ("hyperparams.csv", 0, 3)


def test_a_large_table_is_cut_into_shards_that_know_their_rows() -> None:
    rows = rows_of(*({"a": number} for number in range(10)))
    limit = len("trial,a\n") + 3 * len("t00000000000,0\n")
    table = hyperparams_csv.write_table(("a",), rows, limit=limit)
    columns, shards = table.columns, table.shards

    assert [(shard.file, shard.first, shard.count) for shard in shards] == [
        ("hyperparams-000.csv", 0, 3),
        ("hyperparams-001.csv", 3, 3),
        ("hyperparams-002.csv", 6, 3),
        ("hyperparams-003.csv", 9, 1),
    ]
    assert all(shard.text.startswith("trial,a\n") and shard.text.endswith("\n") for shard in shards)
    assert [
        row.values["a"] for shard in shards for row in hyperparams_csv.parse_shard(shard.text, columns)
    ] == list(range(10))


COLUMNS = (Column("a", ColumnType.NUMBER), Column("b", ColumnType.STRING), Column("c", ColumnType.BOOLEAN))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("trial,a,b\n", "line 1: the header must be"),
        ("trial,a,b,c", "must end with a line end"),
        ("trial,a,b,c\nt1,1,x,true", "must end with a line end"),
        ('trial,a,b,c\nt1,1,"x,true\n', "line 2: must have 4 cells"),
        ("trial,a,b,c\nt1,x,,\n", "line 2: a: must be of type number, but got 'x'"),
        ('trial,a,b,c\nt1,"1",,\n', "line 2: a: must be of type number"),
        ('trial,a,b,c\nt1,1,"x",yes\n', "line 2: c: must be of type boolean"),
        ('trial,a,b,c\nt1,1,"x",true\nt2,NaN?,,\n', "line 3: a: must be of type number"),
    ],
)
def test_a_table_that_is_not_ours_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("?", r"\?")):
        hyperparams_csv.parse_shard(text, COLUMNS)


def test_the_row_digest_covers_program_header_and_line() -> None:
    digest = hyperparams_csv.row_digest("p", "trial,a", "t1,1")

    assert digest == "29afcb7f167cd5df276ac7e70dffc514dcceaa53265179f74df65060bc01ca9e"
    for other in (("q", "trial,a", "t1,1"), ("p", "trial,b", "t1,1"), ("p", "trial,a", "t1,2")):
        assert hyperparams_csv.row_digest(*other) != digest
