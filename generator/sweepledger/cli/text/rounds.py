"""Commits of results and of rounds, and the next step of a search, as text."""

from sweepledger.cli.response import SHORT_COMMIT
from sweepledger.operations.collection.results_commit import ResultsCommit
from sweepledger.operations.rounds.next_round import ResultsPending, RoundBlocked, RoundDue, SearchEnded
from sweepledger.operations.rounds.round_commit import PushedBatch


def results_commit_text(commit: ResultsCommit) -> str:
    """Return the batches of a results commit, and the next step of the search."""
    text = f"recorded {', '.join(commit.batches)} in {commit.commit[:SHORT_COMMIT]}"
    match commit.step:
        case RoundDue(round=due_round, batch=batch):
            return f"{text}; added round {due_round.number}: {batch.name}{_unfitted_text(due_round.unfitted)}"
        case ResultsPending(evidence=evidence):
            return f"{text}; the next round waits for {', '.join(evidence.pending) or evidence.awaited}"
        case SearchEnded(reason=reason, text=end):
            return f"{text}; the search has ended ({reason}): {end}"
        case None:
            return text
        case _:
            return f"{text}; the search is blocked: {commit.step.reason}"


def pushed_round_text(pushed: PushedBatch | RoundBlocked) -> str:
    """Return the round or the trials that a commit requests, or why nothing could be requested."""
    if isinstance(pushed, RoundBlocked):
        return f"{pushed.sweep}: {blocked_text(pushed)}"
    due, place = pushed.due, f"in {pushed.commit[:SHORT_COMMIT]}: {pushed.due.batch.name}"
    if isinstance(due, RoundDue):
        return f"added round {due.round.number} {place}{_unfitted_text(due.round.unfitted)}"
    return f"requested {due.batch.lock.trials} trials that infrastructure ended again {place}"


def _unfitted_text(why: str | None) -> str:
    return "" if why is None else f", drawn at random, because {why}"


def blocked_text(blocked: RoundBlocked) -> str:
    """Return why a search is blocked, and the hint."""
    return f"blocked: {blocked.reason}" + (f"\n  hint: {blocked.hint}" if blocked.hint else "")
