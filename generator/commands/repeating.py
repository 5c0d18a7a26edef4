"""What a summary repeats of the files that it was made of: it names the place of an edit that history hides.

Where an edit and what it edits came in one commit, as after a squash, no earlier version is there to compare
with. The summary and `provenance.json` were worked out before, and say what stood there.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from generator.commands import recorded
from generator.commands.differing import Difference, cells_of, differences
from generator.formats.summary import PARAMETER_PREFIX, SUMMARY_FILE
from generator.formats.table import REPLICATE_COLUMN
from generator.repo.batches import StoredBatch
from generator.results import results_folder
from generator.results.provenance import PROVENANCE_FILE
from generator.structs.values import bytes_digest

WORDS = ("status", "reason", "ran", "started", "finished")
"""Members of a record that the summary shows as they are."""


def told(sweep: str, done: tuple[StoredBatch, ...], contents: Mapping[str, bytes]) -> Iterator[Difference]:
    """Hold tables and records of recorded batches against what the summary, itself unproven, says of them."""
    folder = results_folder(sweep)
    rows = _rows(contents.get(f"{folder}/{SUMMARY_FILE}", b"").decode(errors="replace"))
    provenance = _batches(contents.get(f"{folder}/{PROVENANCE_FILE}", b""))
    for batch in done:
        yield from _table(batch, rows)
        content = contents.get(recorded.records_file(batch), b"")
        yield from _records(batch, provenance.get(batch.name), content, rows)
    for name in sorted(provenance.keys() - {batch.name for batch in done}):
        message = f"must be there by {PROVENANCE_FILE}, and is missing"
        yield Difference(f"{folder}/records/{name}.jsonl", "", "", message)


def _table(batch: StoredBatch, rows: list[dict[str, str]]) -> Iterator[Difference]:
    """Compare a table that is not the lock's, cell by cell. One in several files is told of as a whole."""
    tables = [path for path in batch.hand_edits().changed if path.endswith(".csv")]
    if len(tables) != 1 or "hyperparams.csv" not in tables:
        return
    found = batch.tree[tables[0]]
    head = found.split(b"\n", maxsplit=1)[0].decode(errors="replace").split(",")
    mine = [row for row in rows if row.get("batch") == batch.name]
    lines = [",".join(_repeated(row, name) for name in head) for row in mine]
    wanted = "".join(f"{line}\n" for line in (",".join(head), *lines)).encode()
    yield from differences(
        f"{batch.folder}/{tables[0]}", wanted, found, because=f"as {SUMMARY_FILE} repeats it"
    )


def _repeated(row: Mapping[str, str], name: str) -> str:
    if name in {"trial", REPLICATE_COLUMN}:
        return row.get(name, "")
    # A spreadsheet's guard against formulas is the summary's own.
    return row.get(f"{PARAMETER_PREFIX}{name}", "").replace("\"'", '"', 1)


def _records(
    batch: StoredBatch, provenance: Any, content: bytes, rows: list[dict[str, str]]
) -> Iterator[Difference]:
    """Say which records are not those that the provenance was made of."""
    try:
        listed = {
            attempt["record"]: trial["trial"]
            for trial in provenance["trials"]
            for attempt in trial.get("attempts", ())
        }
    except (KeyError, TypeError, AttributeError):
        return  # it was told of as what it is
    path, known = recorded.records_file(batch), set[str]()
    for number, line in enumerate(content.split(b"\n"), start=1):
        digest = bytes_digest(line)
        if not line or digest in known:
            continue
        known.add(digest)
        if digest not in listed:
            message = f"must be a record that {PROVENANCE_FILE} knows, got one with the digest {digest[:19]}"
            trial, values = _read(line)
            yield Difference(path, trial or f"line {number}", "", message)
            yield from _columns(path, values, [row for row in rows if row.get("trial") == trial])
    for digest in sorted(listed.keys() - known):
        message = f"must be there with the digest {digest[:19]} by {PROVENANCE_FILE}, and is not"
        yield Difference(path, str(listed[digest]), "", message)


def _columns(path: str, values: Mapping[str, Any], rows: list[dict[str, str]]) -> Iterator[Difference]:
    """Compare what a record says in words with its trial's one row, as far as both say it."""
    if len(rows) != 1 or rows[0].get("attempts") != "1":
        return
    for column in WORDS:
        must, got = rows[0].get(column, ""), values.get(column) or ""
        if must != got:
            message = f"must be {must!r} as {SUMMARY_FILE} repeats it, got {got!r}"
            yield Difference(path, rows[0]["trial"], column, message)


def _read(line: bytes) -> tuple[str, Mapping[str, Any]]:
    """Give a record's trial and members; nothing of a line that is none."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return "", {}
    return (str(found.get("trial", "")), found) if isinstance(found, dict) else ("", {})


def _batches(content: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(content)["batches"]
    except (ValueError, RecursionError, KeyError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}


def _rows(text: str) -> list[dict[str, str]]:
    lines = cells_of(text)
    return [dict(zip(lines[0], cells, strict=False)) for cells in lines[1:]] if lines else []
