"""The batch that requests trials again which infrastructure ended: a function of the spec and the records in git."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sweepledger.commands.repository import at_commit, programs
from sweepledger.commands.repository.base_files import read_bases_at
from sweepledger.commands.repository.batch_builder import (
    BatchRequest,
    build_overlay,
    parent_trials,
)
from sweepledger.commands.rounds.evidence import EvidenceSource, RoundEvidence
from sweepledger.commands.rounds.next_round import (
    RenderInputs,
    RoundBlocked,
    blocked_by,
    over_budget,
    paused_batch,
    spec_path,
    unrunnable,
)
from sweepledger.errors import GeneratorError
from sweepledger.render.overlay import Overlay
from sweepledger.repo import batches
from sweepledger.repo.batches import StoredBatch
from sweepledger.repo.git import Repository
from sweepledger.structs.names import SPECS, SUFFIX
from sweepledger.structs.settings import Settings
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.trial import trial_id

KEY = b"infrastructure"
"""A spec whose trials are requested again has this key."""


@dataclass(frozen=True)
class RepeatDue:
    """Trials that infrastructure ended are to be requested again."""

    sweep: Sweep
    batch: Overlay


def sweeps_that_repeat(repository: Repository, commit: str) -> Iterator[str]:
    """Yield the names of the sweeps of a commit whose specs may say so. Nothing is parsed: there may be many."""
    for path, content in sorted(repository.read(commit, SPECS).items()):
        if path.endswith(SUFFIX) and KEY in content:
            yield path.removeprefix(f"{SPECS}/").removesuffix(SUFFIX)


def repeated_batch(evidence: RoundEvidence, inputs: RenderInputs) -> Overlay | None:
    """Return the batch that is due, made as the newest one was where the spec leaves a choice; None if none is.

    Raises UsageError after a sweep's last possible batch, RepositoryError.
    """
    if not evidence.repeated:
        return None
    sweep, newest = evidence.sweep, batches.newest(evidence.batches)
    assert newest is not None, "a trial was lost in a batch"
    run = replace(
        sweep.run, shape=sweep.run.shape or newest.lock.shape, infrastructure=newest.lock.run.infrastructure
    )
    request = BatchRequest(
        replace(sweep, run=run),
        inputs.program,
        evidence.repeated,
        parents=parent_trials(evidence.repeated, evidence.batches),
        stop=evidence.stop,
        after_infrastructure=True,
    )
    return build_overlay(request, evidence.batches, inputs.bases, inputs.settings)


def next_repeat_at(repository: Repository, commit: str, name: str) -> RepeatDue | RoundBlocked | None:
    """Return what is to be requested again of a sweep at a commit, or why it cannot be; None if nothing is.

    Nothing is after a change of the program: its trials are other trials, and its author requests them.
    """
    settings = at_commit.settings_or_defaults(repository, commit)
    sweep = at_commit.read_sweep(repository, commit, spec_path(name), settings)
    if not isinstance(sweep, Sweep) or sweep.run.infrastructure is None:
        return None
    try:
        stored = batches.of_sweep_in_commit(repository, commit, name)
        return _next_repeat(repository, commit, sweep, settings, stored)
    except GeneratorError as error:
        return blocked_by(name, error)


def _next_repeat(
    repository: Repository, commit: str, sweep: Sweep, settings: Settings, stored: Sequence[StoredBatch]
) -> RepeatDue | RoundBlocked | None:
    newest = batches.newest(stored)
    if newest is None:
        return None
    program = programs.locked_program_at(repository, commit, settings, sweep, newest.lock.program)
    if program != newest.lock.program:
        return None
    evidence = EvidenceSource(repository, commit, batches=tuple(stored)).evidence(sweep, program.digest)
    batch = repeated_batch(evidence, RenderInputs(program, read_bases_at(repository, commit), settings))
    if batch is None:
        return None
    blocked = paused_batch(sweep, stored)
    blocked = blocked or over_budget(repository, commit, (sweep, batch), settings, {})
    hint = f"`sweep retry {sweep.name}`, and merge what it writes"
    blocked = blocked or unrunnable(repository, commit, batch, settings, hint)
    return blocked or RepeatDue(evidence.sweep, batch)


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
    """Return the trials of a sweep that infrastructure ended, by id; none if its spec does not let them be repeated.

    Raises UnreadableError.
    """
    settings = at_commit.settings_or_defaults(repository, commit)
    sweep = at_commit.read_sweep(repository, commit, spec_path(name), settings)
    stored = batches.of_sweep_in_commit(repository, commit, name)
    newest = batches.newest(stored)
    if not isinstance(sweep, Sweep) or newest is None or newest.lock.run.infrastructure is None:
        return {}
    source = EvidenceSource(repository, commit, batches=stored)
    evidence = source.evidence(sweep, newest.lock.program.digest)
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
