"""Effects of a changed spec on a sweep that has batches: trials to retry, and changes that are refused.

Also proposals of rounds and packs for a spec without them.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

from msgspec import structs

from sweepledger import search
from sweepledger.formats import running_yaml
from sweepledger.formats.running_yaml import REFERENCE, RUNNING_FILE
from sweepledger.operations.repository import at_commit, batch_records, programs
from sweepledger.operations.repository.costs import Timing
from sweepledger.plan.forecast import DurationSource, PlannedTrials, estimate_durations, forecast
from sweepledger.problems import Problem, Severity, list_names
from sweepledger.repo import batches
from sweepledger.repo.batch_files import KUSTOMIZATION
from sweepledger.repo.batches import StoredBatch
from sweepledger.repo.git import Repository, commits
from sweepledger.results.outcomes import evaluate
from sweepledger.search import Configuration
from sweepledger.spec import ParsedSpec
from sweepledger.structs import node_pool
from sweepledger.structs.names import results_folder
from sweepledger.structs.node_pool import Pool
from sweepledger.structs.program import LOCAL_IMAGE, Code, Program
from sweepledger.structs.record import Status
from sweepledger.structs.run_config import Pack, RunConfig, RunningState, Shape
from sweepledger.structs.search_block import RandomSearch
from sweepledger.structs.settings import Controller
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.trial import Trial, all_trials
from sweepledger.structs.values import written

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
    """Yield batch, trial digest and status of every result of these batches at a commit."""
    files = repository.read(commit, results_folder(sweep.name))
    for batch in merged:
        if batch.is_active or batch.records_file() not in files:
            continue
        records = batch_records.batch_results(batch, files, is_cancelled=batch.name in sweep.cancel)
        for trial, outcome in zip(batch.trials, evaluate(records).outcomes, strict=True):
            yield batch.name, trial.digest, outcome.status.kind


def spec_change_problems(
    specs: at_commit.SpecReader,
    controller: Controller,
    parsed: ParsedSpec,
    merged: Sequence[StoredBatch],
    program: Program,
) -> Iterator[Problem]:
    """Yield a problem for each change after which a batch cannot run or has trials outside the spec."""
    if controller is not Controller.NONE and program.image == LOCAL_IMAGE:
        message = (
            f"must be an image of the cluster because controller is {str(controller)!r}; "
            f"{LOCAL_IMAGE!r} is locked"
        )
        hint = f"`sweep generate {parsed.sweep.name} --update` locks the current image, and requests every trial again"
        yield Problem(parsed.sweep.path, 0, 0, "run.image", message, code="image-missing", hint=hint)
    yield from _changed_hypercube(specs, parsed, merged)


def respelled_values(
    sweep: Sweep, trials: Iterable[Trial], merged: Sequence[StoredBatch], retried: Collection[str]
) -> Iterator[Problem]:
    """Warn of parameters whose values are spelled differently in a sweep's batches: such trials do not run again."""
    listed = {trial.digest: (batch, trial) for batch in merged for trial in batch.trials}
    seen: set[str] = set()
    for trial in trials:
        if trial.digest not in listed or trial.digest in retried:
            continue
        batch, former = listed[trial.digest]
        for name, value in trial.assignment.items():
            spelling, other = (json.dumps(written(each)) for each in (value, former.assignment[name]))
            if name not in seen and spelling != other:
                seen.add(name)
                message = f"{name}: {spelling} is {other} in {batch.name}, "
                message += "which is the same value: its trials are not requested again"
                hint = "trials that failed take the spelling of the spec when they are retried"
                place = (sweep.path, 0, 0, f"parameters.{name}")
                yield Problem(*place, message, "value-respelled", hint, Severity.WARNING)


def renamed_by_hand(
    root: Path, sweep: Sweep, expansion: search.Expansion, merged: Sequence[StoredBatch]
) -> Iterator[Problem]:
    """Warn of a sweep without batches whose trials are those of a sweep without a spec: they would run again."""
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
        own = all_trials(sweep, expansion.configurations, last.lock.program.digest)
        if not recorded <= {trial.digest for trial in own}:
            continue
        others = (batch for batch in merged if batch.sweep != name)
        if any(recorded <= {trial.digest for trial in batch.trials} for batch in others):
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
    specs: at_commit.SpecReader, parsed: ParsedSpec, merged: Sequence[StoredBatch]
) -> Iterator[Problem]:
    """Refuse a changed number of points in a Latin hypercube that has batches: all points would move."""
    design = parsed.sweep.design
    if not isinstance(design, RandomSearch) or not design.method.has_fixed_count or not merged:
        return
    digests = {batch.lock.spec.digest for batch in merged}
    for commit in commits(specs.repository, parsed.sweep.path):
        former = specs.sweep(commit.id, parsed.sweep.path)
        before = former.design if former is not None and former.digest in digests else None
        if not isinstance(before, RandomSearch) or before.method is not design.method:
            continue
        if _draw_identity(design) == _draw_identity(before) and design.cap != before.cap:
            message = f"must stay {before.cap} for a {design.method} that has batches, got {design.cap}"
            hint = "other counts draw other points: use sobol, or write a sweep with another seed"
            yield parsed.source.problem(message, "search", code="hypercube-count", hint=hint)


