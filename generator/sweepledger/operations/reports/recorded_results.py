"""A sweep's recorded results at a commit: trials, learning curves, figures. Reads only git."""

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from sys import intern

from sweepledger import garbage_collection
from sweepledger.errors import RepositoryError
from sweepledger.formats.json import load as load_json
from sweepledger.formats.record_json import split_curves
from sweepledger.formats.summary_csv import SummaryTable
from sweepledger.operations.repository import catalog, programs
from sweepledger.operations.repository.batch_records import records_files
from sweepledger.repo import batches
from sweepledger.repo.git import Repository
from sweepledger.results.figures.catalog import FIGURES
from sweepledger.structs.batch import BatchLock
from sweepledger.structs.names import results_folder
from sweepledger.structs.record import SummaryRow, pareto_front

SVG = ".svg"


@dataclass(frozen=True, slots=True)
class CurveColumns:
    """The learning curves of a sweep as columns of equal length."""

    trials: list[str]
    """Ids, one for each point."""
    metrics: list[str]
    """Names of the metrics, likewise."""
    steps: "array[int]"
    values: "array[float]"
    """NaN for a value that is not finite."""


@dataclass(frozen=True)
class RecordedResults:
    """The results of one sweep at a commit, at least one of which is recorded."""

    repository: Repository
    commit: str
    sweep: str
    table: SummaryTable
    stored: tuple[batches.StoredBatch, ...]
    """Batches with a trial in the table, by number; at least one."""
    laptop: tuple[str, ...] = ()
    """Batches that are marked as made on a laptop."""

    @property
    def lock(self) -> BatchLock:
        """The lock of the newest recorded batch that ran the ranked program."""
        program = self._ranked_program
        return next(
            (batch.lock for batch in reversed(self.stored) if batch.lock.program.digest == program),
            self.stored[-1].lock,
        )

    @cached_property
    def _ranked_program(self) -> str | None:
        locks = [batch.lock for batch in self.stored]
        return programs.ranked_program(self.repository, self.commit, locks)

    @cached_property
    def ranked(self) -> tuple[SummaryRow, ...]:
        """The trials that may be ranked and have the objective, best first."""
        metric = self.lock.metric
        return catalog.rank_rows(self._eligible, metric.name, metric.goal)

    @property
    def front(self) -> tuple[SummaryRow, ...]:
        """The Pareto front; empty if the sweep has one metric."""
        return tuple(row for row, _ in pareto_front(self._eligible, self.lock.metrics))

    @property
    def _eligible(self) -> tuple[SummaryRow, ...]:
        return catalog.eligible_rows(self.table.rows, self.stored, self._ranked_program)

    def records(self) -> Iterator[tuple[str, str, bytes]]:
        """Yield each file of records: path, batch and content."""
        present = self.repository.files(self.commit, f"{results_folder(self.sweep)}/records")
        paths = {path: batch.name for batch in self.stored for path in records_files(batch, present)}
        contents = self.repository.read(self.commit, *paths) if paths else {}
        return ((path, paths[path], content) for path, content in contents.items())

    @garbage_collection.paused()
    def curves(self) -> CurveColumns:
        """Return all curves, in the order of the summary and by metric. Raises RepositoryError."""
        points = {
            (batch, index): curves
            for path, batch, content in self.records()
            for index, curves in self._counted_curves(path, batch, content.decode(errors="replace"))
        }
        trials, metrics, texts = list[str](), list[str](), list[str]()
        for row in self.table.rows:
            for name, text in points.get((row.batch, row.index), {}).items():
                count = (text.count(",") + 1) // 2
                trials += [row.trial] * count
                metrics += [intern(name)] * count
                texts.append(text)
        try:
            numbers = load_json(f"[{','.join(texts).replace('null', 'NaN')}]")
            return CurveColumns(trials, metrics, array("q", numbers[::2]), array("d", numbers[1::2]))
        except (OverflowError, TypeError, ValueError) as error:
            raise RepositoryError(
                f"{results_folder(self.sweep)}/records: a curve cannot be read",
                hint=f"`sweep verify {self.sweep}` says what changed",
            ) from error

    def _counted_curves(self, path: str, batch: str, text: str) -> Iterator[tuple[int, Mapping[str, str]]]:
        """Yield the curves of each attempt that counts of a batch, with its row."""
        metric = self.lock.metric.name
        counted = {
            # The times are those of one attempt; of two within the same second, its result, too.
            (row.batch, row.index): (row.started, row.finished, row.seconds, row.metrics.get(metric))
            for row in self.table.rows
        }
        _, *lines = text.split("\n")
        for number, line in enumerate(filter(None, lines), start=2):
            try:
                rest, curves = split_curves(line)
                record = load_json(rest)
                value = record["metrics"].get(metric)
                key = (record["started"], record["finished"], record["seconds"], value)
                if curves and counted.get((batch, record["index"])) == key:
                    yield record["index"], curves
            except (KeyError, TypeError, ValueError) as error:
                hint = f"`sweep verify {self.sweep}` says what changed"
                raise RepositoryError(f"{path}:{number}: a record cannot be read", hint=hint) from error

    def figures(self) -> Mapping[str, str]:
        """Return the SVG text of each figure of the report, by its name without the ending."""
        folder = f"{results_folder(self.sweep)}/{FIGURES}"
        contents = self.repository.read(self.commit, folder)
        return {
            path.removeprefix(folder).removesuffix(SVG): content.decode(errors="replace")
            for path, content in sorted(contents.items())
            if path.endswith(SVG)
        }


def recorded_results(repository: Repository, commit: str, sweep: str) -> RecordedResults | None:
    """Return the results of a sweep at a commit; None if none are recorded. Raises RepositoryError."""
    path = catalog.summary_path(sweep)
    content = repository.read(commit, path).get(path)
    if content is None:
        return None
    with garbage_collection.paused():
        table = catalog.parse_summary(path, content, f"`sweep verify {sweep}` says what changed")
    listed = {row.batch for row in table.rows}
    stored = batches.of_sweep_in_commit(repository, commit, sweep)
    recorded = tuple(batch for batch in stored if batch.name in listed)
    if not recorded:
        raise RepositoryError(
            f"{results_folder(sweep)}: none of its batches is in overlays/ at {commit[:12]}",
            hint=f"`sweep verify {sweep}` shows what is missing",
        )
    laptop = catalog.laptop_batches_at(repository, commit, sweep)
    return RecordedResults(repository, commit, sweep, table, recorded, laptop)
