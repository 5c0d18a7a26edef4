"""`sweep retry`: one commit that asks once more for trials that did not come to an end of their own."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from generator.commands import foundation, generate, retrying
from generator.commands.asking import Asking
from generator.commands.batching import files_of
from generator.commands.generate import Generated
from generator.commands.workspace import Workspace
from generator.errors import IdleError, RepositoryError, UsageError
from generator.render.overlay import Overlay
from generator.repo import batches
from generator.repo.git import Change, commit_here
from generator.structs.record import UNFINISHED, Status


@dataclass(frozen=True)
class Retried:
    """A commit that asks for trials again."""

    generated: Generated
    batch: str
    commit: str | None
    """None where a commit that is not on the branch yet asks for them already."""


def retry(
    workspace: Workspace,
    name: str,
    *,
    batch: str | None = None,
    statuses: frozenset[Status] = UNFINISHED,
) -> Retried:
    """Name batches whose trials ended so in the spec, and generate the batch that asks again; commit both.

    What ended ok, pruned or diverged is never asked again. Raises IdleError where there is nothing to retry,
    UsageError for a batch or a status that there is not, RepositoryError where something is in the way.
    """
    if statuses - UNFINISHED:
        wrong = ", ".join(sorted(statuses - UNFINISHED))
        raise UsageError(
            f"{wrong} is an end: the same values would end so again", hint="change the spec instead"
        )
    asking = Asking.find(workspace, name)
    if batch is not None:
        asking.named(batch)
    asking.require_current()
    _refuse_uncommitted(asking)
    due = _due(asking, statuses, batch)
    _refuse_other_statuses(asking, due, statuses)
    sweep, text = asking.edited(
        *(("retry", _entry(one, statuses)) for one in _unnamed(asking, due, statuses))
    )
    (planned,) = generate.plan(workspace, [sweep])
    if planned.batch is None or not planned.retried:
        raise IdleError(
            f"nothing to retry: the spec of {sweep.name} gives none of these trials any more",
            hint="under another program or with other values they are other trials: `sweep generate`",
        )
    _refuse_unpushed(asking, planned)
    commit = commit_here(workspace.repository, lambda _: _change(workspace, planned, planned.batch, text))
    return Retried(planned, planned.batch.name, commit)


def _refuse_uncommitted(asking: Asking) -> None:
    held = {one.name for one in asking.here}
    present = batches.of_sweep(batches.in_work_tree(asking.workspace.root), asking.sweep.name)
    for one in present:
        if one.name not in held:
            raise RepositoryError(
                f"{one.folder} is not committed", hint="commit it, or remove the folder; then run this again"
            )


def _refuse_unpushed(asking: Asking, planned: Generated) -> None:
    """A batch that is committed and has not reached the branch is of the number that the next one needs."""
    if planned.stale:
        raise RepositoryError(
            f"{planned.stale[0].folder} is committed here and not on {asking.workspace.settings.branch} yet",
            hint="push or merge it, then run this again",
        )


def _due(asking: Asking, statuses: frozenset[Status], batch: str | None) -> tuple[str, ...]:
    """Name the batches of which trials ended so, and that are the newest to list them. Raises IdleError."""
    newest = {trial.digest: one.name for one in asking.standing for trial in one.trials}
    found = tuple(retrying.outcomes(asking.workspace, asking.sweep, asking.standing, asking.base))
    final = {digest for _, digest, status in found if status.is_final}
    unsettled = [
        (name, newest[digest])
        for name, digest, status in found
        if status in statuses and digest not in final and batch in {None, name}
    ]
    due = {name for name, last in unsettled if name == last}
    if not due:
        told = " or ".join(sorted(statuses))
        if again := sorted({last for _, last in unsettled}):
            raise IdleError(
                f"nothing to retry: {', '.join(again)} asks once more already for what is {told}",
                hint=f"`sweep status {asking.sweep.name}` says where it stands",
            )
        raise IdleError(
            f"nothing to retry: no recorded trial of {batch or asking.sweep.name} is {told}",
            hint=f"`sweep results {asking.sweep.name}` lists them",
        )
    return tuple(one.name for one in asking.standing if one.name in due)


def _refuse_other_statuses(asking: Asking, due: Iterable[str], statuses: frozenset[Status]) -> None:
    """A spec names a batch once: an entry that asks for less is a person's to widen."""
    for one in asking.sweep.retry:
        if one.batch in due and not one.statuses >= statuses:
            told = ", ".join(sorted(one.statuses))
            raise UsageError(
                f"{asking.sweep.path} names {one.batch} under retry already, for what is {told} only",
                hint="add the other statuses to its `only:`, commit, then `sweep generate`",
            )


def _unnamed(asking: Asking, due: Iterable[str], statuses: frozenset[Status]) -> Iterator[str]:
    """Leave out what the spec asks for already."""
    for batch in due:
        if not any(one.batch == batch and one.statuses >= statuses for one in asking.sweep.retry):
            yield batch


def _entry(batch: str, statuses: frozenset[Status]) -> object:
    return batch if statuses == UNFINISHED else {"batch": batch, "only": sorted(map(str, statuses))}


def _change(workspace: Workspace, planned: Generated, made: Overlay | None, text: bytes) -> Change:
    assert made is not None
    sweep = planned.sweep
    return Change(
        message=(
            f"retry({sweep.name}): {planned.retried} trials\n\n"
            f"Sweep: {sweep.name}\nBatch: {made.name}\nTrials: {made.lock.trials}\n"
        ),
        writes={
            **foundation.lacking(workspace.root, made.lock.bases),
            **files_of(made, workspace.settings),
            sweep.path: text,
        },
    )
