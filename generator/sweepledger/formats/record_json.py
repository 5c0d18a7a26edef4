"""The record of one attempt, a file from an untrusted trial; the lines of git are made from it (`records_jsonl`).

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
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from operator import itemgetter
from sys import intern
from types import MappingProxyType
from typing import Any

from sweepledger.formats.json import RejectedInput, parse_untrusted_object
from sweepledger.structs.record import Artifact, ArtifactList, Curve, EarlyStop, Environment, Record, Status
from sweepledger.structs.values import LARGEST_EXACT_INTEGER, CanonicalObject, canonical_json

VERSION = 1
MAX_RECORD_BYTES = 32 * 1024

LARGEST_TRIAL_FILE = 1 << 20
"""Bytes of a record or of a trial's output; the launcher writes none that is larger, and larger ones are ignored."""
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
SMALL_RECORD_BYTES = MAX_DETAILS_BYTES // 4
"""A record of this size cannot exceed the limit of details: `1e15` grows fourfold, nothing by more."""
MAX_METRICS = 101
MAX_ARTIFACTS = 1000
MAX_CURVES = 100
MAX_CURVE_POINTS = 200
MAX_ROWS = 10_000_000
LONGEST_SECONDS = 10**10
"""Three centuries: sums of more could overflow."""
LARGEST_NUMBER = 1e150
"""A larger metric counts as not finite: its square is, and sums of a few such numbers can be."""
MAX_ATTEMPTS = 1_000_000_000
"""The launcher accepts a number of earlier failures with nine digits."""


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
    return _read_small(content) if len(content) <= SMALL_RECORD_BYTES else _read(content)


def _read(content: bytes, *, is_small: bool = False) -> Record | CorruptRecord:
    try:
        return from_data(parse_untrusted_object(content), is_small=is_small)
    except RejectedInput as refused:
        return CorruptRecord(str(refused))


@lru_cache(maxsize=512)
def _read_small(content: bytes) -> Record | CorruptRecord:
    """Return a record; a laptop reads each of them when its trial has ended, and again to commit it."""
    return _read(content, is_small=True)


def read_message(content: bytes) -> Record | CorruptRecord:
    """Return the record in a termination message: whole, with compressed curves, or only its first part.

    The last two have the digest of the whole record, which restores the curves or stays on the volume. Curves that did
    not fit are counted among the details, and the others cannot be compared with the digest.
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
            # The sums of anything but numbers grow with the square of the text.
            if len(columns) > MAX_CURVES or not all(map(_are_steps, columns.values())):
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


def _are_steps(columns: Any) -> bool:
    """Return whether a pair of lists begins with few differences of steps."""
    differences, _ = columns
    return len(differences) <= MAX_CURVE_POINTS and all(type(step) is int for step in differences)


def from_line(line: str) -> Record | CorruptRecord:
    """Return one line of a batch's records."""
    return read(line.encode("utf-8", "surrogatepass"))


def to_line(record: Record) -> str:
    """Return the canonical form of a record, without a line end and without what the collector observed."""
    return canonical_json(as_data(record))


def as_data(record: Record) -> dict[str, Any]:
    """Return the members of a record as JSON data, without what the collector observed."""
    data = {
        "version": VERSION,
        **{name: getattr(record, name) for name in _FIELDS},
        "environment": as_object(record.environment),
        "artifacts": as_object(record.artifact_list)
        or [
            {"path": artifact.path, "bytes": artifact.bytes, "sha256": artifact.sha256}
            for artifact in record.artifacts
        ],
    }
    if record.curves:
        data["curves"] = record.curves
    if record.stopped is not None:
        data["stopped"] = as_object(record.stopped)
    if record.shared is not None:
        data["shared"] = record.shared
    return data


def as_object(value: Environment | ArtifactList | EarlyStop | None) -> dict[str, Any] | None:
    """Return a part of a record as JSON data."""
    return None if value is None else {name: getattr(value, name) for name in value.__slots__}


