"""Explain why trials do not run, and what to do about it.

The explanation leads from the spec to the recorded result. The cluster is read with kubectl if the settings name a
controller, or if --context is given.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from sweepledger.cli import completion
from sweepledger.cli.options import ContextOption, InOption, argument, flag
from sweepledger.cli.response import Response
from sweepledger.cli.text.values import count_text
from sweepledger.engine.cluster.causes import CauseKind, TrialCauses, WaitCause
from sweepledger.engine.cluster.kubectl import Kubectl
from sweepledger.errors import GeneratorError, SpecError, UsageError
from sweepledger.formats.record_json import format_time
from sweepledger.operations.generation.next_batch import plan_batches
from sweepledger.operations.reports.outputs import log_link
from sweepledger.operations.reports.wait_causes import (
    BatchExplanation,
    BatchObserver,
    lost_cause,
    memory_cause,
)
from sweepledger.operations.repository import batch_records, catalog
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.operations.rounds.next_round import LostTrial
from sweepledger.repo.git import last_update
from sweepledger.structs.names import SPECS, SUFFIX
from sweepledger.structs.record import Status, SummaryRow
from sweepledger.structs.settings import Controller, GenerateMode


def why(
    workspace: Workspace,
    name: str = argument(
        "NAME|TRIAL",
        "Name or spec of a sweep, or a trial id or the beginning of one.",
        autocompletion=completion.sweeps,
    ),
    offline: bool = flag("--offline", "Do not read the cluster: explain what git contains."),
    context: ContextOption = None,
    cluster: InOption = None,
) -> Response:
    if cluster is not None:
        workspace = workspace.in_cluster(cluster)
    is_followed = workspace.settings.platform.controller is not Controller.NONE or context is not None
    kubectl = Kubectl(context) if is_followed and not offline else None
    explanation = explain_waiting(workspace, name, kubectl=kubectl)
    lines = [line for batch in explanation.batches for line in _batch_lines(batch, explanation.trial)]
    lines = lines or [f"{explanation.sweep}: the spec requests no trials that are not recorded"]
    if updated := explanation.branch["updated"]:
        lines.append(f"{explanation.branch['name']} as this clone last heard of it, at {updated}")
    return Response(explanation, tuple(lines))


@dataclass(frozen=True)
class WaitExplanation:
    """Why the trials of a sweep do not run, or one of them."""

    sweep: str
    trial: str | None
    branch: Mapping[str, str | None]
    """The branch that controllers follow, and when this clone last heard of it; None without a remote."""
    batches: tuple[BatchExplanation, ...]


def explain_waiting(
    workspace: Workspace, reference: str, *, kubectl: Kubectl | None = None
) -> WaitExplanation:
    """Explain a sweep, by name or spec, or a trial, by its id; if `kubectl` is None, from git alone.

    A cluster that cannot be read is a cause, too. Raises UsageError, UnreadableError.
    """
    observer = BatchObserver.of(workspace, kubectl, time.time())
    name = catalog.sweep_name(workspace.root, reference)
    if name in catalog.sweep_names(workspace, observer.here) | {batch.sweep for batch in observer.there}:
        return WaitExplanation(name, None, _branch(observer), tuple(_sweep_explanations(observer, name)))
    try:
        listed = catalog.find_trial(workspace.root, reference)
    except UsageError as error:
        if error.hint and "begins" not in str(error):
            raise UsageError(
                f"no sweep and no trial {reference!r}",
                hint="`sweep status` lists sweeps, `sweep results NAME` trials",
            ) from error
        raise
    row = catalog.summary_row(workspace.root, listed)
    is_requested_again = row is not None and listed.batch.is_active and row.batch != listed.batch.name
    if row is None or is_requested_again:
        explained = observer.explain(listed.batch)
        groups = (group for group in explained.causes if listed.index in group.indexes)
        causes = tuple(replace(group, indexes=(listed.index,)) for group in groups)
        explained = replace(explained, causes=causes)
    else:
        explained = _recorded_trial(listed, row, observer.lost(listed.sweep).get(listed.id))
    link = log_link(workspace, listed)
    return WaitExplanation(listed.sweep, listed.id, _branch(observer), (replace(explained, logs=link),))


def _branch(observer: BatchObserver) -> Mapping[str, str | None]:
    workspace = observer.workspace
    updated = last_update(workspace.repository, workspace.remote, workspace.settings.git.branch)
    return {"name": observer.branch, "updated": None if updated is None else format_time(updated)}


def _sweep_explanations(observer: BatchObserver, sweep: str) -> Iterator[BatchExplanation]:
    """Yield the causes for trials without a batch, then for each active batch, or for the newest if none is active."""
    stored = observer.of_sweep(sweep)
    unlisted = _unlisted(observer, sweep)
    if unlisted is not None:
        yield BatchExplanation(None, (unlisted,))
    active = [batch for batch in stored if batch.is_active]
    archived = [batch for batch in stored if not batch.is_active]
    root = observer.workspace.root
    due = [batch for batch in archived if not batch_records.read_records_files(root, batch)]
    if not active and not due and not unlisted:
        ended = {entry.batch for entry in observer.lost(sweep).values()}
        due = [batch for batch in stored if batch.name in ended]
    for batch in active or due or ([] if unlisted else stored[-1:]):
        yield observer.explain(batch)


def _unlisted(observer: BatchObserver, sweep: str) -> TrialCauses | None:
    """Return why trials of a spec are in no batch; None if every trial is in a batch."""
    workspace, settings = observer.workspace, observer.workspace.settings
    spec = f"{SPECS}/{sweep}{SUFFIX}"
    if not (workspace.root / spec).is_file():
        return None
    try:
        (planned,) = plan_batches(workspace, workspace.specs([sweep]))
    except SpecError as error:
        text = f"{len(error.problems)} problem(s); the first: {error.problems[0]}"
        remedy = f"`sweep validate {sweep}` lists all"
        return TrialCauses(WaitCause(CauseKind.SPEC_INVALID, text, remedy), ())
    except GeneratorError as error:
        return TrialCauses(WaitCause(CauseKind.NOT_GENERATED, str(error), error.hint or ""), ())
    if planned.batch is None or planned.is_written:
        return None
    kind, new = CauseKind.NOT_GENERATED, planned.batch.lock.trials
    text = f"its spec is on {observer.branch}, and no workflow has added its batch of {new} trial(s)"
    remedy = "look at the workflow run of the merge; `sweep generate --push` does what it does"
    if settings.git.generate is GenerateMode.IN_PULL_REQUEST:
        text = f"{new} trial(s) of the spec are in no batch"
        remedy = f"`sweep generate {sweep}`, commit what it writes, and merge the pull request"
    elif workspace.repository.read(observer.tip, spec).get(spec) != (workspace.root / spec).read_bytes():
        kind = CauseKind.NOT_MERGED
        text = f"its spec is not on {observer.branch} as it is here, as last fetched"
        remedy = f"commit it and merge its pull request into {settings.git.branch}"
    return TrialCauses(WaitCause(kind, text, remedy), tuple(range(new)))


def _recorded_trial(listed: catalog.ListedTrial, row: SummaryRow, lost: LostTrial | None) -> BatchExplanation:
    text = f"it is recorded: {row.status}"
    if row.status.is_final:
        cause = WaitCause(CauseKind.RECORDED, text, f"`sweep show {listed.id}`")
    elif row.status is Status.OOM:
        cause = memory_cause(listed.sweep, row)
    elif lost is not None:
        cause = lost_cause(listed.sweep, lost)
    else:
        remedy = f"`sweep logs {listed.id}` shows its output, `sweep retry {listed.sweep}` requests it again"
        cause = WaitCause(CauseKind.FAILED, f"{text} ({row.reason})" if row.reason else text, remedy)
    ids = tuple(other.trial for other in listed.batch.rows)
    return BatchExplanation(row.batch, (TrialCauses(cause, (listed.index,)),), ids)


MOST_IDS = 3
"""Trials that a line names."""


def _batch_lines(explained: BatchExplanation, trial: str | None) -> Iterator[str]:
    yield f"{explained.batch or 'not in a batch'}:"
    for group in explained.causes:
        ids = [explained.ids[index] for index in group.indexes[:MOST_IDS] if index < len(explained.ids)]
        listed = ", ".join(ids) + (", …" if len(group.indexes) > MOST_IDS else "")
        named = f" ({listed})" if listed and trial is None and len(explained.causes) > 1 else ""
        whose = trial or (count_text(len(group.indexes), "trial") if group.indexes else "spec")
        remedy = f"\n    hint: {group.cause.remedy}" if group.cause.remedy else ""
        yield f"  {whose}: {group.cause.kind}: {group.cause.text}{named}{remedy}"
    if explained.logs:
        yield f"  output: {explained.logs}"
