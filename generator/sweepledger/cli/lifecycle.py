"""Commands for merged batches: collect, next, cancel, pause, resume, scale, retry, rename, expire and submit."""

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sweepledger.cli import completion, envelopes, response
from sweepledger.cli.envelopes import results_commit_data, search_data
from sweepledger.cli.options import (
    BaseOption,
    BatchOption,
    BranchOption,
    ByPodOption,
    ContextOption,
    FormatOption,
    ImageOption,
    InOption,
    PatienceOption,
    PushOption,
    RemoteOption,
    StateOption,
    SweepArgument,
)
from sweepledger.cli.response import (
    EXIT_DRIFT,
    EXIT_SEARCH_ENDED,
    EXIT_STORAGE,
    SHORT_COMMIT,
    Format,
    Response,
)
from sweepledger.cli.text import rounds
from sweepledger.cli.text.rounds import next_lines
from sweepledger.cli.text.values import count_text

if TYPE_CHECKING:
    from rich.text import Text

    from sweepledger.commands.cancel import BatchesChange
    from sweepledger.commands.collect import Collection
    from sweepledger.commands.collection.record_store import RecordStore
    from sweepledger.commands.expire import BatchExpiry, Expired
    from sweepledger.commands.repository.workspace import Target, Workspace


def collect(
    push: PushOption = False,
    remote: RemoteOption = None,
    branch: BranchOption = None,
    state: StateOption = None,
    results: Annotated[
        Path | None,
        typer.Option(
            "--results", metavar="DIR", help="Read this results volume; default: the state folder's."
        ),
    ] = None,
    cluster: Annotated[
        bool, typer.Option("--cluster", help="Read from the cluster, with kubectl, which batches have ended.")
    ] = False,
    cluster_name: InOption = None,
    watch: Annotated[
        int | None,
        typer.Option(
            "--watch",
            metavar="SECONDS",
            min=1,
            help="With --cluster: collect again whenever a batch ends, as long as one is active, for this time.",
        ),
    ] = None,
    ended: Annotated[
        list[str] | None,
        typer.Option(
            "--ended",
            metavar="BATCH",
            help="Record this batch, which Slurm or a script has run, even if trials have no record.",
        ),
    ] = None,
    by_pod: ByPodOption = False,
    context: ContextOption = None,
    image: ImageOption = None,
    patience: PatienceOption = 300,
    form: FormatOption = Format.TEXT,
) -> None:
    """Commit results of ended batches, one commit per sweep.

    It contains records, summary, report and figures. The commit also archives the batches. With --push and
    `results.mode: branch`, each sweep gets a branch results/SWEEP/COMMIT to merge. With --cluster, attempts without a
    record are described from their pods, and stalled batches are listed. Without, a search that is blocked ends the
    command with 3, after all else.

    With --by-pod, results come from a volume that only pods can read, through a short-lived pod.
    """

    def work() -> Response:
        from sweepledger.cli import cluster_status
        from sweepledger.commands.repository.workspace import Workspace, results_target
        from sweepledger.errors import UsageError
        from sweepledger.repo.state import state_folder

        workspace = Workspace.find(response.current_folder())
        if cluster or cluster_name or by_pod:
            workspace = workspace.in_cluster(cluster_name)
        target = results_target(workspace, remote, branch, push=push)
        if by_pod:
            if cluster or ended or results is not None or watch is not None:
                raise UsageError("--by-pod cannot be combined with --cluster, --watch, --results or --ended")
            from sweepledger.commands.collect import collect_by_pod
            from sweepledger.engine.cluster.kubectl import Kubectl

            collection = collect_by_pod(workspace, target, Kubectl(context), image=image, patience=patience)
            return cluster_status.collected_response(workspace, collection)
        repository = workspace.repository
        volume = _require_volume(results) if results else state_folder(repository, state) / "results"
        if cluster and ended:
            raise UsageError("--ended cannot be combined with --cluster, which knows what has ended")
        if watch is not None and not cluster:
            raise UsageError(
                "--watch needs --cluster: `sweep cluster local` follows the batches that run here"
            )
        if cluster:
            return cluster_status.collected_response(
                workspace, _collect_from_cluster(workspace, target, volume, watch or 0)
            )
        return _collect_here(target, volume, state_folder(repository, state), frozenset(ended or ()))

    response.respond("cluster collect", form, work)


def _collect_from_cluster(workspace: "Workspace", target: "Target", volume: Path, watch: int) -> "Collection":
    from sweepledger.commands.collect import Collection, watch_cluster
    from sweepledger.commands.collection.record_store import bucket_results
    from sweepledger.engine.cluster.kubectl import Kubectl

    bucket = workspace.settings.results.bucket

    def open_results() -> "Path | RecordStore":
        return volume if bucket is None else bucket_results(bucket, workspace.repository)

    return Collection.joined(
        watch_cluster(target, open_results, Kubectl(), workspace.settings.namespace, watch)
    )


