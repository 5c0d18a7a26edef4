"""Compares two sweeps, or two versions of one: best values, and equal configurations side by side."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sweepledger.errors import RepositoryError, UsageError
from sweepledger.operations.reports.recorded_results import RecordedResults, recorded_results
from sweepledger.operations.repository import catalog
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.plan.budgets import charge
from sweepledger.results.inference import mean
from sweepledger.results.sweep_statistics import StatisticsDifference, SweepStatistics, statistics_difference
from sweepledger.structs.batch import BatchLock
from sweepledger.structs.metric import Goal
from sweepledger.structs.names import LAPTOP_WARNING
from sweepledger.structs.record import RAN_PROCESS, SummaryRow
from sweepledger.structs.values import SECONDS_PER_HOUR, Value, canonical_json


@dataclass(frozen=True, slots=True)
class Spent:
    """The time of one side's trials, only of the attempts that count."""

    trial_hours: float
    gpu_hours: float
    """None if the resources of a batch are unknown."""
    money: float | None
    """None if a pool has no price, or the resources of a batch are unknown."""


@dataclass(frozen=True)
class Side:
    """A sweep at a commit: the trials of the commit's program, else of the newest recorded one, or of one batch."""

    reference: str
    sweep: str
    commit: str
    lock: BatchLock
    """Lock of its newest recorded batch with that program."""
    rows: Mapping[str, SummaryRow]
    """Rows of the summary, by configuration and replicate."""
    older: int
    """Trials of other programs: they are not compared."""
    spent: Spent
    recorded: RecordedResults
    """Everything that is recorded of the sweep at the commit."""
    laptop: tuple[str, ...] = ()
    """Its batches that are marked as made on a laptop."""

    @property
    def data(self) -> str | None:
        """The digest of its dataset; None without one."""
        return self.lock.program.data.digest if self.lock.program.data else None

    def objective(self, key: str) -> float | None:
        """Return the objective of a trial; None if the trial is not ok."""
        return self.rows[key].metric(self.lock.metric.name) if key in self.rows else None

    @cached_property
    def statistics(self) -> SweepStatistics:
        """Statistics of its configurations' objectives, in the order in which these ended."""
        values: dict[str, list[float]] = defaultdict(list)
        metric = self.lock.metric
        for row in sorted(self.rows.values(), key=lambda row: (row.finished or "", row.batch, row.index)):
            value = row.metric(metric.name)
            if value is not None:
                values[canonical_json(row.assignment)].append(value)
        return SweepStatistics(tuple(map(mean, values.values())), metric.goal)

    def as_data(self) -> dict[str, Any]:
        """Return the JSON data."""
        program, statistics = self.lock.program, self.statistics
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
            "configurations": len(statistics.values),
            "best": statistics.best,
            "top": statistics.top,
            "best_so_far": statistics.best_so_far,
            "spent": self.spent,
        }


