"""Workloads, the objects that run trials on the cluster (Job, JobSet and others), and the state that they report."""

import copy
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from sweepledger.engine.cluster.kubectl import ClusterError, Kubectl
from sweepledger.formats.manifest_fields import condition, has_condition, text_at, time_at, value_at
from sweepledger.formats.pack_digest import parse_indexes
from sweepledger.structs import kubernetes
from sweepledger.structs.run_config import SHAPE_KINDS, Pack, Shape

ABSENT = frozenset({"NotFound", "UnknownKind"})
SUCCESS_CONDITIONS = ("Complete", "Completed", "Succeeded")
END_CONDITIONS = (*SUCCESS_CONDITIONS, "Failed")
"""Conditions of a workload that has ended."""

NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Workload:
    """An object that runs one trial of a batch, or all."""

    index: int | None
    """The trial's index; None if it runs all trials."""
    has_ended: bool
    is_complete: bool
    """Whether it ended successfully."""
    finished: float | None
    """Time of its end in seconds since 1970; None if it is unknown."""
    is_suspended: bool
    """Whether a queue or a user has suspended it."""
    started: float | None = None
    """Time of its start in seconds since 1970; None if it is unknown."""
    completed: str = ""
    failed: str = ""
    """Failed completion indexes, and completed ones above, as a Job lists them: `0,3-7`."""
    is_deleted: bool = False
    """Whether it is only there until its pods are gone; it makes no new ones."""

    @property
    def observed(self) -> tuple[float, float] | None:
        """The times when it started and ended; None if they are unknown."""
        if self.started is None or self.finished is None or self.finished < self.started:
            return None
        return self.started, self.finished

    def succeeded(self, trials: int, pack: Pack | None = None) -> Iterator[int]:
        """Yield the indexes of successful trials."""
        if self.index is None:
            yield from _rows(self.completed, trials, pack)
        elif self.is_complete and self.index < trials:
            yield self.index

    def gave_up(self, trials: int) -> Iterator[int]:
        """Yield the indexes of trials with their own pods that failed and have no further attempt."""
        if self.index is None:
            yield from parse_indexes(self.failed, trials)
        elif self.has_ended and not self.is_complete and self.index < trials:
            yield self.index

    def ended(self, trials: int, pack: Pack | None = None) -> Iterator[int]:
        """Yield the indexes of trials that have no further attempt."""
        if self.index is not None:
            yield from range(self.index, min(self.index + 1, trials) if self.has_ended else self.index)
        elif self.has_ended:
            yield from range(trials)
        else:
            yield from _rows(self.completed, trials, pack)
            yield from _rows(self.failed, trials, pack)


@dataclass(frozen=True, slots=True)
class BatchWorkloads:
    """The workloads of one batch."""

    workloads: tuple[Workload, ...] = ()

    @property
    def is_running(self) -> bool:
        """Whether any workload has not ended."""
        return any(not workload.has_ended for workload in self.workloads)

    def have_ended(self, expected: int) -> bool:
        """Return whether all expected workloads exist and have ended."""
        return len(self.workloads) >= expected and not self.is_running

    @property
    def finished(self) -> float | None:
        """Time when the last workload ended; None if it is unknown."""
        times = (workload.finished for workload in self.workloads if workload.finished is not None)
        return max(times, default=None)

    def succeeded(self, trials: int, pack: Pack | None = None) -> frozenset[int]:
        """Return the indexes of successful trials."""
        return frozenset(index for workload in self.workloads for index in workload.succeeded(trials, pack))

    def suspended(self, trials: int) -> frozenset[int]:
        """Return the indexes of trials whose workload is suspended."""
        suspended = {workload.index for workload in self.workloads if workload.is_suspended}
        return frozenset(
            range(trials) if None in suspended else (index for index in suspended if index is not None)
        )

    def ended(self, trials: int, pack: Pack | None = None) -> frozenset[int]:
        """Return the indexes of trials that have no further attempt."""
        return frozenset(index for workload in self.workloads for index in workload.ended(trials, pack))


def api_path(shape: Shape) -> str:
    """Return the API path of a shape's workloads, with `{}` for the namespace."""
    kind = shape.kind
    return f"/apis/{kind.api_version}/namespaces/{{}}/{kind.plural}"


def list_workloads(
    kubectl: Kubectl, namespace: str, shapes: Iterable[Shape]
) -> dict[tuple[str, str], BatchWorkloads]:
    """Return the workloads of all batches by batch name and API path; other objects are ignored.

    A kind that the server does not know has no workloads. Raises ClusterError.
    """
    workloads: dict[tuple[str, str], list[Workload]] = {}
    kinds = {api_path(shape): shape.kind for shape in shapes}
    for path, kind in sorted(kinds.items(), key=itemgetter(0)):
        try:
            for page in kubectl.pages(path.format(namespace), kubernetes.BATCH_LABEL):
                for manifest in page:
                    batch = manifest["metadata"].get("labels", {}).get(kubernetes.BATCH_LABEL)
                    if batch is not None and is_of_batch(manifest, batch):
                        workloads.setdefault((batch, path), []).append(parse_workload(manifest, kind))
        except ClusterError as error:
            if error.reason not in ABSENT:
                raise
    return {key: BatchWorkloads(tuple(listed)) for key, listed in workloads.items()}


