"""The next step of a search: another round with its batch, the end, or pending results.

Also the batch that repeats trials that infrastructure ended. All are functions of the spec, the records in git and the
round's number: every caller gets the same bytes.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from sweepledger.errors import GeneratorError, RepositoryError, SpecError
from sweepledger.formats import records_jsonl
from sweepledger.operations.repository import at_commit, costs, programs
from sweepledger.operations.repository.batch_builder import RenderInputs, build_overlay, parent_trials
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.operations.rounds.evidence import RoundEvidence, read_evidence
from sweepledger.plan.budgets import reservation
from sweepledger.render.overlay import Overlay
from sweepledger.repo import batches
from sweepledger.repo.batches import StoredBatch
from sweepledger.repo.files import read_input
from sweepledger.repo.git import Repository
from sweepledger.results.outcomes import BatchRecords
from sweepledger.search.adaptive import Round, SearchEnd
from sweepledger.search.adaptive.rounds import find_end, next_round, static_round
from sweepledger.spec import ParsedSpec
from sweepledger.structs.batch import Batch
from sweepledger.structs.names import SPECS, SUFFIX
from sweepledger.structs.program import LOCAL_IMAGE, Program
from sweepledger.structs.settings import Controller
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.trial import Trial, trial_id


@dataclass(frozen=True)
class RoundDue:
    """A round is due."""

    evidence: RoundEvidence
    round: Round
    trials: tuple[Trial, ...]
    batch: Overlay

    @property
    def sweep(self) -> Sweep:
        """The search."""
        return self.evidence.sweep

    def as_data(self) -> dict[str, Any]:
        """Return the JSON data."""
        return {
            "state": "due",
            "round": self.round.number,
            "engine": self.round.engine,
            "batch": self.batch.name,
            "trials": self.batch.lock.trials,
            "redrawn": self.round.redrawn,
            "replaced": self.round.replaced,
            "unfitted": self.round.unfitted,
        }


@dataclass(frozen=True)
class ResultsPending:
    """Pending results must be recorded before the next round or the end."""

    evidence: RoundEvidence

    def as_data(self) -> dict[str, Any]:
        """Return the JSON data."""
        return {"state": "waiting", "batches": self.evidence.pending}


@dataclass(frozen=True)
class SearchEnded:
    """The search has ended."""

    evidence: RoundEvidence
    reason: str
    """A stable word: `rounds`, `run-cap`, `budget`, `target`, `patience`, `cancelled` …"""
    text: str

    def as_data(self) -> dict[str, Any]:
        """Return the JSON data."""
        return {"state": "over", "reason": self.reason, "message": self.text}


Step = RoundDue | ResultsPending | SearchEnded


def next_step(evidence: RoundEvidence, program: Program, inputs: RenderInputs) -> Step:
    """Return the next step. Raises UsageError after a sweep's last possible batch, RepositoryError."""
    if evidence.is_full:
        return ResultsPending(evidence)
    proposal = _ended_by_cancel(evidence) or _propose(evidence)
    if isinstance(proposal, SearchEnd):
        # Pending results may be its best, or let it go on.
        pending = ResultsPending(evidence) if evidence.pending else None
        return pending or SearchEnded(evidence, proposal.reason, proposal.text)
    round_, trials = proposal
    listed = {row.trial for batch in evidence.batches for row in batch.rows}
    ids = [trial.id for trial in trials]
    if listed & {*ids} or len({*ids}) < len(ids):
        twice = next(trial for trial in ids if trial in listed or ids.count(trial) > 1)
        raise RepositoryError(
            f"round {evidence.rounds + 1} of {evidence.sweep.name} would request {twice} again",
            hint="change any value of the spec, or its seed; and please report this",
        )
    # No spec has both parents and replicates, so the index of a suggestion is the row of its trial.
    parents = {
        row: suggestion.parent
        for row, suggestion in enumerate(round_.suggestions)
        if suggestion.parent is not None
    }
    requested = Batch(
        evidence.sweep,
        program,
        trials,
        round=round_.number,
        engine=round_.engine,
        unfitted=round_.unfitted,
        parents=parents,
        stop=evidence.stop,
    )
    return RoundDue(evidence, round_, trials, build_overlay(requested, evidence.batches, inputs))


