"""The interface of a format of another tool, and the results of imports and exports: a spec or a file, with losses."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sweepledger.formats import yaml
from sweepledger.formats.evidence_jsonl import ForeignTrial
from sweepledger.structs.run_config import RunConfig
from sweepledger.structs.search_block import AdaptiveSearch, Design
from sweepledger.structs.sweep import Budget, Sweep
from sweepledger.structs.values import Value, canonical_json


@dataclass(frozen=True, slots=True)
class Loss:
    """A part that could not be converted exactly, with the reason."""

    part: str
    """The part of the source, such as `early_terminate`."""
    reason: str
    """What was written instead, and why."""


class LossList(list[Loss]):
    """The losses of a conversion, in their order."""

    def add(self, part: str, reason: str) -> None:
        """Add a loss."""
        self.append(Loss(part, reason))


@dataclass(frozen=True, slots=True)
class Imported:
    """A spec for another tool's file, not yet validated."""

    spec: dict[str, Any]
    """Plain data with the keys of a spec, in the order to be written."""
    losses: tuple[Loss, ...]


@dataclass(frozen=True, slots=True)
class Exported:
    """A sweep as another tool's file."""

    text: str
    losses: tuple[Loss, ...]


Assignments = Sequence[Mapping[str, Value]]
"""The configurations of a sweep, in their order."""


class Reader(Protocol):
    """Reads a file of the format."""

    def __call__(self, content: bytes, *, name: str) -> Imported:
        """Return a spec with this name unless the file has a name. Raises ForeignError for other files."""


Writer = Callable[[Sweep, Assignments], Exported]
"""Returns the file of a sweep with some configurations. Raises UsageError for what no such file can have."""
EvidenceReader = Callable[[bytes, Sweep, str | None], tuple[str | None, Iterator[ForeignTrial]]]
"""Returns the study that a file of several has, and its finished trials as those of a search; the last argument is the
name of the study if the user gave one. Raises ForeignError.
"""


@dataclass(frozen=True, slots=True)
class ForeignFormat:
    """A format of another tool. Each format has a module that defines it, and a line in `registry.MODULES`."""

    name: str
    """As commands take it."""
    summary: str
    """What a file is, after the words `wandb is`."""
    read: Reader | None = None
    write: Writer | None = None
    is_search: bool = False
    """Whether the tool searches by itself, so that an adaptive search can be written."""
    trials: EvidenceReader | None = None
    suffixes: tuple[str, ...] = ()
    """Ends of the names of files that have trials."""


def distinct_columns(assignments: Assignments) -> dict[str, list[Value]]:
    """Return each parameter's distinct values, in order of first appearance."""
    columns: dict[str, dict[str, Value]] = {}
    for assignment in assignments:
        for name, value in assignment.items():
            columns.setdefault(name, {}).setdefault(canonical_json(value), value)
    return {name: list(values.values()) for name, values in columns.items()}


def export_banner(sweep: Sweep, tool: str, losses: Iterable[Loss]) -> str:
    """Return the comment above an exported file: its sweep, and the differences of the tool."""
    lines = [f"Exported from the sweep {sweep.name}. Differences in {tool}:"]
    return "\n".join([*lines, *(f"- {loss.part}: {loss.reason}" for loss in losses)])


def exported_yaml(document: Mapping[str, Any], sweep: Sweep, tool: str, losses: Iterable[Loss]) -> Exported:
    """Return a document as a YAML file below its banner."""
    return Exported(yaml.dump(document, banner=export_banner(sweep, tool, losses)), tuple(losses))


def design_losses(design: Design, tool: str) -> Iterator[Loss]:
    """Yield the losses of a design's zip groups, conditions, constraints and derived values."""
    for group in design.space.zips:
        yield Loss(f"zip: {', '.join(group)}", f"{tool} combines every value with every other, not pairwise")
    for parameter in design.space.parameters:
        if parameter.when:
            parents = ", ".join(condition.parameter for condition in parameter.when)
            yield Loss(f"when of {parameter.name}", f"{tool} sets it for every value of {parents}")
    for constraint in design.space.constraints:
        yield Loss(f"constraint: {constraint.text}", f"{tool} also runs configurations that violate it")
    for derived in design.space.derived:
        yield Loss(
            f"derived: {derived.name}", f"{tool} cannot compute it; compute it in the program: {derived.text}"
        )


def most_trials(search: AdaptiveSearch) -> int | None:
    """Return how many trials a search requests at most; None if only its budget ends it."""
    rounds = search.rounds
    limits = [limit for limit in (search.cap, rounds.max and rounds.max * rounds.size) if limit is not None]
    return min(limits, default=None)


def drawn_losses(design: Design, tool: str, written_as: str | None = None) -> Iterator[Loss]:
    """Yield the losses of a search whose values the tool draws; `written_as` is its substitute for the method."""
    if isinstance(design, AdaptiveSearch):
        yield Loss("rounds", f"{tool} proposes one trial at a time, from the trials that have ended")
    yield Loss("seed", f"{tool} draws other values")
    if written_as is not None:
        yield Loss(f"method: {design.method}", f"{tool} does not have it; written as {written_as}")


def sweep_losses(sweep: Sweep, tool: str) -> Iterator[Loss]:
    """Yield the losses of replicates, rounds and budget."""
    if sweep.replicates > 1:
        yield Loss(f"replicates: {sweep.replicates}", f"{tool} runs each configuration once")
    if sweep.static_rounds is not None:
        yield Loss("rounds", "all configurations are written, and no result ends the sweep before the last")
    if (sweep.budget.max_trials, sweep.budget.max_gpu_hours) != (Budget().max_trials, Budget().max_gpu_hours):
        yield Loss("budget", f"{tool} has none")


def run_losses(sweep: Sweep, tool: str) -> Iterator[Loss]:
    """Yield the losses of replicates, rounds, budget and run."""
    yield from sweep_losses(sweep, tool)
    if sweep.run != RunConfig():
        yield Loss("run", f"{tool} does not set code, image, data, resources and limits of a trial")
