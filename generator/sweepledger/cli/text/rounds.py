"""The next step of a search as text."""

from typing import TYPE_CHECKING

from sweepledger.cli.response import SHORT_COMMIT

if TYPE_CHECKING:
    from sweepledger.commands.rounds.next_round import RoundBlocked, Step
    from sweepledger.commands.rounds.round_commit import PushedBatch


def next_step_text(step: "Step | RoundBlocked | None") -> str:
    """Return the next step of a search, to follow a results commit; an empty text without one."""
    from sweepledger.commands.rounds.next_round import ResultsPending, RoundDue, SearchEnded

    match step:
        case RoundDue(round=due_round, batch=batch):
            return f"; added round {due_round.number}: {batch.name}{_unfitted_text(due_round.unfitted)}"
        case ResultsPending(evidence=evidence):
            return f"; the next round waits for {', '.join(evidence.pending) or evidence.awaited}"
        case SearchEnded(reason=reason, text=text):
            return f"; the search has ended ({reason}): {text}"
        case None:
            return ""
        case _:
            return f"; the search is blocked: {step.reason}"


def pushed_round_text(pushed: "PushedBatch | RoundBlocked") -> str:
    """Return which round or trials a commit requests, or why none could."""
    from sweepledger.commands.rounds.next_round import RoundBlocked
    from sweepledger.commands.rounds.round_commit import PushedRepeat

    if isinstance(pushed, RoundBlocked):
        return f"{pushed.sweep}: {blocked_text(pushed)}"
    if isinstance(pushed, PushedRepeat):
        trials = f"{pushed.batch.lock.trials} trials that infrastructure ended"
        return f"requested {trials} again in {pushed.commit[:SHORT_COMMIT]}: {pushed.batch.name}"
    due = pushed.due
    added = f"added round {due.round.number} in {pushed.commit[:SHORT_COMMIT]}: {due.batch.name}"
    return f"{added}{_unfitted_text(due.round.unfitted)}"


def _unfitted_text(why: str | None) -> str:
    return "" if why is None else f", drawn at random, because {why}"


def blocked_text(blocked: "RoundBlocked") -> str:
    """Return why a search stands still, and the way out."""
    return f"blocked: {blocked.reason}" + (f"\n  hint: {blocked.hint}" if blocked.hint else "")