def _draw_identity(design: RandomSearch) -> object:
    """Return everything except their number that determines the points."""
    parameters = [(parameter.name, parameter.domain) for parameter in design.space.parameters]
    return design.seed, parameters, design.space.zips


def newer_code(
    repository: Repository, parsed: ParsedSpec, locked: Code, *, trials: str = "new trials"
) -> Iterator[Problem]:
    """Yield a warning if trials run the locked code although the last commit, or the work tree, has newer code."""
    sweep, head = parsed.sweep, repository.commit("HEAD")
    requested = programs.requested_code(sweep)
    if head is None or (requested.path, requested.selection) != (locked.path, locked.selection):
        return
    tree = programs.code_tree_at(repository, head, sweep)
    edited = programs.uncommitted_code(repository, sweep)
    if tree is not None and tree != locked.tree:
        changes = programs.file_changes(repository, locked, programs.requested_code(sweep, tree=tree))
        names = ["files that this clone lacks"] if changes is None else [change.path for change in changes]
        state = "changed since it was locked"
    else:
        names, state = [], "has uncommitted changes"
    names = list(dict.fromkeys([*names, *edited]))
    if not names:
        return
    yield parsed.source.problem(
        f"{state}, and {trials} run the locked version at {locked.tree[:12]}: "
        + list_names(names, programs.LISTED_FILES),
        "run",
        "code_path",
        code="code-changed",
        hint=f"{'commit, then ' if edited else ''}`sweep generate {sweep.name} --update` requests all trials with "
        f"the new code; `sweep run {sweep.name} --update` also runs them here",
        severity=Severity.WARNING,
    )


def running_file(sweep: Sweep, batch: StoredBatch) -> bytes | None:
    """Return the file that a spec requests in the folder of an active batch; None: none. Raises UnreadableError."""
    state = sweep.running.get(batch.name)
    return None if state is None else running_yaml.write(state, batch.lock)


