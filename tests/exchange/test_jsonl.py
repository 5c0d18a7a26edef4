"""JSON Lines: an object an assignment, exact in both directions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweepledger.exchange import jsonl
from sweepledger.formats.foreign_yaml import ForeignError
from sweepledger.structs.values import Value, canonical_json
from tests.exchange.imported import a_list, combinations, whats
from tests.sweeps import a_sweep

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
)
NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_.-]{0,8}", fullmatch=True)
ROWS = st.lists(
    st.dictionaries(NAMES, st.one_of(SCALARS, st.lists(SCALARS, max_size=3)), max_size=4),
    min_size=1,
    max_size=5,
)


def jsonl_text(rows: list[dict[str, Value]]) -> str:
    return jsonl.write(a_sweep(design=a_list(rows)), rows).text


@given(ROWS)
def test_what_is_written_is_read_back_as_the_same_values(rows: list[dict[str, Value]]) -> None:
    imported = jsonl.read(jsonl_text(rows).encode(), name="lines")

    distinct = dict.fromkeys(map(canonical_json, rows))
    assert list(map(canonical_json, imported.spec["assignments"])) == list(distinct)


def test_nested_objects_get_dotted_names_and_a_word_in_the_report() -> None:
    imported = jsonl.read(b'{"optimizer": {"name": "sgd", "lr": 0.1}}\r\n\n', name="lines")

    assert imported.spec["assignments"] == [{"optimizer.name": "sgd", "optimizer.lr": 0.1}]
    assert "objects within objects" in whats(imported.losses)


def test_more_lines_than_a_spec_can_hold_are_refused_with_the_way_out() -> None:
    rows = [dict(values) for values in combinations(a=list(range(100)), b=list(range(100)))]

    with pytest.raises(ForeignError) as refused:
        jsonl.read(jsonl_text(rows).encode(), name="lines")

    assert "CSV" in str(refused.value.hint)
