"""What git knows of each sweep at a commit, as the site shows it: results, commits, programs, prices."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from itertools import pairwise

from sweepledger.commands.reports.history import history
from sweepledger.commands.repository import at_commit
from sweepledger.commands.repository.programs import file_changes, ranked_program
from sweepledger.commands.rounds.evidence import foreign_labels
from sweepledger.commands.verification.batch_audit import recorded_summary
from sweepledger.errors import GeneratorError, RepositoryError
from sweepledger.formats.evidence_jsonl import EVIDENCE_SUFFIX
from sweepledger.plan import hourly_price
from sweepledger.repo import batches
from sweepledger.repo.git import Repository, tree_patch
from sweepledger.results.paths import batch_of_records, results_folder
from sweepledger.results.summary import Summary
from sweepledger.site.history import CodeRevision, Event, EventKind, SpecVersion, SweepHistory
from sweepledger.structs.names import SPECS, SUFFIX, split_batch_name
from sweepledger.structs.settings import Settings

MOST_LINES = 400
"""Changed lines of the code, beyond which a page only counts them."""
LONGEST_PATCH = 20_000


class HistoryReader:
    """Reads the history of the sweeps of a commit."""

    def __init__(self, repository: Repository, commit: str) -> None:
        self._repository = repository
        self._commit = commit
        self.listing = repository.files(commit)
        self.settings: Settings = at_commit.settings_or_defaults(repository, commit)
        self.log = history(repository, commit)
        self.entries: dict[str, list[Event]] = defaultdict(list)
        for entry in self.log:
            self.entries[entry.sweep].append(entry)
        self.batches: dict[str, list[batches.StoredBatch]] = defaultdict(list)
        for batch in batches.in_commit(repository, commit):
            self.batches[batch.sweep].append(batch)

    def history(self, sweep: str, paths: Collection[str]) -> SweepHistory:
        """Return the history of a sweep, given the paths of its files."""
        spec = f"{SPECS}/{sweep}{SUFFIX}"
        stored = self.batches[sweep]
        summary, problem = None, ""
        if any(path.startswith(results_folder(sweep)) for path in paths):
            try:
                summary = recorded_summary(self._repository, self._commit, sweep, self.ranked_program(sweep))
            except GeneratorError as error:
                problem = str(error)
        content = self._repository.read(self._commit, spec).get(spec)
        read = None
        if summary is None or self.evidence:
            read = at_commit.read_sweep(self._repository, self._commit, spec, self.settings)
        return SweepHistory(
            name=sweep,
            summary=summary,
            spec=None if content is None else content.decode(errors="replace"),
            versions=tuple(self._spec_versions(sweep, spec)),
            events=tuple(self.entries[sweep]),
            active={one.name: one.lock.trials for one in batches.readable(stored) if one.is_active},
            description=read.description if read and summary is None else "",
            recorded=self._recorded(sweep),
            code_changes={} if summary is None else dict(self._code_changes(summary)),
            prices={} if summary is None else dict(self._prices(stored)),
            currency=self.settings.teams.currency,
            problem=problem,
            ranked=self.ranked_program(sweep),
            foreign=foreign_labels(self._repository, self._commit, read) if read else (),
        )

    def ranked_program(self, sweep: str) -> str | None:
        """Return the digest of the commit's program if the batches of a sweep ran several; empty if it is none of them.

        None if they ran one.
        """
        locks = [batch.lock for batch in batches.readable(self.batches[sweep])]
        if len({lock.program.digest for lock in locks}) <= 1:
            return None
        return ranked_program(self._repository, self._commit, locks) or ""

    @cached_property
    def evidence(self) -> Mapping[str, str]:
        """The evidence of other systems, which specs may start from: path and blob id."""
        return {path: entry.id for path, entry in self.listing.items() if path.endswith(EVIDENCE_SUFFIX)}

    def _spec_versions(self, sweep: str, spec: str) -> Iterator[SpecVersion]:
        changes = [entry for entry in self.entries[sweep] if entry.kind == EventKind.SPEC]
        texts = self._repository.blobs(entry.files[spec] for entry in changes)
        for entry in changes:
            text = texts[entry.files[spec]].decode(errors="replace")
            yield SpecVersion(entry.commit, entry.author, entry.date, entry.text, text)

    def _recorded(self, sweep: str) -> dict[str, str]:
        recorded: dict[str, str] = {}
        for entry in self.entries[sweep]:
            if entry.kind == EventKind.RESULTS:
                for path in sorted(entry.files):
                    batch = batch_of_records(path)
                    if split_batch_name(batch) and path.startswith(f"{results_folder(sweep)}/"):
                        recorded.setdefault(batch, entry.commit)
        return recorded

    def _code_changes(self, summary: Summary) -> Iterator[tuple[tuple[str, str], CodeRevision]]:
        codes = [batch.lock.program.code for batch in summary.batches]
        for before, after in pairwise(codes):
            if before.tree == after.tree or before.path != after.path:
                continue
            changes, patch = file_changes(self._repository, before, after), ""
            listed = tuple((one.path, one.added, one.removed) for one in changes or ())
            if changes is not None and sum((up or 0) + (down or 0) for _, up, down in listed) <= MOST_LINES:
                with suppress(RepositoryError):
                    patch = tree_patch(self._repository, before.tree, after.tree)
            revision = CodeRevision(listed, patch if len(patch) <= LONGEST_PATCH else "")
            yield (before.tree, after.tree), revision

    def _prices(self, stored: Iterable[batches.StoredBatch]) -> Iterator[tuple[str, float]]:
        if not any(pool.price for pool in self.settings.trials.pools.values()):
            return
        for batch in batches.readable(stored):
            pool = self.settings.trials.pool(batch.lock.run.pool)
            price = None if pool is None or pool.price is None else hourly_price(batch.lock.run, pool)
            if price is not None:
                yield batch.name, price
