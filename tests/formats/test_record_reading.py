"""The reader of record files against those who may mean harm (catalogue R1 to R3, R6)."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend

from sweepledger.formats import record_json
from sweepledger.formats.json import RejectedInput
from sweepledger.formats.record_json import CorruptRecord
from sweepledger.structs.record import Artifact, Record, Status

VALID: dict[str, Any] = {
    "version": 1,
    "trial": "t00000000000",
    "row": "ab" * 32,
    "batch": "lr-b1-3f9a1c2e",
    "index": 0,
    "uid": "2f1c",
    "attempt": 1,
    "disruptions": 0,
    "status": "ok",
    "reason": None,
    "metrics": {"test_accuracy": 0.94},
    "seconds": 3.25,
    "started": "2026-01-01T00:00:00Z",
    "finished": "2026-01-01T00:00:03Z",
    "ran": "process",
    "code": "c0de" * 10,
    "data": None,
    "seed": 0,
    "node": "here",
    "environment": None,
    "details": {"device": "cpu"},
    "artifacts": [{"path": "model.pt", "bytes": 12, "sha256": "cd" * 32}],
    "curves": {"accuracy": [[1, 0.9], [2, None], [3, 0.94]], "loss": [[1, 2], [3, 1]]},
}


def content(**changes: Any) -> bytes:
    return json.dumps({**VALID, **changes}).encode()


def pattern(_: object, wanted: str, value: object, __: object) -> Iterator[ValidationError]:
    """Match as ECMAScript does, whose `$` is not satisfied by a line end that follows."""
    if isinstance(value, str) and not re.search(re.sub(r"\$$", r"\\Z", wanted), value):
        yield ValidationError(f"{value!r} does not match {wanted!r}")


def is_whole(_: object, value: object) -> bool:
    """Take numbers without a point only: one thing that no schema can ask for."""
    return isinstance(value, int) and not isinstance(value, bool)


Strict = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    {"pattern": pattern},
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", is_whole),
)
SCHEMA = Strict(json.loads((Path(__file__).parents[2] / "base/launcher/v1/record.schema.json").read_text()))


def text(member: str, source: str) -> bytes:
    """A record in which one member is written as given, JSON or not."""
    return content(**{member: "HERE"}).replace(b'"HERE"', source.encode())


def test_a_valid_record_is_read_whole() -> None:
    record = record_json.read(content())

    assert isinstance(record, Record)
    assert record.status is Status.OK
    assert record.metrics == {"test_accuracy": 0.94}
    assert record.details == {"device": "cpu"}
    assert record.artifacts == (Artifact("model.pt", 12, "cd" * 32),)
    assert record.curve("accuracy") == ((1, 0.9), (2, None), (3, 0.94))
    assert (record.curve("loss"), record.curve("time")) == (((1, 2.0), (3, 1.0)), ())
    assert (record.uid, record.node, record.code, record.data) == ("2f1c", "here", "c0de" * 10, None)


@pytest.mark.parametrize(
    ("hostile", "reason"),
    [
        pytest.param(b"", "empty", id="empty"),
        pytest.param(b" \n", "empty", id="blank"),
        pytest.param(content()[:-1], "truncated", id="the-last-brace-is-lost"),
        pytest.param(content()[:100], "truncated", id="cut-inside-text"),
        pytest.param(b'{"a": {}', "truncated", id="cut-after-an-inner-brace"),
        pytest.param(content() + b"x", "trailing-data", id="trailing-bytes"),
        pytest.param(content() * 2, "trailing-data", id="two-documents"),
        pytest.param(b"\xef\xbb\xbf" + content(), "not-json", id="byte-order-mark"),
        pytest.param(content().decode().encode("utf-16"), "not-utf8", id="utf-16"),
        pytest.param(b"\x00" * 400, "not-json", id="nul-filled-after-power-loss"),
        pytest.param(b"<<<<<<< HEAD\n" + content(), "not-json", id="conflict-marker"),
        pytest.param(b"[1]", "not-an-object", id="a-list"),
        pytest.param(b"null", "not-an-object", id="null"),
        pytest.param(b"{}", "unknown-version", id="an-empty-object"),
        pytest.param(b" " * (32 * 1024 + 1), "too-large", id="more-than-32-kib"),
        pytest.param(text("details", "[" * 10_000), "too-deep", id="ten-thousand-deep"),
        pytest.param(text("details", '{"a":' * 16 + "1" + "}" * 16), "too-deep", id="seventeen-deep"),
        pytest.param(b'"' + b'\\"' * 10_000, "not-json", id="one-endless-text"),
        pytest.param(text("seed", "1" * 5000), "number-too-large", id="five-thousand-digits"),
        pytest.param(content()[:-1] + b',"trial":"t1"}', "duplicate-key", id="duplicate-key"),
        pytest.param(text("details", '{"a":1,"a":1}'), "duplicate-key", id="duplicate-key-inside"),
        pytest.param(text("details", r'{"\ud800":1,"\udbff":1}'), "duplicate-key", id="keys-that-become-one"),
        pytest.param(content(extra=1), "unknown-key", id="unknown-key"),
        pytest.param(content(version=3), "unknown-version", id="a-later-version"),
        pytest.param(content(version=True), "unknown-version", id="true-is-not-1"),
    ],
)
def test_what_is_no_record_is_corrupt_for_one_reason(hostile: bytes, reason: str) -> None:
    assert record_json.read(hostile) == CorruptRecord(reason)


FILE = {"path": "a", "bytes": 1, "sha256": "cd" * 32}
WRONG_VALUES: dict[str, list[object]] = {
    "trial": ["../../etc"],
    "row": ["AB" * 32],
    "batch": ["lr_b1"],
    "index": [-1],
    "uid": ["../x", "a\n"],
    "attempt": [0],
    "status": ["missing", "OK"],
    "reason": ["=cmd|' /C calc'!A0", "\u001b[31m", "exit-1"],
    "metrics": [
        *({"a": "0.93"}, {"a": True}, {"a": [1]}, {"": 1}, {"a\nb": 1}, {"m" * 64: 1}, {"=cmd": 1}),
        *({"val Ä": 1}, {f"m{number}": 1 for number in range(102)}),
    ],
    "seconds": [-1, 9e307],
    "started": [
        *("2026-13-01T00:00:00Z", "2026-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "0000-01-01T00:00:00Z"),
        *("2026-01-01T24:00:00Z", "2026-01-01T00:00:00+00:00"),
    ],
    "ran": ["image with spaces"],
    "code": ["main"],
    "data": ["sha256:1", "version:"],
    "seed": [2**63],
    "node": ["a b"],
    "artifacts": [[1]],
    "curves": [
        *(
            {"loss": {}},
            {"loss": []},
            {"1loss": [[1, 0.5]]},
            {f"m{number}": [[1, 0.5]] for number in range(101)},
        ),
        {"loss": [[1, 0.5]] * 201},
        *({"loss": [point]} for point in (1, [], [1], [1, 2, 3], [1.0, 2], [True, 1], [-1, 1])),
        *({"loss": [point]} for point in ([2**53 + 1, 1], [1, "2"], [1, True])),
    ],
}
WRONG_TYPES: dict[str, list[object]] = {
    "trial": [1],
    "index": [True, 1.0],
    "metrics": [[]],
    "seconds": ["3"],
    "finished": [0],
    "seed": [None],
    "details": [[]],
    "artifacts": ["a"],
    "curves": [[]],
}


@pytest.mark.parametrize(
    ("member", "value", "reason"),
    [
        *((name, value, f"wrong-value:{name}") for name, values in WRONG_VALUES.items() for value in values),
        *((name, value, f"wrong-type:{name}") for name, values in WRONG_TYPES.items() for value in values),
        ("status", "failed", "wrong-value:reason"),
        ("artifacts", {}, "missing:count"),
        ("artifacts", [{"path": "a", "bytes": 1}], "missing:sha256"),
        ("artifacts", [FILE | {"bytes": -1}], "wrong-value:bytes"),
        ("artifacts", [FILE | {"x": 1}], "unknown-key"),
        *(
            ("artifacts", [FILE | {"path": path}], "wrong-value:path")
            for path in ("", "/a", "..", "../a", "a/..", "a/../b", ".", "./a", "a//b", "a\0b", "a" * 1025)
        ),
    ],
)
def test_a_wrong_member_is_named(member: str, value: object, reason: str) -> None:
    assert record_json.read(content(**{member: value})) == CorruptRecord(reason)
    assert not SCHEMA.is_valid({**VALID, member: value})


@pytest.mark.parametrize("member", [name for name in VALID if name not in {"version", "curves"}])
def test_a_missing_member_is_named(member: str) -> None:
    less = {name: value for name, value in VALID.items() if name != member}

    assert record_json.read(json.dumps(less).encode()) == CorruptRecord(f"missing:{member}")


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("index", 9_999_999), ("attempt", 10**9), ("seed", -(2**63)), ("seed", 2**63 - 1), ("seconds", 0),
        ("details", {"log": '[{"' * 200}), ("node", None),
        ("ran", "registry.example:5000/a/b@sha256:" + "ab" * 32), ("code", "c0de" * 16),
        ("data", "sha256:" + "ab" * 32), ("data", "version:torchvision-1"),
        ("started", "2026-01-01T00:00:00.123456Z"), ("started", "2000-02-29T23:59:59Z"),
        ("metrics", {"m" * 63: 1}), ("metrics", {f"m{number}": 1 for number in range(101)}),
        ("metrics", {"val/top-1@5": -1e-300, "none": None}), ("curves", {}),
        ("curves", {f"m{number}": [[2**53, -1e-300]] for number in range(100)}),
        ("curves", {"loss": [[2**53, -1e-300]] * 200}),
        ("artifacts", [{"path": "a\n/..b/größe", "bytes": 0, "sha256": "cd" * 32}]), ("metrics", {}),
        ("artifacts", [{"path": "a", "bytes": 0, "sha256": "cd" * 32}] * 1000),
    ],
)  # fmt: skip
def test_values_at_the_limits_are_read(member: str, value: object) -> None:
    assert isinstance(record_json.from_data({**VALID, member: value}), Record)
    assert SCHEMA.is_valid({**VALID, member: value})


def test_what_grows_in_the_canonical_form_is_bounded_too() -> None:
    details = "[" + ",".join(["1e15"] * 5000) + "]"

    assert record_json.read(text("details", f'{{"a": {details}}}')) == CorruptRecord("wrong-value:details")
    listed = [{"path": "a", "bytes": 0, "sha256": "cd" * 32}] * 1001
    with pytest.raises(RejectedInput, match="wrong-value:artifacts"):
        record_json.from_data({**VALID, "artifacts": listed})


@pytest.mark.parametrize(
    ("source", "value"),
    [
        *((source, None) for source in ("NaN", "Infinity", "-Infinity", "1e999", "null", "1.1e150")),
        *((source, float(source)) for source in ("1e150", "-1e150", "5e-324", "1")),
        ("-0.0", 0.0),
    ],
)
def test_a_number_beyond_the_documented_bound_counts_as_not_finite(source: str, value: float | None) -> None:
    record = record_json.read(text("metrics", f'{{"test_accuracy": {source}}}'))

    assert isinstance(record, Record)
    assert repr(record.metrics["test_accuracy"]) == repr(value)


def test_a_point_that_is_not_finite_is_known_to_be_none() -> None:
    record = record_json.read(text("curves", '{"loss": [[1, NaN], [2, -0.0], [3, 1e999], [4, 1]]}'))

    assert isinstance(record, Record)
    assert repr(tuple(record.curve("loss"))) == "((1, None), (2, 0.0), (3, None), (4, 1.0))"


def test_half_a_surrogate_pair_is_replaced_where_text_is_free() -> None:
    record = record_json.read(text("details", r'{"a": "\ud83d\ude00", "b": ["\ud800x"], "c": "\\ud800"}'))

    assert isinstance(record, Record)
    assert record.details == {"a": "\U0001f600", "b": ["\ufffdx"], "c": "\\ud800"}


def test_a_list_of_artifacts_is_followed_by_nothing() -> None:
    listed = b'[{"path": "model", "bytes": 3, "sha256": "%s"}]' % (b"0" * 64)

    assert [artifact.path for artifact in record_json.read_artifacts(listed)] == ["model"]
    with pytest.raises(RejectedInput) as refused:
        record_json.read_artifacts(listed + b',"version": 1')

    assert str(refused.value) == "trailing-data"
