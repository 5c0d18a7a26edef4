"""What a summary was made from, as one digest that anybody can work out with `sha256sum`."""

import hashlib
from collections.abc import Iterable, Iterator

from generator.results.outcomes import JudgedBatch
from generator.results.places import LOCKS, records_path, results_folder

LOCK_FILE = "batch.yaml"
PREFIX = "sha256:"


def records_text(batch: JudgedBatch) -> str:
    """Give a batch's records file: sorted by row and attempt, each once."""
    keyed = (
        (one.record.index, one.record.attempt, one.line) for attempts in batch.attempts for one in attempts
    )
    return "".join(f"{line}\n" for _, _, line in sorted(keyed))


def inputs_digest(batches: Iterable[JudgedBatch], spec_path: str, spec_digest: str | None) -> str:
    """Digest the locks, the records and the spec: of `sha256sum`'s lines for these files, sorted by path.

    A spec that is not there has no line.
    """
    files = dict(_files(batches))
    if spec_digest is not None:
        files[spec_path] = spec_digest
    listed = "".join(f"{found.removeprefix(PREFIX)}  {path}\n" for path, found in sorted(files.items()))
    return PREFIX + hashlib.sha256(listed.encode()).hexdigest()


def _files(batches: Iterable[JudgedBatch]) -> Iterator[tuple[str, str]]:
    for batch in batches:
        name, folder = batch.lock.name, results_folder(batch.lock.sweep)
        yield f"{LOCKS}/{name}/{LOCK_FILE}", batch.lock_digest
        yield f"{folder}/{records_path(name)}", hashlib.sha256(records_text(batch).encode()).hexdigest()