def _collect_here(target: "Target", volume: Path, state: Path, over: frozenset[str]) -> Response:
    from sweepledger.cli.text import results
    from sweepledger.commands.collect import collect_from_state

    collection = collect_from_state(target, volume, state, over=over)
    data = {
        "collected": list(map(results_commit_data, collection.collected)),
        "requested": list(map(envelopes.pushed_round_data, collection.rounds)),
    }
    lines = (
        *results.collected_text(collection.collected),
        *map(rounds.pushed_round_text, collection.rounds),
    )
    failures = (*collection.failures, *collection.blocked.failures)
    return Response(data, lines, collection.problems, failures=failures)


def _require_volume(path: Path) -> Path:
    """Return the volume's path. Raises StorageError if it is not mounted: all trials would be recorded as missing."""
    from sweepledger.errors import StorageError

    if not path.is_dir():
        raise StorageError(f"{path}: no such folder", hint="mount the results volume there")
    return path.absolute()


def pause(name: SweepArgument, batch: BatchOption = None, form: FormatOption = Format.TEXT) -> None:
    """Pause running batches until they are resumed.

    It commits that none of their trials may run until `sweep cluster resume`. The commit takes effect when it is pushed
    or merged. A cluster ends the pods, and no attempt counts as failed.
    """

    def work() -> Response:
        from sweepledger.commands.cancel import pause as command
        from sweepledger.commands.repository.workspace import Workspace

        workspace = Workspace.find(response.current_folder())
        return _running_changed("paused", workspace, command(workspace, name, batch=batch))

    response.respond("cluster pause", form, work)


def resume(name: SweepArgument, batch: BatchOption = None, form: FormatOption = Format.TEXT) -> None:
    """Resume paused batches.

    It commits that their trials run again. The commit takes effect when it is pushed or merged.
    """

    def work() -> Response:
        from sweepledger.commands.cancel import resume as command
        from sweepledger.commands.repository.workspace import Workspace

        workspace = Workspace.find(response.current_folder())
        return _running_changed("resumed", workspace, command(workspace, name, batch=batch))

    response.respond("cluster resume", form, work)


