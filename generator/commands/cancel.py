"""`sweep cancel`: one commit that takes batches out of what the cluster is asked for."""

from dataclasses import dataclass

from generator.commands import recorded
from generator.commands.asking import Asking
from generator.commands.workspace import Workspace
from generator.errors import UsageError
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

    The collector records what the trials have left once the cluster has ended them. Raises UsageError for a
    batch that does not stand, is recorded or cancelled; RepositoryError where something is in the way.
    """
    asking = Asking.find(workspace, name)
    doomed = (_chosen(asking, batch),) if batch else tuple(one for one in asking.standing if one.is_active)
    if not doomed:
        raise UsageError(
            f"no batch of {asking.sweep.name} stands that could be cancelled",
            hint=f"`sweep status {asking.sweep.name}` says where it stands",
        )
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


def _chosen(asking: Asking, name: str) -> StoredBatch:
    found = asking.named(name)
    if found.is_active:
        return found
    waiting = recorded.pending(asking.workspace.repository, asking.base, (found,))
    raise UsageError(
        f"{name} is cancelled already: its results are waited for"
        if waiting
        else f"{name} is recorded: nothing of it runs any more",
        hint=f"`sweep retry {asking.sweep.name} --batch {name}` asks for what did not end well",
    )


def _message(sweep: str, doomed: tuple[StoredBatch, ...], trials: int) -> str:
    names = ", ".join(one.name for one in doomed)
    trailers = "".join(f"Batch: {one.name}\n" for one in doomed)
    return f"cancel({sweep}): {names} ({trials} trials)\n\nSweep: {sweep}\n{trailers}"
