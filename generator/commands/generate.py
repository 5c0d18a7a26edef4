"""`sweep generate`: spec in, the next batch out. Read this first: it is the product in one page."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from generator import search
from generator.commands import controller, extending, programs, retrying, scripts
from generator.commands.batching import Asked, rendered
from generator.commands.edits import EditedError
from generator.commands.evidence import Look
from generator.commands.foundation import bases, lay
from generator.commands.proposing import Proposal, Wanted
from generator.commands.rounds import Step
from generator.commands.workspace import Workspace, staging_folder
from generator.errors import SpecError
from generator.problems import Problem, Severity
from generator.render.overlay import Overlay
from generator.repo import batches, files
from generator.repo.batches import ACTIVE, StoredBatch
from generator.search import Expansion
from generator.structs.sweep import Sweep


@dataclass(frozen=True)
class Generated:
    """What one sweep needs: its trials, those not known yet, and the batch that asks for them."""

    sweep: Sweep
    trials: int
    known: int
    batch: Overlay | None
    """The batch that the work tree must hold beside the standing ones; None when nothing is new."""
    stale: tuple[StoredBatch, ...]
    """Batches that never stood and that the spec no longer gives."""
    is_written: bool
    """Whether the work tree held all of it already."""
    retried: int = 0
    """Trials of the batch that a batch has asked for before."""
    warnings: tuple[Problem, ...] = ()
    """What the spec's author may want to know; it stops nothing."""
    step: Step | None = None
    """Of a search whose next round was asked for or proposed: what follows."""

    @property
    def is_pending(self) -> bool:
        """Tell whether `sweep generate` would write anything."""
        return not self.is_written or bool(self.stale)


def generate(
    workspace: Workspace, names: Iterable[str] = (), *, check: bool = False, base: str | None = None
) -> tuple[Generated, ...]:
    """Write the next batch of each sweep, or with `check` only say what would be written.

    Raises SpecError for wrong specs, RepositoryError where a person edited a generated file; nothing is
    written then.
    """
    planned = plan(workspace, workspace.sweeps(names), base=base)
    if not check:
        write(workspace, planned)
    return planned


def write(workspace: Workspace, planned: Sequence[Generated]) -> None:
    """Make the work tree hold what was planned."""
    if not planned:
        return
    lay(workspace.root, {name for one in planned if one.batch for name in one.batch.lock.bases})
    staging = staging_folder(workspace)
    for generated in planned:
        for stored in generated.stale:
            # What points to the folder goes first and comes last: a crash leaves nothing dangling.
            controller.withdraw(workspace, stored.name)
            files.remove_folder(workspace.root / stored.folder, staging=staging)
        if generated.batch and not generated.is_written:
            target = workspace.root / ACTIVE / generated.batch.name
            if not target.is_dir():
                files.write_folder(target, generated.batch.tree, staging=staging)
            controller.announce(workspace, generated.batch.name)


def plan(
    workspace: Workspace,
    sweeps: Iterable[Sweep],
    *,
    base: str | None = None,
    stored: "Stored | None" = None,
    update: bool = False,
    onward: bool = False,
) -> tuple[Generated, ...]:
    """Find out what each sweep needs beside the batches that stand at the base; `stored` if known already.

    With `onward` a search needs its next round; else only its first, and what the work tree proposes.
    Raises SpecError with the problems of all sweeps, RepositoryError where a person edited a generated file.
    """
    expansions = expanded(sweeps)
    there = stored or look(workspace, base)
    batches.load(batch for sweep, _ in expansions for batch in batches.of_sweep(there.standing, sweep.name))
    refuse_edits(there.standing, there.present)
    planned = tuple(
        _plan(workspace, sweep, expansion, there, _How(update, onward)) for sweep, expansion in expansions
    )
    told = [problem for generated in planned for problem in generated.warnings]
    if any(problem.severity is Severity.ERROR for problem in told):
        raise SpecError(told)
    return planned