def is_of_batch(manifest: kubernetes.Manifest, batch: str) -> bool:
    """Return whether an object with a batch's label belongs to the batch; one with an owner belongs to a controller."""
    metadata = manifest["metadata"]
    return not metadata.get("ownerReferences") and is_named(metadata, batch)


def is_named(metadata: kubernetes.Manifest, batch: str) -> bool:
    """Return whether a name equals or begins with that of a batch: anybody could give an object the batch's label."""
    return f"{metadata.get('name')}-".startswith(f"{batch}-")


def parse_workload(manifest: kubernetes.Manifest, kind: kubernetes.Kind) -> Workload:
    """Return the workload of a manifest; its kind is a parameter because items of a list do not contain it."""
    index = text_at(manifest, "metadata", "labels", kubernetes.INDEX_LABEL)
    has_ended = any(has_condition(manifest, name) for name in END_CONDITIONS)
    moments = [time_at(condition(manifest, name), "lastTransitionTime") for name in END_CONDITIONS]
    ended = [moment for moment in moments if moment is not None]
    return Workload(
        index=int(index) if NUMBER.fullmatch(index) else None,
        has_ended=has_ended,
        is_complete=any(has_condition(manifest, name) for name in SUCCESS_CONDITIONS),
        finished=max(ended, default=None) if has_ended else None,
        started=time_at(manifest, "status", "startTime"),
        is_suspended=value_at(manifest, *kind.policy, "suspend") is True,
        completed=text_at(manifest, "status", "completedIndexes"),
        failed=text_at(manifest, "status", "failedIndexes"),
        is_deleted=bool(text_at(manifest, "metadata", "deletionTimestamp")),
    )


def _rows(text: str, trials: int, pack: Pack | None) -> Iterator[int]:
    pack = pack or Pack(1)
    for index in parse_indexes(text, pack.pods(trials)):
        yield from pack.rows(index, trials)


TTL_FIELD = "ttlSecondsAfterFinished"

DEFAULT_LIMITS = {"cpu": "100m", "memory": "128Mi"}
"""For containers without requests; those of trials have them."""

PER_INDEX_VERSION = (1, 29)
"""The first version in which Indexed Jobs count failures per index."""


def project_queue(namespace: str) -> str:
    """Return the queue of a namespace on clusters with one queue per project, by EIDF's convention."""
    return f"{namespace}-user-queue"


def prepare_manifest(manifest: kubernetes.Manifest, *, ttl: int, queue: str) -> dict[str, Any]:
    """Return a rendered object adapted to the cluster; objects that others refer to are unchanged."""
    adapted = copy.deepcopy(dict(manifest))
    kind = SHAPE_KINDS.get(adapted["kind"])
    if kind is None:  # others refer to it by its name, which contains the batch's digest
        return adapted
    metadata = adapted["metadata"]
    metadata["generateName"] = f"{metadata.pop('name')}-"
    metadata["labels"] = {**metadata.get("labels", {})}
    metadata["labels"].setdefault(kubernetes.QUEUE_LABEL, queue)
    if kind.has_ttl:
        parent = adapted
        for key in kind.policy:
            parent = parent.setdefault(key, {})
        parent[TTL_FIELD] = ttl
    for container in _containers(adapted["spec"]):
        resources = container.setdefault("resources", {})
        limits = {**DEFAULT_LIMITS, **resources.get("requests", {}), **resources.get("limits", {})}
        resources["limits"] = limits
        resources["requests"] = {**limits, **resources.get("requests", {})}
    return adapted


def trial_of(manifest: kubernetes.Manifest) -> str | None:
    """Return the id of the trial that an object runs; None if it runs all trials of its batch."""
    trial = manifest["metadata"].get("labels", {}).get(kubernetes.TRIAL_LABEL)
    return None if trial is None else str(trial)


def resource_names(manifests: Iterable[kubernetes.Manifest]) -> tuple[str, ...]:
    """Return the API resources of the workloads among some manifests."""
    kinds = {manifest["kind"] for manifest in manifests} & SHAPE_KINDS.keys()
    return tuple(sorted({SHAPE_KINDS[kind].resource for kind in kinds}))


def is_too_old(server: str, manifests: Iterable[kubernetes.Manifest]) -> bool:
    """Return whether a server would drop the field by which Indexed Jobs count failures per index."""
    version = kubernetes.parse_server_version(server)
    is_old = version is not None and version < PER_INDEX_VERSION
    return is_old and any("backoffLimitPerIndex" in manifest.get("spec", {}) for manifest in manifests)


def _containers(node: object) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key in {"containers", "initContainers"} and isinstance(value, list):
                yield from value
            else:
                yield from _containers(value)
    elif isinstance(node, list):
        for item in node:
            yield from _containers(item)
