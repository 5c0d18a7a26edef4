"""What a spec says of how its merged batches run now, and the files that this gives in their folders."""

from collections.abc import Iterable, Iterator, Mapping

from sweepledger.formats import running_yaml
from sweepledger.formats.running_yaml import REFERENCE, RUNNING_FILE
from sweepledger.problems import Problem
from sweepledger.repo.batch_files import KUSTOMIZATION
from sweepledger.repo.batches import StoredBatch
from sweepledger.structs.batch import BatchLock
from sweepledger.structs.run_config import RunningState, Shape
from sweepledger.structs.settings import Controller, Settings
from sweepledger.structs.sweep import Sweep

CODE = "running-state"


def running_file(sweep: Sweep, batch: StoredBatch) -> bytes | None:
    """Return the file that a spec requests in the folder of an active batch; None: none. Raises UnreadableError."""
    state = sweep.running.get(batch.name)
    return None if state is None else running_yaml.write(state, batch.lock)


def running_files(sweep: Sweep, batch: StoredBatch) -> dict[str, bytes | None]:
    """Return the files of an active batch that a spec requests otherwise than they are; None: no such file.

    Raises UnreadableError, StorageError.
    """
    wanted = running_file(sweep, batch)
    if wanted == batch.running_file:
        return {}
    kustomization = batch.contents.read(KUSTOMIZATION)
    return {
        f"{batch.folder}/{RUNNING_FILE}": wanted,
        f"{batch.folder}/{KUSTOMIZATION}": kustomization + (b"" if wanted is None else REFERENCE),
    }


def repeats_trials(batch: StoredBatch, before: RunningState, after: RunningState) -> bool:
    """Return whether trials begin anew that a pause has ended, or fewer at once: no attempt counts them."""
    if before.paused or after.paused:
        return before.paused and not after.paused
    lock = batch.lock
    former, later = (min(state.parallelism or lock.run.parallelism, lock.trials) for state in (before, after))
    return later < former


def as_changes(files: Mapping[str, bytes | None]) -> tuple[dict[str, bytes], frozenset[str]]:
    """Divide what `running_files` returns into the files to write and those to remove."""
    written = {path: content for path, content in files.items() if content is not None}
    return written, frozenset(files.keys() - written.keys())


def running_problems(sweep: Sweep, merged: Iterable[StoredBatch], settings: Settings) -> Iterator[Problem]:
    """Yield a problem for each batch that a spec names under `running` and that cannot run so.

    `merged` are the batches of the sweep. What is recorded may stay in the spec.
    """
    known = {batch.name: batch for batch in merged}
    for name, state in sweep.running.items():
        batch = known.get(name)
        if batch is None:
            message, hint = "is no merged batch of this sweep", f"`sweep status {sweep.name}` lists them"
        elif not batch.is_active:
            continue
        elif settings.controller is Controller.SUBMIT:
            message = "was created by `sweep submit`, which changes nothing that exists"
            hint = "suspend its Jobs with kubectl"
        elif _is_queued(batch.lock, settings):
            message = "is in a queue of Kueue, which alone suspends and resumes what it admits"
            hint = (
                f"hold the queue (`stopPolicy` of its LocalQueue), or `sweep cancel {sweep.name} --replace`"
            )
        elif state.parallelism is not None and batch.lock.shape is not Shape.INDEXED:
            message = f"has no parallelism that could change: its shape is {str(batch.lock.shape)!r}"
            hint = "delete the key; in this shape each trial has an object of its own"
        elif state.parallelism is not None and state.parallelism % batch.lock.run.trials_per_pod:
            at_once = batch.lock.run.trials_per_pod
            message = f"must run a multiple of pack.at_once ({at_once}) trials, got {state.parallelism}"
            hint = "write a multiple of it"
        else:
            continue
        yield Problem(sweep.path, 0, 0, f"running.{name}", f"{name} {message}", CODE, hint)


def _is_queued(lock: BatchLock, settings: Settings) -> bool:
    pool = settings.pool(lock.run.pool)
    return pool is not None and pool.queue is not None
