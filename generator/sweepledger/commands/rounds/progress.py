"""The progress of a search, without drawing its next round."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from sweepledger.commands.repository import programs
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.commands.rounds.bounds import remaining_bounds, total_bounds
from sweepledger.commands.rounds.evidence import EvidenceSource, RoundEvidence
from sweepledger.commands.rounds.next_round import search_end
from sweepledger.errors import GeneratorError
from sweepledger.repo import batches
from sweepledger.repo.batches import StoredBatch
from sweepledger.structs.settings import NextRoundMode
from sweepledger.structs.sweep import Sweep


class SearchState(StrEnum):
    """What the next round of a search waits for."""

    DUE = "due"
    PROPOSED = "proposed"
    """The work tree contains it, and it is not merged."""
    WAITING = "waiting"
    """It waits for results."""
    OVER = "over"
    BLOCKED = "blocked"
    """Its input cannot be read: the user has to fix it."""


@dataclass(frozen=True, slots=True)
class SearchProgress:
    """The progress of a search."""

    method: str
    state: SearchState
    message: str
    """What it waits for, or why it has ended."""
    round: int = 0
    """Number of the last round; 0 before the first."""
    rounds: int | None = None
    """Largest number of rounds; None: only records bound it."""
    recorded: int = 0
    max_trials: int | None = None
    """Maximum number of trials; None: only records bound it."""
    reason: str | None = None
    """Why it has ended, as a word that does not change."""


def search_progress(
    workspace: Workspace,
    sweep: Sweep,
    tip: str | None,
    merged: Sequence[StoredBatch],
    proposed: Sequence[StoredBatch],
) -> SearchProgress:
    """Return the progress of a search from its merged batches, and from those of the work tree."""
    new = [batch.name for batch in proposed if batch.lock.round is not None]
    try:
        if tip is None or not merged:
            first = f"`sweep generate {sweep.name}` writes the first round"
            state, text = (SearchState.PROPOSED, f"merge {new[0]}") if new else (SearchState.DUE, first)
            bounds = total_bounds(sweep)
            return SearchProgress(sweep.method, state, text, rounds=bounds.rounds, max_trials=bounds.trials)
        return _after_first_round(
            workspace, sweep, EvidenceSource(workspace.repository, tip, batches=tuple(merged)), new
        )
    except GeneratorError as error:
        return SearchProgress(sweep.method, SearchState.BLOCKED, str(error))


def _after_first_round(
    workspace: Workspace, sweep: Sweep, source: EvidenceSource, new: Sequence[str]
) -> SearchProgress:
    merged = source.batches or ()
    newest = batches.newest(merged)
    assert newest is not None
    program = programs.locked_program_at(
        workspace.repository, source.commit or "", workspace.settings, sweep, newest.lock.program
    )
    evidence = source.evidence(sweep, program.digest)
    bounds = remaining_bounds(sweep, merged, program)
    state, text, reason = _next_state(workspace.settings.next, evidence, new)
    return SearchProgress(
        sweep.method,
        state,
        text,
        evidence.rounds,
        None if bounds.rounds is None else evidence.rounds + bounds.rounds,
        sum(observation.round is not None for observation in evidence.observations),
        None if bounds.trials is None else evidence.trials + bounds.trials,
        reason,
    )


def _next_state(
    mode: NextRoundMode, evidence: RoundEvidence, new: Sequence[str]
) -> tuple[SearchState, str, str | None]:
    waiting = f"waits for {evidence.awaited}"
    if evidence.is_full:
        return SearchState.WAITING, waiting, None
    if new:
        return SearchState.PROPOSED, f"merge {new[0]}", None
    ended = search_end(evidence)
    if ended is not None and evidence.pending:
        return SearchState.WAITING, waiting, None
    if ended is not None:
        return SearchState.OVER, ended.text, ended.reason
    name, number = evidence.sweep.name, evidence.rounds + 1
    requesters = {
        NextRoundMode.REVIEW: f"`sweep cluster next {name}` asks for it",
        NextRoundMode.WORKFLOW: "a workflow asks for it",
        NextRoundMode.COLLECTOR: "the collector asks for it",
    }
    # Only a person requests the first round of a new program.
    requester = requesters[mode if evidence.rounds else NextRoundMode.REVIEW]
    return SearchState.DUE, f"round {number} is due: {requester}", None
