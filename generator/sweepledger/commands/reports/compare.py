"""`sweep compare`: two sweeps, or one at two commits, trial by trial for equal configurations."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sweepledger.commands.reports.recorded import recorded_results
from sweepledger.commands.repository import catalog
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.errors import RepositoryError, UsageError
from sweepledger.formats.summary_csv import SUMMARY_FILE, SummaryRow
from sweepledger.results.paths import results_folder
from sweepledger.structs.batch import BatchLock
from sweepledger.structs.metric import Goal
from sweepledger.structs.record import RAN_PROCESS
from sweepledger.structs.values import Value, canonical_json


@dataclass(frozen=True)
class Side:
    """A sweep at a commit: the trials of its newest program."""

    reference: str
    sweep: str
    commit: str
    lock: BatchLock
    """Lock of its newest recorded batch."""
    rows: Mapping[str, SummaryRow]
    """Rows of the summary, by configuration and replicate."""
    older: int
    """Trials of programs before the newest: they are not compared."""

    @property
    def data(self) -> str | None:
        """The digest of its dataset; None without one."""
        return self.lock.program.data.digest if self.lock.program.data else None

    def objective(self, key: str) -> float | None:
        """What a trial reached; None if it is not ok."""
        return self.rows[key].metric(self.lock.metric.name) if key in self.rows else None

    def as_data(self) -> dict[str, Any]:
        """Return the JSON data."""
        program = self.lock.program
        return {
            "sweep": self.sweep,
            "commit": self.commit,
            "metric": self.lock.metric.name,
            "goal": str(self.lock.metric.goal),
            "data": self.data,
            "code": program.code.tree,
            "image": program.image,
            "trials": len(self.rows),
            "older": self.older,
        }


@dataclass(frozen=True, slots=True)
class Pair:
    """One assignment and replicate that both have tried."""

    assignment: Mapping[str, Value]
    replicate: int
    a: SummaryRow
    b: SummaryRow
    values: tuple[float | None, float | None]
    """The objectives of both; None if a trial is not ok."""
    difference: float | None
    """B less A; None if one is missing, or the two may not be compared."""


@dataclass(frozen=True)
class SweepComparison:
    """Two sides, their common configurations, and those of one side only."""

    a: Side
    b: Side
    pairs: tuple[Pair, ...]
    """Largest gain of B first if they are ranked, else in the order of A."""
    only_a: tuple[SummaryRow, ...]
    only_b: tuple[SummaryRow, ...]
    refused: tuple[str, ...]
    """Why nothing is ranked; empty if it is."""
    warnings: tuple[str, ...]

    @property
    def counts(self) -> tuple[int, int, int]:
        """How many pairs are better in B, better in A, and equal, by the goal."""
        sign = 1 if self.a.lock.metric.goal is Goal.MAXIMIZE else -1
        gains = [sign * pair.difference for pair in self.pairs if pair.difference is not None]
        return (
            sum(gain > 0 for gain in gains),
            sum(gain < 0 for gain in gains),
            sum(gain == 0 for gain in gains),
        )

    def as_data(self) -> dict[str, Any]:
        """Return the JSON data."""
        better, worse, equal = self.counts
        return {
            "a": self.a.as_data(),
            "b": self.b.as_data(),
            "ranked": not self.refused,
            "refused": list(self.refused),
            "warnings": list(self.warnings),
            "counts": None if self.refused else {"b_better": better, "a_better": worse, "equal": equal},
            "pairs": [
                {
                    "assignment": dict(pair.assignment),
                    "replicate": pair.replicate,
                    "a": {"trial": pair.a.trial, "status": str(pair.a.status), "value": pair.values[0]},
                    "b": {"trial": pair.b.trial, "status": str(pair.b.status), "value": pair.values[1]},
                    "difference": pair.difference,
                }
                for pair in self.pairs
            ],
            "only_a": [_row_data(row) for row in self.only_a],
            "only_b": [_row_data(row) for row in self.only_b],
        }


def _row_data(row: SummaryRow) -> dict[str, Any]:
    return {"trial": row.trial, "assignment": dict(row.assignment), "replicate": row.replicate}


def compare(workspace: Workspace, a: str, b: str) -> SweepComparison:
    """Join two recorded sweeps, each `NAME` or `NAME@REV`, on their common configurations.

    Raises UsageError for an unknown name or commit, RepositoryError if nothing is recorded there.
    """
    first, second = (_side(workspace, reference) for reference in (a, b))
    refused = tuple(_refusals(first, second))
    pairs = [_pair(first, second, key, ranked=not refused) for key in first.rows if key in second.rows]
    if not refused:
        sign = -1 if first.lock.metric.goal is Goal.MAXIMIZE else 1
        pairs.sort(key=lambda one: (one.difference is None, sign * (one.difference or 0.0), one.a.trial))
    return SweepComparison(
        first,
        second,
        tuple(pairs),
        tuple(row for key, row in first.rows.items() if key not in second.rows),
        tuple(row for key, row in second.rows.items() if key not in first.rows),
        refused,
        tuple(_warnings(first, second)),
    )


def _side(workspace: Workspace, reference: str) -> Side:
    name, at, revision = reference.partition("@")
    repository = workspace.repository
    commit = repository.commit(revision if at else "HEAD")
    if commit is None:
        raise UsageError(
            f"{reference!r}: {revision or 'HEAD'} is not a commit",
            hint="write NAME@REV: a branch, tag or HEAD~1",
        )
    sweep = catalog.sweep_name(workspace.root, name)
    results = recorded_results(repository, commit, sweep)
    if results is None:
        catalog.choose_sweep(workspace.root, sweep, catalog.committed_sweeps(repository, commit))
        raise RepositoryError(
            f"{results_folder(sweep)}/{SUMMARY_FILE}: nothing is recorded of {sweep!r} at {commit[:12]}",
            hint=f"`sweep log {sweep}` lists the commits that recorded it",
        )
    lock, rows = results.lock, results.table.rows
    by_key = {_key(row): row for row in rows if row.program == lock.program.digest}
    return Side(reference, sweep, commit, lock, by_key, len(rows) - len(by_key))


def _key(row: SummaryRow) -> str:
    return canonical_json([dict(row.assignment), row.replicate])


def _pair(first: Side, second: Side, key: str, *, ranked: bool) -> Pair:
    a, b = first.rows[key], second.rows[key]
    values = first.objective(key), second.objective(key)
    both = values[0] is not None and values[1] is not None and ranked
    difference = (values[1] or 0.0) - (values[0] or 0.0) if both else None
    return Pair(a.assignment, a.replicate, a, b, values, difference)


def _refusals(a: Side, b: Side) -> Iterator[str]:
    """Return why numbers of the two must not be put in one order."""
    for name, mine, theirs in (
        ("metric", a.lock.metric.name, b.lock.metric.name),
        ("goal", str(a.lock.metric.goal), str(b.lock.metric.goal)),
        ("data", a.data or "none", b.data or "none"),
    ):
        if mine != theirs:
            yield f"they differ in {name}: {a.reference} has {mine}, {b.reference} has {theirs}"


def _warnings(a: Side, b: Side) -> Iterator[str]:
    ran = [{row.ran == RAN_PROCESS for row in side.rows.values() if row.ran} for side in (a, b)]
    if len(ran[0] | ran[1]) > 1:
        yield "some ran in containers and some as processes: times and last digits need not agree"
    for side in (a, b):
        if side.older:
            yield f"{side.reference}: {side.older} trials of older programs are left out"
