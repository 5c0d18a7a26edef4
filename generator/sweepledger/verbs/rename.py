"""Give a sweep another name, and take its results along.

It makes two commits, and nothing runs. A spec that was moved by hand is taken as it is. What was recorded under the
old name stays in git, too.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from msgspec import structs

from sweepledger.cli import response
from sweepledger.cli.options import SweepArgument, argument
from sweepledger.cli.text.values import count_text
from sweepledger.errors import RepositoryError, UsageError
from sweepledger.operations.collection.attempts import BatchAttempts
from sweepledger.operations.collection.results_commit import Recording
from sweepledger.operations.generation.spec_change import retried_trials
from sweepledger.operations.repository.batch_builder import RenderInputs, batch_files, build_overlay
from sweepledger.operations.repository.batch_records import batch_results, expected_trials
from sweepledger.operations.repository.spec_edit import automatic_edit
from sweepledger.operations.repository.workspace import Target, Workspace
from sweepledger.reader.yaml_edit import remove_key, set_value
from sweepledger.render.overlay import Overlay
from sweepledger.repo import base_files, batches
from sweepledger.repo.batches import ACTIVE, StoredBatch
from sweepledger.repo.files import read_input
from sweepledger.repo.git import (
    Change,
    commit_on_branch,
    finish_update,
    uncommitted_paths,
    without_repository_filters,
)
from sweepledger.results.outcomes import RANKS, evaluate
from sweepledger.structs.batch import Batch
from sweepledger.structs.names import SPECS, results_folder
from sweepledger.structs.program import Program
from sweepledger.structs.record import Record
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.trial import Trial

NAMING_BATCHES = ("retry", "cancel", "running")
"""Keys of a spec with names of batches: what they request is done, or `rename` refuses."""

_Recorded = dict[str, tuple[Trial, Record]]
"""Trials with the record that counts, by digest."""


@dataclass(frozen=True)
class Renamed:
    """A sweep that has another name."""

    sweep: str
    previous: str
    batches: tuple[str, ...]
    """Its batches, one for each program; they list what was recorded."""
    trials: int
    remaining: int
    """Recorded trials with other parameters, which stay in history under the old name."""
    commit: str


def rename(
    workspace: Workspace,
    name: SweepArgument,
    new: str = argument("NEW", "The new name."),
) -> response.Response:
    renamed = rename_sweep(workspace, name, new)
    trials, commit = count_text(renamed.trials, "recorded trial"), renamed.commit[: response.SHORT_COMMIT]
    lines = [f"{name} is {new}, with {trials}, in {commit}"]
    if renamed.remaining:
        rest = count_text(renamed.remaining, "trial")
        lines.append(f"{rest} with other parameters stay under {name}")
    return response.Response(renamed, (*lines, f"next: `sweep results {new}`"))


def rename_sweep(workspace: Workspace, old: str, new: str) -> Renamed:
    """Commit a sweep under another name, with a batch of all its recorded trials, and with their records.

    A spec that the author has moved already stays unchanged. Raises UsageError for a name that is taken or a
    search, RepositoryError for a batch that has not ended or a spec that is not committed, SpecError.
    """
    repository = workspace.repository
    branch = repository.branch()
    if branch is None or repository.commit("HEAD") is None:
        raise RepositoryError(
            "no branch with a commit is checked out", hint="`git switch -c NAME`; then run it again"
        )
    finish_update(repository, branch)
    target = Target(repository, branch=branch, is_laptop=True)
    overlays: list[Overlay] = []
    left: list[int] = []
    attempts: dict[str, BatchAttempts] = {}

    def move(base: str) -> Change:
        before, sweep, writes = _moved_spec(workspace, old, new)
        # The index keeps what a person has staged, such as a spec that was moved before its name was changed.
        moved = [
            path
            for path, content in writes.items()
            if (workspace.root / path).is_file() and read_input(workspace.root / path) == content
        ]
        if moved:
            repository.run(*without_repository_filters(repository), "add", "--", *moved)
        stored = _ended_batches(workspace, base, old, new)
        _refuse_open_entries(workspace, base, before, stored)
        recorded = _recorded(workspace, base, old, stored)
        overlays.clear()
        attempts.clear()
        left[:] = [sum(map(len, recorded.values()))]
        for program, trials in recorded.items():
            former = [StoredBatch(f"{ACTIVE}/{each.name}", each.tree) for each in overlays]
            made = _batch(workspace, Batch(sweep, program, ()), former, trials)
            if made is not None:
                overlays.append(made[0])
                attempts[made[0].name] = made[1]
                left[0] -= made[0].lock.trials
        for each in overlays:
            writes |= base_files.missing_bases(workspace.root, each.lock.needed_bases)
            writes |= batch_files(each, workspace.settings.platform, workspace.settings.trials)
        count = sum(each.lock.trials for each in overlays)
        return Change(
            f"rename({new}): {count} recorded trials of {old}\n",
            writes,
            removes=frozenset({f"{SPECS}/{old}.yaml"}),
        )

    def record(base: str) -> Change | None:
        return Recording(target, new, attempts).change(base)[0] if attempts else None

    # The branch gets both or, killed, none.
    commit = commit_on_branch(target.repository, target.branch, move, record)
    assert commit is not None, "the spec has moved"
    names = tuple(each.name for each in overlays)
    return Renamed(new, old, names, sum(each.lock.trials for each in overlays), left[0], commit)


def _moved_spec(workspace: Workspace, old: str, new: str) -> tuple[Sweep, Sweep, dict[str, bytes]]:
    """Return the sweep under both names, and its new spec, which names no batch of the old sweep.

    Raises UsageError, RepositoryError, SpecError.
    """
    before, after = f"{SPECS}/{old}.yaml", f"{SPECS}/{new}.yaml"
    is_moved = (workspace.root / after).is_file()
    if (workspace.root / before).is_file() and is_moved:
        raise UsageError(
            f"{after} exists, beside {before}", hint="choose another name, or remove one of them"
        )
    path = workspace.root / (after if is_moved else before)
    if not path.is_file():
        raise UsageError(f"there is no {before}, nor {after}", hint="`sweep list` lists them")
    if not is_moved and uncommitted_paths(workspace.repository, before):
        raise RepositoryError(
            f"{before} has changes that are not committed", hint="commit or stash them, then run this again"
        )
    text = read_input(path).decode()
    with automatic_edit(path.name, f"write `name: {new}` by hand, and remove the keys that name its batches"):
        former = set_value(text, ("name",), old)
        text = set_value(text, ("name",), new)
        for key in NAMING_BATCHES:
            text = remove_key(text, key)
    parsed = workspace.parse_text(former.encode(), before), workspace.parse_text(text.encode(), after)
    return parsed[0].sweep, parsed[1].sweep, {after: text.encode()}


def _refuse_open_entries(
    workspace: Workspace, base: str, sweep: Sweep, stored: tuple[StoredBatch, ...]
) -> None:
    """Raise RepositoryError for entries of a spec about its batches, and for dependencies on the old spec."""
    due = retried_trials(workspace.repository, sweep, stored, base)
    if due:
        raise RepositoryError(
            f"retry of {sweep.path} requests {len(due)} trial(s) that no batch lists",
            hint=f"`sweep run {sweep.name}` runs them; or remove the entry and commit, then run this again",
        )
    if resumed := [name for name, state in sweep.running.items() if state.resumes]:
        raise UsageError(
            f"{sweep.name} keeps its name: budgets charge what {', '.join(resumed)} repeated after pauses by its "
            "entry in running, which belongs to this spec",
            hint="write a new spec for further trials",
        )


def _ended_batches(workspace: Workspace, base: str, old: str, new: str) -> tuple[StoredBatch, ...]:
    stored = batches.of_sweep_in_commit(workspace.repository, base, old)
    if taken := batches.of_sweep_in_commit(workspace.repository, base, new):
        raise UsageError(f"{new} has a batch: {taken[0].name}", hint="choose another name")
    if running := [batch.name for batch in stored if batch.is_active]:
        raise RepositoryError(
            f"{', '.join(running)} is not recorded yet",
            hint=f"`sweep run {old}` finishes it, `sweep cancel {old}` ends it; then run this again",
        )
    if any(batch.lock.round is not None for batch in stored):
        raise UsageError(
            f"{old} has rounds, so it keeps its name: `sweep verify` computes each from the commits before it, "
            "and under another name all would be in one",
            hint=f"a new search reads its trials with `start: [{old}]`",
        )
    return stored


def _recorded(
    workspace: Workspace, base: str, old: str, stored: tuple[StoredBatch, ...]
) -> Mapping[Program, _Recorded]:
    """Return the trials with a record, by program; the program of the newest batch is last."""
    files = workspace.repository.read(base, results_folder(old))
    programs: dict[str, Program] = {}
    recorded: dict[str, _Recorded] = {}
    for batch in stored:
        digest = batch.lock.program.digest
        programs[digest] = batch.lock.program
        trials = recorded[digest] = recorded.pop(digest, {})
        for trial, outcome in zip(batch.trials, evaluate(batch_results(batch, files)).outcomes, strict=True):
            if outcome.record is None:
                continue
            former = trials.get(trial.digest)
            if former is None or RANKS[outcome.record.status] <= RANKS[former[1].status]:
                trials[trial.digest] = trial, outcome.record
    return MappingProxyType({programs[digest]: trials for digest, trials in recorded.items()})


def _batch(
    workspace: Workspace, requested: Batch, former: list[StoredBatch], recorded: _Recorded
) -> tuple[Overlay, BatchAttempts] | None:
    """Return a batch of the recorded trials whose rows stay the same, and their records; None if there are none."""
    inputs, columns = RenderInputs.of(workspace), set(requested.sweep.columns)
    fitting = [each for each in recorded.values() if columns.issuperset(each[0].assignment)]
    while fitting:
        asked = structs.replace(requested, trials=tuple(trial for trial, _ in fitting))
        overlay = build_overlay(asked, former, inputs)
        batch = StoredBatch(f"{ACTIVE}/{overlay.name}", overlay.tree)
        rows = [expected.row for expected in expected_trials(batch)]
        same = [each for each, row in zip(fitting, rows, strict=True) if each[1].row == row]
        if len(same) == len(fitting):
            return overlay, BatchAttempts(batch, tuple(_records(overlay.name, same)))
        fitting = same
    return None


def _records(batch: str, recorded: list[tuple[Trial, Record]]) -> Iterator[Record]:
    for index, (_, record) in enumerate(recorded):
        source = {"batch": record.batch, "index": record.index}
        yield replace(
            record,
            batch=batch,
            index=index,
            details=MappingProxyType({**record.details, "renamed_from": source}),
            # Nothing has run for the copy, so no budget is charged again.
            observed=(record.finished, record.finished),
            others=None,
        )
