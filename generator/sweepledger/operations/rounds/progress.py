"""The progress of a search without drawing its next round, and bounds on the rounds and trials it may still request."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from msgspec.structs import replace

from sweepledger.errors import GeneratorError
from sweepledger.operations.repository import programs
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.operations.rounds.evidence import RoundEvidence, read_evidence
from sweepledger.operations.rounds.next_round import search_end
from sweepledger.plan.budgets import RoundBounds, round_bounds
from sweepledger.repo import batches
from sweepledger.search import limits
from sweepledger.search.adaptive import Observation, SearchEnd
from sweepledger.search.adaptive.rounds import next_round
from sweepledger.search.expansion import Expansion, explore
from sweepledger.structs.program import Program
from sweepledger.structs.record import Status
from sweepledger.structs.settings import NextRoundMode
from sweepledger.structs.space import MAX_TRIALS
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import digest


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
    merged: Sequence[batches.StoredBatch],
    proposed: Sequence[batches.StoredBatch],
) -> SearchProgress:
    """Return the progress of a search from its merged batches, and from those of the work tree."""
    new = [batch.name for batch in proposed if batch.lock.round is not None]
    try:
        if tip is None or not merged:
            first = f"`sweep generate {sweep.name}` writes the first round"
            state, text = (SearchState.PROPOSED, f"merge {new[0]}") if new else (SearchState.DUE, first)
            bounds = remaining_bounds(sweep)
            return SearchProgress(sweep.method, state, text, rounds=bounds.rounds, max_trials=bounds.trials)
        newest = batches.newest(merged)
        assert newest is not None
        program = programs.locked_program_at(
            workspace.repository, tip, workspace.settings.trials, sweep, newest.lock.program
        )
        stored = tuple(merged)
        evidence = read_evidence(workspace.repository, tip, sweep, program.digest, stored=stored)
        bounds = remaining_bounds(sweep, merged, program)
        state, text, reason = _next_state(workspace.settings.git.next, evidence, new)
    except GeneratorError as error:
        return SearchProgress(sweep.method, SearchState.BLOCKED, str(error))
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
        NextRoundMode.REVIEW: f"`sweep cluster next {name}` requests it",
        NextRoundMode.WORKFLOW: "a workflow requests it",
        NextRoundMode.COLLECTOR: "the collector requests it",
    }
    # Only a person requests the first round of a new program.
    requester = requesters[mode if evidence.rounds else NextRoundMode.REVIEW]
    return SearchState.DUE, f"round {number} is due: {requester}", None


MOST_ROUNDS = 999
"""A sweep has no more batches."""


def remaining_bounds(
    sweep: Sweep,
    merged: Sequence[batches.StoredBatch] = (),
    program: Program | None = None,
    expansion: Expansion | None = None,
) -> RoundBounds:
    """Return bounds on the rounds and trials that a sweep may add to its merged batches of a program.

    A static sweep is expanded unless its expansion is known.
    """
    current = [batch for batch in merged if batch.lock.program == program]
    trials = len({row.trial for batch in current for row in batch.rows})
    rounds = max((batch.lock.round or 0 for batch in current), default=0)
    search = sweep.search
    if search is None:
        expanded = expansion or explore(sweep)
        count = len(expanded.configurations) * sweep.replicates if isinstance(expanded, Expansion) else 0
        return round_bounds(sweep, trials=trials, rounds=rounds, max_trials=count)
    if search.method.has_model:
        affordable = limits.affordable_trials(sweep, MAX_TRIALS)
        most = affordable if affordable < MAX_TRIALS else None
        return round_bounds(sweep, trials=trials, rounds=rounds, max_trials=most)
    unlimited = replace(search, rounds=replace(search.rounds, patience=None))
    without_target = replace(sweep, design=unlimited, metric=replace(sweep.metric, target=None))
    observations: list[Observation] = []
    sizes: list[int] = []
    for number in range(1, MOST_ROUNDS + 1):
        proposal = next_round(without_target, observations, number=number)
        if isinstance(proposal, SearchEnd):
            break
        new = [
            Observation(
                suggestion.configuration,
                replicate,
                Status.OK,
                tuple(0.0 for _ in sweep.metrics),
                proposal.number,
                digest([suggestion.configuration, replicate]),
                suggestion.parent,
            )
            for suggestion in proposal.suggestions
            for replicate in range(sweep.replicates)
        ]
        sizes.append(len(new))
        observations += new
    left = max(0, sum(sizes) - trials)
    return RoundBounds(max(sizes, default=0), left, max(0, len(sizes) - rounds), search.rounds.ahead)
