"""Foreign evidence: finished trials of another tool, `sweeps/<name>.evidence.jsonl`.

The first line is a header that marks the file as foreign and names its source; each further line is a trial.
The file is reviewed like a spec, and nobody can verify it: its trials never become results of a sweep.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from sweepledger.formats.json import RejectedInput, parse_untrusted_object
from sweepledger.structs.record import Status
from sweepledger.structs.values import Value, as_data, canonical_json, is_number

EVIDENCE_SUFFIX = ".evidence.jsonl"
EVIDENCE_VERSION = 1
MAX_EVIDENCE_BYTES = 16 * 1024 * 1024
MAX_EVIDENCE_TRIALS = 10_000
"""A model learns nothing more from further trials, and each round reads all of them."""
FOREIGN_STATUSES = frozenset({Status.OK, Status.PRUNED, Status.DIVERGED, Status.FAILED})
_HEADER = frozenset({"foreign", "version", "format", "source", "digest"})
_TRIAL = frozenset({"configuration", "metrics", "status"})


@dataclass(frozen=True, slots=True)
class ForeignTrial:
    """A finished trial of another tool."""

    configuration: Mapping[str, Value]
    metrics: Mapping[str, float]
    """Finite ones only."""
    status: Status


@dataclass(frozen=True, slots=True)
class ForeignEvidence:
    """Trials of another tool, and where they come from."""

    format: str
    """`csv`, `jsonl` or `optuna`."""
    source: str
    """The name of the file, and of the study in it."""
    digest: str
    """Digest of the file that was converted, `sha256:` and 64 hex digits."""
    trials: tuple[ForeignTrial, ...]

    def label(self, name: str) -> str:
        """Return how readers are told of it: number and source of its trials, and that nobody vouches for them."""
        count = "1 foreign trial" if len(self.trials) == 1 else f"{len(self.trials)} foreign trials"
        return f"{count} of {name} ({self.format}: {self.source}), never verified"


def write(evidence: ForeignEvidence) -> str:
    """Return the text of a file; equal evidence gives equal text."""
    header = {"foreign": True, "version": EVIDENCE_VERSION, **as_data(evidence)}
    lines = header.pop("trials")
    return "".join(f"{canonical_json(line)}\n" for line in (header, *lines))


def read(content: bytes) -> ForeignEvidence:
    """Return the content of a file. Raises ValueError with the number of the line."""
    if len(content) > MAX_EVIDENCE_BYTES:
        raise ValueError(f"must have at most {MAX_EVIDENCE_BYTES} bytes, got {len(content)}")
    lines = [line for line in content.split(b"\n") if line]
    if len(lines) > MAX_EVIDENCE_TRIALS + 1:
        raise ValueError(f"must have at most {MAX_EVIDENCE_TRIALS} trials, got {len(lines) - 1}")
    header = _object(lines[0] if lines else b"", 1, _HEADER)
    texts = [header[name] for name in ("format", "source", "digest")]
    if header["foreign"] is not True or header["version"] != EVIDENCE_VERSION or not _are_texts(texts):
        raise ValueError(f'line 1: must be a header {{"foreign": true, "version": {EVIDENCE_VERSION}, …}}')
    trials = tuple(_trial(line, number) for number, line in enumerate(lines[1:], start=2))
    form, source, digest = texts
    return ForeignEvidence(form, source, digest, trials)


def _object(line: bytes, number: int, names: Iterable[str]) -> dict[str, Any]:
    try:
        data = parse_untrusted_object(line)
    except RejectedInput as refused:
        raise ValueError(f"line {number}: must be a JSON object, got {refused}") from refused
    if data.keys() != set(names):
        raise ValueError(f"line {number}: must have the keys {', '.join(sorted(names))}")
    return data


def _trial(line: bytes, number: int) -> ForeignTrial:
    data = _object(line, number, _TRIAL)
    configuration, metrics, status = data["configuration"], data["metrics"], data["status"]
    if not isinstance(configuration, dict) or not isinstance(metrics, dict):
        raise ValueError(f"line {number}: configuration and metrics must be objects")  # noqa: TRY004 - of a text
    if not all(map(is_number, metrics.values())):
        raise ValueError(f"line {number}: metrics must be numbers")
    if status not in set(map(str, FOREIGN_STATUSES)):
        raise ValueError(f"line {number}: status must be one of {', '.join(sorted(FOREIGN_STATUSES))}")
    if any(isinstance(value, dict) for value in configuration.values()):
        raise ValueError(f"line {number}: a value must not be an object")
    numbers = MappingProxyType({name: float(value) for name, value in metrics.items()})
    return ForeignTrial(MappingProxyType(configuration), numbers, Status(status))


def _are_texts(values: Iterable[object]) -> bool:
    return all(isinstance(value, str) for value in values)