def _propose(evidence: RoundEvidence) -> tuple[Round, tuple[Trial, ...]] | SearchEnd:
    """Return the next round with its trials, or why there is none. Raises SpecError, ToolError."""
    sweep, number = evidence.sweep, evidence.rounds + 1
    if sweep.search is None:
        return static_round(sweep, evidence.program, evidence.listed, evidence.observations, number)
    proposal = next_round(sweep, evidence.observations, number=number, pending=evidence.pending_trials)
    if isinstance(proposal, SearchEnd):
        return proposal
    return proposal, tuple(
        Trial(suggestion.configuration, evidence.program, replicate)
        for suggestion in proposal.suggestions
        for replicate in range(sweep.replicates)
    )


def search_end(evidence: RoundEvidence) -> SearchEnd | None:
    """Return why a search has ended, if this is known before its next round is drawn."""
    if end := _ended_by_cancel(evidence):
        return end
    if evidence.sweep.search is None:
        proposal = _propose(evidence)
        return proposal if isinstance(proposal, SearchEnd) else None
    number = evidence.rounds + 1
    return find_end(evidence.sweep, evidence.observations, number=number, pending=evidence.pending_trials)


def _ended_by_cancel(evidence: RoundEvidence) -> SearchEnd | None:
    """Return the end of a search whose last batch was cancelled, unless this batch's trials are requested again."""
    last = evidence.batches[-1].name if evidence.batches else None
    retried = {retry.batch for retry in evidence.sweep.retry}
    if last not in evidence.sweep.cancel or last in retried:
        return None
    return SearchEnd("cancelled", f"{last} was cancelled, and no spec requests its trials again")


ROUNDS_KEY = b"rounds"
"""The spec of a sweep with rounds has this key."""


@dataclass(frozen=True)
class RoundBlocked:
    """The next round cannot be computed: the user has to fix something."""

    sweep: str
    reason: str
    hint: str | None = None
    exit_code: int = GeneratorError.exit_code
    """Of a command that the round was asked of; 0 if the user wants no round."""

    @property
    def error(self) -> GeneratorError:
        """The failure of a command that was to compute the round."""
        error = GeneratorError(f"the search {self.sweep} is blocked: {self.reason}", hint=self.hint)
        error.exit_code = self.exit_code
        return error

    def as_data(self) -> dict[str, Any]:
        """Return the JSON data."""
        return {"state": "blocked", "message": self.reason, "hint": self.hint}


def spec_path(sweep: str) -> str:
    """Return the path of a search's spec."""
    return f"{SPECS}/{sweep}{SUFFIX}"


def specs_with(repository: Repository, commit: str, key: bytes) -> Iterator[str]:
    """Yield the paths of a commit's specs that may have a key. Nothing is parsed: there may be many."""
    for path, content in sorted(repository.read(commit, SPECS).items()):
        if path.endswith(SUFFIX) and key in content:
            yield path


def searches_at(repository: Repository, commit: str) -> tuple[Sweep, ...]:
    """Return the searches of a commit whose specs can be read."""
    specs = at_commit.SpecReader.at(repository, commit)
    sweeps = (specs.sweep(commit, path) for path in specs_with(repository, commit, ROUNDS_KEY))
    return tuple(sweep for sweep in sweeps if sweep and sweep.rounds is not None)


def searches_in_work_tree(workspace: Workspace) -> tuple[Sweep, ...]:
    """Return the searches of the work tree whose specs can be read."""
    paths = (path for path in workspace.spec_paths() if path.is_file())
    read = (workspace.parse(path) for path in paths if ROUNDS_KEY in read_input(path))
    sweeps = (parsed.sweep for parsed in read if isinstance(parsed, ParsedSpec))
    return tuple(sweep for sweep in sweeps if sweep.rounds is not None)


