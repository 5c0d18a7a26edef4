"""Commit results of ended batches, one commit per sweep.

It contains records, summary, report and figures. The commit also archives the batches. With --push and
`results.mode: branch`, each sweep gets a branch results/SWEEP/COMMIT to merge. With --cluster, attempts without a
record are described from their pods, and stalled batches are listed. Without, a search that is blocked ends the
command with 3, after all else.

With --by-pod, results come from a volume that only pods can read, through a short-lived pod.
"""

from collections.abc import Iterator
from pathlib import Path

from sweepledger.cli import options
from sweepledger.cli.options import flag, option
from sweepledger.cli.response import Response, as_data
from sweepledger.cli.text.rounds import pushed_round_text, results_commit_text
from sweepledger.cli.text.style import batch_line
from sweepledger.engine.cluster.kubectl import Kubectl
from sweepledger.errors import GeneratorError, StorageError, UsageError
from sweepledger.formats.record_json import format_time
from sweepledger.operations.cluster_local import BlockedSearches
from sweepledger.operations.collection.collector import (
    Collection,
    collect_by_pod,
    collect_from_state,
    watch_cluster,
)
from sweepledger.operations.collection.record_store import RecordStores
from sweepledger.operations.repository.workspace import Workspace, results_target
from sweepledger.operations.rounds.next_round import RoundBlocked
from sweepledger.repo.state import state_folder
from sweepledger.structs.settings import Controller


def collect(
    workspace: Workspace,
    push: bool = flag("--push", "Commit on the remote's branch instead of the local one."),
    remote: options.RemoteOption = None,
    branch: options.BranchOption = None,
    state: options.StateOption = None,
    results: Path | None = option("--results DIR", "Read this results volume; default: the state folder's."),
    cluster: bool = flag("--cluster", "Read from the cluster, with kubectl, which batches have ended."),
    cluster_name: options.InOption = None,
    watch: int | None = option(
        "--watch SECONDS",
        "With --cluster: collect again whenever a batch ends, as long as one is active, for this time.",
        min=1,
    ),
    ended: list[str] | None = option(
        "--ended BATCH", "Record this batch, which Slurm or a script has run, even if trials have no record."
    ),
    by_pod: options.ByPodOption = False,
    context: options.ContextOption = None,
    image: options.ImageOption = None,
    patience: options.PatienceOption = 300,
) -> Response:
    if cluster or cluster_name or by_pod:
        workspace = workspace.in_cluster(cluster_name)
    target = results_target(workspace, remote, branch, push=push)
    controller = workspace.settings.platform.controller
    if by_pod:
        if cluster or ended or results is not None or watch is not None:
            raise UsageError("--by-pod cannot be combined with --cluster, --watch, --results or --ended")
        collection = collect_by_pod(workspace, target, Kubectl(context), image=image, patience=patience)
        return _response(collection, controller)
    folder = state_folder(workspace.repository, state)
    if results is not None and not results.is_dir():  # all trials would be recorded as missing
        raise StorageError(f"{results}: no such folder", hint="mount the results volume there")
    volume = results.absolute() if results else folder / "results"
    if cluster and ended:
        raise UsageError("--ended cannot be combined with --cluster, which knows what has ended")
    if watch is not None and not cluster:
        raise UsageError("--watch needs --cluster: `sweep cluster local` follows the batches that run here")
    if cluster:

        def open_stores() -> RecordStores:
            return RecordStores.of_settings(workspace.settings.results, workspace.repository, volume)

        namespace = workspace.settings.trials.namespace
        watched = watch_cluster(target, open_stores, Kubectl(), namespace, watch or 0)
        return _response(Collection.joined(watched), controller)
    collection = collect_from_state(target, volume, folder, over=frozenset(ended or ()))
    blocked = BlockedSearches()
    for event in (*collection.collected, *collection.rounds):
        blocked.add(event)
    return _response(collection, controller, *blocked.failures)


def _response(collection: Collection, controller: Controller, *blocked: GeneratorError) -> Response:
    data = {
        "collected": collection.collected,
        "waiting": [{**as_data(each), "until": format_time(each.until)} for each in collection.pending],
        "stalled": [
            {"batch": stalled.batch, "message": stalled.text, "hint": stalled.hint(controller)}
            for stalled in collection.stalled
        ],
        "requested": [
            {"sweep": pushed.sweep, "commit": None, **pushed.as_data()}
            if isinstance(pushed, RoundBlocked)
            else pushed
            for pushed in collection.rounds
        ],
        "remarks": collection.remarks,
    }
    failures = (*collection.failures, *blocked)
    return Response(data, tuple(_lines(collection, controller)), collection.problems, failures=failures)


def _lines(collection: Collection, controller: Controller) -> Iterator[str]:
    if not collection.collected:
        yield "nothing to record"
    yield from (results_commit_text(commit) for commit in collection.collected)
    yield from (pushed_round_text(pushed) for pushed in collection.rounds)
    for pending in collection.pending:
        missing = [
            *([f"the records of {pending.trials} succeeded trial(s)"] if pending.trials else ()),
            *([f"the end of {pending.pods} pod(s)"] if pending.pods else ()),
        ]
        awaited = f"{' and '.join(missing)}, until {format_time(pending.until)} at most"
        yield batch_line(pending.batch, "waiting", f"its Job has ended; waiting for {awaited}")
    for stalled in collection.stalled:
        yield batch_line(stalled.batch, "stalled", stalled.text, stalled.hint(controller))
    yield from (f"note: {remark}" for remark in collection.remarks)
