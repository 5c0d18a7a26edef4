"""`sweep run`: generate, commit, run and record sweeps on the checked-out branch; no remote is needed.

It makes the commits, batches and records that `sweep generate` and a collector make, so `git push` moves a sweep on
to a cluster. Started again after an interruption, it continues: no trial runs again once its result exists.
"""

from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from msgspec import Struct

from sweepledger import spec
from sweepledger.engine.local.engine import LocalEngine
from sweepledger.errors import RepositoryError, SpecError
from sweepledger.operations import cluster_local
from sweepledger.operations.collection.attempts import BatchAttempts
from sweepledger.operations.collection.results_commit import Recording, ResultsCommit
from sweepledger.operations.generation import next_batch
from sweepledger.operations.generation.spec_change import RENAMED
from sweepledger.operations.repository import programs, rendered_manifests
from sweepledger.operations.repository.batch_builder import batch_files
from sweepledger.operations.repository.outside_imports import (
    StartedProgram,
    locked_python_path,
    refuse_other_environment,
)
from sweepledger.operations.repository.spec_edit import SpecEdit, cancellation
from sweepledger.operations.repository.workspace import Target, Workspace
from sweepledger.operations.scaffold.starter import SCHEMA_FILE
from sweepledger.problems import Severity, list_names
from sweepledger.repo import base_files, batches, files, git
from sweepledger.repo.batches import ACTIVE, ARCHIVE, StoredBatch
from sweepledger.repo.results_volume import VolumeResults
from sweepledger.results.outcomes import evaluate
from sweepledger.spec.sweep_builder import PROGRAM_SUFFIXES
from sweepledger.structs.names import SETTINGS_FILE, SPECS, split_batch_name
from sweepledger.structs.settings import Controller, NextRoundMode


class RunOptions(Struct, frozen=True):
    """How `sweep run` runs sweeps."""

    state: Path
    parallel: int | None = None
    """Number of trials at once; None: as the spec says, as far as they fit."""
    without_gpu: bool = False
    commits_code: bool = False
    """Whether uncommitted code is committed first."""
    updates: bool = False
    """Whether all trials are requested again if the code, image or data changed."""


class CodeCommitted(Struct, frozen=True):
    """Uncommitted code was committed, because the user asked for it."""

    commit: str
    paths: tuple[str, ...]


class CodeLeftOut(Struct, frozen=True):
    """The code has changes that are not committed, so the trials run without them."""

    paths: tuple[str, ...]


class BatchesCommitted(Struct, frozen=True):
    """The batches that the sweeps need were committed; no commit if they need nothing new."""

    commit: str | None
    generated: tuple[next_batch.Generated, ...]


RunEvent = CodeCommitted | CodeLeftOut | BatchesCommitted | cluster_local.Event


