"""The stores through which records travel from trials to the collector."""

from enum import StrEnum


class ResultsStore(StrEnum):
    """Where trials leave their records."""

    API = "api"
    """In the termination messages of their pods; files are not kept."""
    VOLUME = "volume"
    """On a volume that every node can mount."""

    @property
    def keeps_files(self) -> bool:
        """Whether output, artifacts and checkpoints outlive the pod."""
        return self is not ResultsStore.API


MAX_API_TRIALS = 5_000
"""Trials of a batch whose pods the API server has to keep until the results are recorded."""
