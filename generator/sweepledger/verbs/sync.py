"""Write recorded results to another tool's store.

It writes each finished trial once, with its learning curves. Interrupted and repeated, it writes what the store
lacks. It reads the results at HEAD. Without arguments, it writes all sweeps to the servers of `results.sync`, as
the CronJob sweep-sync does: they keep the version of what they have, and that is all the state there is.
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
from urllib.parse import urlsplit

from rich.console import RenderableType
from rich.text import Text

from sweepledger.cli import completion, response
from sweepledger.cli.options import argument, option
from sweepledger.cli.text.values import count_text
from sweepledger.errors import GeneratorError, IdleError, RepositoryError, StorageError, ToolError, UsageError
from sweepledger.formats.summary_csv import SUMMARY_FILE
from sweepledger.operations.reports.recorded_results import RecordedResults, recorded_results
from sweepledger.operations.repository.at_commit import SpecAtCommit, commit_of_version
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.storage import output_path, storage_errors
from sweepledger.stores.contents import FinishedTrial, SweepContents
from sweepledger.stores.registry import stores as all_stores
from sweepledger.structs.names import RESULTS, is_sweep_name, results_folder
from sweepledger.structs.record import CurvePoint, SummaryRow

VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def sync(
    workspace: Workspace,
    store: str | None = argument(
        "[STORE]",
        f"One of {', '.join(all_stores())}; default: the servers of results.sync.",
        show_default=False,
        autocompletion=lambda: list(all_stores()),
    ),
    name: str | None = argument(
        "[NAME]", "Name of the sweep.", show_default=False, autocompletion=completion.sweeps
    ),
    to: str | None = option(
        "--to PLACE",
        "Write there: a URI of MLflow, a URL of Optuna's storage or the file of its journal, else a folder.",
    ),
    credentials: Path | None = option(
        "--credentials DIR",
        "Without arguments: the files of DIR/STORE are environment variables for the store's client.",
    ),
) -> response.Response:
    if store is not None and name is not None:
        synced = sync_sweep(workspace, store, name, place=to)
        return response.Response(synced, synced.lines)
    if store is not None or to is not None:
        raise UsageError("name a store and a sweep, or neither", hint="for example `sweep sync parquet NAME`")
    return sync_stores(workspace, credentials=credentials)


@dataclass(frozen=True, slots=True)
class Synced:
    """A store after it has received the results of a sweep."""

    store: str
    place: str
    sweep: str
    added: int
    """Number of trials that were written."""
    present: int
    """Number of trials that the store had already."""
    unfinished: int
    remarks: tuple[str, ...]

    @property
    def lines(self) -> tuple[RenderableType, ...]:
        """What was written, as text."""
        lines = [f"{self.place}: {count_text(self.added, 'trial')} added, {self.present} present"]
        if self.unfinished:
            count = count_text(self.unfinished, "trial")
            lines.append(f"{count} without a final result: not written")
        return (*lines, *(Text(remark, "yellow") for remark in self.remarks))


def sync_sweep(workspace: Workspace, store: str, name: str, *, place: str | None = None) -> Synced:
    """Write the recorded results of a sweep at HEAD to a store, each finished trial once.

    Raises IdleError if nothing is recorded, UsageError for an unknown store, ToolError, StorageError, RepositoryError.
    """
    kind = all_stores().get(store)
    if kind is None:
        raise UsageError(f"no store {store!r}", hint=f"stores: {', '.join(all_stores())}")
    commit = workspace.repository.commit("HEAD")
    recorded = None if commit is None else recorded_results(workspace.repository, commit, name)
    if recorded is None:
        hint = f"`sweep status {name}` shows its state"
        raise IdleError(f"nothing is recorded of {name!r} at HEAD", hint=hint)
    contents = contents_of(recorded)
    place = place or kind.default
    path = place.removeprefix("sqlite:///").removeprefix("file:")
    if "://" not in path:
        output_path(Path(path, kind.file), is_folder="://" not in kind.default)
    change = kind.write(contents, place)
    return Synced(store, place, name, change.added, change.present, contents.unfinished, change.remarks)


def sync_stores(workspace: Workspace, *, credentials: Path | None = None) -> response.Response:
    """Write the recorded results of all sweeps at HEAD to the servers of the settings that lack some.

    `credentials` has a folder for each store, whose files are variables for its client. Each server or sweep that was
    left out is a failure: all others are written. Raises UsageError if the settings name no server.
    """
    targets = workspace.settings.results.sync
    if not targets:
        raise UsageError(
            "results.sync of sweepledger.yaml names no server",
            hint="name a store and a sweep, for example `sweep sync parquet NAME`",
        )
    repository, commit = workspace.repository, workspace.repository.commit("HEAD")
    versions = {
        name: version
        for folder in repository.folders(commit, RESULTS)
        if commit
        and is_sweep_name(name := folder.rpartition("/")[2])
        and (version := repository.tree_id(commit, folder))
    }
    synced: list[Synced] = []
    unchanged: list[dict[str, str]] = []
    failures: list[GeneratorError] = []
    for store, target in sorted(targets.items()):
        try:
            if urlsplit(target.to).netloc:
                repository.require_trusted(target.to)
            with _variables(credentials / store if credentials else None):
                for name, version in versions.items():
                    if all_stores()[store].version(name, target.to) == version:
                        unchanged.append({"store": store, "sweep": name})
                        continue
                    try:
                        synced.append(sync_sweep(workspace, store, name, place=target.to))
                    except RepositoryError as error:
                        failures.append(error)
        except (ToolError, StorageError, RepositoryError) as error:
            # The next sweep would wait for the same server.
            failures.append(error)
    lines = [line for each in synced for line in (Text(f"{each.store}: {each.sweep}", "bold"), *each.lines)]
    lines += [f"{each['store']}: {each['sweep']}: nothing new" for each in unchanged]
    data = {"synced": synced, "unchanged": unchanged}
    return response.Response(data, tuple(lines), failures=tuple(failures))


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


def contents_of(recorded: RecordedResults) -> SweepContents:
    """Return the contents that a store receives from recorded results. Raises RepositoryError."""
    lock = recorded.lock
    sweep = SpecAtCommit.at(recorded.repository, recorded.commit, lock.spec.path).sweep
    columns = recorded.curves()
    points = zip(columns.trials, columns.metrics, columns.steps, columns.values, strict=True)
    curves: dict[str, dict[str, tuple[CurvePoint, ...]]] = defaultdict(dict)
    for (trial, metric), group in groupby(points, key=itemgetter(0, 1)):
        curves[trial][metric] = tuple(
            # Of NaN; it is faster than math.isnan for half a million points.
            (step, None if value != value else value)  # noqa: PLR0124
            for *_, step, value in group
        )
    finished: dict[str, SummaryRow] = {}
    for row in recorded.table.rows:
        if row.status.is_final and row.started and row.finished:
            finished.setdefault(row.trial, row)  # of a trial that two batches ran, the first
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
