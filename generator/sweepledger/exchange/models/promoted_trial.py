"""A recorded trial that is promoted, as a value."""

from collections.abc import Mapping
from dataclasses import dataclass

from sweepledger.structs.metric import Metric
from sweepledger.structs.program import Program
from sweepledger.structs.record import Artifact
from sweepledger.structs.values import Value


@dataclass(frozen=True, slots=True)
class PromotedTrial:
    """A trial with its result, and where both come from."""

    sweep: str
    trial: str
    commit: str
    """The commit whose results were verified."""
    inputs_digest: str
    """Digest of the locks, the records and the spec that the results follow from."""
    assignment: Mapping[str, Value]
    program: Program
    seed: int
    metric: Metric
    value: float
    interval: tuple[float, float] | None
    """95 % interval of the mean of its configuration; None without replicates."""
    verdict: str
    started: str
    finished: str
    artifacts: tuple[Artifact, ...] = ()

    @property
    def name(self) -> str:
        """Sweep and trial."""
        return f"{self.sweep}/{self.trial}"
