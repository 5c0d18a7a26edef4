"""The part of a pack's termination messages about records: the rows that have records, and their digests.

A message has at most 4 KiB, so it contains one digest over the digests of all listed rows.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from sweepledger.structs.values import canonical_json

RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", re.ASCII)
VERSION = 1


def vouch(records: Mapping[int, str]) -> str:
    """Return the text that confirms the records of one pod: their rows, and a digest of their digests in row order."""
    # In a Job's notation for indexes, `0,3-7`: rows that follow each other are equally far from their places.
    runs = groupby(enumerate(sorted(records)), key=lambda placed: placed[1] - placed[0])
    spans = [[row for _, row in run] for _, run in runs]
    ranges = ",".join(f"{span[0]}-{span[-1]}" if len(span) > 1 else str(span[0]) for span in spans)
    return f"{ranges} {_digest_of(records)}"


def vouched(text: str, known: Mapping[int, str]) -> Iterator[int]:
    """Yield the rows listed in a text if its digest matches the known records of these rows."""
    ranges, _, digest = text.partition(" ")
    records: dict[int, str] = {}
    for row in parse_indexes(ranges, max(known, default=0) + 1):
        if row not in known:  # at once: few bytes can name any number of rows
            return
        records[row] = known[row]
    if records and _digest_of(records) == digest:
        yield from records


def vouched_by_launcher(
    message: Mapping[str, Any], rows: Iterable[int], known: Mapping[int, str]
) -> Iterator[int]:
    """Yield the rows whose known records the message of a pod's launcher confirms, one by one or all at once."""
    named = message.get("rows")
    if isinstance(named, dict):
        yield from (row for row, digest in known.items() if named.get(str(row)) == digest)
        return
    text = canonical_json({"rows": {str(row): known.get(row) for row in rows}, "version": VERSION})
    if hashlib.sha256(f"{text}\n".encode()).hexdigest() == message.get("rows_sha256"):
        yield from sorted(known)


def _digest_of(records: Mapping[int, str]) -> str:
    lines = "".join(f"{row} {digest}\n" for row, digest in sorted(records.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def parse_indexes(text: str, below: int) -> Iterator[int]:
    """Yield the completion indexes in a Job's list that are below a number; the list is untrusted."""
    for part in text.split(","):
        if match := RANGE.fullmatch(part):
            first = int(match[1])
            yield from range(first, min(int(match[2] or first) + 1, below))
