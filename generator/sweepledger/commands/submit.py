"""`sweep submit`: create a merged batch on a cluster that forbids GitOps, once."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from generator.commands import recorded
from generator.commands.recorded import records_file
from generator.commands.rendering import rendered
from generator.commands.workspace import SETTINGS_FILE, Workspace
from generator.engine.cluster import submission
from generator.engine.cluster.kubectl import ClusterError, Kubectl, Manifest, names
from generator.errors import RepositoryError, SpecError, ToolError, UsageError
from generator.problems import Problem
from generator.repo import batches
from generator.repo.batches import StoredBatch
from generator.results import judge
from generator.structs.labels import BATCH_LABEL
from generator.structs.program import LOCAL_IMAGE
from generator.structs.settings import Controller, Settings


@dataclass(frozen=True)
class Submitted:
    """What became of one batch."""

    batch: str
    created: tuple[str, ...]
    """Names that the cluster chose; in a dry run, such as it would."""
    running: tuple[str, ...]
    """Objects of the batch that the cluster held already."""
    recorded: int
    """Trials whose results git holds: they are not created again."""


def submit(
    workspace: Workspace, name: str, kubectl: Kubectl, *, dry_run: bool = False, again: bool = False
) -> tuple[Submitted, ...]:
    """Create what the cluster does not hold yet of an active, merged batch, or of all batches of a sweep.

    Nothing is created where everything was; `again` is for Jobs that are gone without a result.
    Raises UsageError, RepositoryError, SpecError for policy problems, ClusterError, ToolError.
    """
    settings = workspace.settings
    _suits(settings)
    commit = workspace.standing(None)
    found = _chosen(workspace, commit, name)
    assert commit is not None, "a batch that stands stands in a commit"
    _, server = kubectl.versions()
    plans = [_plan(workspace, commit, batch, kubectl) for batch in found]
    for plan in plans:
        _refuse(plan, server, again=again)
    return tuple(_create(plan, settings, kubectl, dry_run=dry_run) for plan in plans)


@dataclass(frozen=True)
class _Plan:
    """A batch as git and the cluster hold it, looked at before anything is created."""

    batch: StoredBatch
    shared: tuple[Manifest, ...]
    """What Jobs refer to."""
    jobs: tuple[Manifest, ...]
    present: tuple[Manifest, ...]
    """Jobs of the batch that the cluster holds."""
    was_begun: bool
    """Whether the cluster holds anything that Jobs refer to: that is created first."""
    done: frozenset[str]
    """Trials whose results git holds."""

    @property
    def missing(self) -> tuple[Manifest, ...]:
        """The Jobs that are to be created."""
        held = {submission.trial_of(one) for one in self.present}
        return tuple(one for one in self.jobs if not self._is_settled(submission.trial_of(one), held))

    def _is_settled(self, trial: str | None, held: Collection[str | None]) -> bool:
        everything = len(self.done) == len(self.batch.rows)
        return trial in held or everything or (trial is not None and trial in self.done)


def _suits(settings: Settings) -> None:
    if settings.controller is not Controller.SUBMIT:
        raise UsageError(
            f"{SETTINGS_FILE} has controller: {settings.controller}; with two appliers trials run twice",
            hint="merge the batch and let the controller apply it, or set `controller: submit`",
        )


def _chosen(workspace: Workspace, commit: str | None, name: str) -> tuple[StoredBatch, ...]:
    """Find the active batches of a sweep or the one of the name, in the commit that stands."""
    standing = batches.in_commit(workspace.repository, commit)
    named = tuple(batch for batch in standing if batch.name == name) or batches.of_sweep(standing, name)
    found = tuple(batch for batch in named if batch.is_active)
    if found:
        return found
    if named:
        raise RepositoryError(
            f"{name}: its results are in git already, or it was cancelled; it never runs again",
            hint=f"`sweep retry {named[-1].lock.sweep}` asks again for trials that failed",
        )
    where = f"{workspace.settings.remote}/{workspace.settings.branch}"
    hint = f"merge it first: only what stands on {where} runs (`git fetch` if it was merged elsewhere)"
    raise RepositoryError(f"no batch {name!r} stands in git", hint=hint)


def _plan(workspace: Workspace, commit: str, batch: StoredBatch, kubectl: Kubectl) -> _Plan:
    settings = workspace.settings
    built = rendered(workspace.repository, commit, batch, settings)
    if any(isinstance(one, Problem) for one in built):
        raise SpecError(one for one in built if isinstance(one, Problem))
    manifests = [one for one in built if not isinstance(one, Problem)]
    shared = tuple(one for one in manifests if one["kind"] in submission.NAMED)
    jobs = tuple(one for one in manifests if one["kind"] not in submission.NAMED)
    selector = f"{BATCH_LABEL}={batch.name}"
    present = [
        one for kind in submission.kinds(jobs) for one in kubectl.list(kind, settings.namespace, selector)
    ]
    was_begun = any(kubectl.find(one) is not None for one in shared)
    return _Plan(batch, shared, jobs, tuple(present), was_begun, _recorded(workspace, commit, batch))


def _recorded(workspace: Workspace, commit: str, batch: StoredBatch) -> frozenset[str]:
    """Name the trials of a batch that git holds a final record of, judged as the collector judges."""
    path = records_file(batch)
    judged = judge(recorded.results(batch, workspace.repository.read(commit, path)))
    return frozenset(outcome.trial for outcome in judged.outcomes if outcome.status.is_final)


def _refuse(plan: _Plan, server: str, *, again: bool) -> None:
    """Refuse what would run twice, or not as it was reviewed. Raises RepositoryError, ToolError."""
    name = plan.batch.name
    if plan.batch.lock.program.image == LOCAL_IMAGE:
        raise RepositoryError(
            f"{name} has no image: only `sweep local` runs it",
            hint="name one by `run.image`, or for all by `defaults.image` of the settings; then generate it",
        )
    if submission.is_too_old(server, plan.jobs):
        raise ToolError(
            f"{name} is an Indexed Job with limits for each index, which the server ({server}) does not know",
            hint="Kubernetes 1.29 or newer; or generate it with `run.shape: jobs`",
        )
    if not plan.missing:
        held = ", ".join(names(plan.present)[:3])
        said = f"{len(plan.present)} object(s) in the cluster ({held})" if held else "all results are in git"
        raise RepositoryError(
            f"{name} was submitted already: {said}",
            hint="`sweep collect-by-pod` when they have ended; a batch is never submitted twice",
        )
    if plan.was_begun and not plan.present and not again:
        raise RepositoryError(
            f"{name} was submitted before, and its Jobs are gone: deleted by the TTL, or never created",
            hint="`sweep collect-by-pod` first; then `sweep submit --again` creates what has no result",
        )


def _create(plan: _Plan, settings: Settings, kubectl: Kubectl, *, dry_run: bool) -> Submitted:
    """Create what Jobs refer to, then Jobs, so that a cut leaves nothing that would start by halves."""
    for manifest in plan.shared:
        try:
            kubectl.create(manifest, dry_run=dry_run)
        except ClusterError as error:
            if error.reason != "AlreadyExists":
                raise
            # Immutable, and its name holds its digest: it is the same. But if it was not there a moment ago,
            # somebody else submits the batch now, and their Jobs are about to come.
            if not plan.was_begun:
                raise RepositoryError(
                    f"{plan.batch.name} is being submitted by somebody else at this moment",
                    hint="look at what they create: `kubectl get jobs --selector sweepledger.dev/batch`",
                ) from error
    queue = submission.project_queue(settings.namespace)
    made: list[Mapping[str, Any]] = []
    for manifest in plan.missing:
        wanted = submission.turned(manifest, ttl=settings.submit.ttl_seconds, queue=queue)
        made.append(kubectl.create(wanted, dry_run=dry_run))
    return Submitted(plan.batch.name, names(made), names(plan.present), len(plan.done))
