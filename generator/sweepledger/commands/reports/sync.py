"""`sweep sync`: recorded results to the stores of other tools; what a store has already is not written again."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from sweepledger.commands.reports.recorded import CurveColumns, RecordedResults, recorded_results
from sweepledger.commands.repository.at_commit import SpecAtCommit, commit_of_version
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.errors import IdleError, UsageError
from sweepledger.formats.summary_csv import SUMMARY_FILE, SummaryRow
from sweepledger.results.paths import results_folder
from sweepledger.stores.contents import FinishedTrial, StoreChange, SweepContents
from sweepledger.stores.registry import STORES
from sweepledger.structs.domain import Domain
from sweepledger.structs.record import CurvePoint


@dataclass(frozen=True, slots=True)
class Synced:
    """A store after it has received the results of a sweep."""

    store: str
    place: str
    sweep: str
    change: StoreChange
    unfinished: int

    def as_data(self) -> dict[str, Any]:
        """Return the JSON data."""
        return {
            "store": self.store,
            "place": self.place,
            "sweep": self.sweep,
            "added": self.change.added,
            "present": self.change.present,
            "unfinished": self.unfinished,
            "remarks": list(self.change.remarks),
        }


def sync(workspace: Workspace, store: str, name: str, *, place: str | None = None) -> Synced:
    """Write the recorded results of a sweep at HEAD to a store, each finished trial once.

    Raises IdleError if nothing is recorded, UsageError for an unknown store, ToolError, StorageError, RepositoryError.
    """
    kind = STORES.get(store)
    if kind is None:
        raise UsageError(f"no store {store!r}", hint=f"stores: {', '.join(STORES)}")
    commit = workspace.repository.commit("HEAD")
    recorded = None if commit is None else recorded_results(workspace.repository, commit, name)
    if recorded is None:
        raise IdleError(
            f"nothing is recorded of {name!r} at HEAD", hint=f"`sweep status {name}` says where it stands"
        )
    contents = contents_of(recorded)
    place = place or kind.default
    return Synced(store, place, name, kind.write(contents, place), contents.unfinished)


def contents_of(recorded: RecordedResults) -> SweepContents:
    """Return what a store gets of recorded results. Raises RepositoryError."""
    lock = recorded.lock
    sweep = SpecAtCommit.at(recorded.repository, recorded.commit, lock.spec_path).sweep
    curves = _curves(recorded.curves())
    finished = _finished_rows(recorded)
    domains: dict[str, tuple[Domain, ...]] = {}
    for block in sweep.blocks if sweep else ():
        for parameter in block.space.parameters:
            domains[parameter.name] = (*domains.get(parameter.name, ()), parameter.domain)
    summary = f"{results_folder(recorded.sweep)}/{SUMMARY_FILE}"
    best = recorded.ranked[0].trial if recorded.ranked else None
    return SweepContents(
        sweep=recorded.sweep,
        description=sweep.description if sweep else "",
        commit=commit_of_version(recorded.repository, recorded.commit, summary) or recorded.commit,
        metrics=(lock.metric, *lock.other_metrics),
        domains=domains,
        trials=tuple(_trial(row, curves.get(row.trial, ())) for row in finished.values()),
        best=best,
        data=lock.program.data.name if lock.program.data else None,
        unfinished=len({row.trial for row in recorded.table.rows} - finished.keys()),
    )


def _finished_rows(recorded: RecordedResults) -> Mapping[str, SummaryRow]:
    """Return the row of each trial with a final result; of a trial that two batches ran, the first."""
    rows: dict[str, SummaryRow] = {}
    for row in recorded.table.rows:
        if row.status.is_final and row.started and row.finished:
            rows.setdefault(row.trial, row)
    return rows


def _curves(columns: CurveColumns) -> Mapping[str, tuple[CurvePoint, ...]]:
    points = zip(columns.trials, columns.steps, columns.values, strict=True)
    return {
        trial: tuple(_point(step, value) for _, step, value in group)
        for trial, group in groupby(points, key=lambda point: point[0])
    }


def _point(step: int, value: float) -> CurvePoint:
    is_nan = value != value  # noqa: PLR0124 - faster than math.isnan for half a million points
    return (step, None if is_nan else value)


def _trial(row: SummaryRow, curve: tuple[CurvePoint, ...]) -> FinishedTrial:
    assert row.started is not None
    assert row.finished is not None
    return FinishedTrial(
        id=row.trial,
        batch=row.batch,
        replicate=row.replicate,
        seed=row.seed or 0,
        status=row.status,
        parameters=row.assignment,
        metrics=row.metrics,
        curve=curve,
        started=row.started,
        finished=row.finished,
        code=row.code,
        ran=row.ran or "",
    )