def next_step_at(
    repository: Repository, commit: str, name: str, fresh: Mapping[str, BatchRecords] | None = None
) -> Step | RoundBlocked | None:
    """Return the next step of a sweep at a commit, with some records added to those of the commit.

    None if the sweep is not a search, or has no batch: its first round is not requested automatically.
    """
    specs = at_commit.SpecReader.at(repository, commit)
    sweep = specs.sweep(commit, spec_path(name))
    if sweep is None:
        stored = batches.readable(batches.of_sweep_in_commit(repository, commit, name))
        if all(batch.lock.round is None for batch in stored):
            return None
        hint = "`sweep validate` says why"
        return RoundBlocked(name, f"{spec_path(name)} cannot be read", hint, SpecError.exit_code)
    if sweep.rounds is None:
        return None
    try:
        return _next_step(specs, commit, sweep, fresh or {})
    except GeneratorError as error:
        return blocked_by(name, error)


def blocked_by(sweep: str, error: GeneratorError) -> RoundBlocked:
    """Return the step of a search that an error blocks."""
    reason = "; ".join(map(str, error.problems)) if isinstance(error, SpecError) else str(error)
    return RoundBlocked(sweep, reason, error.hint, error.exit_code)


def _next_step(
    specs: at_commit.SpecReader, commit: str, sweep: Sweep, fresh: Mapping[str, BatchRecords]
) -> Step | RoundBlocked | None:
    repository = specs.repository
    stored = batches.of_sweep_in_commit(repository, commit, sweep.name)
    if batches.newest(stored) is None:
        return None
    if blocked := _paused_batch(sweep, stored):
        return blocked
    program = _kept_program(specs, commit, sweep, stored)
    if program is None:
        why = "its program has changed, and the first round of a program is requested manually"
        return RoundBlocked(sweep.name, why, manual_hint(sweep.name))
    evidence = read_evidence(repository, commit, sweep, program.digest, stored=stored, fresh=fresh)
    step = next_step(evidence, program, RenderInputs.at(repository, commit))
    if not isinstance(step, RoundDue):
        return step
    return _refusal(specs, commit, (sweep, step.batch), manual_hint(sweep.name), fresh) or step


def _kept_program(
    specs: at_commit.SpecReader, commit: str, sweep: Sweep, stored: Sequence[StoredBatch]
) -> Program | None:
    """Return the program of the newest batch; None without a batch, or if the commit's program differs."""
    newest, trials = batches.newest(stored), specs.settings.trials
    if newest is None:
        return None
    locked = newest.lock.program
    program = programs.locked_program_at(specs.repository, commit, trials, sweep, locked)
    return program if program == locked else None


def _paused_batch(sweep: Sweep, stored: Iterable[StoredBatch]) -> RoundBlocked | None:
    """Return the blocked step if an active batch of a sweep is paused; None if no batch is paused."""
    paused = [batch.name for batch in stored if batch.is_active and sweep.is_paused(batch.name)]
    if not paused:
        return None
    return RoundBlocked(
        sweep.name, f"{paused[0]} is paused", f"`sweep cluster resume {sweep.name}`", exit_code=0
    )


def _refusal(
    specs: at_commit.SpecReader,
    commit: str,
    requested: tuple[Sweep, Overlay],
    hint: str,
    fresh: Mapping[str, BatchRecords],
) -> RoundBlocked | None:
    """Return why a requested batch needs an action of the user; None if it does not.

    It exceeds a team's budget of the month, its base is not in the repository, or no image is locked for a cluster.
    """
    repository, settings, (sweep, batch) = specs.repository, specs.settings, requested
    leaving = ((name, records_jsonl.write(each.records)) for name, each in fresh.items())
    charges = [reservation(sweep.name, sweep.run, sweep.pool, batch.lock.trials)]
    for month, balance in costs.exceeded_budgets(specs, commit, None, charges, leaving=leaving):
        why = (
            f"the budget of {balance.team} has less than {balance.requested:g} {balance.unit} left in {month}"
        )
        return RoundBlocked(sweep.name, why, "`sweep cluster budget` shows what was used")
    needed = batch.lock.needed_bases
    files = repository.files(commit, *(f"base/{name}" for name in needed)) if needed else {}
    for name in needed:
        if not any(path.startswith(f"base/{name}/") for path in files):
            why = f"the next batch needs base/{name}, which is not there"
            return RoundBlocked(sweep.name, why, hint)
    if settings.platform.controller is not Controller.NONE and batch.lock.program.image == LOCAL_IMAGE:
        return RoundBlocked(sweep.name, "no image is locked, so no cluster can run it", hint)
    return None


