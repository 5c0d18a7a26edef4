"""Records on a volume that is mounted here."""

from pathlib import Path

from sweepledger.repo.git import Repository
from sweepledger.repo.results_volume import VolumeResults
from sweepledger.structs.settings import ResultsSettings


def open_store(results: ResultsSettings, repository: Repository, volume: Path) -> VolumeResults:  # noqa: ARG001
    """Return the results on a mounted volume."""
    return VolumeResults(volume)
