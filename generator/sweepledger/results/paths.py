"""Paths of results, records and locks, relative to the repository's root."""

import re

RESULTS = "results"
RECORDS = "records"
"""Folder of records below a sweep's results folder."""
LOCKS = "overlays/archive"
"""Folder of recorded batches, by name."""

LAPTOP_FILE = "laptop.txt"
"""Names the batches that a person ran and recorded, one on a line; no signature vouches for their records."""
LAPTOP_WARNING = "made on a laptop, and signed by nobody"
"""What readers are told of such batches."""


def results_folder(sweep: str) -> str:
    """Return the results folder of a sweep, from the repository's root."""
    return f"{RESULTS}/{sweep}"


def records_path(batch: str, part: int = 0) -> str:
    """Return the path of a file of a batch's records, below its sweep's results folder; most batches have one."""
    return f"records/{batch}-{part:03d}.jsonl" if part else f"records/{batch}.jsonl"


def laptop_path(sweep: str) -> str:
    """Return the path of the file that names a sweep's batches made on a laptop, from the repository's root."""
    return f"{results_folder(sweep)}/{LAPTOP_FILE}"


def laptop_batches(content: bytes) -> tuple[str, ...]:
    """Return the batches that such a file names."""
    return tuple(content.decode("ascii", "replace").splitlines())


_PART = re.compile(r"-[0-9]{3}", re.ASCII)


def batch_of_records(path: str) -> str:
    """Return the batch of a file of records, by its path."""
    name = path.rpartition("/")[2].removesuffix(".jsonl")
    # The name of a batch ends in eight digits, so the number of a part is no part of it.
    return name[:-4] if _PART.fullmatch(name[-4:]) else name
