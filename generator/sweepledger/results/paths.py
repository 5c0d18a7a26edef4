"""Where things lie in the repository, seen from its root."""

RESULTS = "results"
LOCKS = "overlays/archive"
"""Where the lock of a recorded batch lies, below its name."""


def results_folder(sweep: str) -> str:
    """Where a sweep's results lie in the repository."""
    return f"{RESULTS}/{sweep}"


def records_path(batch: str) -> str:
    """Where a batch's records lie in its sweep's results folder."""
    return f"records/{batch}.jsonl"
