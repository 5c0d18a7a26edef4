"""Show how many trials are pending, running and finished.

Planned trials are not merged yet; finished ones are counted by status. Results from a cluster are shown after they
are committed and pulled. With --cluster, the current state of trials in the cluster is shown, too.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from sweepledger.cli import response
from sweepledger.cli.options import ContextOption, InOption, OptionalSweepArgument, StateOption, flag
from sweepledger.cli.text.style import FirstFittingTable, batch_line, new_table
from sweepledger.cli.text.values import count_text, number_text
from sweepledger.engine.cluster.kubectl import Kubectl
from sweepledger.engine.local.pod_folders import StateFolders
from sweepledger.errors import UnreadableError
from sweepledger.formats.record_json import format_time
from sweepledger.operations.collection.collector import branch_name
from sweepledger.operations.reports.status import SweepStatus, TrialState, sweep_statuses
from sweepledger.operations.reports.wait_causes import readable_collector
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.repo.git import present_since
from sweepledger.repo.state import disk_used, state_folder
from sweepledger.structs.names import LAPTOP_WARNING, RESULTS
from sweepledger.verbs.results import NOT_RECORDED

CLUSTER_COUNTS = ("queued", "retrying", "node lost", "ended", "stalled")
"""Counts that only a cluster can provide."""
COUNTS = (
    *("planned", "pending", "running", *CLUSTER_COUNTS, "paused", "interrupted", "recorded", "ok", "pruned"),
    *("diverged", "failed", "cancelled", "missing"),
)
"""Each state of a trial, in the order of the table's columns."""
OPTIONAL_COUNTS = frozenset(
    ("planned", "pending", "paused", "interrupted", "recorded", "pruned", "cancelled", *CLUSTER_COUNTS)
)
"""Columns of the table of sweeps that are shown only if a count is not zero."""
WATCH_SECONDS = 2.0
MEBIBYTE = 1 << 20


def status(
    workspace: Workspace,
    name: OptionalSweepArgument = None,
    state: StateOption = None,
    cluster: bool = flag("--cluster", "Also read the state of trials from the cluster, with kubectl."),
    context: ContextOption = None,
    cluster_name: InOption = None,
    watch: bool = flag("--watch", "Show it again every two seconds until no batch is active."),
) -> response.Response:
    if cluster_name is not None:
        workspace = workspace.in_cluster(cluster_name)
    kubectl = Kubectl(context) if cluster or context or cluster_name else None
    folder = state_folder(workspace.repository, state)
    statuses = sweep_statuses(workspace, name, state=folder, kubectl=kubectl)
    with suppress(KeyboardInterrupt):  # which ends the watch, and interrupts nothing else
        console = response.open_console(stderr=True)
        while watch and any(status.active for status in statuses):
            console.clear()  # on a terminal
            console.print(*status_table(statuses), sep="\n")
            time.sleep(WATCH_SECONDS)
            statuses = sweep_statuses(workspace, name, state=folder, kubectl=kubectl)
    tip = workspace.base_commit(None)
    recorded = None if tip is None else present_since(workspace.repository, tip, RESULTS)
    recorded_at = None if recorded is None else format_time(recorded)
    data: dict[str, Any] = {"sweeps": [_data(status, in_cluster=kubectl is not None) for status in statuses]}
    lines: list[RenderableType] = []
    if kubectl is None:
        used, is_whole = disk_used(folder, StateFolders(folder).pods)
        data |= {"last_results_commit": recorded_at, "disk": {"bytes": used, "is_complete": is_whole}}
        for origin in filter(None, (status.origin for status in statuses)):
            numbers = ((batch["folder"], batch["pull_request"]) for batch in origin["batches"])
            folders = (f"{folder} (#{number})" if number else folder for folder, number in numbers)
            lines += [f"  {path}" for path in (origin["spec"], *folders, origin["results"]) if path]
        lines += _next_lines(workspace, statuses, recorded_at)
        if used >= MEBIBYTE:
            size = f"{'' if is_whole else 'at least '}{used // MEBIBYTE:,} MiB"
            lines.append(f"{folder.name} takes {size} of the disk: code, data and results of trials")
    else:
        lines += _next_lines(workspace, statuses, recorded_at)
        remarks = (remark for status in statuses for remark in status.remarks)
        lines += (batch_line(each.batch, each.kind, each.message, each.hint) for each in remarks)
        if (collector := readable_collector(workspace, kubectl)) is not None:
            data["collector"] = collector.as_data(time.time())
            if trouble := collector.trouble(time.time()):
                lines.append("\n  hint: ".join(trouble))
            elif collector.last_success is not None:
                lines.append(f"the collector last succeeded at {format_time(collector.last_success)}")
    problems = tuple(problem for status in statuses for problem in status.problems)
    mistakes = tuple(problem for status in statuses for problem in status.mistakes)
    edits = tuple(edit for status in statuses for edit in status.edits)
    code = UnreadableError.exit_code if problems else response.EXIT_PROBLEMS if mistakes else 0
    return response.Response(data, (*status_table(statuses), *lines), (*problems, *mistakes, *edits), code)


