"""Reads the objects that show why trials of a batch do not run: controller, workloads, pods, queue, events."""

from collections.abc import Iterable, Iterator, Sequence

from sweepledger.controllers import GITOPS
from sweepledger.engine.cluster import causes, pods, workloads
from sweepledger.engine.cluster.causes import BatchObjects, CauseKind, WaitCause
from sweepledger.engine.cluster.kubectl import ClusterError, Kubectl
from sweepledger.engine.cluster.pods import PodPhase, TrialPod, waiting_reason
from sweepledger.engine.cluster.workloads import Workload
from sweepledger.formats.manifest_fields import objects_at, text_at, time_at
from sweepledger.structs.batch import BatchLock
from sweepledger.structs.kubernetes import BATCH_LABEL, QUEUE_LABEL, Manifest
from sweepledger.structs.platform import Names
from sweepledger.structs.settings import Controller, PlatformSettings

EVENTS = "/api/v1/namespaces/{}/events"
QUEUE_ENTRIES = "/apis/kueue.x-k8s.io/v1beta1/namespaces/{}/workloads"
CREATION_FAILURES = ("FailedCreate", "FailedCreatePod", "JobCreationFailed", "MPIJobFailed")
"""Reasons of events of the Job controller, Kubeflow's training operator, JobSet and the MPI operator."""
MOUNT_FAILURES = ("FailedMount", "FailedAttachVolume")
MOST_PODS = 5
"""Waiting pods whose events are read: those of one batch wait for the same volumes."""
UNREADABLE = frozenset({"Forbidden", "UnknownKind", "NotFound"})
"""Errors after which an explanation goes on with less."""


def read_batch_objects(
    kubectl: Kubectl, namespace: str, batch: BatchLock, *, missing: WaitCause, now: float
) -> BatchObjects:
    """Return the objects of a batch in the cluster. Raises ClusterError."""
    kind = batch.shape.kind
    listed = [
        (workloads.parse_workload(manifest, kind), manifest)
        for page in _pages(
            kubectl, workloads.api_path(batch.shape).format(namespace), f"{BATCH_LABEL}={batch.name}"
        )
        for manifest in page
        if workloads.is_of_batch(manifest, batch.name)
    ]
    batch_pods = tuple(pods.batch_pods(kubectl, namespace, batch, pods.NOT_SUCCEEDED)) if listed else ()
    are_queued = any(
        workload.is_suspended and text_at(manifest, "metadata", "labels", QUEUE_LABEL)
        for workload, manifest in listed
    )
    return BatchObjects(
        missing,
        listed,
        batch_pods,
        creation_failures=_creation_failures(kubectl, namespace, listed),
        mount_failures=dict(_mount_failures(kubectl, namespace, batch_pods, now)),
        queue_entries={
            text_at(owner, "uid"): entry
            for page in (_pages(kubectl, QUEUE_ENTRIES.format(namespace)) if are_queued else ())
            for entry in page
            for owner in objects_at(entry, "metadata", "ownerReferences")
        },
    )


def read_controller_cause(
    kubectl: Kubectl, platform: PlatformSettings, names: Names, batch: str
) -> WaitCause:
    """Return why the controller of a repository has not applied a batch. Raises ClusterError."""
    if own := GITOPS.get(platform.controller):
        if own.is_remote(platform):  # that cluster is not asked
            text = f"this cluster has none of its objects, and {own.title} runs in another one"
            return WaitCause(CauseKind.NOT_SYNCED, text, own.remote_remedy.format(batch=batch))
        namespace = own.namespace(names, platform)
        objects = [_get(kubectl, resource, name, namespace) for resource, name in own.observed(names, batch)]
        return causes.sync_cause(own.sync(batch, *objects))
    if platform.controller is Controller.SUBMIT:
        return WaitCause(
            CauseKind.NOT_SYNCED, "it has not been submitted to the cluster", f"`sweep submit {batch}`"
        )
    return WaitCause(
        CauseKind.NOT_SYNCED,
        "the cluster has none of its objects, and the settings name no controller",
        f"apply overlays/active/{batch}, or run it on this machine with `sweep run`",
    )


def _get(kubectl: Kubectl, kind: str, name: str, namespace: str) -> Manifest | None:
    try:
        return kubectl.get(kind, name, namespace)
    except ClusterError as error:
        if error.reason == "UnknownKind":  # the controller is not installed
            return None
        raise


def _pages(
    kubectl: Kubectl, path: str, selector: str = "", fields: str = ""
) -> Iterator[tuple[Manifest, ...]]:
    """Yield pages of objects; nothing if the server does not know their kind, or the user may not read them."""
    try:
        yield from kubectl.pages(path, selector, fields=fields)
    except ClusterError as error:
        if error.reason not in UNREADABLE:
            raise


def _creation_failures(
    kubectl: Kubectl, namespace: str, listed: Sequence[tuple[Workload, Manifest]]
) -> dict[str, str]:
    """Return the newest reason why pods could not be created, by name of the object that runs trials."""
    names = {
        text_at(manifest, "metadata", "name")
        for workload, manifest in listed
        if not workload.has_ended and not workload.is_suspended
    }
    if not names:
        return {}
    failures: list[tuple[str, Manifest]] = []
    for reason in CREATION_FAILURES:
        for page in _pages(kubectl, EVENTS.format(namespace), fields=f"reason={reason}"):
            for event in page:
                name = text_at(event, "involvedObject", "name")
                while name not in names and "-" in name:  # a Job of a JobSet has its name and more
                    name = name.rpartition("-")[0]
                failures += [(name, event)] if name in names else []
    return _newest_messages(failures)


def _mount_failures(
    kubectl: Kubectl, namespace: str, batch_pods: Iterable[TrialPod], now: float
) -> Iterator[tuple[str, str]]:
    """Yield uid and message for pods that wait for a volume; a pod without a message gets that of another pod."""
    silent = {
        pod.pod_uid: pod
        for pod in batch_pods
        if pod.phase(now) is PodPhase.WAITING and waiting_reason(pod.manifest) is None
    }
    for uid in [*silent][:MOST_PODS]:
        for reason in MOUNT_FAILURES:
            fields = f"involvedObject.uid={uid},reason={reason}"
            pages = _pages(kubectl, EVENTS.format(namespace), fields=fields)
            events = (event for page in pages for event in page)
            found = _newest_messages(
                (uid, event) for event in events if text_at(event, "involvedObject", "uid") == uid
            )
            yield from found.items()


def _newest_messages(events: Iterable[tuple[str, Manifest]]) -> dict[str, str]:
    newest: dict[str, tuple[float, str]] = {}
    for name, event in events:
        moment = max(
            time_at(event, "lastTimestamp") or 0.0,
            time_at(event, "eventTime") or 0.0,
            time_at(event, "series", "lastObservedTime") or 0.0,
        )
        newest[name] = max(newest.get(name, (0.0, "")), (moment, text_at(event, "message")))
    return {name: message for name, (_, message) in newest.items()}
