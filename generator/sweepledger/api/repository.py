"""A repository of sweeps, at HEAD or at a fixed commit."""

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sweepledger.api.sweep import RecordedSweep
from sweepledger.api.table import table_html
from sweepledger.errors import UsageError
from sweepledger.operations.repository import catalog
from sweepledger.repo.git import Repository
from sweepledger.repo.state import create_state

# Imported where they are used: readers of results would wait for the engine, a quarter of their time.

if TYPE_CHECKING:
    from sweepledger.api.comparison import ComparisonResult


@dataclass(frozen=True)
class SweepRepository:
    """The sweeps of a git repository. Without a fixed commit, each access reads HEAD anew."""

    root: Path
    """The root of the work tree."""
    revision: str | None
    """The fixed commit; None: HEAD."""
    _repository: Repository = field(repr=False)

    @property
    def commit(self) -> str:
        """The commit that results are read from. Raises UsageError if nothing is committed yet."""
        commit = self._repository.commit(self.revision or "HEAD")
        if commit is None:
            raise UsageError(f"{self.root} has no commit yet", hint="commit the spec and the code first")
        return commit

    @property
    def state(self) -> Path:
        """The folder of what `run` keeps on this machine, which it creates."""
        return create_state(self._repository)

    @property
    def sweeps(self) -> tuple[RecordedSweep, ...]:
        """The sweeps that have a spec or a batch at the commit, by name."""
        commit = self.commit
        names = catalog.committed_sweeps(self._repository, commit)
        return tuple(RecordedSweep(name, commit, self._repository) for name in sorted(names))

    def sweep(self, name: str) -> RecordedSweep:
        """Return one sweep at the commit. Raises UsageError if it does not exist."""
        commit = self.commit
        present = catalog.committed_sweeps(self._repository, commit)
        return RecordedSweep(catalog.choose_sweep(self.root, name, present), commit, self._repository)

    def compare(self, a: str, b: str) -> "ComparisonResult":
        """Compare two sweeps or versions of one: each `NAME`, `NAME@REV` or `NAME@b2`. Raises GeneratorError."""
        from sweepledger.api.comparison import ComparisonResult
        from sweepledger.operations.reports.comparison import compare_sweeps
        from sweepledger.operations.repository import at_commit
        from sweepledger.operations.repository.workspace import Workspace

        workspace = Workspace(self._repository, at_commit.settings_or_defaults(self._repository, self.commit))
        fixed = "" if self.revision is None else f"@{self.revision}"
        return ComparisonResult(
            compare_sweeps(workspace, *(name if "@" in name else name + fixed for name in (a, b)))
        )

    def run(
        self,
        *names: str,
        parallel: int | None = None,
        commit_code: bool = False,
        without_gpu: bool = False,
        update: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> tuple[RecordedSweep, ...]:
        """Run sweeps on this machine as `sweep run` does, and return them with their results.

        Without names, all sweeps run. Uncommitted code is refused, or left out with a warning, unless
        `commit_code` includes it; with `update`, all trials run with code that changed. `progress` gets the
        number of trials that have ended, and of those in the batches. Raises GeneratorError, also for a repository
        at a fixed commit; for a blocked search, only after everything else has run.
        """
        from sweepledger.operations.cluster_local import BlockedSearches, Running
        from sweepledger.operations.repository.workspace import Workspace
        from sweepledger.operations.run import CodeLeftOut, RunOptions, SweepRun

        if self.revision is not None:
            raise UsageError("sweeps run at HEAD only", hint="open the repository without a commit")
        prepared = SweepRun.prepare(Workspace.find(self.root), names)
        options = RunOptions(self.state, parallel, without_gpu, commits_code=commit_code, updates=update)
        blocked = BlockedSearches()
        counts: dict[str, tuple[int, int]] = {}
        for event in prepared.run(options):
            blocked.add(event)
            if isinstance(event, Running):
                counts |= {name: (each.ended, each.total) for name, each in event.progress.items()}
                if progress is not None and counts:
                    progress(*map(sum, zip(*counts.values(), strict=True)))
            if isinstance(event, CodeLeftOut):
                warnings.warn(
                    f"runs without changes that are not committed: {', '.join(event.paths)}", stacklevel=2
                )
        if blocked.failures:
            raise blocked.failures[0]
        return tuple(map(self.sweep, sorted(prepared.names)))

    def _repr_html_(self) -> str:
        rows = [
            (sweep.name, len(sweep.trials), sweep.metric, best and best.metrics.get(sweep.metric or ""))
            for sweep in self.sweeps
            for best in (sweep.best,)
        ]
        return table_html(("sweep", "trials", "metric", "best"), rows, total=len(rows))


def open_repository(path: str | os.PathLike[str] = ".", commit: str | None = None) -> SweepRepository:
    """Return the repository around a folder, at HEAD or at a commit, branch or tag.

    Raises GeneratorError if there is no repository or no such commit.
    """
    repository = Repository.find(Path(path).absolute())
    revision = None if commit is None else repository.commit(commit)
    if commit is not None and revision is None:
        raise UsageError(
            f"{commit!r} is not a commit", hint="write a branch, a tag, HEAD~1 or the id of a commit"
        )
    return SweepRepository(repository.folder, revision, repository)
