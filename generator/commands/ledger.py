"""What git holds about sweeps and trials, as the commands that only read want it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from generator.commands.workspace import SPECS, STATE, SUFFIX, Workspace
from generator.errors import RepositoryError, UnreadableError, UsageError
from generator.formats import summary as summaries
from generator.formats.lock import LOCK_FILE
from generator.formats.summary import SUMMARY_FILE, SummaryRow, SummaryTable
from generator.repo import batches
from generator.repo.batches import ACTIVE, ARCHIVE, StoredBatch
from generator.repo.files import storage
from generator.repo.git import Repository
from generator.results import results_folder
from generator.structs.batch import Lock
from generator.structs.front import unbeaten
from generator.structs.names import is_sweep_name, split_batch_name
from generator.structs.sweep import Goal


def sweeps(workspace: Workspace, stored: Iterable[StoredBatch]) -> frozenset[str]:
    """Name the sweeps that have a spec in the work tree, or a batch."""
    specs = {path.stem for path in workspace.spec_paths() if is_sweep_name(path.stem)}
    return frozenset(specs | {(split_batch_name(batch.name) or ("",))[0] for batch in stored})


def chosen(workspace: Workspace, asked: str, known: Iterable[str]) -> str:
    """Find a sweep that is asked for by its name or by the path of its spec. Raises UsageError."""
    found = sweep_name(workspace, asked)
    names = sorted(known)
    if found not in names:
        raise UsageError(f"no sweep {asked!r}", hint=f"sweeps: {', '.join(names) or 'none yet'}")
    return found


def sweep_name(workspace: Workspace, asked: str) -> str:
    """Take the sweep's name from the path of its spec, whether or not that is still there; else as it is."""
    path = Path(asked)
    is_spec = path.suffix == SUFFIX and (path.is_file() or path.absolute().parent == workspace.root / SPECS)
    return path.stem if is_spec else asked


def batch_names(repository: Repository, commit: str | None, *below: str) -> frozenset[str]:
    """Name the batches that a commit holds, active and archived, or those below some folders."""
    paths = repository.files(commit, *(below or (ACTIVE, ARCHIVE)))
    found = {path.split("/")[2] for path in paths if path.count("/") > ACTIVE.count("/") + 1}
    return frozenset(name for name in found if split_batch_name(name))


def active_here(workspace: Workspace) -> frozenset[str]:
    """Name the active batches of the work tree, generated ones that nobody committed included."""
    locks = (workspace.root / ACTIVE).glob(f"*/{LOCK_FILE}")
    return frozenset(lock.parent.name for lock in locks if split_batch_name(lock.parent.name))


def summary(workspace: Workspace, sweep: str) -> SummaryTable | None:
    """Read a sweep's summary from the work tree; None while nothing is recorded. Raises RepositoryError."""
    path = workspace.root / results_folder(sweep) / SUMMARY_FILE
    if not path.is_file():
        return None
    with storage(path):
        content = path.read_bytes()
    try:
        return summaries.read(content.decode())
    except ValueError as error:
        raise RepositoryError(
            f"{workspace.shown(path)}: {error}", hint="restore it from git: the collector alone writes it"
        ) from error


def candidates(rows: Iterable[SummaryRow], stored: Iterable[StoredBatch]) -> tuple[SummaryRow, ...]:
    """Choose the trials that may win: of the newest program that is recorded, and asked for by the spec."""
    known = tuple(rows)
    programs = {row.program for row in known}
    newest = [found for batch in stored if (found := batch.lock.program.digest) in programs]
    return tuple(row for row in known if row.program in newest[-1:] and row.in_spec is not False)


def ranked(rows: Iterable[SummaryRow], metric: str, goal: Goal) -> tuple[SummaryRow, ...]:
    """Sort the trials that have the metric, best first; ties go to the smaller id."""
    sign = -1 if goal is Goal.MAXIMIZE else 1
    scored = [(sign * value, row.trial, row) for row in rows if (value := row.metric(metric)) is not None]
    return tuple(row for *_, row in sorted(scored, key=lambda one: one[:2]))


def front(rows: Iterable[SummaryRow], held: Lock | None) -> tuple[SummaryRow, ...]:
    """Choose the trials that no other beats in all metrics of a batch; none where it has one metric."""
    if held is None or not held.other_metrics:
        return ()
    metrics = (held.metric, *held.other_metrics)
    known: list[tuple[SummaryRow, tuple[float, ...]]] = []
    for row in sorted(rows, key=lambda row: row.trial):
        values = tuple(value for one in metrics if (value := row.metric(one.name)) is not None)
        known += [(row, values)] if len(values) == len(metrics) else []
    return tuple(known[place][0] for place in unbeaten([values for _, values in known], metrics))


@dataclass(frozen=True)
class Found:
    """A trial, and where it is listed."""

    batch: StoredBatch
    index: int
    id: str

    @property
    def sweep(self) -> str:
        """The sweep that asked for it."""
        return self.batch.lock.sweep


def find(workspace: Workspace, asked: str) -> Found:
    """Find a trial by its id, the beginning of it, or either after `SWEEP/`.

    Where several batches of its sweep list it, the newest counts. Raises UsageError, UnreadableError.
    """
    where, _, trial = asked.rpartition("/")
    sweep = sweep_name(workspace, where)
    unreadable: list[UnreadableError] = []
    found = list(matches(workspace, sweep, trial, unreadable))
    ids = sorted({one.id for one in found})
    if not ids and unreadable:
        raise unreadable[0]
    if not ids:
        raise UsageError(f"no trial {asked!r} in any batch", hint="`sweep results NAME` lists ids")
    if len(ids) > 1:
        shown = ", ".join(ids[:5]) + (" …" if len(ids) > 5 else "")  # noqa: PLR2004 - enough to choose from
        raise UsageError(f"{asked!r} begins several ids", hint=f"give more of it: {shown}")
    sweeps = sorted({one.sweep for one in found})
    if len(sweeps) > 1:
        ways = ", ".join(f"{name}/{ids[0]}" for name in sweeps)
        raise UsageError(f"trial {ids[0]} is of several sweeps: {', '.join(sweeps)}", hint=f"ask for {ways}")
    return max(found, key=lambda one: one.batch.lock.number)


def matches(
    workspace: Workspace, sweep: str, trial: str, unreadable: list[UnreadableError]
) -> Iterator[Found]:
    """Yield where trials are listed; why a batch cannot be read is told where nothing is found."""
    for batch in batches.in_work_tree(workspace.root):
        if sweep not in {"", batch.sweep}:
            continue
        try:
            rows = batch.vetted().rows
        except UnreadableError as error:
            unreadable.append(error)
            continue
        for index, row in enumerate(rows):
            if row.trial.startswith(trial) and trial:
                yield Found(batch, index, row.trial)


def state_folder(workspace: Workspace, chosen: Path | None) -> Path:
    """Say where `sweep local` keeps its state."""
    return chosen.absolute() if chosen else workspace.root / STATE
