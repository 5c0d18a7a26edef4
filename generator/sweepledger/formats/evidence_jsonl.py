"""Foreign evidence: finished trials of another tool, `sweeps/<name>.evidence.jsonl`.

The first line is a header that marks the file as foreign and names its source; each further line is a trial.
The file is reviewed like a spec, and nobody can verify it: its trials never become results of a sweep.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import msgspec

from sweepledger.formats.json import RejectedInput, parse_untrusted_object
from sweepledger.structs.record import Status
from sweepledger.structs.values import Value, as_data, canonical_json

EVIDENCE_SUFFIX = ".evidence.jsonl"
MAX_EVIDENCE_BYTES = 16 * 1024 * 1024
MAX_EVIDENCE_TRIALS = 10_000
"""A model learns nothing more from further trials, and each round reads all of them."""
FOREIGN_STATUSES = frozenset({Status.OK, Status.PRUNED, Status.DIVERGED, Status.FAILED})
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ForeignTrial:
    """A finished trial of another tool."""

    configuration: Mapping[str, Value]
    metrics: Mapping[str, float]
    """Finite ones only."""
    status: Status


@dataclass(frozen=True, slots=True)
class ForeignEvidence:
    """Trials of another tool, and their source."""

    format: str
    """`csv`, `jsonl` or `optuna`."""
    source: str
    """The name of the file, and of the study in it."""
    digest: str
    """Digest of the file that was converted, `sha256:` and 64 hex digits."""
    trials: tuple[ForeignTrial, ...] = ()
    foreign: bool = True
    version: Literal[1] = 1

    def label(self, name: str) -> str:
        """Return a label for people to read: the number and source of the trials, and that nobody verified them."""
        count = "1 foreign trial" if len(self.trials) == 1 else f"{len(self.trials)} foreign trials"
        return f"{count} of {name} ({self.format}: {self.source}), never verified"


def write(evidence: ForeignEvidence) -> str:
    """Return the text of a file; equal evidence gives equal text."""
    header = as_data(evidence)
    lines = header.pop("trials", ())
    return "".join(f"{canonical_json(line)}\n" for line in (header, *lines))


def read(content: bytes) -> ForeignEvidence:
    """Return the content of a file. Raises ValueError with the number of the line."""
    if len(content) > MAX_EVIDENCE_BYTES:
        raise ValueError(f"must have at most {MAX_EVIDENCE_BYTES} bytes, got {len(content)}")
    lines = [line for line in content.split(b"\n") if line]
    if len(lines) > MAX_EVIDENCE_TRIALS + 1:
        raise ValueError(f"must have at most {MAX_EVIDENCE_TRIALS} trials, got {len(lines) - 1}")
    header = _converted(lines[0] if lines else b"", 1, ForeignEvidence)
    if not header.foreign:
        raise ValueError("line 1: must be the header of foreign evidence")
    trials = tuple(_converted(line, number, ForeignTrial) for number, line in enumerate(lines[1:], start=2))
    for number, trial in enumerate(trials, start=2):
        if trial.status not in FOREIGN_STATUSES:
            raise ValueError(f"line {number}: status must be one of {', '.join(sorted(FOREIGN_STATUSES))}")
    return replace(header, trials=trials)


def _converted(line: bytes, number: int, kind: type[T]) -> T:
    names = kind.__annotations__.keys() - {"trials"}
    try:
        data = parse_untrusted_object(line)
        if data.keys() != names:
            raise ValueError(f"line {number}: must have the keys {', '.join(sorted(names))}")
        return msgspec.convert(data, kind)
    except (RejectedInput, msgspec.ValidationError) as error:
        raise ValueError(f"line {number}: {error}") from error