def manual_hint(name: str) -> str:
    """Return how the user requests the next round."""
    return f"`sweep cluster next {name}`, and merge what it writes"


INFRASTRUCTURE_KEY = b"infrastructure"
"""A spec whose trials are requested again has this key."""


@dataclass(frozen=True)
class RepeatDue:
    """Trials that infrastructure ended must be requested again."""

    sweep: Sweep
    batch: Overlay

    def as_data(self) -> dict[str, Any]:
        """Return the JSON data."""
        return {"state": "repeated", "batch": self.batch.name, "trials": self.batch.lock.trials}


Due = RoundDue | RepeatDue


def repeated_batch(evidence: RoundEvidence, program: Program, inputs: RenderInputs) -> Overlay | None:
    """Return the batch that repeats trials; the spec's open choices are those of the newest batch. None if none is due.

    Raises UsageError after a sweep's last possible batch, RepositoryError.
    """
    if not evidence.repeated:
        return None
    sweep, newest = evidence.sweep, batches.newest(evidence.batches)
    assert newest is not None, "a trial was lost in a batch"
    run = replace(
        sweep.run, shape=sweep.run.shape or newest.lock.shape, infrastructure=newest.lock.run.infrastructure
    )
    requested = Batch(
        replace(sweep, run=run),
        program,
        evidence.repeated,
        parents=parent_trials(evidence.repeated, evidence.batches),
        stop=evidence.stop,
        after_infrastructure=True,
    )
    return build_overlay(requested, evidence.batches, inputs)


def next_repeat_at(repository: Repository, commit: str, name: str) -> RepeatDue | RoundBlocked | None:
    """Return the batch that repeats trials of a sweep at a commit, or why it is blocked; None if no batch is due.

    After a change of the program, no batch is due: its trials are different, and the author requests them.
    """
    specs = at_commit.SpecReader.at(repository, commit)
    sweep = specs.sweep(commit, spec_path(name))
    if sweep is None or sweep.run.infrastructure is None:
        return None
    try:
        stored = batches.of_sweep_in_commit(repository, commit, name)
        program = _kept_program(specs, commit, sweep, stored)
        if program is None:
            return None
        evidence = read_evidence(repository, commit, sweep, program.digest, stored=stored)
        batch = repeated_batch(evidence, program, RenderInputs.at(repository, commit))
        if batch is None:
            return None
        hint = f"`sweep retry {name}`, and merge what it writes"
        refusal = _paused_batch(sweep, stored) or _refusal(specs, commit, (sweep, batch), hint, {})
        return refusal or RepeatDue(sweep, batch)
    except GeneratorError as error:
        return blocked_by(name, error)


@dataclass(frozen=True, slots=True)
class LostTrial:
    """An unfinished trial that infrastructure ended, and that no later batch lists."""

    batch: str
    """The batch in which it ended last."""
    reason: str
    batches: int
    """In how many batches infrastructure ended it."""
    retries: int
    """How often it may be requested again for that."""
    is_due: bool
    """Whether it will be requested again by itself."""


def lost_trials_at(repository: Repository, commit: str | None, name: str) -> dict[str, LostTrial]:
    """Return the trials of a sweep that infrastructure ended, by id; none if the spec does not allow repeats.

    Raises UnreadableError.
    """
    sweep = at_commit.read_sweep(repository, commit, spec_path(name))
    stored = batches.of_sweep_in_commit(repository, commit, name)
    newest = batches.newest(stored)
    if sweep is None or newest is None or newest.lock.run.infrastructure is None:
        return {}
    evidence = read_evidence(repository, commit, sweep, newest.lock.program.digest, stored=stored)
    last = {trial.digest: batch.name for batch in stored for trial in batch.trials}
    due = {trial.digest for trial in evidence.repeated}
    return {
        trial_id(digest): LostTrial(
            batch,
            record.reason or "",
            evidence.losses.counts[digest],
            newest.lock.run.infrastructure.retries,
            digest in due,
        )
        for digest, (batch, record) in evidence.losses.last.items()
        if last[digest] == batch
    }
