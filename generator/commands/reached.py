"""How far a search has come, without drawing its next round: that may take a library, and its time."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from generator.commands import programs
from generator.commands.evidence import Evidence, Look
from generator.commands.foreseen import foreseen, whole
from generator.commands.rounds import over
from generator.commands.workspace import Workspace
from generator.errors import GeneratorError
from generator.repo.batches import StoredBatch
from generator.structs.adaptive import Search
from generator.structs.settings import Next
from generator.structs.sweep import Sweep


class State(StrEnum):
    """What the next round of a search waits for."""

    DUE = "due"
    PROPOSED = "proposed"
    """The work tree holds it, and it is not merged."""
    WAITING = "waiting"
    """For results."""
    OVER = "over"
    BLOCKED = "blocked"
    """For a person: what it is drawn from cannot be read."""


@dataclass(frozen=True, slots=True)
class Reached:
    """Where a search stands."""

    method: str
    state: State
    says: str
    """What it waits for, or why it is over."""
    round: int = 0
    """The last one that was asked for; 0 before the first."""
    rounds: int | None = None
    """At most; None: nothing bounds them but what records will say."""
    recorded: int = 0
    most: int | None = None
    """Trials at most; None likewise."""
    reason: str | None = None
    """Of one that is over, a stable word."""


def reached(
    workspace: Workspace,
    sweep: Sweep,
    tip: str | None,
    old: Sequence[StoredBatch],
    proposed: Sequence[StoredBatch],
) -> Reached:
    """Say where a search stands by its batches at the commit that stands, and those beside them here."""
    search = sweep.search
    assert search is not None
    new = [batch.name for batch in proposed if batch.lock.round is not None]
    try:
        if tip is None or not old:
            return _unbegun(sweep, search, new)
        return _begun(workspace, sweep, search, Look(workspace.repository, tip, asked=tuple(old)), new)
    except GeneratorError as error:
        return Reached(str(search.method), State.BLOCKED, str(error))


def _unbegun(sweep: Sweep, search: Search, new: Sequence[str]) -> Reached:
    first = f"`sweep generate {sweep.name}` writes the first round"
    state, says = (State.PROPOSED, f"merge {new[0]}") if new else (State.DUE, first)
    bounds = whole(sweep, search)
    return Reached(str(search.method), state, says, rounds=bounds.rounds, most=bounds.trials)


def _begun(workspace: Workspace, sweep: Sweep, search: Search, look: Look, new: Sequence[str]) -> Reached:
    old = look.asked or ()
    newest = max(old, key=lambda batch: batch.lock.number).lock.program
    program = programs.locked_at(workspace.repository, look.commit or "", workspace.settings, sweep, newest)
    evidence = look.evidence(sweep, program.digest)
    ahead = foreseen(sweep, search, old, program)
    state, says, reason = _next(workspace, evidence, new)
    return Reached(
        str(search.method),
        state,
        says,
        evidence.rounds,
        None if ahead.rounds is None else evidence.rounds + ahead.rounds,
        sum(one.round is not None for one in evidence.observations),
        None if ahead.trials is None else evidence.trials + ahead.trials,
        reason,
    )


def _next(workspace: Workspace, evidence: Evidence, new: Sequence[str]) -> tuple[State, str, str | None]:
    if evidence.waiting:
        return State.WAITING, f"waits for the results of {', '.join(evidence.waiting)}", None
    if new:
        return State.PROPOSED, f"merge {new[0]}", None
    ended = over(evidence)
    if ended is not None:
        return State.OVER, ended.text, ended.reason
    name, number = evidence.sweep.name, evidence.rounds + 1
    asks = {
        Next.REVIEW: f"`sweep next {name}` asks for it",
        Next.WORKFLOW: "a workflow asks for it",
        Next.COLLECTOR: "the collector asks for it",
    }
    # Whoever else asks leaves the first round of a new program to a person.
    way = asks[workspace.settings.next if evidence.rounds else Next.REVIEW]
    return State.DUE, f"round {number} is due: {way}", None
