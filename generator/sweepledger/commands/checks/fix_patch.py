"""The patch that fixes a change: what `sweep generate` would write and remove."""

from collections.abc import Iterable, Mapping

from sweepledger.commands.checks.context import CheckContext, specs_to_read
from sweepledger.commands.generation import next_batch
from sweepledger.commands.generation.next_batch import EditedError, Generated, StoredBatches, added_files
from sweepledger.commands.repository import batch_builder
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.errors import RepositoryError
from sweepledger.formats.git_patch import write_patch
from sweepledger.problems import Problem, Severity
from sweepledger.repo import files
from sweepledger.repo.batches import StoredBatch

FIXABLE_CODES = frozenset({"drift", "pending", "batch-forged", "flux-file"})
"""Codes of problems that `sweep generate` could fix."""


def build_fix(workspace: Workspace, problems: Iterable[Problem], *, base: str | None = None) -> bytes:
    """Return the patch that fixes missing, stale and edited batches; empty if a patch cannot fix anything.

    Raises as `plan_batches` does for specs, which were read before problems of batches could be found.
    """
    errors = {problem.code for problem in problems if problem.severity is Severity.ERROR}
    if not errors & FIXABLE_CODES:
        return b""
    context = CheckContext(workspace, workspace.base_commit(base))
    merged = {batch.name for batch in context.merged}
    unsound = tuple(batch for batch in context.present if batch.name not in merged and not _is_sound(batch))
    kept = tuple(batch for batch in context.present if batch not in unsound)
    specs = workspace.read(specs_to_read(context, workspace.spec_paths()))
    try:
        planned = next_batch.plan_batches(
            workspace, specs, base=context.base, stored=StoredBatches(context.base, context.merged, kept)
        )
    except EditedError:  # an edited merged batch must be restored from git instead
        return b""
    return write_patch(*_before_and_after(workspace, planned, unsound))


def _is_sound(batch: StoredBatch) -> bool:
    try:
        return not batch.hand_edits()
    except RepositoryError:  # an unreadable lock cannot be compared
        return False


def _before_and_after(
    workspace: Workspace, planned: Iterable[Generated], unsound: tuple[StoredBatch, ...]
) -> tuple[Mapping[str, bytes], Mapping[str, bytes]]:
    before: dict[str, bytes] = {}
    after: dict[str, bytes] = {}
    new = [generated for generated in planned if generated.batch]
    removed = [*unsound, *(stale for generated in planned for stale in generated.stale)]
    for batch in removed:
        before |= {f"{batch.folder}/{path}": content for path, content in batch.tree}
        before |= _existing_files(
            workspace, batch_builder.possible_flux_files(workspace.settings, batch.name)
        )
    for generated in new:
        assert generated.batch is not None
        after |= added_files(workspace, generated)
    return before | _existing_files(workspace, after), after


def _existing_files(workspace: Workspace, paths: Iterable[str]) -> dict[str, bytes]:
    contents = {}
    for path in paths:
        files.refuse_links(workspace.root, path)
        if (workspace.root / path).is_file():
            contents[path] = files.read_file(workspace.root / path)
    return contents
