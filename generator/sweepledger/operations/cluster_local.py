"""`sweep cluster local`: controller, node and collector on one machine, following a branch.

Where trials share a machine's files, rules of early stopping follow them while they run: the launcher reads a file of
thresholds again at each report. The thresholds go to git with the records, so that `sweep verify` repeats its
decisions.
"""

import contextlib
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from sweepledger import storage
from sweepledger.engine.local import events, machine
from sweepledger.engine.local.engine import LocalEngine
from sweepledger.engine.local.events import BatchProgress, JobCondition
from sweepledger.engine.local.local_batch import DesiredBatch
from sweepledger.errors import GeneratorError, PausedError, RepositoryError, SpecError, UnreadableError
from sweepledger.operations.collection.attempts import BatchAttempts, finished_here
from sweepledger.operations.collection.record_store import on_volume
from sweepledger.operations.collection.results_commit import ResultsCommit, UnrecordedError, commit_results
from sweepledger.operations.repository import at_commit, batch_records, catalog, rendered_manifests, workspace
from sweepledger.operations.repository.outside_imports import locked_python_path, refuse_other_environment
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.operations.rounds.evidence import read_evidence
from sweepledger.operations.rounds.next_round import RoundBlocked, RoundDue
from sweepledger.operations.rounds.round_commit import PushedBatch, push_due
from sweepledger.problems import Problem
from sweepledger.repo import batches, datasets
from sweepledger.repo.base_files import packaged_launcher
from sweepledger.repo.batches import ACTIVE, StoredBatch
from sweepledger.repo.git import REMOTE, Mirror, Repository
from sweepledger.repo.results_volume import VolumeResults
from sweepledger.repo.state import DATA, state_folder
from sweepledger.results.outcomes import evaluate
from sweepledger.structs.names import LOCK_FILE, split_batch_name
from sweepledger.structs.record import SummaryRow
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import canonical_json


@dataclass(frozen=True)
class RefusedBatch:
    """An active batch that cannot run here, and why. Other batches go on."""

    batch: str
    problems: tuple[Problem, ...]


THRESHOLDS = "thresholds"
"""In the state folder."""
LATER_SHARE = 20
"""The rules are computed again when a twentieth more trials have ended: all of them read all curves."""


