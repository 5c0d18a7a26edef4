"""`sweep cancel`: one commit that takes batches out of what the cluster is asked for."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from generator.commands import recorded
from generator.commands.asking import Asking
from generator.commands.workspace import Workspace
from generator.errors import IdleError, UsageError
from generator.render.platform import flux
from generator.repo.batches import ACTIVE, ARCHIVE, StoredBatch
from generator.repo.git import Change, commit_here
from generator.structs.record import Status


@dataclass(frozen=True)
class Cancelled:
    """A commit that cancels batches."""

    sweep: str
    batches: tuple[str, ...]
    trials: int
    commit: str
    is_replaced: bool
    """Whether the spec asks for the cancelled trials again."""


def cancel(workspace: Workspace, name: str, *, batch: str | None = None, replace: bool = False) -> Cancelled:
    """Name one batch of a sweep, or all that run, in its spec, and move them to the archive; commit that.

    The collector records what the trials have left once the cluster has ended them. Raises IdleError where
    all of it is cancelled already, UsageError for a batch that does not stand or is recorded,
    RepositoryError where something is in the way.
    """
    asking = Asking.find(workspace, name)
    over = _cancelled(asking)
    if batch:
        doomed: tuple[StoredBatch, ...] = (_chosen(asking, batch, over, replace=replace),)
    else:
        doomed = tuple(one for one in asking.standing if one.is_active and one.name not in over)
    if not doomed:
        _refuse_all(asking, over, replace=replace)
    asking.require_current()
    again = [
        ("retry", {"batch": one.name, "only": [str(Status.CANCELLED)]})
        for one in doomed
        if replace and not _is_retried(asking, one)
    ]
    named = [one for one in doomed if one.name not in asking.sweep.cancel]
    _, text = asking.edited(*(("cancel", one.name) for one in named), *again)
    trials = sum(one.lock.trials for one in doomed)
    change = Change(
        message=_message(asking.sweep.name, doomed, trials),
        writes={asking.sweep.path: text},
        moves={
            f"{ACTIVE}/{one.name}/{path}": f"{ARCHIVE}/{one.name}/{path}"
            for one in doomed
            for path, _ in one.tree
        },
        removes=frozenset(flux.batch_file(one.name) for one in doomed),
    )
    commit = commit_here(workspace.repository, lambda _: change)
    assert commit is not None
    return Cancelled(asking.sweep.name, tuple(one.name for one in doomed), trials, commit, replace)


def _is_retried(asking: Asking, batch: StoredBatch) -> bool:
    return any(one.batch == batch.name and Status.CANCELLED in one.statuses for one in asking.sweep.retry)


def _cancelled(asking: Asking) -> dict[str, str]:
    """Name the batches that are cancelled and not recorded, each with what is waited for."""
    waiting = recorded.pending(asking.workspace.repository, asking.base, asking.standing)
    archived = {one.name for one in asking.here if not one.is_active}
    unpushed = [one.name for one in asking.standing if one.is_active and one.name in archived]
    unpushed = [name for name in unpushed if name in asking.sweep.cancel]
    push = "push it, or open a pull request"
    return {one.name: "its results are waited for" for one in waiting} | dict.fromkeys(unpushed, push)


def _refuse_all(asking: Asking, over: Mapping[str, str], *, replace: bool) -> NoReturn:
    if over:
        name, waited = next(iter(over.items()))
        _refuse(asking, name, waited, replace=replace)
    raise UsageError(
        f"no batch of {asking.sweep.name} stands that could be cancelled",
        hint=f"`sweep status {asking.sweep.name}` says where it stands",
    )


def _refuse(asking: Asking, name: str, waited: str, *, replace: bool) -> NoReturn:
    """Say that a batch is cancelled already; to ask for its trials again is another command's work then."""
    again = f"once it is recorded, `sweep retry {asking.sweep.name} --batch {name}` asks for its trials again"
    if replace:
        raise UsageError(f"{name} is cancelled already: {waited}", hint=again)
    raise IdleError(f"{name} is cancelled already: {waited}", hint=again)


def _chosen(asking: Asking, name: str, over: Mapping[str, str], *, replace: bool) -> StoredBatch:
    found = asking.named(name)
    if name in over:
        _refuse(asking, name, over[name], replace=replace)
    if found.is_active:
        return found
    raise UsageError(
        f"{name} is recorded: nothing of it runs any more",
        hint=f"`sweep retry {asking.sweep.name} --batch {name}` asks for what did not end well",
    )


def _message(sweep: str, doomed: tuple[StoredBatch, ...], trials: int) -> str:
    names = ", ".join(one.name for one in doomed)
    trailers = "".join(f"Batch: {one.name}\n" for one in doomed)
    return f"cancel({sweep}): {names} ({trials} trials)\n\nSweep: {sweep}\n{trailers}"
