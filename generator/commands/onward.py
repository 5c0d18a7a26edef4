"""How a search goes on without a person: the round that a commit of ours asks for, and what it says of it."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from generator.commands import committed
from generator.commands.batching import files_of
from generator.commands.rounds import Due, Over, Step, Waiting
from generator.commands.searching import Blocked, by_hand, next_at, searches
from generator.errors import RepositoryError
from generator.repo.git import Change, Repository, commit_here, propose, publish
from generator.results import BatchResults
from generator.results.words import one_line
from generator.structs.settings import Next

LONGEST_REASON = 300
PROPOSED = "next"
"""Where a round waits for a person to merge it: branches `next/<sweep>/<commit that it stands on>`."""


@dataclass(frozen=True)
class Pushed:
    """A commit that asks for a round, and for nothing else."""

    due: Due
    commit: str


def after(
    repository: Repository,
    base: str,
    sweep: str,
    told: Iterable[BatchResults] = (),
    *,
    refused: RepositoryError | None = None,
) -> Step | Blocked | None:
    """Say what follows in a sweep whose results are recorded on top of `base`; None if nobody asks here."""
    if committed.standing_settings(repository, base).next is not Next.COLLECTOR:
        return None
    way_out = by_hand(sweep)
    if refused is not None:
        return Blocked(sweep, f"the round was refused: {refused}"[:LONGEST_REASON], way_out)
    try:
        return next_at(repository, base, sweep, {one.lock.name: one for one in told})
    except Exception as error:  # noqa: BLE001 - whatever a sampler raises, results are recorded all the same
        return Blocked(sweep, f"the round could not be drawn: {error!r}"[:LONGEST_REASON], way_out)


def files(repository: Repository, base: str, step: Step | Blocked | None) -> Mapping[str, bytes]:
    """Give what a commit on top of `base` adds for it."""
    return (
        files_of(step.batch, committed.standing_settings(repository, base)) if isinstance(step, Due) else {}
    )


def trailers(step: Step | Blocked | None) -> str:
    """Say in the commit's message what follows."""
    match step:
        case Due(round=found, batch=batch):
            what = f"{batch.name} (round {found.number}, {batch.lock.trials} trials, {found.engine})"
            return f"Next: {one_line(what)}\n"
        case Waiting(evidence=evidence):
            return f"Next: none before {one_line(', '.join(evidence.waiting))}\n"
        case Over(reason=reason, text=text):
            return f"Next: none ({one_line(f'{reason}: {text}')})\n"
        case Blocked(why=why):
            return f"Next: none ({one_line(f'blocked: {why}')})\n"
        case _:
            return ""


def push(
    repository: Repository, remote: str | None, branch: str, sweep: str, *, is_reviewed: bool = False
) -> Pushed | Step | Blocked | None:
    """Ask for a search's next round by a commit on a remote's branch, on one that a person merges, or here.

    Another writer who was faster is followed: the round is drawn anew for what stands then. Raises
    ContentionError, RepositoryError.
    """
    found: list[Step | Blocked | None] = []

    def make(base: str) -> Change | None:
        step = next_at(repository, base, sweep)
        found[:] = [step]
        if not isinstance(step, Due):
            return None
        return Change(_message(step), files(repository, base, step))

    if remote is None:
        made = commit_here(repository, make)
    elif is_reviewed:
        made = propose(repository, remote, branch, f"{PROPOSED}/{sweep}", make)
    else:
        made = publish(repository, remote, branch, make)
    (step,) = found or [None]
    return Pushed(step, made) if isinstance(step, Due) and made is not None else step


def idle(repository: Repository, tip: str) -> Iterator[str]:
    """Name the searches that wait for nothing but their next round, where the collector asks for it."""
    settings = committed.standing_settings(repository, tip)
    if settings.next is not Next.COLLECTOR:
        return
    for sweep in searches(repository, tip, settings):
        if isinstance(after(repository, tip, sweep.name), Due | Blocked):
            yield sweep.name


def _message(due: Due) -> str:
    sweep, found, batch = due.sweep, due.round, due.batch
    search = sweep.search
    assert search is not None
    lines = [
        ("Sweep", sweep.name),
        ("Batch", batch.name),
        ("Round", str(found.number)),
        ("Engine", found.engine),
        ("Spec", f"{sweep.path} {sweep.digest}"),
        ("Trials", str(batch.lock.trials)),
    ]
    body = "".join(f"{name}: {one_line(value)}\n" for name, value in lines)
    return (
        f"next({sweep.name}): round {found.number}, {batch.lock.trials} trials of {search.method}\n\n{body}"
    )
