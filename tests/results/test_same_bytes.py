"""Whatever the order of reading, and however often a record comes, the bytes are the same."""

import random
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sweepledger.formats import records_jsonl
from sweepledger.results.outcomes import BatchRecords, substitute_records
from sweepledger.results.summary import summarise
from sweepledger.results.tree import result_files
from sweepledger.structs.file_tree import FileTree
from sweepledger.structs.names import records_path
from sweepledger.structs.record import ExpectedTrial, Record, Status
from tests.builders import a_lock, a_program, a_record, an_expected_trial

NAMES = ("mnist-grid-b1-3f9a1c2e", "mnist-grid-b2-00000000")
PROGRAMS = (a_program(), a_program(image="registry.example/a@sha256:" + "0" * 64))
ROWS = 4


def expected(index: int) -> ExpectedTrial:
    row = an_expected_trial(index)
    return replace(row, assignment={"learning_rate": index // 2}, replicate=index % 2)


@st.composite
def a_reading(draw: st.DrawFn, name: str) -> Record:
    """A record of a batch: ok, failed, or of no row of it."""
    index = draw(st.integers(0, ROWS))
    status = draw(st.sampled_from([Status.OK, Status.OK, Status.DIVERGED, Status.FAILED]))
    failures: list[str | None] = ["exit-1", "oom", "timeout", "node-lost"]
    reasons: dict[Status, list[str | None]] = {Status.OK: [None], Status.DIVERGED: ["bad-hyperparameters"]}
    return a_record(
        index,
        batch=name,
        status=status,
        reason=draw(st.sampled_from(reasons.get(status, failures))),
        metrics={"test_accuracy": draw(st.sampled_from([0.1, 0.2, 0.3, None]))},
        attempt=draw(st.integers(1, 2)),
        uid=draw(st.sampled_from("abc")),
        finished=f"2026-01-01T00:00:0{draw(st.integers(0, 3))}Z",
        ran=draw(st.sampled_from(["process", PROGRAMS[1].image])),
    )


READINGS = st.tuples(*(st.lists(a_reading(name), max_size=8) for name in NAMES))


def batches(readings: Iterable[Iterable[Record]]) -> list[BatchRecords]:
    made = []
    for number, (name, records) in enumerate(zip(NAMES, readings, strict=True), start=1):
        lock = a_lock(name=name, number=number, trials=ROWS, retries=1, program=PROGRAMS[number % 2])
        made.append(BatchRecords(lock, tuple(map(expected, range(ROWS))), tuple(records)))
    return made


def files(results: Iterable[BatchRecords]) -> FileTree:
    def in_spec(assignment: Mapping[str, Any], _: int) -> bool:
        return bool(assignment["learning_rate"] != 1)

    return result_files(summarise(results, description="Why?", in_spec=in_spec, spec_digest="sha256:0"))


def kept(tree: FileTree) -> list[list[Record]]:
    return [
        [record for record in records_jsonl.records(tree[records_path(name)]) if isinstance(record, Record)]
        for name in NAMES
    ]


@settings(max_examples=25, deadline=None)
@given(READINGS, st.randoms())
def test_parts_merged_in_any_order_equal_the_whole(
    readings: tuple[list[Record], ...], chance: random.Random
) -> None:
    """Readings that overlap, each written to git and read back, then merged in any order."""
    shares = (0.5, 0.7, 1)
    parts = [
        [[record for record in records if chance.random() < share] for records in readings]
        for share in shares
    ]
    read_back = [kept(files(batches(part))) for part in parts]
    chance.shuffle(read_back)
    merged = batches([record for part in read_back for record in part[place]] for place in range(len(NAMES)))
    chance.shuffle(merged)

    assert files(merged) == files(batches(readings))


@settings(max_examples=25, deadline=None)
@given(READINGS)
def test_written_results_give_the_same_bytes(readings: tuple[list[Record], ...]) -> None:
    bad = {0: ("truncated",), 2: ("foreign", "empty")}
    first = files(
        replace(batch, records=(*batch.records, *substitute_records(batch, bad)))
        for batch in batches(readings)
    )

    assert files(batches(kept(first))) == first
