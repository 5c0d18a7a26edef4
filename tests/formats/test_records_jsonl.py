"""The files of records in git: what their lines share, where they are split, and what they refuse."""

import base64
import hashlib
import json
import zlib
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from sweepledger.formats import record_json, records_jsonl
from sweepledger.formats.record_json import CorruptRecord
from sweepledger.structs.record import (
    NO_CURVES,
    ArtifactList,
    Curve,
    EarlyStop,
    Environment,
    LeftOutAttempts,
    Record,
    Status,
)
from tests.builders import a_record

SCHEMA = json.loads((Path(__file__).parents[2] / "base/launcher/v1/record.schema.json").read_text())
ENVIRONMENT = Environment("distributions", "sha256:" + "ab" * 32)


def recorded(index: int = 0, **changes: Any) -> Record:
    return a_record(index, **{"environment": ENVIRONMENT, **changes})


FULL = recorded(
    1,
    disruptions=3,
    artifact_list=ArtifactList(200, 40_000, "0" * 64),
    stopped=EarlyStop("median", 7, 0.5, None),
    shared=4,
    status=Status.PRUNED,
    reason="median",
    curves=MappingProxyType({"loss": Curve("[[1,0.5],[2,null]]")}),
)
COLLECTED = replace(
    recorded(2),
    observed=("2026-01-01T00:00:00Z", "2026-01-01T00:00:05Z"),
    others=LeftOutAttempts(failed=2, disrupted=1, ignored=7, seconds=12.5),
)
ALL = (recorded(0, ran="process"), FULL, COLLECTED, recorded(3, node=None, environment=None))


def test_records_are_read_back_with_what_the_collector_added() -> None:
    (content,) = records_jsonl.write(ALL)

    assert records_jsonl.records(content) == ALL
    assert records_jsonl.write(r for r in records_jsonl.records(content) if isinstance(r, Record)) == (
        content,
    )


def test_what_the_collector_adds_is_no_part_of_a_record() -> None:
    bare = replace(COLLECTED, observed=None, others=None)

    assert record_json.to_line(COLLECTED) == record_json.to_line(bare)
    assert (COLLECTED.charged_seconds, bare.charged_seconds) == (5.0, bare.seconds)


@pytest.mark.parametrize(
    "change",
    [
        {"disruptions": -1},
        {"disruptions": True},
        {"environment": {"kind": "image", "digest": "sha256:" + "0" * 64}},
        {"environment": {"kind": "lock"}},
        {"stopped": {"rule": "median", "step": 1, "threshold": None, "seen": "no digest"}},
        {"shared": 0},
        {"artifacts": {"count": 0, "bytes": 1, "sha256": "0" * 64}},
        {"others": {}},
        {"observed": ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"]},
    ],
    ids=str,
)
def test_a_trial_cannot_write_other_members(change: dict[str, Any]) -> None:
    line = {**json.loads(record_json.to_line(recorded())), **change}

    assert isinstance(record_json.read(json.dumps(line).encode()), CorruptRecord)
    assert not Draft202012Validator(SCHEMA).is_valid(line)


def test_a_large_file_is_split_between_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    records = [
        recorded(index, attempt=attempt, uid=f"u{index}-{attempt}")
        for index in range(20)
        for attempt in (1, 2)
    ]
    monkeypatch.setattr(records_jsonl, "MAX_FILE_BYTES", 4_000)

    files = records_jsonl.write(records)

    assert len(files) > 2
    assert all(len(file) <= 4_000 for file in files)
    read = [records_jsonl.records(file) for file in files]
    assert [one for part in read for one in part] == records
    indexes = [{one.index for one in part if isinstance(one, Record)} for part in read]
    assert sum(map(len, indexes)) == 20, "both records of a trial are in one file"


def test_the_largest_batch_stays_below_every_limit() -> None:
    """Computed: a line and the first lines of three files, with a thousand nodes each."""
    usual = recorded(
        99_999,
        uid="3f9a1c2e-9d4b-4c8e-8f3a-5b6c7d8e9f01",
        metrics=MappingProxyType({"val_loss": 0.12345678901234567, "val_accuracy": 0.9345678901234567}),
        details=MappingProxyType({}),
        ran=f"registry.example.org/team/trainer@sha256:{'0' * 64}",
    )
    line = records_jsonl.line_size(usual)
    first = len(records_jsonl.write([usual])[0]) + 1000 * len('"node-0000.eu-west-1.example.internal",')

    assert 100_000 * line + 3 * first < 50_000_000
    assert records_jsonl.MAX_FILE_BYTES < 50_000_000


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"version":1', b'"version":2'),
        (b'"nodes":["here"]', b'"nodes":[]'),
        (b'"nodes":["here"]', b'"nodes":7'),
        (b'"version":1', b'"version":1,"more":1'),
        (b'"index":0', b'"index":0,"node":1'),
        (b'"index":0', b'"index":0,"node":-1'),
        (b'"index":0', b'"index":0,"observed":["2026-01-01T00:00:05Z","2026-01-01T00:00:00Z"]'),
        (b'"index":0', b'"index":0,"observed":"2026-01-01T00:00:05Z"'),
        (b'"index":0', b'"index":0,"others":{"failed":-1}'),
        (b'"index":0', b'"index":0,"others":{"seconds":NaN}'),
        (b'"index":0', b'"index":0,"others":[]'),
    ],
    ids=str,
)
def test_a_line_or_first_line_of_another_form_is_corrupt(old: bytes, new: bytes) -> None:
    (content,) = records_jsonl.write([recorded()])
    assert old in content

    (read,) = records_jsonl.records(content.replace(old, new, 1))

    assert isinstance(read, CorruptRecord)


def test_a_termination_message_has_the_record_or_its_first_part() -> None:
    record = recorded(
        curves=MappingProxyType({"acc": Curve("[[1,0.5],[3,0.25],[9,null]]"), "lr": Curve("[[2,1]]")})
    )
    line = json.loads(record_json.to_line(record))
    text = json.dumps(line, sort_keys=True, separators=(",", ":")) + "\n"
    whole = hashlib.sha256(text.encode()).hexdigest()
    short = {name: value for name, value in line.items() if name != "curves"}
    packed = base64.b64encode(zlib.compress(b'{"acc":[[1,2,6],[0.5,0.25,null]],"lr":[[2],[1]]}')).decode()
    first = {
        name: value for name, value in short.items() if name not in {"details", "artifacts", "environment"}
    }

    assert record_json.read_message(text.encode()) == record
    compressed = {**short, "curves_zlib": packed, "sha256": whole}
    assert record_json.read_message(json.dumps(compressed).encode()) == record
    assert record_json.read_message(json.dumps({**first, "sha256": whole}).encode()) == replace(
        record, curves=NO_CURVES, details=MappingProxyType({}), environment=None
    )
    partial = {**compressed, "curves_left_out": 3, "details": {"curves_left_out": 2}}
    assert record_json.read_message(json.dumps(partial).encode()) == replace(
        record, details=MappingProxyType({"curves_left_out": 5})
    )
    for forged in (
        {**compressed, "sha256": "0" * 64},
        {**compressed, "curves_zlib": "eJw="},
        {**first, "sha256": 7},
    ):
        assert isinstance(record_json.read_message(json.dumps(forged).encode()), CorruptRecord)
