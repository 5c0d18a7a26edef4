"""The record of one attempt, a file from an untrusted trial; `records_jsonl` makes the lines in git from it.

The strict reader accepts what `record.schema.json` next to the launcher describes, and rejects what no schema can
express: duplicate keys, whole numbers with a point, and records that are too large as a whole. The canonical form has
sorted keys, ASCII and shortest numbers (1.0 is written `1`), so equal records are equal bytes.
"""

import base64
import hashlib
import itertools
import json
import re
import zlib
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from sys import intern
from types import MappingProxyType
from typing import Annotated, Any

from msgspec import Meta, ValidationError, convert

from sweepledger.formats.json import RejectedInput, parse_untrusted_object
from sweepledger.structs.record import (
    LARGEST_TRIAL_FILE,
    MAX_ARTIFACTS,
    MAX_CURVE_POINTS,
    MAX_CURVES,
    RECORDED_STATUSES,
    Artifact,
    Curve,
    Record,
    Status,
)
from sweepledger.structs.values import CanonicalObject, canonical_json
from sweepledger.structs.values import as_data as plain_data

VERSION = 1
MAX_RECORD_BYTES = 32 * 1024

MOST_RECORDS = 200
"""Record files of one trial that are read. Each attempt leaves one, and a trial can leave any number."""
MOST_RECORD_BYTES = 4 * LARGEST_TRIAL_FILE
"""Bytes of a trial's record files after which no further one is read. Files that are too large do not count."""
MOST_COUNTED = 1000
"""Further files that are counted."""
CURVES_LEFT_OUT = "curves_left_out"
"""Member of a record's details: the number of curves without room."""
UNREAD = b"\x00"
"""Stands for a record file beyond these bounds."""
MAX_DETAILS_BYTES = 32 * 1024
"""Four times the launcher's limit, which counts the bytes of another encoding."""
LARGEST_NUMBER = 1e150
"""A larger metric counts as not finite: its square is, and sums of a few such numbers can be."""


@dataclass(frozen=True, slots=True)
class CorruptRecord:
    """An invalid record, and the reason in one word: `truncated`, `wrong-type:metrics` …."""

    reason: str


def format_time(seconds: float) -> str:
    """Return a time, in seconds since 1970, in the format of records."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def read(content: bytes | None) -> Record | CorruptRecord:
    """Return one untrusted record file; None stands for a path without a regular file."""
    if content is None:
        return CorruptRecord("not-a-file")
    if len(content) > MAX_RECORD_BYTES:
        return CorruptRecord("too-large")
    return _read(content)


@lru_cache(maxsize=512)
def _read(content: bytes) -> Record | CorruptRecord:
    """Return a record; a laptop reads each record when its trial has ended, and again to commit it."""
    try:
        return from_data(parse_untrusted_object(content))
    except RejectedInput as refused:
        return CorruptRecord(str(refused))


def read_message(content: bytes) -> Record | CorruptRecord:
    """Return the record in a termination message: whole, with compressed curves, or only its first part.

    The last two include the digest of the whole record, which is restored or stays on the volume. Curves that did
    not fit are counted in the details; the remaining curves cannot be compared with the digest.
    """
    record = read(content)
    if isinstance(record, Record) or b'"sha256"' not in content:
        return record
    try:
        data = parse_untrusted_object(content)
        whole = data.pop("sha256", None)
        if "curves_zlib" in data or CURVES_LEFT_OUT in data:
            return _with_curves(data, whole)
        if type(whole) is not str:
            return CorruptRecord("wrong-value:sha256")
        return from_data({"artifacts": [], "details": {}, "environment": None, **data})
    except RejectedInput as refused:
        return CorruptRecord(str(refused))


def _with_curves(data: dict[str, Any], whole: object) -> Record | CorruptRecord:
    """Return the record whose curves are compressed, if it has the digest of the whole record. Raises RejectedInput."""
    left_out = data.pop(CURVES_LEFT_OUT, 0)
    try:
        if packed := data.pop("curves_zlib", ""):
            text = zlib.decompressobj().decompress(base64.b64decode(str(packed)), MAX_RECORD_BYTES)
            columns = json.loads(text)
            # Of each curve the differences of its steps, and its values. The sums of anything but numbers grow with the
            # square of the text.
            if len(columns) > MAX_CURVES or not all(
                len(steps) <= MAX_CURVE_POINTS and all(type(step) is int for step in steps)
                for steps, _ in columns.values()
            ):
                return CorruptRecord("wrong-value:curves_zlib")
            data["curves"] = {
                name: [list(point) for point in zip(itertools.accumulate(differences), values, strict=True)]
                for name, (differences, values) in columns.items()
            }
        line = json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False) + "\n"
    except (AttributeError, ValueError, TypeError, zlib.error, RecursionError):
        return CorruptRecord("wrong-value:curves_zlib")
    if not left_out and hashlib.sha256(line.encode()).hexdigest() != str(whole).removeprefix("sha256:"):
        return CorruptRecord("wrong-value:sha256")
    if left_out and type(data.get("details")) is dict:
        earlier = data["details"].get(CURVES_LEFT_OUT, 0)
        data["details"][CURVES_LEFT_OUT] = (
            left_out + earlier if type(earlier) is type(left_out) is int else left_out
        )
    return from_data(data)


def to_line(record: Record) -> str:
    """Return the canonical form of a record, without a line end and without the collector's observations."""
    return canonical_json(as_data(record))