def expanded(sweeps: Iterable[Sweep]) -> tuple[tuple[Sweep, Expansion], ...]:
    """Find the assignments of every sweep. Raises SpecError with the problems of all."""
    found = [(sweep, search.explore(sweep)) for sweep in sweeps]
    problems = [problem for _, one in found if not isinstance(one, Expansion) for problem in one]
    if problems:
        raise SpecError(problems)
    return tuple((sweep, one) for sweep, one in found if isinstance(one, Expansion))


@dataclass(frozen=True, slots=True)
class Stored:
    """The batches that are there before anything is planned."""

    commit: str | None
    """The base."""
    standing: tuple[StoredBatch, ...]
    """At the base."""
    present: tuple[StoredBatch, ...]
    """In the work tree."""


def look(workspace: Workspace, base: str | None) -> Stored:
    """List the batches that are there. Raises StorageError, UsageError for an unknown base."""
    commit = workspace.standing(base)
    standing = batches.in_commit(workspace.repository, commit)
    return Stored(commit, standing, batches.in_work_tree(workspace.root))


@dataclass(frozen=True, slots=True)
class _How:
    update: bool
    onward: bool


def _plan(workspace: Workspace, sweep: Sweep, expansion: Expansion, stored: Stored, how: _How) -> Generated:
    old = batches.of_sweep(stored.standing, sweep.name)
    new = tuple(
        batch
        for batch in batches.of_sweep(stored.present, sweep.name)
        if batch.name not in {one.name for one in old}
    )
    newest = max((*old, *new), key=lambda batch: batch.lock.number, default=None)
    program = (
        programs.current(workspace, sweep)
        if how.update
        else programs.locked(workspace, sweep, newest.lock.program if newest else None)
    )
    again = retrying.asked_again(workspace, sweep, old, stored.commit)
    if sweep.search is None:
        listed = Asked(sweep, program, search.trials(sweep, expansion, program))
        wanted = _listed(workspace, listed, stored, again)
    else:
        proposal = Proposal(workspace, sweep, program, stored.commit, old, new)
        wanted = proposal.wanted(again, onward=how.onward)
    made = wanted.batch
    stale = tuple(batch for batch in new if made is None or batch.name != made.name)
    same = [batch for batch in new if made is not None and batch.name == made.name]
    if made is not None and same and same[0].tree != made.tree:
        raise EditedError.of(same[0], files.difference(made.tree, same[0].tree), made.tree)
    written = made is None or (bool(same) and controller.is_announced(workspace, made.name))
    missing = scripts.lacking(workspace, sweep, program) if made else ()
    wrong = extending.refused(workspace, sweep, old, program) if made else ()
    return Generated(
        sweep,
        wanted.trials,
        wanted.trials - len(wanted.new),
        made,
        stale,
        written,
        retried=sum(trial.digest in again for trial in wanted.new),
        warnings=(*sweep.warnings, *expansion.warnings, *missing, *wrong),
        step=wanted.step,
    )


def _listed(workspace: Workspace, asked: Asked, stored: Stored, again: Collection[str]) -> Wanted:
    """Choose of all trials that a spec lists those in no batch, and those that are asked for once more."""
    old = batches.of_sweep(stored.standing, asked.sweep.name)
    known = {trial.digest for batch in old for trial in batch.trials}
    unknown = tuple(trial for trial in asked.trials if trial.digest not in known or trial.digest in again)
    if not unknown:
        return Wanted(len(asked.trials), unknown, None)
    stop = Look(workspace.repository, stored.commit).stop(asked.sweep, asked.program.digest)
    new = replace(asked, trials=unknown, stop=stop)
    return Wanted(len(asked.trials), unknown, rendered(new, old, bases(workspace.root), workspace.settings))


def refuse_edits(standing: tuple[StoredBatch, ...], present: tuple[StoredBatch, ...]) -> None:
    """Stop where a person changed a generated file, and show what. Raises EditedError."""
    held = {batch.name: batch for batch in standing}
    for batch in present:
        stood = held.get(batch.name)
        drift = batches.difference(stood, batch) if stood else batch.hand_edits()
        if drift:
            raise EditedError.of(batch, drift, stood.tree if stood else None, merged=stood is not None)
