"""The record of one attempt: a file from a hostile trial, and a line of `records/<batch>.jsonl` in git.

Both are the same JSON, read by the same strict reader. A line is its canonical form: sorted keys, ASCII,
shortest numbers (1.0 is written `1`), so equal records are equal bytes.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from generator.formats.hostile_json import Refused, parse_object
from generator.structs.record import Artifact, Record, Status
from generator.structs.values import canonical, canonical_json

RECORD_VERSION = 1

LARGEST_DETAILS = 32 * 1024
"""Four times what the launcher lets through: its count is of other bytes than ours."""
MOST_METRICS = 256
MOST_ARTIFACTS = 1000
LONGEST_METRIC_NAME = 128
MOST_ROWS = 10_000_000


@dataclass(frozen=True, slots=True)
class Corrupt:
    """A record that cannot be believed, and why in one word: `truncated`, `wrong-type:metrics` …."""

    reason: str


def time_of(seconds: float) -> str:
    """Write a moment, in seconds since 1970, as records hold it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def read(content: bytes) -> Record | Corrupt:
    """Read one record file, whoever wrote it."""
    try:
        return _record(parse_object(content))
    except Refused as refused:
        return Corrupt(str(refused))


def from_line(line: str) -> Record | Corrupt:
    """Read one line of a batch's records."""
    return read(line.encode("utf-8", "surrogatepass"))


def to_line(record: Record) -> str:
    """Write a record in its one canonical form, without a line end."""
    return canonical_json(
        {
            "version": RECORD_VERSION,
            **{name: getattr(record, name) for name in _FIELDS},
            "artifacts": [
                {"path": artifact.path, "bytes": artifact.bytes, "sha256": artifact.sha256}
                for artifact in record.artifacts
            ],
        }
    )


def read_lines(text: str) -> tuple[Record | Corrupt, ...]:
    """Read a batch's records, in the order of the lines."""
    return tuple(from_line(line) for line in text.split("\n") if line)


def write_lines(records: Iterable[Record]) -> str:
    """Write a batch's records: sorted by row and attempt, each once, whatever order they came in."""
    keyed = {(record.index, record.attempt, to_line(record)) for record in records}
    return "".join(f"{line}\n" for _, _, line in sorted(keyed))


@dataclass(frozen=True, slots=True)
class _Field:
    """What a member must be: exact kinds, since a boolean is an `int` to Python, and a rule."""

    kinds: tuple[type, ...]
    rule: Callable[[Any], bool]


def _text(pattern: str, *, optional: bool = False) -> _Field:
    match = re.compile(pattern, re.ASCII).fullmatch
    kinds = (str, type(None)) if optional else (str,)
    return _Field(kinds, lambda value: value is None or match(value) is not None)


def _is_time(value: str) -> bool:
    if _TIME.fullmatch(value) is None:
        return False
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


def _are_metrics(metrics: dict[str, Any]) -> bool:
    return len(metrics) <= MOST_METRICS and all(
        0 < len(name) <= LONGEST_METRIC_NAME
        and name.isprintable()
        and type(value) in {int, float, type(None)}
        for name, value in metrics.items()
    )


_LONG = 2**63
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?Z", re.ASCII)
_HEX = "[0-9a-f]{64}"

_FIELDS: Mapping[str, _Field] = {
    "trial": _text("t[0-9a-f]{11}"),
    "row": _text(_HEX),
    "batch": _text("[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?"),
    "index": _Field((int,), lambda value: 0 <= value < MOST_ROWS),
    "uid": _text("[A-Za-z0-9][A-Za-z0-9._-]{0,127}"),
    "attempt": _Field((int,), lambda value: 1 <= value < MOST_ROWS),
    "status": _text("ok|diverged|failed"),
    "reason": _text("[a-z0-9][a-z0-9-]{0,63}", optional=True),
    "metrics": _Field((dict,), _are_metrics),
    "seconds": _Field((int, float), lambda value: value >= 0),
    "started": _Field((str,), _is_time),
    "finished": _Field((str,), _is_time),
    "ran": _text("[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,511}"),
    "code": _text("[0-9a-f]{40}|[0-9a-f]{64}"),
    "data": _text(f"sha256:{_HEX}", optional=True),
    "seed": _Field((int,), lambda value: -_LONG <= value < _LONG),
    "node": _text("[A-Za-z0-9._-]{0,253}", optional=True),
    "details": _Field((dict,), lambda value: len(canonical_json(value)) <= LARGEST_DETAILS),
}
"""The members that a Record holds under the same names, in its order."""

_ARTIFACT_FIELDS: Mapping[str, _Field] = {
    "path": _Field((str,), lambda value: 0 < len(value) <= 1024),  # noqa: PLR2004 - a path's usual limit
    "bytes": _Field((int,), lambda value: 0 <= value < _LONG),
    "sha256": _text(_HEX),
}
_OPTIONAL: Mapping[str, Any] = {"details": {}, "artifacts": []}


def _record(data: dict[str, Any]) -> Record:
    version = data.get("version")
    if type(version) is not int or version != RECORD_VERSION:
        raise Refused("unknown-version")
    data = {**_OPTIONAL, **data}
    artifacts = _artifacts(data.pop("artifacts"))
    del data["version"]
    _check(data, _FIELDS)
    return Record(
        **{
            **data,
            "status": Status(data["status"]),
            "metrics": MappingProxyType(
                {name: None if value is None else float(value) for name, value in data["metrics"].items()}
            ),
            "seconds": float(data["seconds"]),
            # Canonical at once, so that nothing can tell a record file from its line in git.
            "details": MappingProxyType(_details(data["details"])),
            "artifacts": artifacts,
        }
    )


def _details(data: dict[str, Any]) -> dict[str, Any]:
    return {name: canonical(value) for name, value in data.items()}


def _artifacts(items: Any) -> tuple[Artifact, ...]:
    if type(items) is not list or any(type(item) is not dict for item in items):
        raise Refused("wrong-type:artifacts")
    if len(items) > MOST_ARTIFACTS:
        raise Refused("wrong-value:artifacts")
    for item in items:
        _check(item, _ARTIFACT_FIELDS)
    return tuple(Artifact(**item) for item in items)


def _check(data: Mapping[str, Any], fields: Mapping[str, _Field]) -> None:
    for name, wanted in fields.items():
        if name not in data:
            raise Refused(f"missing:{name}")
        if type(data[name]) not in wanted.kinds:
            raise Refused(f"wrong-type:{name}")
        if not wanted.rule(data[name]):
            raise Refused(f"wrong-value:{name}")
    if len(data) > len(fields):
        raise Refused("unknown-key")
