"""Data made ready for trials: run once for each volume."""

from collections.abc import Mapping
from pathlib import Path

from trainer import data, digits, idx


def prepare(workload: str, folder: Path, manifests: Mapping[str, idx.Manifest] = data.MANIFESTS) -> str:
    """Put 5,000 digits into the folder unless it has its data. Says what it did; raises TrialError."""
    if any(idx.present(folder, file) for file in manifests[workload].files):
        dataset = data.load(workload, folder, manifests)
        return f"nothing to do: {folder} holds all of {dataset.name} ({dataset.digest})"
    return digits.prepare(folder)
