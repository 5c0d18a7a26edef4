"""`sweep check`: everything that must hold before a merge, in one run."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sweepledger.commands.checks import (
    attributes,
    builds,
    cluster_files,
    layout,
    merged_batches,
    new_batches,
    recorded_history,
)
from sweepledger.commands.checks.builds import Builds
from sweepledger.commands.checks.context import CheckContext, specs_to_read
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.plan import PoolUsage, pool_usage
from sweepledger.problems import Problem, Severity
from sweepledger.structs.names import SPECS
from sweepledger.structs.sweep import Sweep


@dataclass(frozen=True)
class CheckReport:
    """The problems of a change, and what was checked."""

    specs: int
    builds: Builds
    problems: tuple[Problem, ...]
    rooms: tuple[tuple[str, PoolUsage], ...] = ()
    """The capacity that each new batch takes of its pool, by batch name."""
    untracked: tuple[str, ...] = ()
    """Files and folders that were checked and that git does not track: a merge would not include them."""


def check_change(
    workspace: Workspace,
    *,
    base: str | None = None,
    everything: bool = False,
    month: str | None = None,
    by_collector: bool = False,
) -> CheckReport:
    """Check specs, drift, merged batches, history, frozen bases, kustomize builds and rendered manifests.

    Files that equal the base commit are trusted unless `everything` is true. Where no signer is listed, a change
    `by_collector` may record history. Raises SpecError if a spec is wrong; all other problems are in the report.
    """
    workspace.refuse_sweeps_elsewhere()
    context = CheckContext(workspace, workspace.base_commit(base), month)
    problems = [*layout.check_state(context), *layout.check_layout(context)] or list(
        new_batches.unreadable_batches(context)
    )
    if problems:  # otherwise a link in the tree might be followed
        return CheckReport(0, Builds(), tuple(sorted(problems)))
    paths = workspace.spec_paths()
    specs = workspace.read(paths if everything else specs_to_read(context, paths))
    sweeps = [parsed.sweep for parsed in specs]
    changed = context.changed | context.uncommitted(f"{SPECS}/")
    problems += (unread for unread in workspace.unread_specs() if everything or unread.file in changed)
    problems += attributes.check_attributes(context, specs)
    problems += new_batches.check_settings_unchanged(context)
    problems += new_batches.check_bases_apart(context)
    merged_problems = [
        *merged_batches.check_merged_batches(context, sweeps),
        *merged_batches.check_frozen_bases(context),
    ]
    problems += merged_problems
    may_record = by_collector and not context.settings.signers
    if any(
        problem.severity is Severity.ERROR for problem in merged_problems
    ):  # a plan of edited batches would only repeat these problems
        guarded: tuple[str, ...] = recorded_history.RESULTS_FOLDERS
    else:
        problems += new_batches.check_new_batches(context, specs)
        guarded = recorded_history.GUARDED_FOLDERS
    if not may_record:
        problems += recorded_history.check_recorded_history(context, sweeps, places=guarded)
    problems += cluster_files.check_flux_files(context)
    problems += cluster_files.check_secrets(context)
    problems += cluster_files.check_platform(context, specs)
    built = builds.check_builds(context, everything=everything)
    usage = tuple(_pool_room(context, sweeps))
    untracked = context.work_tree.whole_folders(context.index)
    return CheckReport(len(paths), built, tuple(sorted([*problems, *built.problems])), usage, untracked)


def _pool_room(context: CheckContext, sweeps: Iterable[Sweep]) -> Iterator[tuple[str, PoolUsage]]:
    """Yield the capacity that each new batch takes of its pool."""
    by_name = {sweep.name: sweep for sweep in sweeps}
    for batch in context.added:
        if batch.is_active and batch.lock.sweep in by_name:
            usage = pool_usage(by_name[batch.lock.sweep], batch.lock.trials)
            if usage is not None:
                yield batch.name, usage
