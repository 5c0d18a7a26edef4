"""The next round of a search, looked up in a commit alone: no work tree is asked, and none is needed."""

from collections.abc import Mapping
from dataclasses import dataclass

from generator.commands import committed, programs, spending
from generator.commands.evidence import Look
from generator.commands.foundation import bases_at
from generator.commands.rounds import Due, Ground, Step, following
from generator.commands.workspace import SPECS, SUFFIX, Workspace
from generator.errors import GeneratorError
from generator.plan import balances, counts, promise
from generator.repo import batches
from generator.repo.files import read_input
from generator.repo.git import Repository
from generator.results import BatchResults, judge
from generator.structs.program import LOCAL_IMAGE
from generator.structs.settings import Controller, Settings
from generator.structs.sweep import Sweep

ROUNDS = b"rounds"
"""The key that every search has."""


@dataclass(frozen=True)
class Blocked:
    """The next round cannot be worked out by a program: a person has to look."""

    sweep: str
    why: str
    hint: str | None = None


def spec_path(sweep: str) -> str:
    """Say where the spec of a search lies."""
    return f"{SPECS}/{sweep}{SUFFIX}"


def searches(repository: Repository, commit: str, settings: Settings) -> tuple[Sweep, ...]:
    """List the searches of a commit whose specs can be read. No other spec is parsed: there may be many."""
    found = (
        committed.sweep(repository, commit, path, settings)
        for path, content in sorted(repository.read(commit, SPECS).items())
        if path.endswith(SUFFIX) and ROUNDS in content
    )
    return tuple(one for one in found if isinstance(one, Sweep) and one.search is not None)


def in_work_tree(workspace: Workspace) -> tuple[Sweep, ...]:
    """List the searches of the work tree likewise."""
    paths = (path for path in workspace.spec_paths() if path.is_file())
    found = (workspace.parse(path) for path in paths if ROUNDS in read_input(path))
    return tuple(one for one in found if isinstance(one, Sweep) and one.search is not None)


def next_at(
    repository: Repository, commit: str, name: str, fresh: Mapping[str, BatchResults] | None = None
) -> Step | Blocked | None:
    """Say what follows in a sweep at a commit, with what is being recorded on top of it.

    None where the sweep is no search, or was never begun: its first round is a person's to ask for.
    """
    settings = committed.standing_settings(repository, commit)
    sweep = committed.sweep(repository, commit, spec_path(name), settings)
    if not isinstance(sweep, Sweep):
        return None if not _had_rounds(repository, commit, name) else _unreadable(name)
    if sweep.search is None:
        return None
    try:
        return _next(repository, commit, sweep, settings, fresh or {})
    except GeneratorError as error:
        return Blocked(name, str(error), error.hint)


def _next(
    repository: Repository,
    commit: str,
    sweep: Sweep,
    settings: Settings,
    fresh: Mapping[str, BatchResults],
) -> Step | Blocked | None:
    stored = batches.of_sweep(batches.in_commit(repository, commit), sweep.name)
    if not stored:
        return None
    newest = max(stored, key=lambda batch: batch.lock.number).lock.program
    program = programs.locked_at(repository, commit, settings, sweep, newest)
    if program != newest:
        why = "its program has changed, and a person asks for the first round of a program"
        return Blocked(sweep.name, why, by_hand(sweep.name))
    ground = Ground(program, bases_at(repository, commit), settings)
    found = following(Look(repository, commit, fresh, asked=stored).evidence(sweep, program.digest), ground)
    if not isinstance(found, Due):
        return found
    return _unaffordable(repository, commit, found, settings, fresh) or _unable(
        repository, commit, found, settings
    )


def _unaffordable(
    repository: Repository, commit: str, due: Due, settings: Settings, fresh: Mapping[str, BatchResults]
) -> Blocked | None:
    """Refuse what a team's budget of the month has no room for; the next month has."""
    sweep = due.sweep
    budgets = {team: one for team, one in settings.budgets.items() if counts(one, sweep.name)}
    if not budgets:
        return None
    month = spending.month_of(repository, commit, None)
    stored = batches.in_commit(repository, commit)
    leaving = {name: _seconds(one, month) for name, one in fresh.items()}
    ledger = spending.ledger(repository, commit, settings, month, standing=stored, leaving=leaving)
    asked = [promise(sweep.name, sweep.run, sweep.pool, due.batch.lock.trials)]
    for one in balances(budgets, used=ledger.used, promised=ledger.promised, asked=asked):
        if one.is_exceeded:
            why = f"the budget of {one.team} has no room in {month} for {one.asked:g} more {one.unit}"
            return Blocked(sweep.name, why, "`sweep budget` says what was spent")
    return None


def _seconds(found: BatchResults, month: str) -> float:
    """Sum the seconds of attempts that ended in a month; the commit that is being made records them."""
    attempts = (one.record for attempts in judge(found).attempts for one in attempts)
    return sum(one.seconds for one in attempts if one.finished.startswith(f"{month}-"))


def _unable(repository: Repository, commit: str, due: Due, settings: Settings) -> Due | Blocked:
    """Refuse what needs a person: a base that the repository lacks, or an image that no cluster has."""
    held = repository.files(commit, *(f"base/{name}" for name in due.batch.lock.bases))
    way_out = by_hand(due.sweep.name)
    for name in due.batch.lock.bases:
        if not any(path.startswith(f"base/{name}/") for path in held):
            return Blocked(due.sweep.name, f"the next round needs base/{name}, which is not there", way_out)
    if settings.controller is not Controller.NONE and due.batch.lock.program.image == LOCAL_IMAGE:
        return Blocked(due.sweep.name, "no image is locked that a cluster could run", way_out)
    return due


def by_hand(name: str) -> str:
    """Say how a person asks for the next round."""
    return f"`sweep next {name}`, and merge what it writes"


def _had_rounds(repository: Repository, commit: str, name: str) -> bool:
    stored = batches.legible(batches.of_sweep(batches.in_commit(repository, commit), name))
    return any(batch.lock.round is not None for batch in stored)


def _unreadable(name: str) -> Blocked:
    return Blocked(name, f"{spec_path(name)} cannot be read", "`sweep validate` says why")
