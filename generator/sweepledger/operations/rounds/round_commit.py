"""The commits that request batches automatically: the next round of a search, or trials that infrastructure ended."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from sweepledger.errors import RepositoryError
from sweepledger.operations.repository import at_commit
from sweepledger.operations.repository.batch_builder import batch_files
from sweepledger.operations.repository.workspace import Target
from sweepledger.operations.rounds import next_round
from sweepledger.render.overlay import Overlay
from sweepledger.repo.base_files import missing_bases_at
from sweepledger.repo.git import Change, Repository
from sweepledger.results.display import one_line
from sweepledger.results.outcomes import BatchRecords
from sweepledger.structs.settings import NextRoundMode

LONGEST_REASON = 300
PROPOSAL_PREFIX = "next"
"""Folder of branches for batches that a person merges: `next/<sweep>/<base commit>`."""


@dataclass(frozen=True)
class PushedBatch:
    """A commit that only requests a round, or repeats trials that infrastructure ended."""

    due: next_round.Due
    commit: str

    def as_data(self) -> dict[str, Any]:
        """Return the JSON data."""
        return {"sweep": self.due.sweep.name, "commit": self.commit, **self.due.as_data()}


def step_after(
    repository: Repository,
    base: str,
    sweep: str,
    fresh: Iterable[BatchRecords] = (),
    *,
    refused: RepositoryError | None = None,
    continued: frozenset[str] = frozenset(),
) -> next_round.Step | next_round.RoundBlocked | None:
    """Return the next step of a sweep whose results are recorded; None if its rounds are not requested with results.

    The collector requests them if the settings allow this, and `sweep run` for the sweeps in `continued`.
    """
    settings = at_commit.settings_or_defaults(repository, base)
    if sweep not in continued and settings.git.next is not NextRoundMode.COLLECTOR:
        return None
    hint = next_round.manual_hint(sweep)
    if refused is not None:
        return next_round.RoundBlocked(sweep, f"the round was refused: {refused}"[:LONGEST_REASON], hint)
    try:
        return next_round.next_step_at(
            repository, base, sweep, {records.lock.name: records for records in fresh}
        )
    except Exception as error:  # noqa: BLE001 - results are recorded even if a sampler fails
        return next_round.RoundBlocked(
            sweep, f"the round could not be drawn: {error!r}"[:LONGEST_REASON], hint
        )


def added_files(repository: Repository, base: str, batch: Overlay) -> Mapping[str, bytes]:
    """Return the files that a commit on top of `base` adds for a batch."""
    settings = at_commit.settings_or_defaults(repository, base)
    bases = missing_bases_at(repository, base, batch.lock.needed_bases)
    return {**bases, **batch_files(batch, settings.platform, settings.trials)}


def step_trailers(step: next_round.Step | next_round.RoundBlocked | None) -> str:
    """Return the trailer that describes the next step in the commit's message."""
    match step:
        case next_round.RoundDue(round=proposal, batch=batch):
            drawn = (
                proposal.engine if proposal.unfitted is None else f"at random, because {proposal.unfitted}"
            )
            what = f"{batch.name} (round {proposal.number}, {batch.lock.trials} trials, {drawn})"
            return f"Next: {one_line(what)}\n"
        case next_round.ResultsPending(evidence=evidence):
            return f"Next: none before {one_line(', '.join(evidence.pending) or evidence.awaited)}\n"
        case next_round.SearchEnded(reason=reason, text=text):
            return f"Next: none ({one_line(f'{reason}: {text}')})\n"
        case next_round.RoundBlocked(reason=why):
            return f"Next: none ({one_line(f'blocked: {why}')})\n"
        case _:
            return ""


_Next = next_round.Step | next_round.RepeatDue | next_round.RoundBlocked | None
NextAt = Callable[[Repository, str, str], _Next]
"""Returns the next step of a sweep at a commit."""


def push_batches(target: Target, sweep: str, next_at: NextAt) -> Iterator[PushedBatch | _Next]:
    """Commit every batch of a sweep that is due; yield each, and then the next step.

    None if the sweep has no batch yet, or the next one is proposed already. Raises ContentionError, RepositoryError.
    """

    def make(base: str) -> tuple[Change | None, _Next]:
        step = next_at(target.repository, base, sweep)
        change = _batch_change(target.repository, base, step) if isinstance(step, next_round.Due) else None
        return change, step

    while True:
        commit, step = target.commit(make, proposals=f"{PROPOSAL_PREFIX}/{sweep}")
        if commit is None or not isinstance(step, next_round.Due):
            yield step
            return
        yield PushedBatch(step, commit)


def _batch_change(repository: Repository, base: str, due: next_round.Due) -> Change:
    lock = due.batch.lock
    subject, drawn = f"repeat({lock.sweep}): {lock.trials} trials that infrastructure ended", {}
    if isinstance(due, next_round.RoundDue):
        number, engine, unfitted = due.round.number, due.round.engine, due.round.unfitted
        subject = f"next({lock.sweep}): round {number}, {lock.trials} trials of {due.sweep.method}"
        drawn = {"Round": str(number), "Engine": engine}
        drawn |= {} if unfitted is None else {"Unfitted": unfitted}
    trailers = {
        "Sweep": lock.sweep,
        "Batch": due.batch.name,
        **drawn,
        "Spec": f"{lock.spec.path} {lock.spec.digest}",
        "Trials": str(lock.trials),
    }
    body = "".join(f"{name}: {one_line(value)}\n" for name, value in trailers.items())
    return Change(f"{subject}\n\n{body}", added_files(repository, base, due.batch))


def push_due(target: Target) -> Iterator[PushedBatch | next_round.RoundBlocked]:
    """Push every batch that is due automatically: trials to repeat first, because rounds wait for them.

    A failure affects only its sweep and is yielded. Raises RepositoryError.
    """
    yield from push_repeats(target)
    yield from push_idle_rounds(target)


def push_repeats(target: Target) -> Iterator[PushedBatch | next_round.RoundBlocked]:
    """Push batches that repeat trials that infrastructure ended; `sweep run` does so for the sweeps it continues."""
    tip = target.tip()
    paths = next_round.specs_with(target.repository, tip, next_round.INFRASTRUCTURE_KEY) if tip else ()
    for sweep in (PurePath(path).stem for path in paths):
        if not target.is_laptop or sweep in target.continued:  # else nobody runs it here
            yield from _pushed(target, sweep, next_round.next_repeat_at)


def push_idle_rounds(target: Target) -> Iterator[PushedBatch | next_round.RoundBlocked]:
    """Push every round that is due, if the settings leave this to the collector.

    A round is due here after a change of the spec, if an earlier collector could not draw it, or because rounds
    overlap.
    """
    repository, tip = target.repository, target.tip()
    settings = at_commit.settings_or_defaults(repository, tip)
    if tip is None or (settings.git.next is not NextRoundMode.COLLECTOR and not target.continued):
        return
    for sweep in (search.name for search in next_round.searches_at(repository, tip)):
        step = step_after(repository, tip, sweep, continued=target.continued)
        if isinstance(step, next_round.RoundBlocked):
            yield step
        elif isinstance(step, next_round.RoundDue):
            yield from _pushed(target, sweep, next_round.next_step_at)


def _pushed(target: Target, sweep: str, next_at: NextAt) -> Iterator[PushedBatch | next_round.RoundBlocked]:
    try:
        for result in push_batches(target, sweep, next_at):
            if isinstance(result, PushedBatch | next_round.RoundBlocked):
                yield result
    except RepositoryError as error:
        yield next_round.blocked_by(sweep, error)