def scale(
    name: SweepArgument,
    parallelism: Annotated[int, typer.Argument(min=1, help="How many trials of a batch run at once.")],
    batch: BatchOption = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Change the parallelism of running batches.

    It commits the number for batches of shape `indexed`. The commit takes effect when it is pushed or merged.
    `run.parallelism` in the spec decides for later batches.
    """

    def work() -> Response:
        from sweepledger.commands.cancel import scale as command
        from sweepledger.commands.repository.workspace import Workspace

        workspace = Workspace.find(response.current_folder())
        return _running_changed("scaled", workspace, command(workspace, name, parallelism, batch=batch))

    response.respond("cluster scale", form, work)


def _running_changed(verb: str, workspace: "Workspace", change: "BatchesChange") -> Response:
    from sweepledger.structs.settings import Controller

    controlled = workspace.settings.controller is not Controller.NONE
    batches, commit = ", ".join(change.batches), change.commit[:SHORT_COMMIT]
    lines = (
        f"{verb} {batches} ({count_text(change.trials, 'trial')}) in {commit}",
        "next: push or merge the commit; the controller applies it"
        if controlled
        else "next: `sweep run` and `sweep cluster local` obey within seconds once their branch has the commit",
    )
    data = {
        "sweep": change.sweep,
        "batches": list(change.batches),
        "trials": change.trials,
        "commit": change.commit,
    }
    return Response(data, lines)


def expire(
    results: Annotated[
        Path | None,
        typer.Option(
            "--results",
            metavar="DIR",
            help="Folder of the results volume; needed unless results are in a bucket.",
        ),
    ] = None,
    checkpoints: Annotated[
        Path | None,
        typer.Option("--checkpoints", metavar="DIR", help="Folder of the checkpoint volume, if separate."),
    ] = None,
    artifacts: Annotated[
        Path | None,
        typer.Option("--artifacts", metavar="DIR", help="Folder of the artifact volume, if separate."),
    ] = None,
    remote: RemoteOption = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would be deleted, and delete nothing.")
    ] = False,
    form: FormatOption = Format.TEXT,
) -> None:
    """Delete the files of batches that were recorded long ago.

    Files on volumes or in the bucket are deleted when the records have been in git for `results.keep` days. Only
    records on the remote's branch count. Exits with 5 if a trial left a record that git does not contain, and with 3 if
    deleting failed; all other folders are deleted nevertheless.
    """

    def work() -> Response:
        from sweepledger.commands import expire as command
        from sweepledger.commands.repository.workspace import Workspace

        workspace = Workspace.find(response.current_folder())
        name = remote or workspace.remote
        workspace.remote_url(name)
        folders = {"results": results, "checkpoints": checkpoints, "artifacts": artifacts}
        volumes = {volume: folder.absolute() for volume, folder in folders.items() if folder is not None}
        expired = command.expire(workspace, volumes, remote=name, now=time.time(), dry_run=dry_run)
        return _expire_response(expired, dry_run=dry_run)

    response.respond("cluster expire", form, work)


def _expire_response(expired: "Expired", *, dry_run: bool) -> Response:
    from rich.text import Text

    from sweepledger.commands.expire import FolderState

    code = EXIT_DRIFT if expired.in_state(FolderState.LATE) else 0
    if expired.in_state(FolderState.FAILED):
        code = EXIT_STORAGE
    data = {
        "dry_run": dry_run,
        "keep_days": expired.keep_days,
        "batches": [
            {
                "batch": expiry.batch,
                "state": str(expiry.state),
                "volumes": list(expiry.volumes),
                "reason": expiry.reason or None,
            }
            for expiry in expired.batches
        ],
        "unknown": list(expired.unknown),
    }
    batch_lines = [_expiry_line(expiry, dry_run=dry_run) for expiry in expired.batches]
    unknown_lines = [
        Text(response.escape_control_characters(f"unknown: {path}: not the folder of a batch, kept"))
        for path in expired.unknown
    ]
    count = len(expired.in_state(FolderState.EXPIRED))
    verb = "would delete" if dry_run else "deleted"
    last_line = (
        f"{verb} the folders of {count} of {len(expired.batches)} batch(es), {expired.keep_days} days old"
    )
    return Response(data, (*batch_lines, *unknown_lines, Text(last_line)), exit_code=code)


def _expiry_line(expiry: "BatchExpiry", *, dry_run: bool) -> "Text":
    from rich.text import Text

    from sweepledger.commands.expire import FolderState

    if expiry.state is FolderState.EXPIRED:
        verb = "would delete" if dry_run else "deleted"
        line = f"{verb}: {expiry.batch} ({', '.join(expiry.volumes)})"
    else:
        line = f"{expiry.state}: {expiry.batch}: {expiry.reason}"
    if expiry.state is FolderState.LATE:
        line += (
            "\n  hint: inspect the records, then delete the folder yourself; `sweep retry` runs a trial again"
        )
    return Text(response.escape_control_characters(line))


def next_(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="Names of searches; default: all of sweeps/.",
            autocompletion=completion.sweeps,
        ),
    ] = None,
    check_only: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit with 5 if a due round is missing.")
    ] = False,
    push: Annotated[
        bool,
        typer.Option("--push", help="Commit on the remote's branch instead of writing to the work tree."),
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="List the results that the round is computed from.")
    ] = False,
    base: BaseOption = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Write the next round of each search.

    It is computed from the spec, the records in git, and the seed. Exits with 6 if all searches have ended (with 0 for
    --push, which workflows use). With `results.mode: branch`, --push creates a branch to merge.
    """

    def work() -> Response:
        from sweepledger.commands import next_ as command
        from sweepledger.commands.repository.workspace import Workspace, results_target
        from sweepledger.errors import UsageError

        workspace = Workspace.find(response.current_folder())
        if push and (check_only or base is not None):
            raise UsageError("--push cannot be combined with --check or --base")
        if push:
            steps = command.push_next(workspace, results_target(workspace, push=True), names or ())
        else:
            steps = command.next_(workspace, names or (), check=check_only, base=base)
        lines = tuple(
            line for step in steps for line in next_lines(workspace, step, explain=explain, check=check_only)
        )
        problems = tuple(sorted(problem for step in steps for problem in step.problems))
        is_missing = check_only and any(step.is_missing for step in steps)
        code = EXIT_DRIFT if is_missing else EXIT_SEARCH_ENDED if all(step.is_over for step in steps) else 0
        data = {"searches": [search_data(step, explain=explain) for step in steps]}
        failures = tuple(step.failure for step in steps if step.failure is not None)
        step_response = Response(data, lines, problems, code, failures)
        if push and step_response.exit_code == EXIT_SEARCH_ENDED:
            # A workflow with nothing to commit has succeeded.
            return replace(step_response, exit_code=0)
        return step_response

    response.respond("cluster next", form, work)