def as_data(record: Record) -> dict[str, Any]:
    """Return the members of a record as JSON data, without the collector's observations."""
    optional = {"curves": record.curves, "stopped": plain_data(record.stopped), "shared": record.shared}
    return {
        "version": VERSION,
        **{name: getattr(record, name) for name in _PLAIN},
        "environment": plain_data(record.environment),
        "artifacts": plain_data(record.artifact_list) or plain_data(record.artifacts),
        **{name: value for name, value in optional.items() if value},
    }


_PLAIN = tuple(
    name for name in Record.__slots__[: Record.__slots__.index("artifacts")] if name != "environment"
)
"""Members with one value, which need no conversion."""


def split_curves(line: str) -> tuple[str, Mapping[str, str]]:
    """Return a record's line without its curves, and each curve by metric as alternating steps and values.

    Reading a hundred thousand curves as lists of lists takes seconds. The line must have the canonical form;
    the caller rejects other forms as invalid JSON.
    """
    match = _CURVES.search(line)
    if match is None or match["curves"] is None:
        return line, {}
    text, _, rest = line[match.end() :].partition("}")
    return line[: match.start("curves")] + rest, {
        name: points.replace("],[", ",") for name, points in _CURVE.findall(text)
    }


# The first `attempt` of a line is the record's own: before it are only artifacts, and quotes inside of texts are
# escaped.
_CURVES = re.compile(r'"attempt":[0-9]+(?P<curves>,"curves":\{)?')
_CURVE = re.compile(r'"([^"]*)":\[\[([^"]*)\]\]')

MEMBERS = frozenset(Record.__slots__) - {"artifact_list", "observed", "others", "thresholds"}
"""Members of a record that a launcher writes, beside its version."""
_MISSING = re.compile("Object missing required field `([a-z0-9_]+)`")
_NAMES = re.compile(r"\.([a-z0-9_]+)")


def from_data(data: dict[str, Any], *, members: AbstractSet[str] = MEMBERS) -> Record:
    """Return the record in JSON data; the data are modified. Raises RejectedInput."""
    version = data.pop("version", None)
    if type(version) is not int or version != VERSION:
        raise RejectedInput("unknown-version")
    if not data.keys() <= members:
        raise RejectedInput("unknown-key")
    if "artifacts" not in data:
        raise RejectedInput("missing:artifacts")
    if type(data["artifacts"]) is dict:
        data["artifact_list"] = data.pop("artifacts")
    record: Record = _convert(data, Record)
    if record.status not in RECORDED_STATUSES:
        raise RejectedInput("wrong-value:status")
    if (record.status is Status.OK) is not (record.reason is None):
        raise RejectedInput("wrong-value:reason")
    if record.observed is not None and record.observed[0] > record.observed[1]:
        raise RejectedInput("wrong-value:observed")
    details = CanonicalObject(canonical_json(record.details))
    if len(details.text) > MAX_DETAILS_BYTES:
        raise RejectedInput("wrong-value:details")
    # Trials share names, and each parser makes its own texts of them.
    metrics = {intern(name): _number(value) for name, value in record.metrics.items()}
    curves = {
        intern(name): Curve(canonical_json([[step, _number(value)] for step, value in points]))
        for name, points in record.curves.items()
    }
    return replace(
        record, metrics=MappingProxyType(metrics), details=details, curves=MappingProxyType(curves)
    )


def _convert(data: Any, kind: Any) -> Any:
    try:
        return convert(data, kind)
    except ValidationError as error:
        if missing := _MISSING.match(str(error)):
            raise RejectedInput(f"missing:{missing[1]}") from error
        if str(error).startswith("Object contains unknown field"):
            raise RejectedInput("unknown-key") from error
        rule, _, place = str(error).rpartition(" - at ")
        name = _NAMES.findall(place)[-1]
        is_type = ", got `" in rule and place.endswith(f".{name}`")
        raise RejectedInput(f"wrong-{'type' if is_type else 'value'}:{name}") from error


def _number(value: float | None) -> float | None:
    """Return a reported number; None if it is absent or too large to compute with."""
    return None if value is None or abs(value) > LARGEST_NUMBER else value + 0.0


def read_artifacts(content: bytes) -> tuple[Artifact, ...]:
    """Return the artifacts in a separate list, which was too long for the record. Raises RejectedInput."""
    data = parse_untrusted_object(b'{"artifacts":' + content + b"}")
    if len(data) > 1:
        raise RejectedInput("trailing-data")
    artifacts: tuple[Artifact, ...] = _convert(data, _ArtifactsFile).artifacts
    return artifacts


@dataclass(frozen=True, slots=True)
class _ArtifactsFile:
    artifacts: Annotated[tuple[Artifact, ...], Meta(max_length=MAX_ARTIFACTS)]