@dataclass(frozen=True)
class SweepRun:
    """Sweeps to run on the branch that is checked out."""

    workspace: Workspace
    branch: str
    specs: tuple[spec.ParsedSpec, ...]
    files: Mapping[str, bytes]
    """The specs, and the files beside them that they name, by path."""

    @classmethod
    def prepare(cls, workspace: Workspace, names: tuple[str, ...]) -> "SweepRun":
        """Return the named sweeps. Raises SpecError, UsageError, RepositoryError if nothing can be committed here."""
        branch = _require_branch(workspace.repository)
        read: dict[str, bytes] = {}
        specs = workspace.specs(names)
        for parsed in specs:
            read |= _spec_files(workspace, parsed.sweep.path)
        return cls(workspace, branch, specs, read)

    @property
    def names(self) -> frozenset[str]:
        """The names of the sweeps."""
        return frozenset(parsed.sweep.name for parsed in self.specs)

    def dry_run(self, *, update: bool = False) -> tuple[next_batch.Generated, ...]:
        """Return the batches that a run would generate; nothing is written. Raises as `run` does before it commits."""
        self._refuse_cluster_batches()
        return self._plan(self._tip(), update=update)

    def run(self, options: RunOptions) -> Generator[RunEvent]:
        """Commit the batches that the sweeps need, run them, and record the results on the branch; yield events.

        The results go to the branch that was checked out at the start, also if the user switches to another.
        Raises SpecError, RepositoryError, StorageError.
        """
        self._refuse_cluster_batches()
        repository = self.workspace.repository
        with LocalEngine(options.state, launcher=base_files.packaged_launcher()) as engine:
            git.finish_update(repository, self.branch)
            yield from self._commit_code(options)
            mirror = git.Mirror(options.state, repository, self.branch)
            committed = self.commit_batches(update=options.updates, mirror=mirror)
            yield committed
            made = frozenset(item.batch.name for item in committed.generated if item.batch)
            following = cluster_local.Options(
                url=str(repository.folder),
                branch=self.branch,
                state=options.state,
                once=True,
                sweeps=self.names,
                parallel=options.parallel,
                without_gpu=options.without_gpu,
                judged=made,
            )
            yield from cluster_local.follow(self._target, mirror, following, engine)

    def hand_over(self, state: Path) -> tuple[tuple[ResultsCommit, ...], BatchesCommitted]:
        """Record the finished trials on the branch, and request the others in new batches; return both. Nothing runs.

        Only this machine knows which trials of an active batch have finished: a follower of the branch would run
        all of it. A batch of which no trial has finished stays as it is. Killed at any moment and started again, it
        continues. Raises RepositoryError if the branch is not checked out or a spec is not committed, SpecError.
        """
        repository = self.workspace.repository
        target = Target(repository, branch=self.branch, is_laptop=True)
        with LocalEngine(state) as engine:
            git.finish_update(repository, self.branch)
            if repository.branch() != self.branch:
                raise RepositoryError(
                    f"{self.branch} is not checked out, so its specs cannot be changed",
                    hint=f"`git switch {self.branch}`, then run this again",
                )
            recorded = cluster_local.commit_ended(target, state, engine.conditions)
            for name in sorted(self.names):
                recorded += self._end_begun(target, name, state)
            active = {batch.name for batch in batches.in_commit(repository, target.tip()) if batch.is_active}
            jobs = engine.conditions.keys()
            own = {name for name in jobs if (split_batch_name(name) or ("",))[0] in self.names}
            # Without their Jobs the cancelled batches count as ended.
            engine.step([], untouched=jobs - (own - active))
            recorded += cluster_local.commit_ended(target, state, engine.conditions)
        again = SweepRun.prepare(self.workspace, tuple(sorted(self.names)))  # the specs have changed
        return recorded, again.commit_batches()

    def batches_with_checkpoints(self, state: Path) -> tuple[str, ...]:
        """Return the active batches of which a trial has checkpoints on this machine; most trials delete theirs."""

        def has_checkpoints(batch: StoredBatch) -> bool:
            trials = f"{batch.name}/{'*' if batch.lock.run.pack is None else '*/*'}"
            kept = (
                state.glob(f"{volume}/{trials}/checkpoints/**/*") for volume in ("results", "checkpoints")
            )
            return any(path.is_file() for paths in kept for path in paths)

        stored = batches.in_commit(self.workspace.repository, self._tip())
        own = (batch for batch in stored if batch.is_active and batch.sweep in self.names)
        return tuple(batch.name for batch in own if has_checkpoints(batch))

    def _end_begun(self, target: Target, name: str, state: Path) -> tuple[ResultsCommit, ...]:
        """Cancel the active batches of a sweep with a finished trial, and record them; return the results commit.

        The branch gets both commits at once: with the cancellation alone, all of their trials would be requested again.
        """
        begun: dict[str, BatchAttempts] = {}
        recorded: list[ResultsCommit] = []

        def cancel(head: str) -> git.Change | None:
            edit = SpecEdit.at(self.workspace, name, head, base=head)
            store = VolumeResults(state / "results")
            read = (BatchAttempts.read(store, batch) for batch in edit.merged if batch.is_active)
            begun.clear()
            begun.update(
                (attempts.batch.name, attempts)
                for attempts in read
                if any(outcome.status.is_final for outcome in evaluate(attempts.results).outcomes)
            )
            chosen = tuple(attempts.batch for attempts in begun.values())
            return cancellation(edit, chosen, replace=True) if chosen else None

        def record(base: str) -> git.Change | None:
            change, made = Recording(target, name, begun).change(base)
            recorded[:] = [made] if made else []
            return change

        commit = git.commit_on_branch(target.repository, target.branch, cancel, record)
        return tuple(replace(made, commit=commit) for made in recorded if commit)

    @property
    def _target(self) -> Target:
        settings = self.workspace.settings
        continues = (
            settings.platform.controller is Controller.NONE or settings.git.next is NextRoundMode.COLLECTOR
        )
        return Target(
            self.workspace.repository,
            branch=self.branch,
            is_laptop=True,
            continued=self.names if continues else frozenset(),
        )

    def _tip(self) -> str:
        tip = self._target.tip()
        assert tip is not None, "a branch with a commit is checked out"
        return tip

    def _refuse_cluster_batches(self) -> None:
        """Refuse batches that a cluster runs: their trials would run twice. Raises RepositoryError."""
        settings, repository = self.workspace.settings, self.workspace.repository
        if settings.platform.controller is Controller.NONE:
            return
        followed = f"{self.workspace.remote}/{settings.git.branch}"
        merged = batches.in_commit(repository, repository.commit(f"refs/remotes/{followed}"))
        running = [batch.name for batch in merged if batch.is_active and batch.sweep in self.names]
        if running:
            raise RepositoryError(
                f"{', '.join(running)} is on {followed}, where {settings.platform.controller} runs it",
                hint="wait for its results; or `sweep cancel` it, push, and run this again",
            )

    def uncommitted_code(self) -> tuple[str, ...]:
        """Return the paths of the sweeps' code that are not committed."""
        repository, sweeps = self.workspace.repository, [parsed.sweep for parsed in self.specs]
        return tuple(
            sorted({path for each in sweeps for path in programs.uncommitted_code(repository, each)})
        )

    def _commit_code(self, options: RunOptions) -> Iterator[RunEvent]:
        """Commit the uncommitted code if the user asked for it; else report it."""
        paths = self.uncommitted_code()
        if not paths:
            return
        if not options.commits_code:
            yield CodeLeftOut(paths)
            return
        repository = self.workspace.repository
        for parsed in self.specs:
            programs.refuse_rewritten_code(repository, parsed)
        entries = git.work_tree_entries(repository, paths)
        removed = frozenset(paths) - entries.keys()
        names = ", ".join(sorted(self.names))
        message = f"code({names}): {list_names(paths)}\n"
        commit = git.commit_on_branch(
            repository, self.branch, lambda _: git.Change(message, removes=removed, entries=entries)
        )
        if commit is not None:
            yield CodeCommitted(commit, paths)

    def commit_batches(self, *, update: bool = False, mirror: git.Mirror | None = None) -> BatchesCommitted:
        """Commit the missing batches, their specs, and the files that both need. Raises SpecError, RepositoryError.

        With a mirror, in which their code is checked out, batches that cannot run on this machine are refused.
        """

        def make(base: str) -> tuple[git.Change | None, tuple[next_batch.Generated, ...]]:
            planned = self._plan(base, update=update)
            if mirror is not None:
                self._refuse_what_cannot_run(mirror, base, planned)
            next_batch.write_batches(
                self.workspace, [replace(item, batch=None) for item in planned if item.stale]
            )
            new = tuple(generated for generated in planned if generated.batch)
            committed = self.workspace.repository.read(base, *self.files)
            specs = {path: content for path, content in self.files.items() if committed.get(path) != content}
            if not new and not specs:
                return None, planned
            names = ", ".join(sorted(self.names))
            message = next_batch.batch_message(new) if new else f"spec({names}): change without new trials\n"
            contents = {**specs, **self._first_files(base), **self._batch_files(base, new)}
            return git.Change(message, contents), planned

        commit, planned = self._target.commit(make)
        return BatchesCommitted(commit, planned or ())

    def _refuse_what_cannot_run(
        self, mirror: git.Mirror, base: str, planned: Iterable[next_batch.Generated]
    ) -> None:
        """Refuse invalid manifests, imports from the work tree, and packages that a batch locks otherwise.

        The engine refuses the latter as well, but then the branch already has a batch that can only be cancelled.
        Raises SpecError, ToolError.
        """
        merged = batches.in_commit(self.workspace.repository, base)
        for generated in planned:
            sweep, overlay = generated.sweep, generated.batch
            if overlay is None:
                continue
            batch = StoredBatch(f"{ACTIVE}/{overlay.name}", overlay.tree)
            if overlay.lock.has_manifests:
                written = self.workspace.repository.read(base, "base") | self._batch_files(base, (generated,))
                present = {path: written[path] for path in written if path.startswith(base_files.BASE)}
                rendered_manifests.render(batch, present, self.workspace.settings, merged)
            program = overlay.lock.program
            git.store_code(mirror.repository, program.code, [base])
            started = StartedProgram(program, sweep.run, mirror.code(program.code).folder)
            refuse_other_environment(started, sweep.name, sweep.path)
            locked_python_path(started, self.workspace.repository, sweep.path)

    def _plan(self, base: str, *, update: bool) -> tuple[next_batch.Generated, ...]:
        planned = next_batch.plan_batches(self.workspace, self.specs, base=base, update=update)
        _refuse_what_is_not_committed(planned)
        return next_batch.with_code_warnings(self.workspace, self.specs, planned, includes_listed=True)

    def _first_files(self, base: str) -> dict[str, bytes]:
        """Return the settings and the schema that `sweep new` has written, if no commit has them yet.

        Also `.gitattributes` with the lines that it has added here, or that generated files need.
        """
        repository, root, place = self.workspace.repository, self.workspace.root, base_files.ATTRIBUTES_FILE
        paths = (SETTINGS_FILE, f"{SPECS}/{SCHEMA_FILE}")
        committed = repository.files(base, *paths)
        new = (path for path in paths if path not in committed and (root / path).is_file())
        added = {path: files.read_input(root / path) for path in new}
        here = git.Checkout(repository, place).read(place)
        attributes = base_files.with_attribute_lines(repository.read(base, place).get(place, b""))
        has_lines = here is not None and base_files.with_attribute_lines(here) is None
        if attributes is not None and (has_lines or base_files.needs_attribute_lines(repository)):
            files.refuse_links(root, place)
            added[place] = attributes
        return added

    def _batch_files(self, base: str, new: tuple[next_batch.Generated, ...]) -> dict[str, bytes]:
        """Return the files of batches, and of the bases that the commit lacks."""
        repository, settings = self.workspace.repository, self.workspace.settings
        committed = repository.files(base, ACTIVE, ARCHIVE)
        added = {path: b"" for path in base_files.KEEP_FILES if path not in committed}
        for overlay in (generated.batch for generated in new if generated.batch):
            needed = overlay.lock.needed_bases
            added |= base_files.missing_bases_at(repository, base, needed, root=self.workspace.root)
            added |= batch_files(overlay, settings.platform, settings.trials)
        return added