@dataclass(frozen=True, slots=True)
class Pair:
    """One configuration and replicate that both sides have tried."""

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
    def difference(self) -> StatisticsDifference | None:
        """How B differs from A as a whole; None if they are not ranked, or one has no result."""
        return None if self.refused else statistics_difference(self.a.statistics, self.b.statistics)

    @property
    def counts(self) -> tuple[int, int, int]:
        """How many pairs are better in B, better in A, and equal, by the goal."""
        sign = 1 if self.a.lock.metric.goal is Goal.MAXIMIZE else -1
        gains = [sign * pair.difference for pair in self.pairs if pair.difference is not None]
        better, worse = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
        return better, worse, len(gains) - better - worse

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
            "difference": self.difference,
            "pairs": [
                {
                    "configuration": dict(pair.assignment),
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
    return {"trial": row.trial, "configuration": dict(row.assignment), "replicate": row.replicate}


def compare_sweeps(workspace: Workspace, a: str, b: str) -> SweepComparison:
    """Compare two recorded sweeps, each `NAME`, `NAME@REV` or `NAME@BATCH`.

    Raises UsageError for an unknown name or commit, RepositoryError if nothing is recorded there.
    """
    first, second = (side_at(workspace, reference) for reference in (a, b))
    metrics = [side.lock.metric for side in (first, second)]
    sides = {
        "metric": [metric.name for metric in metrics],
        "goal": [str(metric.goal) for metric in metrics],
        "data": [side.data or "none" for side in (first, second)],
    }
    refused = tuple(
        f"they differ in {name}: {first.reference} has {mine}, {second.reference} has {theirs}"
        for name, (mine, theirs) in sides.items()
        if mine != theirs
    )
    pairs: list[Pair] = []
    for key in (key for key in first.rows if key in second.rows):
        a_row, b_row = first.rows[key], second.rows[key]
        mine, theirs = first.objective(key), second.objective(key)
        difference = None if refused or mine is None or theirs is None else theirs - mine
        pairs.append(Pair(a_row.assignment, a_row.replicate, a_row, b_row, (mine, theirs), difference))
    if not refused:
        sign = -1 if first.lock.metric.goal is Goal.MAXIMIZE else 1
        pairs.sort(key=lambda pair: (pair.difference is None, sign * (pair.difference or 0.0), pair.a.trial))
    return SweepComparison(
        first,
        second,
        tuple(pairs),
        tuple(row for key, row in first.rows.items() if key not in second.rows),
        tuple(row for key, row in second.rows.items() if key not in first.rows),
        refused,
        tuple(_warnings(first, second)),
    )


def side_at(workspace: Workspace, reference: str) -> Side:
    """Return the side to which `NAME`, `NAME@REV` or `NAME@BATCH` refers. Raises UsageError, RepositoryError."""
    name, at, revision = reference.partition("@")
    repository = workspace.repository
    is_batch = bool(at) and _BATCH.fullmatch(revision) is not None
    commit = repository.commit(revision if at and not is_batch else "HEAD")
    if commit is None:
        raise UsageError(
            f"{reference!r}: {revision or 'HEAD'} is not a commit",
            hint="write NAME@REV: a branch, tag or HEAD~1; or NAME@b2 for one batch",
        )
    sweep = catalog.sweep_name(workspace.root, name)
    results = recorded_results(repository, commit, sweep)
    if results is None:
        catalog.choose_sweep(workspace.root, sweep, catalog.committed_sweeps(repository, commit))
        raise RepositoryError(
            f"{catalog.summary_path(sweep)}: nothing is recorded of {sweep!r} at {commit[:12]}",
            hint=f"`sweep log {sweep}` lists the commits that recorded it",
        )
    lock, rows = results.lock, results.table.rows
    if is_batch:
        locks = {batch.name: batch.lock for batch in results.stored}
        named = [each for name, each in locks.items() if revision in {name, f"b{each.number}"}]
        if not named:
            raise UsageError(
                f"{reference!r}: no recorded batch {revision!r}",
                hint=f"batches: {', '.join(locks)}; or NAME@b1 for the first",
            )
        lock = named[0]
        rows = tuple(row for row in rows if row.batch == lock.name)
    by_key = {
        canonical_json([row.assignment, row.replicate]): row
        for row in rows
        if row.program == lock.program.digest
    }
    spent = _spent(workspace, results, by_key.values())
    compared = {row.batch for row in by_key.values()}
    laptop = tuple(batch for batch in results.laptop if batch in compared)
    return Side(reference, sweep, commit, lock, by_key, len(rows) - len(by_key), spent, results, laptop)


_BATCH = re.compile(r"(?:[a-z][a-z0-9-]*-)?b[0-9]+(?:-[0-9a-f]{8})?")
"""A batch by its name or by its number."""


def _spent(workspace: Workspace, results: RecordedResults, rows: Iterable[SummaryRow]) -> Spent:
    seconds: dict[str, float] = defaultdict(float)
    for row in rows:
        seconds[row.batch] += row.seconds or 0.0
    gpu_hours = 0.0
    money: float | None = 0.0
    for batch in results.stored:
        if batch.name not in seconds:
            continue
        pool = workspace.settings.trials.pool(batch.lock.run.pool)
        part = charge(results.sweep, batch.lock.run, pool, seconds[batch.name])
        gpu_hours += part.gpu_hours
        money = None if money is None or pool is None or pool.price is None else money + part.money
    return Spent(sum(seconds.values()) / SECONDS_PER_HOUR, gpu_hours, money)


def _warnings(a: Side, b: Side) -> Iterator[str]:
    ran = [{row.ran == RAN_PROCESS for row in side.rows.values() if row.ran} for side in (a, b)]
    if len(ran[0] | ran[1]) > 1:
        yield "some ran in containers and some as processes: times and last digits need not agree"
    for side in (a, b):
        if side.laptop:
            yield f"{side.reference}: {LAPTOP_WARNING}: {', '.join(side.laptop)}"
        if side.older:
            yield f"{side.reference}: {side.older} trials of other programs are left out"