def running_files(sweep: Sweep, batch: StoredBatch) -> dict[str, bytes | None]:
    """Return the files of an active batch that a spec changes, with the new content; None: the file is removed.

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
    """Return whether a change restarts trials that a pause, or a lower parallelism, ended: no attempt counts this."""
    if before.paused or after.paused:
        return before.paused and not after.paused
    lock = batch.lock
    former, later = (min(state.parallelism or lock.run.parallelism, lock.trials) for state in (before, after))
    return later < former


def as_changes(files: Mapping[str, bytes | None]) -> tuple[dict[str, bytes], frozenset[str]]:
    """Divide what `running_files` returns into the files to write and those to remove."""
    written = {path: content for path, content in files.items() if content is not None}
    return written, frozenset(files.keys() - written.keys())


def running_problems(
    sweep: Sweep, merged: Iterable[StoredBatch], controller: Controller, pools: Mapping[str, Pool]
) -> Iterator[Problem]:
    """Yield a problem for each batch under `running` of a spec whose entry cannot be applied.

    `merged` are the batches of the sweep. Recorded batches may stay in the spec.
    """
    known = {batch.name: batch for batch in merged}
    for name, state in sweep.running.items():
        batch = known.get(name)
        if batch is None:
            message, hint = "is no merged batch of this sweep", f"`sweep status {sweep.name}` lists them"
        elif not batch.is_active:
            continue
        elif controller is Controller.SUBMIT:
            message = "was created by `sweep submit`, which changes nothing that exists"
            hint = "suspend its Jobs with kubectl"
        elif (pool := pools.get(batch.lock.run.pool or "")) is not None and pool.queue is not None:
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
        yield Problem(sweep.path, 0, 0, f"running.{name}", f"{name} {message}", "running-state", hint)


POD_SECONDS = 600
"""Work of a pod: its start, of some seconds, is a percent of it or less."""
LONG_SECONDS = 120
"""Trials as long as this have pods of their own."""
MOST_TRIALS = 1_000
MOST_AT_ONCE = 128


def propose_pack(
    sweep: Sweep, trials: Sequence[Configuration | None], program: Program, timing: Timing
) -> str | None:
    """Return the block with the packs that suit the trials of a sweep's next batch, with the figures.

    None if the spec has packs or keys that exclude them, or if each trial should have a pod of its own.
    """
    run, search = sweep.run, sweep.search
    is_excluded = run.shape not in {None, Shape.INDEXED} or run.max_failed is not None
    if run.pack is not None or is_excluded or (search is not None and not search.method.has_model):
        return None
    pack, why = choose_pack(sweep, PlannedTrials(run, trials, sweep.pool, timing.past(program, sweep.name)))
    if pack is None:
        return None
    return f"write `pack: {{trials: {pack.trials}, at_once: {pack.at_once}}}` under run: {why}"


def choose_pack(sweep: Sweep, workload: PlannedTrials) -> tuple[Pack | None, str]:
    """Return the packs that suit trials, and why; None if each trial should have its own pod."""
    run, trials = sweep.run, len(workload.trials)
    estimate = estimate_durations(workload)
    if isinstance(estimate, str) or not estimate.means:
        return None, f"a pod each: {estimate if isinstance(estimate, str) else 'there are no trials'}"
    seconds = median(estimate.means)
    source = "records" if estimate.source is DurationSource.RECORDS else "run.expected_minutes"
    lasts = f"a trial takes {seconds:.3g} s by {source}"
    if seconds >= LONG_SECONDS:
        return None, f"a pod each: {lasts}"
    at_once, limit = _at_once(run, sweep.pool)
    # Each place at a time has a pod at least, or fewer trials would run at once.
    most = min(MOST_TRIALS, -(-trials * at_once // run.parallelism))
    fitting = max(at_once, min(most, round(at_once * POD_SECONDS / max(seconds, 0.001))))
    count = min(fitting, max(1, trials))
    if count == 1:
        return None, f"a pod each: parallelism has room for all {trials} trials"
    return Pack(count, min(at_once, count)), f"{lasts}; {limit}"


def _at_once(run: RunConfig, pool: node_pool.Pool | None) -> tuple[int, str]:
    """Return how many trials may run at once in a pod, and what limits them."""
    if run.resources.gpu:
        return 1, "one at once, as sharing a GPU is for pack.at_once to say"
    if run.resources.shared_memory:
        return 1, "one at once, as trials share no memory"
    if pool is None:
        return 1, "one at once, as no pool says how large nodes are"
    for count in range(min(run.parallelism, MOST_AT_ONCE), 1, -1):
        is_divisor = run.parallelism % count == 0
        if is_divisor and node_pool.pods_per_node(structs.replace(run, pack=Pack(count, count)), pool.node):
            return count, f"{count} at once have the CPUs and the memory of a node of {pool.name}"
    return 1, f"one at once has the CPUs and the memory of a node of {pool.name}"


MOST_LONGER = 0.1
"""How much longer the sweep may take, as a share of its time in one batch."""
SMALLEST_WAVE = 8
"""Configurations: with fewer, rules stop good trials too often (docs/performance.md)."""
MOST_WAVES = 8


def propose_rounds(
    sweep: Sweep, configurations: Sequence[Configuration], program: Program, timing: Timing
) -> str | None:
    """Return the block with the most rounds that are forecast to take little longer than one batch, with figures.

    None if the spec has rounds, no rule compares its trials, or rounds would take longer.
    """
    if sweep.rounds is not None or sweep.early_stop is None or not sweep.early_stop.compares:
        return None
    trials = [assignment for assignment in configurations for _ in range(sweep.replicates)]
    workload = PlannedTrials(sweep.run, trials, sweep.pool, timing.past(program, sweep.name))
    ahead = timing.ahead(sweep)
    at_once = forecast(workload, ahead, seed=len(trials))
    for count in range(min(MOST_WAVES, len(configurations) // SMALLEST_WAVE), 1, -1):
        size = -(-len(configurations) // count)
        divided = forecast(replace(workload, rounds=count), ahead, seed=len(trials))
        if at_once.completion_seconds is None or divided.completion_seconds is None:
            return None
        longer = divided.completion_seconds.median / at_once.completion_seconds.median - 1
        if longer <= MOST_LONGER:
            known = "" if at_once.source is DurationSource.RECORDS else ", by expected_minutes alone"
            return (
                f"write `rounds: {{size: {size}}}` for {-(-len(configurations) // size)} waves, so that "
                "early_terminate compares later trials with earlier ones: "
                f"{100 * max(0.0, longer):.0f} % longer if none ends early{known}"
            )
    return None
