"""What a changed spec means for a sweep that has batches: trials to retry, and changes that are refused."""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from sweepledger import search
from sweepledger.commands.repository import at_commit, batch_records
from sweepledger.problems import Problem, Severity
from sweepledger.repo import batches
from sweepledger.repo.batches import StoredBatch
from sweepledger.repo.git import Repository, commits
from sweepledger.results.outcomes import evaluate
from sweepledger.results.paths import results_folder
from sweepledger.search import Expansion
from sweepledger.spec import ParsedSpec
from sweepledger.structs.program import LOCAL_IMAGE, Program
from sweepledger.structs.record import Status
from sweepledger.structs.search_block import RandomSearch, Sampler
from sweepledger.structs.settings import Controller, Settings
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.trial import Trial
from sweepledger.structs.values import is_spelled_alike, written

RENAMED = "sweep-renamed"
"""Code of the warning that a sweep may be another one under a new name; `sweep run` does not run it."""


def retried_trials(
    repository: Repository, sweep: Sweep, merged: Sequence[StoredBatch], commit: str | None
) -> frozenset[str]:
    """Return the digests of the trials that the spec's `retry` requests and that no later batch lists.

    Trials that ended ok, pruned or diverged in any batch are not among them, nor trials without a result.
    """
    wanted: dict[str, frozenset[Status]] = {}
    for retry in sweep.retry:
        wanted[retry.batch] = wanted.get(retry.batch, frozenset()) | retry.statuses
    if not wanted:
        return frozenset()
    newest = {trial.digest: batch.name for batch in merged for trial in batch.trials}
    statuses: dict[str, Status] = {}
    final: set[str] = set()
    for batch, digest, status in recorded_outcomes(repository, sweep, merged, commit):
        if status.is_final:
            final.add(digest)
        if newest[digest] == batch:
            statuses[digest] = status
    return frozenset(
        digest
        for digest, status in statuses.items()
        if status in wanted.get(newest[digest], frozenset()) and digest not in final
    )


def recorded_outcomes(
    repository: Repository, sweep: Sweep, merged: Sequence[StoredBatch], commit: str | None
) -> Iterator[tuple[str, str, Status]]:
    """Yield batch, trial digest and status of every result that a commit contains of these batches."""
    files = repository.read(commit, results_folder(sweep.name))
    for batch in merged:
        if batch.is_active or batch_records.records_file(batch) not in files:
            continue
        records = batch_records.batch_results(batch, files, is_cancelled=batch.name in sweep.cancel)
        for trial, outcome in zip(batch.trials, evaluate(records).outcomes, strict=True):
            yield batch.name, trial.digest, outcome.status.kind


def spec_change_problems(
    repository: Repository,
    settings: Settings,
    parsed: ParsedSpec,
    merged: Sequence[StoredBatch],
    program: Program,
) -> Iterator[Problem]:
    """Yield a problem for each change that would give a batch that cannot run or has trials outside the spec."""
    if settings.controller is not Controller.NONE and program.image == LOCAL_IMAGE:
        message = (
            f"must be an image of the cluster because controller is {str(settings.controller)!r}; "
            f"{LOCAL_IMAGE!r} is locked"
        )
        hint = f"`sweep generate {parsed.sweep.name} --update` locks the current image, and requests every trial again"
        yield Problem(parsed.sweep.path, 0, 0, "run.image", message, code="image-missing", hint=hint)
    yield from _changed_hypercube(repository, settings, parsed, merged)


def respelled_values(
    sweep: Sweep, trials: Iterable[Trial], merged: Sequence[StoredBatch], retried: Collection[str]
) -> Iterator[Problem]:
    """Warn of parameters whose values the batches of a sweep spell otherwise: these trials are not requested again."""
    listed = {trial.digest: (batch, trial) for batch in merged for trial in batch.trials}
    seen: set[str] = set()
    for trial in trials:
        if trial.digest not in listed or trial.digest in retried:
            continue
        batch, former = listed[trial.digest]
        for name, value in trial.assignment.items():
            other = former.assignment[name]
            if name not in seen and not is_spelled_alike(value, other):
                seen.add(name)
                shown = f"{json.dumps(written(value))} is {json.dumps(written(other))} in {batch.name}"
                message = f"{name}: {shown}, which is the same value: its trials are not requested again"
                hint = "trials that failed take the spelling of the spec when they are retried"
                place = (sweep.path, 0, 0, f"parameters.{name}")
                yield Problem(*place, message, "value-respelled", hint, Severity.WARNING)


def renamed_by_hand(
    root: Path, sweep: Sweep, expansion: Expansion, merged: Sequence[StoredBatch]
) -> Iterator[Problem]:
    """Warn of a sweep without batches that has the trials of one whose spec is gone: they would run again."""
    by_sweep = batches.by_sweep(merged)
    if by_sweep.get(sweep.name) or sweep.rounds is not None:
        return
    for name, stored in by_sweep.items():
        last = stored[-1]
        if (
            not batches.readable([last])
            or (root / last.lock.spec.path).exists()
            or last.lock.round is not None
        ):
            continue
        recorded = {trial.digest for trial in last.trials}
        if not recorded <= {trial.digest for trial in search.trials(sweep, expansion, last.lock.program)}:
            continue
        if any(
            recorded <= {trial.digest for trial in batch.trials} for batch in merged if batch.sweep != name
        ):
            continue  # the sweep has been renamed before
        yield Problem(
            sweep.path,
            0,
            0,
            "name",
            f"{sweep.name} has the {len(recorded)} trials of {last.name}, and {last.lock.spec.path} is gone",
            RENAMED,
            f"`sweep rename {name} {sweep.name}` takes what is recorded along; "
            f"`sweep generate {sweep.name}` and a commit request all trials again",
            Severity.WARNING,
        )


def _changed_hypercube(
    repository: Repository, settings: Settings, parsed: ParsedSpec, merged: Sequence[StoredBatch]
) -> Iterator[Problem]:
    """Refuse a changed number of points in a Latin hypercube that has batches: all points would move."""
    design = parsed.sweep.design
    if not isinstance(design, RandomSearch) or design.sampler is not Sampler.LATIN_HYPERCUBE or not merged:
        return
    digests = {batch.lock.spec.digest for batch in merged}
    for former in _former_specs(repository, settings, parsed.sweep, digests):
        before = former.design
        if not isinstance(before, RandomSearch) or before.sampler is not design.sampler:
            continue
        if _draw_identity(design) == _draw_identity(before) and design.cap != before.cap:
            message = f"must stay {before.cap} for a latin-hypercube that has batches, got {design.cap}"
            hint = "other counts draw other points: use sobol, or write a sweep with another seed"
            yield parsed.source.problem(message, "search", code="hypercube-count", hint=hint)


def _draw_identity(design: RandomSearch) -> object:
    """Return what decides the points apart from their number."""
    parameters = [(parameter.name, parameter.domain) for parameter in design.space.parameters]
    return design.seed, parameters, design.space.zips


def _former_specs(
    repository: Repository, settings: Settings, sweep: Sweep, digests: set[str]
) -> Iterator[Sweep]:
    for commit in commits(repository, sweep.path):
        former = at_commit.read_sweep(repository, commit.id, sweep.path, settings)
        if former is not None and former.digest in digests:
            yield former
