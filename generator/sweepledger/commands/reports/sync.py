"""`sweep sync`: recorded results to the stores of other tools; what a store has already is not written again.

Without a store it writes all sweeps to the servers of the settings, which keep the version of what they have: that is
all the state there is.
"""

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sweepledger.commands.reports.recorded import CurveColumns, RecordedResults, recorded_results
from sweepledger.commands.repository.at_commit import SpecAtCommit, commit_of_version
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.errors import GeneratorError, IdleError, RepositoryError, StorageError, ToolError, UsageError
from sweepledger.formats.summary_csv import SUMMARY_FILE, SummaryRow
from sweepledger.results.paths import RESULTS, results_folder
from sweepledger.storage import output_path, storage_errors
from sweepledger.stores.contents import FinishedTrial, StoreChange, SweepContents
from sweepledger.stores.registry import STORES
from sweepledger.structs.names import is_sweep_name
from sweepledger.structs.record import CurvePoint

VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


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
    path = place.removeprefix("sqlite:///").removeprefix("file:")
    if "://" not in path:
        output_path(Path(path, kind.file), is_folder="://" not in kind.default)
    return Synced(store, place, name, kind.write(contents, place), contents.unfinished)


@dataclass(frozen=True, slots=True)
class SyncedStores:
    """The servers of the settings after they have received what they lacked."""

    synced: tuple[Synced, ...]
    unchanged: tuple[tuple[str, str], ...]
    """Store and sweep of results that a server has already."""
    failures: tuple[GeneratorError, ...]
    """Why a server, or a sweep, was left out: the others are written all the same."""

    def as_data(self) -> dict[str, Any]:
        """Return the JSON data."""
        return {
            "synced": [synced.as_data() for synced in self.synced],
            "unchanged": [{"store": store, "sweep": sweep} for store, sweep in self.unchanged],
        }


def sync_stores(workspace: Workspace, *, credentials: Path | None = None) -> SyncedStores:
    """Write the recorded results of all sweeps at HEAD to the servers of the settings, if they lack some.

    `credentials` has a folder for each store, whose files are variables for its client. Raises UsageError if the
    settings name none.
    """
    targets = workspace.settings.results.sync
    if not targets:
        raise UsageError(
            "results.sync of sweepledger.yaml names no server",
            hint="name a store and a sweep, for example `sweep sync parquet NAME`",
        )
    commit = workspace.repository.commit("HEAD")
    synced: list[Synced] = []
    unchanged: list[tuple[str, str]] = []
    failures: list[GeneratorError] = []
    for store, target in sorted(targets.items()):
        try:
            if urlsplit(target.to).netloc:
                workspace.repository.require_trusted(target.to)
            with _variables(credentials / store if credentials else None):
                for name, version in _recorded_versions(workspace, commit):
                    if STORES[store].version(name, target.to) == version:
                        unchanged.append((store, name))
                        continue
                    try:
                        synced.append(sync(workspace, store, name, place=target.to))
                    except RepositoryError as error:
                        failures.append(error)
        except (ToolError, StorageError, RepositoryError) as error:
            # The next sweep would wait for the same server.
            failures.append(error)
    return SyncedStores(tuple(synced), tuple(unchanged), tuple(failures))


@contextmanager
def _variables(folder: Path | None) -> Iterator[None]:
    """Set an environment variable for each file of a folder, for a block. Raises StorageError."""
    if folder is None or not folder.is_dir():
        yield
        return
    with storage_errors(folder):
        # A mounted Secret has links to its files, and hidden folders.
        values = {path.name: path.read_text().rstrip("\n") for path in folder.iterdir() if path.is_file()}
    before = dict(os.environ)
    os.environ.update({name: value for name, value in values.items() if VARIABLE.fullmatch(name)})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _recorded_versions(workspace: Workspace, commit: str | None) -> Iterator[tuple[str, str]]:
    """Yield the sweeps with results at a commit, each with the version of its results."""
    for folder in workspace.repository.folders(commit, RESULTS):
        name = folder.rpartition("/")[2]
        version = None if commit is None else workspace.repository.tree_id(commit, folder)
        if is_sweep_name(name) and version is not None:
            yield name, version


def contents_of(recorded: RecordedResults) -> SweepContents:
    """Return what a store gets of recorded results. Raises RepositoryError."""
    lock = recorded.lock
    sweep = SpecAtCommit.at(recorded.repository, recorded.commit, lock.spec.path).sweep
    curves = _curves(recorded.curves())
    finished = _finished_rows(recorded)
    parameters = sweep.design.space.parameters if sweep else ()
    domains = {parameter.name: parameter.domain for parameter in parameters}
    summary = f"{results_folder(recorded.sweep)}/{SUMMARY_FILE}"
    best = recorded.ranked[0].trial if recorded.ranked else None
    return SweepContents(
        sweep=recorded.sweep,
        description=sweep.description if sweep else "",
        commit=commit_of_version(recorded.repository, recorded.commit, summary) or recorded.commit,
        version=recorded.repository.tree_id(recorded.commit, results_folder(recorded.sweep)) or "",
        metrics=lock.metrics,
        domains=domains,
        trials=tuple(_trial(row, curves.get(row.trial, {})) for row in finished.values()),
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


def _curves(columns: CurveColumns) -> Mapping[str, Mapping[str, tuple[CurvePoint, ...]]]:
    """Return the curves of each trial by metric."""
    points = zip(columns.trials, columns.metrics, columns.steps, columns.values, strict=True)
    curves: dict[str, dict[str, tuple[CurvePoint, ...]]] = defaultdict(dict)
    for (trial, metric), group in groupby(points, key=itemgetter(0, 1)):
        curves[trial][metric] = tuple(_point(step, value) for *_, step, value in group)
    return curves


def _point(step: int, value: float) -> CurvePoint:
    is_nan = value != value  # noqa: PLR0124 - faster than math.isnan for half a million points
    return (step, None if is_nan else value)


def _trial(row: SummaryRow, curves: Mapping[str, tuple[CurvePoint, ...]]) -> FinishedTrial:
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
        curves=curves,
        started=row.started,
        finished=row.finished,
        code=row.code,
        ran=row.ran or "",
    )
