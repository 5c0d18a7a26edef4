"""Remarks on a plan, by what the base has recorded of the sweep: reads and asks, the rules are in `plan`."""

from collections.abc import Sequence

from generator.commands import ledger
from generator.commands.workspace import Workspace
from generator.formats import summary
from generator.formats.summary import SUMMARY_FILE
from generator.plan import Best, BlockReview, Note, notes
from generator.repo import batches
from generator.repo.batches import StoredBatch
from generator.results import results_folder
from generator.structs.sweep import Sweep
from generator.structs.trial import Trial


def noted(
    workspace: Workspace,
    base: str | None,
    sweep: Sweep,
    old: Sequence[StoredBatch],
    asked: tuple[Sequence[Trial], Sequence[BlockReview]],
) -> tuple[Note, ...]:
    """Remark on the trials and blocks that a sweep asks for, beside those that it has had."""
    trials, blocks = asked
    dataset = workspace.settings.datasets.get(sweep.run.data or "")
    best = _best(workspace, base, sweep, old)
    return notes(sweep, trials, blocks, best=best, examples=None if dataset is None else dataset.examples)


def _best(workspace: Workspace, base: str | None, sweep: Sweep, old: Sequence[StoredBatch]) -> Best | None:
    """Find the best recorded trial at the base; a summary that cannot be read has none."""
    path = f"{results_folder(sweep.name)}/{SUMMARY_FILE}"
    content = workspace.repository.read(base, path).get(path)
    if content is None:
        return None
    try:
        rows = summary.read(content.decode()).rows
    except ValueError:
        return None
    able = ledger.candidates(rows, batches.legible(old))
    for one in ledger.ranked(able, sweep.metric.name, sweep.metric.goal)[:1]:
        return Best(one.trial, one.assignment)
    return None
