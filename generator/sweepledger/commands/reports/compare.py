"""`sweep compare`: two sweeps, or one at two commits, trial by trial where both tried the same values."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from generator.commands import ledger
from generator.commands.workspace import Workspace
from generator.errors import RepositoryError, UsageError
from generator.formats import summary
from generator.formats.summary import SUMMARY_FILE, SummaryRow
from generator.repo import batches
from generator.results import results_folder
from generator.structs.batch import Lock
from generator.structs.record import PROCESS
from generator.structs.sweep import Goal
from generator.structs.values import Value, canonical_json


@dataclass(frozen=True)
class Side:
    """A sweep at a commit: the trials of its newest program."""

    asked: str
    sweep: str
    commit: str
    lock: Lock
    """Of its newest recorded batch."""
    rows: Mapping[str, SummaryRow]
    """By assignment and replicate."""
    older: int
    """Trials of programs before the newest: they are not compared."""

    @property
    def data(self) -> str | None:
        """The digest of what its trials were trained on."""
        return self.lock.program.data.digest if self.lock.program.data else None

    def objective(self, key: str) -> float | None:
        """What a trial reached; None where it is not ok."""
        return self.rows[key].metric(self.lock.metric.name) if key in self.rows else None

    def as_data(self) -> dict[str, Any]:
        """Give what machines want to know."""
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
    """The objectives of both; None where a trial is not ok."""
    difference: float | None
    """B less A; None where one is missing, or the two may not be compared."""


@dataclass(frozen=True)
class Compared:
    """Two sides, what they share, and what only one has."""

    a: Side
    b: Side
    pairs: tuple[Pair, ...]
    """The largest gain of B first where they are ranked, else in the order of A."""
    only_a: tuple[SummaryRow, ...]
    only_b: tuple[SummaryRow, ...]
    refused: tuple[str, ...]
    """Why nothing is ranked; empty where it is."""
    warnings: tuple[str, ...]

    @property
    def counts(self) -> tuple[int, int, int]:
        """How often B is better, A is better, both are equal, by the goal."""
        sign = 1 if self.a.lock.metric.goal is Goal.MAXIMIZE else -1
        gains = [sign * one.difference for one in self.pairs if one.difference is not None]
        return sum(one > 0 for one in gains), sum(one < 0 for one in gains), sum(one == 0 for one in gains)

    def as_data(self) -> dict[str, Any]:
        """Give what machines want to know."""
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
                    "assignment": dict(one.assignment),
                    "replicate": one.replicate,
                    "a": {"trial": one.a.trial, "status": str(one.a.status), "value": one.values[0]},
                    "b": {"trial": one.b.trial, "status": str(one.b.status), "value": one.values[1]},
                    "difference": one.difference,
                }
                for one in self.pairs
            ],
            "only_a": [_told(one) for one in self.only_a],
            "only_b": [_told(one) for one in self.only_b],
        }


def _told(row: SummaryRow) -> dict[str, Any]:
    return {"trial": row.trial, "assignment": dict(row.assignment), "replicate": row.replicate}


def compare(workspace: Workspace, a: str, b: str) -> Compared:
    """Join two recorded sweeps, each `NAME` or `NAME@REV`, on what both have tried.

    Raises UsageError for a name or commit that there is not, RepositoryError where nothing is recorded there.
    """
    left, right = (_side(workspace, asked) for asked in (a, b))
    refused = tuple(_refusals(left, right))
    pairs = [_pair(left, right, key, ranked=not refused) for key in left.rows if key in right.rows]
    if not refused:
        sign = -1 if left.lock.metric.goal is Goal.MAXIMIZE else 1
        pairs.sort(key=lambda one: (one.difference is None, sign * (one.difference or 0.0), one.a.trial))
    return Compared(
        left,
        right,
        tuple(pairs),
        tuple(row for key, row in left.rows.items() if key not in right.rows),
        tuple(row for key, row in right.rows.items() if key not in left.rows),
        refused,
        tuple(_warnings(left, right)),
    )


def _side(workspace: Workspace, asked: str) -> Side:
    name, at, revision = asked.partition("@")
    repository = workspace.repository
    commit = repository.commit(revision if at else "HEAD")
    if commit is None:
        raise UsageError(
            f"{asked!r}: {revision or 'HEAD'} names no commit", hint="write NAME@REV: a branch, tag or HEAD~1"
        )
    sweep = ledger.sweep_name(workspace, name)
    path = f"{results_folder(sweep)}/{SUMMARY_FILE}"
    content = repository.read(commit, path).get(path)
    if content is None:
        stored = batches.in_commit(repository, commit)
        ledger.chosen(workspace, sweep, ledger.sweeps(workspace, stored))
        raise RepositoryError(
            f"{path}: nothing is recorded of {sweep!r} at {commit[:12]}",
            hint=f"`sweep log {sweep}` lists the commits that recorded it",
        )
    try:
        rows = summary.read(content.decode()).rows
    except ValueError as error:
        raise RepositoryError(f"{path}: {error}", hint=f"`sweep verify {sweep}` says what changed") from error
    return _newest(workspace, asked, sweep, commit, rows)


def _newest(workspace: Workspace, asked: str, sweep: str, commit: str, rows: tuple[SummaryRow, ...]) -> Side:
    listed = {row.batch for row in rows}
    stored = batches.of_sweep(batches.in_commit(workspace.repository, commit), sweep)
    recorded = [batch for batch in stored if batch.name in listed]
    if not recorded:
        raise RepositoryError(
            f"{results_folder(sweep)}: none of its batches is in overlays/ at {commit[:12]}",
            hint=f"`sweep verify {sweep}` says what is missing",
        )
    lock = recorded[-1].lock
    chosen = {_key(row): row for row in rows if row.program == lock.program.digest}
    return Side(asked, sweep, commit, lock, chosen, len(rows) - len(chosen))


def _key(row: SummaryRow) -> str:
    return canonical_json([dict(row.assignment), row.replicate])


def _pair(left: Side, right: Side, key: str, *, ranked: bool) -> Pair:
    a, b = left.rows[key], right.rows[key]
    values = left.objective(key), right.objective(key)
    both = values[0] is not None and values[1] is not None and ranked
    difference = (values[1] or 0.0) - (values[0] or 0.0) if both else None
    return Pair(a.assignment, a.replicate, a, b, values, difference)


def _refusals(a: Side, b: Side) -> Iterator[str]:
    """Say why numbers of the two must not be put in one order."""
    for name, mine, theirs in (
        ("metric", a.lock.metric.name, b.lock.metric.name),
        ("goal", str(a.lock.metric.goal), str(b.lock.metric.goal)),
        ("data", a.data or "none", b.data or "none"),
    ):
        if mine != theirs:
            yield f"they differ in {name}: {a.asked} has {mine}, {b.asked} has {theirs}"


def _warnings(a: Side, b: Side) -> Iterator[str]:
    ran = [{row.ran == PROCESS for row in side.rows.values() if row.ran} for side in (a, b)]
    if len(ran[0] | ran[1]) > 1:
        yield "some ran in containers and some as processes: times and last digits need not agree"
    for side in (a, b):
        if side.older:
            yield f"{side.asked}: {side.older} trials of older programs are left out"
