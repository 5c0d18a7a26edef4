"""The next step of a search as text. Rich is imported inside functions."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sweepledger.cli.response import SHORT_COMMIT, escape_control_characters

if TYPE_CHECKING:
    from rich.text import Text

    from sweepledger.commands.next_ import SearchStep
    from sweepledger.commands.repository.workspace import Workspace
    from sweepledger.commands.rounds.next_round import RoundBlocked, Step
    from sweepledger.commands.rounds.round_commit import PushedBatch

SHORTEST_RANGE = 3
WEIGHT_TEXTS = {
    "as they are": "are used",
    "as bad": "count as bad",
    "as running": "have no result yet, and are avoided",
    "as failed": "count as failed",
    "not at all": "are ignored",
    "outside": "are ignored, because their values are not in the search space",
    "with their last value": "are used with their last value",
}
"""Text for each weight of evidence in the JSON of `sweep cluster next --explain`."""


def next_lines(workspace: "Workspace", step: "SearchStep", *, explain: bool, check: bool) -> "Iterator[Text]":
    """Yield the lines that `sweep cluster next` prints for one search."""
    from rich.text import Text

    from sweepledger.commands.rounds.next_round import ResultsPending, RoundBlocked, RoundDue, SearchEnded

    settings = workspace.settings
    match step.step:
        case RoundDue() as due:
            head = f"round {due.round.number}: {due.batch.lock.trials} trials ({due.sweep.method}, {due.round.engine})"
            yield Text(f"{step.name}: {head}", "bold")
            yield Text(f"  {_batch_text(step, check=check)}")
            for name, foreign in due.evidence.foreign.items():
                yield Text(f"  with {escape_control_characters(foreign.label(name))}", "yellow")
            if due.round.unfitted is not None:
                yield Text(f"  at random, because {due.round.unfitted}", "yellow")
            if due.round.replaced:
                count = due.round.replaced
                yield Text(f"  {count} of them at random, because proposals broke a constraint")
        case ResultsPending(evidence=evidence):
            pending = f"results of {', '.join(evidence.pending)} are not on {settings.branch} yet"
            yield Text(f"{step.name}: pending: {pending if evidence.pending else evidence.awaited}")
        case SearchEnded(reason=reason, text=text):
            yield Text(f"{step.name}: ended: {reason}: {escape_control_characters(text)}", "bold")
        case RoundBlocked() as blocked:
            if step.failure is None:  # which is printed as every failure
                yield Text(escape_control_characters(f"{step.name}: {_blocked_text(blocked)}"), "red")
            return
    if explain:
        yield from _evidence_lines(step)


def _blocked_text(blocked: "RoundBlocked") -> str:
    return f"blocked: {blocked.reason}" + (f"\n  hint: {blocked.hint}" if blocked.hint else "")


def _batch_text(step: "SearchStep", *, check: bool) -> str:
    from sweepledger.commands.rounds.next_round import RoundDue
    from sweepledger.repo.batches import ACTIVE

    assert isinstance(step.step, RoundDue)
    batch = step.step.batch.name
    if step.pushed is not None:
        return f"added in {step.pushed.commit[:SHORT_COMMIT]}: {batch}"
    if step.generated is None:
        return f"proposed already: {batch}"
    verb = "unchanged" if step.generated.is_written else "missing" if check else "wrote"
    return f"{verb} {ACTIVE}/{batch}/"


def _evidence_lines(step: "SearchStep") -> "Iterator[Text]":
    from rich.text import Text

    from sweepledger.commands.next_ import evidence_weights
    from sweepledger.commands.rounds.next_round import RoundBlocked

    assert not isinstance(step.step, RoundBlocked)
    for part in evidence_weights(step.step):
        rounds = _ranges_text(part.rounds)
        origin = f"round {rounds}" if len(part.rounds) == 1 else f"rounds {rounds}"
        yield Text(
            f"  {part.trials} trials of {origin if rounds else 'a warm start'} {WEIGHT_TEXTS[part.use]}"
        )
    if not step.step.evidence.observations:
        first = "" if step.step.evidence.batches else ": the first round is drawn from the search space alone"
        yield Text(f"  no results yet{first}")


def _ranges_text(numbers: Sequence[int]) -> str:
    """Return ascending numbers; three and more consecutive ones as a range, because a search has hundreds."""
    spans: list[list[int]] = []
    for number in numbers:
        if spans and spans[-1][-1] == number - 1:
            spans[-1].append(number)
        else:
            spans.append([number])
    return ", ".join(
        f"{span[0]} to {span[-1]}" if len(span) >= SHORTEST_RANGE else ", ".join(map(str, span))
        for span in spans
    )


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
        return f"{pushed.sweep}: {_blocked_text(pushed)}"
    if isinstance(pushed, PushedRepeat):
        trials = f"{pushed.batch.lock.trials} trials that infrastructure ended"
        return f"requested {trials} again in {pushed.commit[:SHORT_COMMIT]}: {pushed.batch.name}"
    due = pushed.due
    added = f"added round {due.round.number} in {pushed.commit[:SHORT_COMMIT]}: {due.batch.name}"
    return f"{added}{_unfitted_text(due.round.unfitted)}"


def _unfitted_text(why: str | None) -> str:
    return "" if why is None else f", drawn at random, because {why}"