def split_curves(line: str) -> tuple[str, Mapping[str, str]]:
    """Return a record's line without its curves, and each curve by metric as alternating steps and values.

    Reading a hundred thousand curves as lists of lists takes seconds. The line must have the canonical form, of which
    the caller notices other forms as wrong JSON.
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


@dataclass(frozen=True, slots=True)
class _Field:
    """Rule of a member: its exact types, because a boolean is an `int` in Python, and a check."""

    kinds: tuple[type, ...]
    rule: Callable[[Any], object]
    pattern: str = ""


def _text(pattern: str, *, optional: bool = False) -> _Field:
    match = re.compile(pattern, re.ASCII).fullmatch
    if optional:
        return _Field((str, type(None)), lambda value: value is None or match(value) is not None, pattern)
    return _Field((str,), match, pattern)


def _are_metrics(metrics: dict[str, Any]) -> bool:
    return len(metrics) <= MAX_METRICS and all(
        _METRIC_NAME(name) and (value is None or type(value) in _NUMBERS) for name, value in metrics.items()
    )


def _is_curve(points: list[Any]) -> bool:
    return 0 < len(points) <= MAX_CURVE_POINTS and all(
        type(point) is list
        and len(point) == 2  # noqa: PLR2004 - a pair
        and type(point[0]) is int
        and 0 <= point[0] <= LARGEST_EXACT_INTEGER
        and (point[1] is None or type(point[1]) in _NUMBERS)
        for point in points
    )


_NUMBERS = (int, float)
_LONG = 2**63
_HEX = "[0-9a-f]{64}"
TRIAL_ID = "t[0-9a-f]{11}"
BATCH_NAME = "[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?"
_LEAP_YEAR = "[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00"
_DAY = (
    "[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    f"|02-(?:0[1-9]|1[0-9]|2[0-8]))|(?:{_LEAP_YEAR})-02-29"
)
TIME = rf"(?!0000)(?:{_DAY})T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{{1,6}})?Z"
_METRIC_NAME = re.compile("[A-Za-z][A-Za-z0-9_./@-]{0,62}").fullmatch
# A relative path below its folder; file names cannot contain NUL.
_PATH = r"(?!/|[\s\S]*//|(?:[\s\S]*/)?\.{1,2}(?:/|(?![\s\S])))[^\u0000]{1,1024}"

_FIELDS: Mapping[str, _Field] = {
    "trial": _text(TRIAL_ID),
    "row": _text(_HEX),
    "batch": _text(BATCH_NAME),
    "index": _Field((int,), lambda value: 0 <= value < MAX_ROWS),
    "uid": _text("[A-Za-z0-9][A-Za-z0-9._-]{0,127}"),
    "attempt": _Field((int,), lambda value: 1 <= value <= MAX_ATTEMPTS),
    "disruptions": _Field((int,), lambda value: 0 <= value <= MAX_ATTEMPTS),
    "status": _text("ok|diverged|failed|pruned"),
    "reason": _text("[a-z0-9][a-z0-9-]{0,63}", optional=True),
    "metrics": _Field((dict,), _are_metrics),
    "seconds": _Field((int, float), lambda value: 0 <= value <= LONGEST_SECONDS),
    "started": _text(TIME),
    "finished": _text(TIME),
    "ran": _text("[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,511}"),
    "code": _text("[0-9a-f]{40}|[0-9a-f]{64}"),
    "data": _text(f"sha256:{_HEX}|version:[^\\u0000-\\u001f]{{1,1024}}", optional=True),
    "seed": _Field((int,), lambda value: -_LONG <= value < _LONG),
    "node": _text("[A-Za-z0-9._-]{0,253}", optional=True),
    "details": _Field((dict,), lambda _: True),
}
"""Members with the same names as the fields of Record, in the same order."""

_TEXTS = ("trial", "row", "batch", "uid", "started", "finished", "ran", "code")
_OTHERS = {name: wanted for name, wanted in _FIELDS.items() if name not in _TEXTS}
_texts = itemgetter(*_TEXTS)
_are_texts = re.compile("\n".join(f"(?:{_FIELDS[name].pattern})" for name in _TEXTS), re.ASCII).fullmatch
"""Checks all texts at once, in half the time. No valid text contains a line end, so the joined text is unambiguous."""

_ARTIFACT_FIELDS: Mapping[str, _Field] = {
    "path": _text(_PATH),
    "bytes": _Field((int,), lambda value: 0 <= value < _LONG),
    "sha256": _text(_HEX),
}
_ABSENT = object()
_DIGEST = f"sha256:{_HEX}"
_ENVIRONMENT: Mapping[str, _Field] = {"kind": _text("lock|distributions"), "digest": _text(_DIGEST)}
_ARTIFACT_LIST: Mapping[str, _Field] = {
    "count": _Field((int,), lambda value: 1 <= value <= MAX_ARTIFACTS),
    "bytes": _Field((int,), lambda value: 1 <= value <= LARGEST_TRIAL_FILE),
    "sha256": _text(_HEX),
}
_STOPPED: Mapping[str, _Field] = {
    "rule": _text("[a-z0-9][a-z0-9-]{0,63}"),
    "step": _Field((int,), lambda value: 0 <= value <= LARGEST_EXACT_INTEGER),
    "threshold": _Field((int, float, type(None)), lambda _: True),
    "seen": _text(_DIGEST, optional=True),
}
_SHARED = _Field((int,), lambda value: 1 <= value <= 1000)  # noqa: PLR2004 - as in the schema


def is_time(value: object) -> bool:
    """Return whether a value is a time in the format of records."""
    return type(value) is str and _MATCHES_TIME(value) is not None


_MATCHES_TIME = re.compile(TIME, re.ASCII).fullmatch


def from_data(data: dict[str, Any], *, is_small: bool = False) -> Record:
    """Return the record in JSON data, which are changed; small ones need no check of sizes. Raises RejectedInput."""
    version = data.pop("version", None)
    if type(version) is not int or version != VERSION:
        raise RejectedInput("unknown-version")
    _check(data, _OTHERS if _has_texts(data) else _FIELDS)
    parts = _parts(data)
    if len(data) > len(_FIELDS):
        raise RejectedInput("unknown-key")
    if (data["status"] == Status.OK) is not (data["reason"] is None):
        raise RejectedInput("wrong-value:reason")
    details = CanonicalObject(canonical_json(data["details"]))
    if not is_small and len(details.text) > MAX_DETAILS_BYTES:
        raise RejectedInput("wrong-value:details")
    # Trials share names, and each parser makes its own texts of them.
    metrics = {intern(name): _number(value) for name, value in data["metrics"].items()}
    data |= {
        "status": Status(data["status"]),
        "metrics": MappingProxyType(metrics),
        "seconds": float(data["seconds"]),
        "details": details,
    }
    return Record(**data, **parts)


def _parts(data: dict[str, Any]) -> dict[str, Any]:
    """Remove the members that are objects or optional; return the fields of the record. Raises RejectedInput."""
    for name in ("environment", "artifacts"):
        if name not in data:
            raise RejectedInput(f"missing:{name}")
    environment, artifacts = data.pop("environment"), data.pop("artifacts")
    stopped, shared = data.pop("stopped", None), data.pop("shared", None)
    if shared is not None:
        _check({"shared": shared}, {"shared": _SHARED})
    is_file = type(artifacts) is dict
    return {
        "environment": None if environment is None else Environment(**_object(environment, _ENVIRONMENT)),
        "artifacts": () if is_file else _artifacts(artifacts),
        "artifact_list": ArtifactList(**_object(artifacts, _ARTIFACT_LIST)) if is_file else None,
        "curves": _curves(data.pop("curves", {})),
        "stopped": None if stopped is None else EarlyStop(**_object(stopped, _STOPPED)),
        "shared": shared,
    }


def _object(value: Any, fields: Mapping[str, _Field]) -> dict[str, Any]:
    if type(value) is not dict:
        raise RejectedInput("wrong-type:object")
    _check(value, fields)
    if len(value) > len(fields):
        raise RejectedInput("unknown-key")
    return value


def _number(value: float | None) -> float | None:
    """Return a reported number; None if nothing can be computed with it."""
    return None if value is None or abs(value) > LARGEST_NUMBER else float(value)


def _curves(curves: Any) -> Mapping[str, Curve]:
    if type(curves) is not dict or any(type(points) is not list for points in curves.values()):
        raise RejectedInput("wrong-type:curves")
    if len(curves) > MAX_CURVES or not all(_METRIC_NAME(name) and _is_curve(curves[name]) for name in curves):
        raise RejectedInput("wrong-value:curves")
    return MappingProxyType(
        {
            intern(name): Curve(canonical_json([[step, _number(value)] for step, value in points]))
            for name, points in curves.items()
        }
    )


def read_artifacts(content: bytes) -> tuple[Artifact, ...]:
    """Return the artifacts in a list that is too long for its record. Raises RejectedInput."""
    data = parse_untrusted_object(b'{"artifacts":' + content + b"}")
    if len(data) > 1:
        raise RejectedInput("trailing-data")
    return _artifacts(data["artifacts"])


def _artifacts(items: Any) -> tuple[Artifact, ...]:
    if type(items) is not list or any(type(item) is not dict for item in items):
        raise RejectedInput("wrong-type:artifacts")
    if len(items) > MAX_ARTIFACTS:
        raise RejectedInput("wrong-value:artifacts")
    for item in items:
        _check(item, _ARTIFACT_FIELDS)
        if len(item) > len(_ARTIFACT_FIELDS):
            raise RejectedInput("unknown-key")
    return tuple(Artifact(**item) for item in items)


def _check(data: Mapping[str, Any], fields: Mapping[str, _Field]) -> None:
    for name, wanted in fields.items():
        value = data.get(name, _ABSENT)
        if type(value) not in wanted.kinds:
            raise RejectedInput(f"missing:{name}" if value is _ABSENT else f"wrong-type:{name}")
        if not wanted.rule(value):
            raise RejectedInput(f"wrong-value:{name}")


def _has_texts(data: Mapping[str, Any]) -> bool:
    try:
        return _are_texts("\n".join(_texts(data))) is not None
    except (KeyError, TypeError):
        return False