@dataclass
class LiveRules:
    """Writes thresholds from all trials that have ended, including those of the same batch."""

    repository: Repository
    state: Path
    _ended: dict[str, int] = field(default_factory=dict)
    """How many trials of a batch had ended when its rules were computed last."""
    _sweeps: dict[tuple[str, str], Sweep | None] = field(default_factory=dict)
    """By commit and path of the spec."""

    def path(self, commit: str, batch: StoredBatch) -> Path | None:
        """Return the file of thresholds for the trials of a batch; None if its sweep has no rule that compares."""
        return None if self._sweep(commit, batch) is None else self.state / THRESHOLDS / f"{batch.name}.json"

    def refresh(self, commit: str, batch: StoredBatch) -> bool:
        """Write the thresholds of a batch if enough trials have ended since; return whether. Raises StorageError."""
        sweep, path = self._sweep(commit, batch), self.path(commit, batch)
        if sweep is None or path is None:
            return False
        results = BatchAttempts.read(VolumeResults(self.state / "results"), batch).results
        ended = sum(outcome.status.is_final for outcome in evaluate(results).outcomes)
        before = self._ended.get(batch.name, 0)
        if ended < before + max(1, before // LATER_SHARE):
            return False
        self._ended[batch.name] = ended
        fresh, program = {batch.name: results}, batch.lock.program.digest
        evidence = read_evidence(self.repository, commit, sweep, program, fresh=fresh)
        rules = [rule for rule in evidence.stop if "thresholds" in rule]
        path.parent.mkdir(parents=True, exist_ok=True)
        storage.write_file(path, f"{canonical_json({'stop': rules})}\n".encode())
        return True

    def _sweep(self, commit: str, batch: StoredBatch) -> Sweep | None:
        """Return the sweep of a batch by the spec at a commit, if it has a rule that compares trials."""
        key = commit, batch.lock.spec.path
        if key not in self._sweeps:
            sweep = at_commit.read_sweep(self.repository, *key)
            self._sweeps = {one: kept for one, kept in self._sweeps.items() if one[0] == commit}
            self._sweeps[key] = sweep if sweep and sweep.early_stop and sweep.early_stop.compares else None
        return self._sweeps[key]


class Options(Struct, frozen=True):
    """How to run sweeps on this machine."""

    url: str
    branch: str
    state: Path
    once: bool = False
    """Whether to stop when no batch is active."""
    sweeps: frozenset[str] | None = None
    """The sweeps whose batches run here; None: all."""
    jobs: int | None = None
    """Maximum number of pods at once; None: as many as fit."""
    parallel: int | None = None
    """Number of trials of a batch at once, whatever its spec says; None: as its spec says."""
    without_gpu: bool = False
    workspace: Workspace | None = None
    """The user's repository, to report batches there that are not on the branch."""
    judged: frozenset[str] = frozenset()
    """Batches whose files were built and checked before they were committed."""
    followed: str = ""
    """The branch with its remote, for messages."""


@dataclass
class DesiredState:
    """Computes the desired state of commits. A batch is made once; only how it runs now may change."""

    repository: Repository
    mirror: Mirror
    """Where locked code is checked out."""
    options: Options
    work_tree: Repository | None = None
    """The user's repository, from which no trial may import."""
    outputs: dict[str, batch_records.StoredOutputs] = field(default_factory=dict)
    """The outputs that are read again instead of a training, by batch that was made."""
    _made: dict[str, DesiredBatch] = field(default_factory=dict)

    def desired(self, commit: str, batch: StoredBatch) -> DesiredBatch | RefusedBatch:
        """Return one batch, or why it cannot run. A failure is tried again at the next fetch."""
        try:
            if batch.name not in self._made:
                self._made[batch.name] = self._make(commit, batch)
            made, running = self._made[batch.name], batch.running
        except (SpecError, UnreadableError) as error:
            return RefusedBatch(batch.name, error.problems)
        except GeneratorError as error:
            problem = Problem(batch.folder, 0, 0, "", str(error), "cannot-run", error.hint)
            return RefusedBatch(batch.name, (problem,))
        now = machine.with_parallelism(made.batch, self.options.parallel or running.parallelism)
        thresholds = self.rules.path(commit, batch)
        return replace(made, batch=replace(now, is_paused=running.paused), thresholds=thresholds)

    @cached_property
    def rules(self) -> LiveRules:
        """The rules of early stopping that follow the trials."""
        return LiveRules(self.repository, self.options.state)

    def _make(self, commit: str, batch: StoredBatch) -> DesiredBatch:
        if batch.name not in self.options.judged:
            settings = at_commit.valid_settings(self.repository, commit)
            rendered_manifests.refuse_forged(batch)
            if settings.git.manifests:
                rendered_manifests.render_at(self.repository, commit, batch, settings)
        made, started = rendered_manifests.desired_batch(
            self.repository, commit, batch, self.mirror, self.options.state / DATA
        )
        refuse_other_environment(started, batch.sweep, batch.folder)
        python_path = self.work_tree and locked_python_path(started, self.work_tree, batch.folder)
        results = self.options.state / "results"
        outputs = batch_records.stored_outputs(self.repository, commit, batch, results)
        self.outputs[batch.name] = outputs
        return replace(made, python_path=python_path or (), earlier=outputs.files)


POLL_SECONDS = 15.0
"""Seconds between two fetches of the branch; shorter than the default of controllers."""
TICK_SECONDS = 0.5


class Fetching(Struct, frozen=True):
    """The branch is about to be fetched."""

    branch: str


class Fetched(Struct, frozen=True):
    """The branch is at this commit, with these active batches."""

    commit: str
    active: tuple[str, ...]


class Unpushed(Struct, frozen=True):
    """The work tree has batches that the branch does not have, so they do not run."""

    batches: tuple[str, ...]
    branch: str
    are_committed: bool


class Built(Struct, frozen=True):
    """A batch may run."""

    batch: StoredBatch
    unverified: str | None
    """Its dataset, if only a version identifies it: its content cannot be verified."""
    best: float | None
    """The best value of its sweep and program so far, also of trials that are not recorded yet."""
    outputs: tuple[str, ...]
    """Which trials are read from stored output instead, and which cannot be."""


class Running(Struct, frozen=True):
    """States of the trials of every active batch."""

    progress: dict[str, BatchProgress]


class RemoteFailed(Struct, frozen=True):
    """The remote could not be read, or refused a push; trials go on, and the remote is tried again."""

    message: str


Event = (
    Fetching
    | Fetched
    | Unpushed
    | Built
    | RefusedBatch
    | Running
    | RemoteFailed
    | ResultsCommit
    | PushedBatch
    | RoundBlocked
    | events.EngineEvent
)


@dataclass(frozen=True)
class BlockedSearches:
    """The searches that are blocked before their end, each with its last event."""

    by_sweep: dict[str, RoundBlocked] = field(default_factory=dict)
    paused: dict[str, GeneratorError] = field(default_factory=dict)
    """Batches that paused after their first failures."""

    def add(self, event: object) -> None:
        """Update a search from an event; ignore events of repeated trials. A blocked search may go on later."""
        match event:
            case ResultsCommit():
                sweep, step = event.summary.sweep, event.step
            case PushedBatch(due=RoundDue() as step):
                sweep = step.sweep.name
            case RoundBlocked():
                sweep, step = event.sweep, event
            case events.BatchPaused():
                self.paused[event.batch] = _paused_error(event)
                return
            case _:
                return
        if isinstance(step, RoundBlocked):
            self.by_sweep[sweep] = step
        else:
            self.by_sweep.pop(sweep, None)

    @property
    def failures(self) -> tuple[GeneratorError, ...]:
        """The failures to report for a command that should continue these searches."""
        blocked = (blocked.error for blocked in self.by_sweep.values() if blocked.exit_code)
        return (*blocked, *self.paused.values())


def commit_ended(
    target: workspace.Target, state: Path, conditions: Mapping[str, JobCondition | None]
) -> tuple[ResultsCommit, ...]:
    """Record the batches whose Jobs on this machine have ended. Raises as `commit_results` does."""
    ended = {name for name, condition in conditions.items() if condition}
    return commit_results(target, on_volume(state / "results"), ended, alive=conditions)


def _paused_error(event: events.BatchPaused) -> PausedError:
    sweep, count = (split_batch_name(event.batch) or (event.batch,))[0], len(event.errors)
    error, times = Counter(event.errors).most_common(1)[0]
    shared = "all" if times == count else f"{times} of them"
    cause = f", {shared} with: {error}" if error else ""
    return PausedError(
        f"{event.batch} is paused: {count} trial(s) failed and none is ok{cause}; {event.open} wait",
        hint=f"`sweep run {sweep}` starts those as they are; to run all with other code, `sweep cancel {sweep} "
        f"--batch {event.batch}`, then `sweep run {sweep} --commit-code --update`",
    )


def local(options: Options) -> Iterator[Event]:
    """Follow the branch, run its active batches and record results; yield events.

    Killed at any moment and started again, it continues: no trial runs again once its result exists. Raises
    SpecError if no batch can run on this machine, RepositoryError, StorageError.
    """
    mirror = Mirror(options.state, options.url, options.branch)
    target = workspace.Target(mirror.repository, REMOTE, options.branch)
    with LocalEngine(options.state, slots=options.jobs, launcher=packaged_launcher()) as engine:
        yield from follow(target, mirror, options, engine)


def follow(
    target: workspace.Target, mirror: Mirror, options: Options, engine: LocalEngine
) -> Iterator[Event]:
    """Run the active batches of a branch and record results there; code comes from the mirror. As `local`."""
    own = options.workspace.repository if options.workspace is not None else target.repository
    work_tree = None if own is mirror.repository else own
    cluster = DesiredState(target.repository, mirror, options, work_tree)
    return _Loop(options, target, cluster, engine).run()


@dataclass
class _Loop:
    options: Options
    target: workspace.Target
    cluster: DesiredState
    engine: LocalEngine
    desired: list[DesiredBatch] = field(default_factory=list)
    refused: list[RefusedBatch] = field(default_factory=list)
    pending: tuple[str, ...] = ()
    """Cancelled batches that are not recorded yet."""
    last_commit: str | None = None
    active: tuple[StoredBatch, ...] = ()
    """Its active batches that may run here."""
    unfollowed: frozenset[str] = frozenset()
    """Batches of the work tree that are not in this commit."""
    announced: dict[str, type] = field(default_factory=dict)
    """The type of the event reported last, by batch."""

    def run(self) -> Iterator[Event]:
        """Fetch the branch, run its batches, record ended batches; repeat."""
        while True:
            yield Fetching(self.options.branch)
            try:
                yield from self._fetch_and_run()
            except RepositoryError as error:
                if self.last_commit is None or (self.options.once and self.engine.is_settled):
                    raise
                yield RemoteFailed(str(error))  # trials continue; the remote may respond at the next fetch
            yield from self._until_news()
            try:
                collected = self._collect()
            except RepositoryError as error:
                yield from error.done if isinstance(error, UnrecordedError) else ()
                if self.options.once and self.engine.is_settled:
                    raise
                yield RemoteFailed(str(error))
                self.engine.wait(POLL_SECONDS)
                continue
            yield from collected
            if self.options.once and not collected and self._is_idle():
                if self.refused:
                    raise SpecError([problem for refused in self.refused for problem in refused.problems])
                return

    def _fetch_and_run(self) -> Iterator[Event]:
        if self.options.workspace is not None:
            # The user may have pulled a commit with files of the state since the last time.
            state_folder(self.options.workspace.repository, self.options.state)
        commit = self.target.tip()
        if commit is None:
            raise RepositoryError(f"branch {self.options.branch} does not exist any more")
        if commit != self.last_commit:
            for pushed in push_due(self.target):
                yield pushed
                commit = commit if isinstance(pushed, RoundBlocked) else pushed.commit
        repository, sweeps = self.target.repository, self.options.sweeps
        stored = batches.in_commit(repository, commit)
        active = tuple(
            batch for batch in stored if batch.is_active and (sweeps is None or batch.sweep in sweeps)
        )
        if commit != self.last_commit:
            yield Fetched(commit, tuple(batch.name for batch in active))
            yield from self._unpushed(commit)
        self.last_commit, self.active = commit, active
        self._fit(commit)
        unrecorded = batch_records.unrecorded_batches(repository, commit, stored)
        self.pending = tuple(batch.name for batch in unrecorded)
        yield from self._announce()

    def _unpushed(self, commit: str) -> Iterator[Event]:
        workspace = self.options.workspace
        if workspace is None:
            return
        head = workspace.repository.commit("HEAD")
        committed = catalog.batch_names(workspace.repository, head, ACTIVE)
        locks = (workspace.root / ACTIVE).glob(f"*/{LOCK_FILE}")  # of uncommitted batches, too
        present = committed.union(lock.parent.name for lock in locks if split_batch_name(lock.parent.name))
        unfollowed = present - catalog.batch_names(self.target.repository, commit)
        if unfollowed - self.unfollowed:
            yield Unpushed(tuple(sorted(unfollowed)), self.options.followed, unfollowed <= committed)
        self.unfollowed = unfollowed

    def _is_idle(self) -> bool:
        conditions, progress = self.engine.conditions, self.engine.progress()
        held = self.engine.held(self.desired)
        return not self.pending and all(
            conditions.get(item.batch.name)
            or ((item.batch.is_paused or item in held) and not progress[item.batch.name].running)
            for item in self.desired
        )

    def _fit(self, commit: str) -> None:
        """Divide the active batches into those that can run here and those that cannot."""
        self.desired, self.refused = [], []
        capacity = self.engine.capacity
        for batch in self.active:
            made = self.cluster.desired(commit, batch)
            if isinstance(made, RefusedBatch):
                self.refused.append(made)
                continue
            wanted = machine.without_gpus(made.batch) if self.options.without_gpu else made.batch
            fitted = machine.fitted(wanted, capacity)
            if problems := machine.capacity_problems(fitted, capacity):
                self.refused.append(RefusedBatch(batch.name, problems))
            else:
                self.desired.append(replace(made, batch=fitted))

    def _announce(self) -> Iterator[Event]:
        """Yield one event for each batch: that it may run, or why it cannot."""
        active = {batch.name: batch for batch in self.active}
        events: dict[str, Event] = {
            desired.batch.name: self._built_event(active[desired.batch.name])
            for desired in self.desired
            if self.announced.get(desired.batch.name) is not Built
        }
        events |= {refused.batch: refused for refused in self.refused}
        for name, event in events.items():
            if self.announced.get(name) is not type(event):
                self.announced[name] = type(event)
                yield event

    def _built_event(self, batch: StoredBatch) -> Built:
        data = batch.lock.program.data
        known = data is None or datasets.is_verifiable(data.digest)
        unverified = None if data is None or known else f"{data.name} {data.digest}"
        finished = finished_here(batches.of_sweep(self.active, batch.sweep), self.options.state / "results")
        best = catalog.best_value_at(
            self.target.repository, self.last_commit, batch.lock, map(SummaryRow.of, finished)
        )
        outputs = self.cluster.outputs[batch.name].lines
        return Built(batch, unverified, best, outputs)

    def _until_news(self) -> Iterator[Event]:
        """Run until a batch has ended, or until it is time to fetch the branch again."""
        look_again = time.monotonic() + POLL_SECONDS
        untouched = {refused.batch for refused in self.refused}
        while True:
            happened = self.engine.step(self.desired, untouched=untouched)
            yield from happened
            changed = {event.attempt.batch for event in happened if isinstance(event, events.PodEnded)}
            for batch in self.active:
                # Let running trials be compared with those that have ended; without rules they simply go on.
                if self.last_commit is not None and batch.name in changed:
                    with contextlib.suppress(GeneratorError):
                        self.cluster.rules.refresh(self.last_commit, batch)
            yield Running(self.engine.progress())
            if not self.desired and not self.pending and self.options.once:
                return
            if self._has_ended(self.engine.conditions) or time.monotonic() >= look_again:
                return
            if self.options.once and self._is_idle():
                return
            self.engine.wait(TICK_SECONDS)

    def _has_ended(self, conditions: Mapping[str, JobCondition | None]) -> bool:
        """Return whether there is something to record: a Job that ended, or a cancelled batch without Jobs."""
        return any(conditions.get(desired.batch.name) for desired in self.desired) or any(
            name not in conditions for name in self.pending
        )

    def _collect(self) -> tuple[ResultsCommit, ...]:
        """Record ended batches. Until a Job ends, neither the volume nor the remote is read."""
        conditions = self.engine.conditions
        try:
            return (
                commit_ended(self.target, self.options.state, conditions)
                if self._has_ended(conditions)
                else ()
            )
        except UnrecordedError as error:
            folders = tuple(f"{ACTIVE}/{refused.batch}/" for refused in self.refused)
            failures = [
                failure
                for failure in error.failures
                if not (isinstance(failure, UnreadableError) and failure.problems[0].file.startswith(folders))
            ]
            if failures:
                raise UnrecordedError(error.done, failures) from error
            return error.done
