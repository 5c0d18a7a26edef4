"""Create the Jobs of a merged batch, once, without GitOps."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sweepledger.cli import response
from sweepledger.cli.options import ContextOption, argument, flag
from sweepledger.engine.cluster import workloads
from sweepledger.engine.cluster.api_objects import object_names
from sweepledger.engine.cluster.kubectl import ClusterError, Kubectl
from sweepledger.errors import RepositoryError, ToolError, UsageError
from sweepledger.operations.repository import batch_records
from sweepledger.operations.repository.rendered_manifests import render_at
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.repo import batches
from sweepledger.results.outcomes import evaluate
from sweepledger.structs.kubernetes import BATCH_LABEL, Manifest
from sweepledger.structs.names import SETTINGS_FILE
from sweepledger.structs.program import LOCAL_IMAGE
from sweepledger.structs.run_config import SHAPE_KINDS
from sweepledger.structs.settings import Controller, Settings


def submit(
    workspace: Workspace,
    name: str = argument("NAME|BATCH", "Sweep, or one of its batches."),
    context: ContextOption = None,
    dry_run: bool = flag("--dry-run", "Validate all objects on the server, and create nothing."),
    again: bool = flag("--again", "Create deleted Jobs again if git has no result of them."),
) -> response.Response:
    settings, kubectl = workspace.settings, Kubectl(context)
    if settings.platform.controller is not Controller.SUBMIT:
        raise UsageError(
            f"{SETTINGS_FILE} has controller: {settings.platform.controller}; "
            "with two controllers trials would run twice",
            hint="merge the batch and let the controller apply it, or set `controller: submit`",
        )
    commit = workspace.base_commit(None)
    active = _find_batches(workspace, commit, name)
    assert commit is not None, "an active batch is in a commit"
    _, server = kubectl.versions()
    plans = [_plan(workspace, commit, batch, kubectl) for batch in active]
    for plan in plans:
        _refuse(plan, server, again=again)
    submitted = tuple(_create(plan, settings, kubectl, dry_run=dry_run) for plan in plans)
    verb = "would create" if dry_run else "created"
    lines = [
        f"{batch.batch}: {verb} {len(batch.created)} object(s), {len(batch.present)} exist already, "
        f"{batch.recorded} trial(s) recorded"
        for batch in submitted
    ]
    lines += [] if dry_run else ["next: `sweep cluster collect --by-pod` when the Jobs have ended"]
    return response.Response({"dry_run": dry_run, "batches": submitted}, tuple(lines))


@dataclass(frozen=True)
class Submitted:
    """The outcome for one batch."""

    batch: str
    created: tuple[str, ...]
    """Names that the cluster chose, or in a dry run would choose."""
    present: tuple[str, ...]
    """Objects of the batch that existed already."""
    recorded: int
    """Trials with results in git: they are not created again."""


@dataclass(frozen=True)
class _Plan:
    """A batch in git and in the cluster, before anything is created."""

    batch: batches.StoredBatch
    shared: tuple[Manifest, ...]
    """Objects that Jobs refer to."""
    jobs: tuple[Manifest, ...]
    present: tuple[Manifest, ...]
    """Jobs of the batch in the cluster."""
    was_begun: bool
    """Whether an object that Jobs refer to exists: these are created first."""
    done: frozenset[str]
    """Trials with results in git."""

    @property
    def missing(self) -> tuple[Manifest, ...]:
        """The Jobs to create."""
        present = {workloads.trial_of(job) for job in self.present}
        if len(self.done) == len(self.batch.rows):
            return ()
        settled = {*present, *self.done}
        return tuple(job for job in self.jobs if workloads.trial_of(job) not in settled)


def _find_batches(workspace: Workspace, commit: str | None, name: str) -> tuple[batches.StoredBatch, ...]:
    merged = batches.in_commit(workspace.repository, commit)
    named = tuple(batch for batch in merged if batch.name == name) or batches.of_sweep(merged, name)
    active = tuple(batch for batch in named if batch.is_active)
    if active:
        return active
    if named:
        raise RepositoryError(
            f"{name}: its results are in git already, or it was cancelled; it never runs again",
            hint=f"`sweep retry {named[-1].lock.sweep}` requests its failed trials again",
        )
    where = f"{workspace.remote}/{workspace.settings.git.branch}"
    hint = f"merge it first: only batches on {where} run (`git fetch` if it was merged elsewhere)"
    raise RepositoryError(f"no batch {name!r} is in git", hint=hint)


def _plan(workspace: Workspace, commit: str, batch: batches.StoredBatch, kubectl: Kubectl) -> _Plan:
    manifests = render_at(workspace.repository, commit, batch, workspace.settings)
    shared = tuple(manifest for manifest in manifests if manifest["kind"] not in SHAPE_KINDS)
    jobs = tuple(manifest for manifest in manifests if manifest["kind"] in SHAPE_KINDS)
    selector, namespace = f"{BATCH_LABEL}={batch.name}", workspace.settings.trials.namespace
    kinds = workloads.resource_names(jobs)
    present = [job for kind in kinds for job in kubectl.list(kind, namespace, selector)]
    was_begun = any(kubectl.find(manifest) is not None for manifest in shared)
    files = workspace.repository.read(commit, batch.records_file().rpartition("/")[0])
    judged = evaluate(batch_records.batch_results(batch, files))  # as the collector does
    done = frozenset(outcome.trial for outcome in judged.outcomes if outcome.status.is_final)
    return _Plan(batch, shared, jobs, tuple(present), was_begun, done)


def _refuse(plan: _Plan, server: str, *, again: bool) -> None:
    """Refuse a batch that would run twice or differ from the reviewed one. Raises RepositoryError, ToolError."""
    name = plan.batch.name
    if plan.batch.lock.program.image == LOCAL_IMAGE:
        raise RepositoryError(
            f"{name} has no image: only `sweep cluster local` runs it",
            hint="set `run.image`, or `defaults.image` in the settings for all sweeps; then generate it again",
        )
    if workloads.is_too_old(server, plan.jobs):
        raise ToolError(
            f"{name} is an Indexed Job with limits per index, which the server ({server}) does not support",
            hint="Kubernetes 1.29 or newer; or generate it with `run.shape: jobs`",
        )
    if not plan.missing:
        names, count = ", ".join(object_names(plan.present)[:3]), len(plan.present)
        state = f"{count} object(s) in the cluster ({names})" if names else "all results are in git"
        raise RepositoryError(
            f"{name} was submitted already: {state}",
            hint="`sweep cluster collect --by-pod` when they have ended; a batch is never submitted twice",
        )
    if plan.was_begun and not plan.present and not again:
        raise RepositoryError(
            f"{name} was submitted before, and its Jobs are gone: deleted by the TTL, or never created",
            hint="`sweep cluster collect --by-pod` first; then `sweep submit --again` creates what has no result",
        )


def _create(plan: _Plan, settings: Settings, kubectl: Kubectl, *, dry_run: bool) -> Submitted:
    """Create the objects that Jobs refer to, then the Jobs, so that no Job starts without its objects."""
    for manifest in plan.shared:
        try:
            kubectl.create(manifest, dry_run=dry_run)
        except ClusterError as error:
            if error.reason != "AlreadyExists":
                raise
            # It is immutable and its name contains its digest, so it is equal. But if it did not exist a moment ago,
            # somebody else is submitting the batch, and their Jobs will follow.
            if not plan.was_begun:
                raise RepositoryError(
                    f"{plan.batch.name} is being submitted by another user at the moment",
                    hint="look at what they create: `kubectl get jobs --selector sweepledger.dev/batch`",
                ) from error
    queue = workloads.project_queue(settings.trials.namespace)
    created: list[Mapping[str, Any]] = []
    for manifest in plan.missing:
        prepared = workloads.prepare_manifest(manifest, ttl=settings.platform.submit.ttl_seconds, queue=queue)
        created.append(kubectl.create(prepared, dry_run=dry_run))
    return Submitted(plan.batch.name, object_names(created), object_names(plan.present), len(plan.done))