def _data(status: SweepStatus, *, in_cluster: bool) -> dict[str, Any]:
    names = [name for name in COUNTS if in_cluster or name not in CLUSTER_COUNTS]
    return {
        "name": status.sweep,
        "batches": status.batches,
        "active": status.active,
        "trials": status.trials,
        **{name.replace(" ", "_"): status.counts[name] for name in names},
        "best": status.best,
        "front": status.front,
        "laptop": status.laptop,
        "doubts": status.doubts,
        "search": status.search,
        "links": status.origin,
        **({"remarks": status.remarks} if in_cluster else {}),
    }


MOST_SWEEPS = 100
"""Sweeps that are listed at once, unless more are under way."""


def status_table(statuses: Sequence[SweepStatus]) -> tuple[RenderableType, ...]:
    """Return the state of sweeps, one line per sweep, and the progress of searches.

    On a narrow terminal, the counts share one column. If there are many sweeps, the archived ones are only counted.
    """
    if not statuses:
        return ("there is no sweep yet",)
    under_way = {
        status.sweep for status in statuses if status.active or not status.batches or status.problems
    }
    others = [status.sweep for status in statuses if status.sweep not in under_way]
    shown = under_way.union(others[: max(0, MOST_SWEEPS - len(under_way))])
    left_out = len(statuses) - len(shown)
    statuses = [status for status in statuses if status.sweep in shown]
    columns = [
        name
        for name in COUNTS
        if name not in OPTIONAL_COUNTS or any(status.counts[name] for status in statuses)
    ]
    wide = new_table("sweep", "trials", *columns, "best", "active")
    medium = new_table("sweep", "trials", *columns, "best", "active")
    narrow = new_table("sweep", "trials", "best", "active")
    narrow.columns[0].no_wrap = narrow.columns[-1].no_wrap = True
    for status in statuses:
        name, best = status.sweep, best_text(status)
        counts = [str(status.trials), *(str(status.counts[column]) for column in columns)]
        active, active_count = ", ".join(status.active), str(len(status.active))
        if not status.batches:
            active, active_count = "no batch yet", "no batch yet"
        wide.add_row(name, *counts, best, active)
        medium.add_row(name, *counts, best, active_count)
        states = ", ".join(f"{status.counts[state]} {state}" for state in COUNTS if status.counts[state])
        narrow.add_row(name, f"{status.trials}: {states}" if states else "0", best, active_count)
    parts: list[RenderableType] = [FirstFittingTable((wide, medium, narrow))]
    searches = [(status.sweep, status.search) for status in statuses if status.search is not None]
    if searches:
        table = new_table("search", "round", "recorded", "next")
        table.columns[0].no_wrap = True
        for name, search in searches:
            text = f"ended ({search.reason}): {search.message}" if search.reason else search.message
            limited = ((search.round, search.rounds), (search.recorded, search.max_trials))
            progress = (str(count) if limit is None else f"{count} of {limit}" for count, limit in limited)
            table.add_row(name, *progress, text)
        parts.append(table)
    if left_out:
        more = "more sweeps have no active batch: `sweep status NAME` shows one, `--format json` all"
        parts.append(f"{left_out} {more}")
    return tuple(parts)


def best_text(status: SweepStatus) -> str:
    """Return the best value of a sweep with its trial; empty if there is none."""
    if status.front:
        return f"front of {count_text(len(status.front), 'trial')}"
    if status.best is None:
        return ""
    note = "" if status.best.recorded else f", {NOT_RECORDED}"
    return f"{status.metric} {number_text(status.best.value)} ({status.best.trial}{note})"


def _next_lines(
    workspace: Workspace, statuses: Sequence[SweepStatus], recorded_at: str | None
) -> Iterator[RenderableType]:
    branch, remote = workspace.settings.git.branch, workspace.remote
    active = [status.sweep for status in statuses if status.active]
    if recorded_at is not None and active:
        yield f"last results commit: {recorded_at}"
    if workspace.settings.results.progress_minutes is not None:
        for sweep in active:
            yield f"{sweep}: intermediate results: branch {branch_name(sweep)} of {remote}"
    for status in statuses:
        yield from (Text(f"{status.sweep}: {doubt}", "yellow") for doubt in status.doubts)
        if status.laptop:
            yield Text(f"{status.sweep}: {LAPTOP_WARNING}: {', '.join(status.laptop)}", "yellow")
        if status.counts[TrialState.RECORDED]:
            pull = f"`git pull {remote} {branch}` brings results here"
            yield f"{status.sweep}: recorded on {remote}/{branch}: {pull}"
        if status.counts[TrialState.INTERRUPTED]:
            yield f"{status.sweep}: interrupted: `sweep run {status.sweep}` continues it here"
