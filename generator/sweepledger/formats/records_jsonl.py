"""The files `records/<batch>.jsonl` in git: all records of a batch.

A file begins with a line of values that its records share: batch, code and
data, and lists of the images, nodes and environments, which the other lines refer to by position. A line without
such a member refers to the first, most frequent one. Thus a usual trial needs about 400 bytes. The collector adds
members that are not part of the record: `observed`, and `others` for attempts that the line also represents.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from msgspec.structs import asdict

from sweepledger.formats import record_json
from sweepledger.formats.json import RejectedInput, parse_untrusted_object
from sweepledger.formats.record_json import VERSION, CorruptRecord
from sweepledger.structs.record import Record
from sweepledger.structs.values import CanonicalText, as_data, bytes_digest, canonical_json

MAX_FILE_BYTES = 20_000_000
"""Larger files are split: GitHub warns of files of 50 MB, and every reader holds one file at a time."""
OBSERVED_BYTES = len(',"observed":["2026-01-01T00:00:00Z","2026-01-01T00:00:00Z"]\n')
OTHERS_BYTES = 100
"""The bytes of a line for the numbers of attempts that git keeps no records of."""

SHARED = ("batch", "code", "data")
"""Members that are equal in all valid records of a batch."""
LISTED = {"ran": "images", "node": "nodes", "environment": "environments"}
"""Members whose values the first line lists, and the names of these lists."""
THRESHOLDS = "thresholds"
"""The member of the first line with the files of thresholds that have ended trials, each once."""
DEFAULTS: Mapping[str, Any] = {"artifacts": [], "details": {}, "disruptions": 0, "reason": None}
"""Members that a line omits if they are empty, and what they are then."""
MEMBERS = record_json.MEMBERS | {"observed", "others"}


def write(records: Iterable[Record]) -> tuple[bytes, ...]:
    """Return the files for sorted records of one batch, each within the limit; at least one."""
    files, part, size = list[bytes](), list[Record](), 0
    listed = set[str]()
    for record in records:
        new = listed_values(record) - listed
        length = line_size(record) + OTHERS_BYTES + sum(map(len, new))
        # The records of a trial stay in one file.
        if part and record.index != part[-1].index and size + length > MAX_FILE_BYTES:
            files.append(_file(part))
            part, size, listed = [], 0, set()
        part.append(record)
        size += length
        listed |= new
    return (*files, _file(part))


def line_size(record: Record) -> int:
    """Return the size of a record's line, without `others` and the values of the first line."""
    return len(canonical_json(_compact(record))) + OBSERVED_BYTES


def listed_values(record: Record) -> frozenset[str]:
    """Return the values that a record adds to the first line, unless another record has them already."""
    own = () if record.thresholds is None else (record.thresholds,)
    return frozenset((*own, *(f"{name}{canonical_json(as_data(getattr(record, name)))}" for name in LISTED)))


def read(content: bytes) -> Iterator[tuple[int, Record | CorruptRecord]]:
    """Yield the records of an untrusted file with the numbers of their lines."""
    header: Mapping[str, Any] | None = None
    for number, line in enumerate(content.split(b"\n"), start=1):
        if not line:
            continue
        try:
            if header is None:
                header = _header(parse_untrusted_object(line))
            else:
                yield number, _expanded(line, header)
        except RejectedInput as refused:
            yield number, CorruptRecord(str(refused))
            if header is None:
                return


def records(content: bytes) -> tuple[Record | CorruptRecord, ...]:
    """Return the records of a file."""
    return tuple(record for _, record in read(content))


def _compact(record: Record) -> dict[str, Any]:
    """Return the members of a line without members that the first line may have, and without defaults."""
    data = record_json.as_data(record)
    gone = ("version", *SHARED, *LISTED)
    return {
        name: value for name, value in data.items() if name not in gone and (value or name not in DEFAULTS)
    }


def _file(part: list[Record]) -> bytes:
    if not part:
        return b""
    texts = {name: [canonical_json(as_data(getattr(record, name))) for record in part] for name in LISTED}
    # The most frequent first.
    orders = {
        name: [text for text, _ in sorted(Counter(own).items(), key=lambda pair: (-pair[1], pair[0]))]
        for name, own in texts.items()
    }
    header = {
        "version": VERSION,
        **{name: getattr(part[0], name) for name in SHARED},
        **{LISTED[name]: [*map(CanonicalText, order)] for name, order in orders.items()},
    }
    if seen := sorted({record.thresholds for record in part if record.thresholds is not None}):
        header[THRESHOLDS] = seen
    places = {name: {text: place for place, text in enumerate(order)} for name, order in orders.items()}
    lines = [canonical_json(header)]
    for number, record in enumerate(part):
        line = _compact(record)
        line |= {name: place for name in LISTED if (place := places[name][texts[name][number]])}
        if record.observed is not None:
            line["observed"] = list(record.observed)
        if record.others is not None:
            line["others"] = {name: number for name, number in asdict(record.others).items() if number}
        lines.append(canonical_json(line))
    return "".join(f"{line}\n" for line in lines).encode()


def _header(data: dict[str, Any]) -> Mapping[str, Any]:
    if data.get("version") != VERSION:
        raise RejectedInput("unknown-version")
    seen = data.pop(THRESHOLDS, [])
    if data.keys() != {"version", *SHARED, *LISTED.values()}:
        raise RejectedInput("unknown-key")
    if type(seen) is not list or not all(type(text) is str for text in seen):
        raise RejectedInput(f"wrong-type:{THRESHOLDS}")
    for name in LISTED.values():
        if type(data[name]) is not list or not data[name]:
            raise RejectedInput(f"wrong-type:{name}")
    return {**data, THRESHOLDS: {bytes_digest(text.encode("utf-8", "surrogatepass")): text for text in seen}}


def _expanded(line: bytes, header: Mapping[str, Any]) -> Record:
    """Return the record of a line. Raises RejectedInput."""
    data = parse_untrusted_object(line)
    for name, plural in LISTED.items():
        place = data.get(name, 0)
        if type(place) is not int or not 0 <= place < len(header[plural]):
            raise RejectedInput(f"wrong-value:{name}")
        data[name] = header[plural][place]
    members = {"version": VERSION, **{name: header[name] for name in SHARED}, **DEFAULTS, **data}
    record = record_json.from_data(members, members=MEMBERS)
    if record.stopped is not None and record.stopped.seen in header[THRESHOLDS]:
        record = replace(record, thresholds=header[THRESHOLDS][record.stopped.seen])
    return record
