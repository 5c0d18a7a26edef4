"""A record as a line of a batch's records: exact, canonical, in an order of its own."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweepledger.formats import record_json, records_jsonl
from sweepledger.formats.record_json import LARGEST_NUMBER, CorruptRecord
from sweepledger.structs.record import Artifact, Record
from tests.builders import a_record

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("ab\u2028é", max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


def test_a_record_has_one_exact_line() -> None:
    given_record = a_record(
        metrics={"test_accuracy": 1.0, "loss": 0.1 + 0.2, "bad": None},
        details={"versions": {"torch": "2.9.0"}, "device": "cpü"},
        artifacts=(Artifact("model.pt", 12, "cd" * 32),),
    )

    assert record_json.to_line(given_record) == (
        '{"artifacts":[{"bytes":12,"path":"model.pt","sha256":"' + "cd" * 32 + '"}],"attempt":1,'
        '"batch":"mnist-grid-b1-3f9a1c2e","code":"' + "c0de" * 10 + '","data":"sha256:' + "da7a" * 16 + '",'
        '"details":{"device":"cp\\u00fc","versions":{"torch":"2.9.0"}},"disruptions":0,"environment":null,"finished":"2026-01-01T00:00:03Z",'
        '"index":0,"metrics":{"bad":null,"loss":0.30000000000000004,"test_accuracy":1},"node":"here",'
        '"ran":"process","reason":null,"row":"' + given_record.row + '","seconds":3.25,"seed":0,'
        '"started":"2026-01-01T00:00:00Z","status":"ok","trial":"t00000000000","uid":"pod-0","version":1}'
    )


NUMBERS = st.floats(-LARGEST_NUMBER, LARGEST_NUMBER)


@settings(max_examples=60, deadline=None)
@given(
    metrics=st.dictionaries(
        st.from_regex("[abcA-C][ab/_.@-]{0,8}", fullmatch=True), st.none() | NUMBERS, max_size=4
    ),
    details=st.dictionaries(st.text(max_size=4, alphabet="abc"), JSON_VALUES, max_size=3),
    seconds=st.floats(0, 1e9),
    curves=st.dictionaries(
        st.sampled_from(["loss", "val/acc", "z@1"]),
        st.lists(st.tuples(st.integers(0, 2**53), st.none() | NUMBERS), min_size=1, max_size=3),
    ),
)
def test_a_record_survives_its_line_exactly(
    metrics: dict[str, float | None],
    details: dict[str, Any],
    seconds: float,
    curves: dict[str, list[tuple[int, float | None]]],
) -> None:
    before = a_record(metrics=metrics, details=details, seconds=seconds, curves=curves)
    line = record_json.to_line(before)

    after = record_json.read(line.encode())

    assert isinstance(after, Record)
    assert after == before
    assert record_json.to_line(after) == line
    assert "\n" not in line
    assert line.isascii()


@pytest.mark.parametrize("line", ["<<<<<<< HEAD", "\ud800"])
def test_a_line_that_is_no_record_keeps_its_place(line: str) -> None:
    (good,) = records_jsonl.write([a_record()])

    records = records_jsonl.records(good + f"{line}\n".encode(errors="surrogatepass"))

    assert records[0] == a_record()
    assert isinstance(records[1], CorruptRecord)