def _refuse_what_is_not_committed(planned: Iterable[next_batch.Generated]) -> None:
    """Refuse a batch whose script the code lacks, rounds without their first evidence, and a sweep renamed by hand.

    In other commands, these are warnings: an image may have the script, and a person commits. Raises SpecError.
    """
    missing = []
    for generated in planned:
        for problem in generated.warnings:
            is_missing = problem.code in {next_batch.UNCOMMITTED_EVIDENCE, RENAMED}
            if problem.code == programs.MISSING_SCRIPT_CODE and problem.path in {"command[0]", "command[1]"}:
                # What the command starts: every trial would fail.
                word = generated.sweep.command[int(problem.path[8])]
                is_missing = word.rpartition(".")[2] in PROGRAM_SUFFIXES
            if is_missing:
                missing.append(replace(problem, severity=Severity.ERROR))
    if missing:
        raise SpecError(missing)


def _require_branch(repository: git.Repository) -> str:
    """Return the branch that is checked out. Raises RepositoryError if commits cannot be made on a branch."""
    operation = git.operation_in_progress(repository)
    if operation is not None:
        raise RepositoryError(
            f"a {operation} is in progress, so nothing can be committed",
            hint=f"`git {operation} --continue` or `git {operation} --abort`, then run this again",
        )
    branch = repository.branch()
    if branch is None:
        raise RepositoryError(
            "HEAD is detached: no branch is checked out that results could be committed to",
            hint="`git switch -c NAME` creates one here",
        )
    if repository.commit("HEAD") is None:
        raise RepositoryError(
            "nothing is committed yet, so no code can be locked",
            hint="`git add` your program and `git commit`, then run this again",
        )
    if git.committer(repository) is None:
        raise RepositoryError(
            "git does not know who commits",
            hint='`git config user.name "Your Name"` and `git config user.email you@example.org`',
        )
    return branch


def _spec_files(workspace: Workspace, path: str) -> dict[str, bytes]:
    """Return a spec, and the files in its folder that it names, by path."""
    content = workspace.as_committed(workspace.root / path, files.read_input(workspace.root / path))
    read, beside = {path: content}, workspace.beside(workspace.root / path)

    def remember(name: str) -> bytes | None:
        sibling = beside(name)
        if sibling is not None:
            read[str(PurePosixPath(path).with_name(name))] = sibling
        return sibling

    spec.parse(content, path, workspace.settings, beside=remember)
    return read
