"""Paths of results, records and locks, relative to the repository's root."""

RESULTS = "results"
LOCKS = "overlays/archive"
"""Folder of recorded batches, by name."""


def results_folder(sweep: str) -> str:
    """Return the results folder of a sweep, from the repository's root."""
    return f"{RESULTS}/{sweep}"


def records_path(batch: str) -> str:
    """Return the path of a batch's records, below its sweep's results folder."""
    return f"records/{batch}.jsonl"
