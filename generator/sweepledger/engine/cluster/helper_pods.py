"""Helper pods: the reader pod and the write test, short-lived and hardened like trials.

The reader pod reads the results volume if no collector may run in the cluster. The write test is a Job that
writes to the volume as a trial does, which is the only way to check the mode of its root folder.

The reader pod sends an untrusted archive, which is unpacked while it is received: small regular files with matching
names, nothing else. Only `TarInfo.frombuf` of the standard library is used. Its readers follow extended headers
without a limit on memory and recursion, and expand sparse files; no wanted name needs extended headers.
"""

import re
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from sweepledger.engine.cluster import pods
from sweepledger.engine.cluster.api_objects import object_names
from sweepledger.engine.cluster.health import HealthFinding, HealthStatus
from sweepledger.engine.cluster.kubectl import ClusterError, Kubectl
from sweepledger.errors import ToolError
from sweepledger.formats.manifest_fields import has_condition, named_object, text_at
from sweepledger.process import ByteSource, Limits, ProcessStream
from sweepledger.storage import storage_error
from sweepledger.structs.kubernetes import (
    COMPONENT_LABEL,
    QUEUE_LABEL,
    RECORD_FINALIZER,
    RESULTS_PATH,
    RESULTS_VOLUME,
    STORE_CONTAINER,
    TRIAL_USER,
    WRITE_TEST_TITLE,
)
from sweepledger.structs.record import LARGEST_TRIAL_FILE

BLOCK = tarfile.BLOCKSIZE
CHUNK_BYTES = 1 << 16
LARGEST_ARCHIVE = 2 << 30
"""Bytes of the archive of one batch: 100,000 trials with 20 kB each."""
MOST_FILES = 1_000_000
"""100,000 trials with three attempts and three files per attempt."""
LARGEST_EXTENSION = 1 << 16

MEMBER = re.compile(r"(?:\./)?([0-9]{1,6})/([A-Za-z0-9-]{1,64}\.(?:json|out|err))", re.ASCII)
"""The files that the collector reads: records `<index>/<pod uid>.json` and outputs."""

REGULAR = frozenset({tarfile.REGTYPE, tarfile.AREGTYPE})
EXTENSIONS = frozenset({tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE})
EMPTY = frozenset(
    {tarfile.LNKTYPE, tarfile.SYMTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE}
)
"""Types without content, whatever size the header states."""
MEANINGFUL = (b"GNU.sparse.", b" size=")
"""Extensions that change the size or content of a file."""


class ArchiveError(Exception):
    """The archive is invalid; the text names the reason."""


def unpack(source: ByteSource, into: Path) -> int:
    """Unpack the records and outputs of an archive into a new folder; return their number.

    Links, devices, larger files and files with other names are skipped, because a trial can write anything to
    its folder. Raises ArchiveError for faults that no trial can cause: a repeated file, a sparse file, a truncated
    archive. The caller then discards the folder.
    """
    count = 0
    while (member := _next(source)) is not None:
        matched = MEMBER.fullmatch(member.name)
        if matched and member.type in REGULAR and member.size <= LARGEST_TRIAL_FILE:
            count += 1
            if count > MOST_FILES:
                raise ArchiveError(f"it contains more than {MOST_FILES} files")
            folder = into / matched[1]
            name = matched[2]
            folder.mkdir(parents=True, exist_ok=True)
            try:
                with (folder / name).open("xb") as file:
                    file.write(_exactly(source, member.size))
            except FileExistsError as error:
                raise ArchiveError(f"it contains {folder.name}/{name} twice") from error
            _skip(source, -member.size % BLOCK)
        else:
            _skip(source, member.size + -member.size % BLOCK)
    # The writer fails if the padding of the last record is not read.
    while source.read(CHUNK_BYTES):
        pass
    return count


def _next(source: ByteSource) -> tarfile.TarInfo | None:
    """Return the next header; None at the end mark."""
    block = _exactly(source, BLOCK)
    if not any(block):
        return None
    try:
        member = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
    except tarfile.HeaderError as error:
        raise ArchiveError(str(error)) from error
    if member.size < 0:
        raise ArchiveError(f"a file has a size of {member.size} bytes")
    if member.type == tarfile.GNUTYPE_SPARSE:
        raise ArchiveError("it contains a sparse file")
    if member.type in EMPTY:
        member.size = 0
    if member.type in EXTENSIONS:
        if member.size > LARGEST_EXTENSION:
            raise ArchiveError(f"an extended header has {member.size} bytes")
        content = _exactly(source, member.size)
        _skip(source, -member.size % BLOCK)
        if any(word in content for word in MEANINGFUL):
            raise ArchiveError("it contains a sparse file, or a file whose size differs from its header")
        member.size = 0
    return member


def _exactly(source: ByteSource, size: int) -> bytes:
    content = source.read(size)
    if len(content) < size:
        raise ArchiveError("it is truncated")
    return content


def _skip(source: ByteSource, size: int) -> None:
    while size:
        size -= len(_exactly(source, min(size, CHUNK_BYTES)))


T = TypeVar("T")


def hardened_pod_spec(
    container: Mapping[str, Any], volumes: list[dict[str, Any]], **more: object
) -> dict[str, Any]:
    """Return a pod spec that Pod Security "restricted" admits; `more` has further keys."""
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": TRIAL_USER,
            "runAsGroup": TRIAL_USER,
            "fsGroup": TRIAL_USER,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                **container,
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"]},
                    "privileged": False,
                    "readOnlyRootFilesystem": True,
                    "runAsNonRoot": True,
                },
            }
        ],
        "volumes": volumes,
        **more,
    }


def container_resources(memory: str) -> dict[str, dict[str, str]]:
    """Return requests that equal their limits."""
    amounts = {"cpu": "100m", "memory": memory, "ephemeral-storage": "64Mi"}
    return {"requests": amounts, "limits": dict(amounts)}


WRITE_TEST_NAME = "sweep-doctor"
"""One name, so that the cluster refuses a second test at the same time."""
WRITE_TEST_COMMAND = (
    "python3",
    "-c",
    "import os; p = '/sweep/results/written'; open(p, 'w').close(); os.remove(p)",
)
"""Writes to the results volume as a trial does."""
STORE_TEST_COMMAND = (
    "python3",
    "-c",
    "import os; p = '/sweep/results/checkpoints'; os.makedirs(p); open(p + '/proof', 'w').close()",
)
"""The same where results go to a bucket: the sidecar saves a checkpoint."""
WRITE_TEST_SECONDS = 120


def write_test_job(
    namespace: str,
    claim: str | None,
    image: str,
    account: str,
    *,
    is_held: bool = False,
    store: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the Job of the write test: hardened like a trial, with a folder that the kubelet creates for a subPath.

    Without a claim, results have no volume. `is_held`: its pod is held for its record, like pods of trials. `store`
    is the partial pod template with the sidecar of a bucket.
    """
    labels = {"app.kubernetes.io/name": "sweepledger", COMPONENT_LABEL: WRITE_TEST_NAME}
    container = {
        "name": "trial",
        "image": image,
        "command": [*(STORE_TEST_COMMAND if store else WRITE_TEST_COMMAND)],
        "resources": container_resources("64Mi"),
        "volumeMounts": [{"name": "results", "mountPath": RESULTS_PATH, "subPath": f"{WRITE_TEST_NAME}/0"}],
    }
    source = {"emptyDir": {}} if claim is None else {"persistentVolumeClaim": {"claimName": claim}}
    volumes = [{"name": "results", **source}]
    held = {"finalizers": [RECORD_FINALIZER]} if is_held else {}
    pod = hardened_pod_spec(
        container, volumes, serviceAccountName=account, activeDeadlineSeconds=WRITE_TEST_SECONDS
    )
    metadata: dict[str, Any] = {"labels": labels, **held}
    if store is not None:
        own, spec = store["metadata"], store["spec"]
        metadata = {**own, **metadata, "labels": {**own.get("labels", {}), **labels}}
        others = [volume for volume in spec["volumes"] if volume["name"] != RESULTS_VOLUME]
        pod |= {key: value for key, value in spec.items() if key not in {"containers", "volumes"}}
        pod["volumes"] = [*volumes, *others]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": WRITE_TEST_NAME, "namespace": namespace, "labels": labels},
        "spec": {"backoffLimit": 0, "template": {"metadata": metadata, "spec": pod}},
    }


def run_write_test(kubectl: Kubectl, manifest: dict[str, Any], *, patience: float) -> HealthFinding:
    """Run the Job and return its result; the Job is deleted in all cases."""
    namespace = manifest["metadata"]["namespace"]
    try:
        kubectl.create(manifest)
    except ToolError as error:
        return _finding(HealthStatus.NOT_CHECKED, str(error), error.hint)
    is_held = "finalizers" in manifest["spec"]["template"]["metadata"]
    try:
        found = _await_job(kubectl, namespace, patience)
        if found.state is HealthStatus.OK and "initContainers" in manifest["spec"]["template"]["spec"]:
            # Its sidecar must have saved a file in the bucket.
            said = [
                text_at(
                    named_object(pod, STORE_CONTAINER, "status", "initContainerStatuses"),
                    "state",
                    "terminated",
                    "message",
                )
                for pod in _test_pods(kubectl, namespace)
            ]
            if any('"complete":true' in text for text in said):
                found = _finding(HealthStatus.OK, "a sidecar saved a file in the bucket")
            else:
                hint = "see its Secrets above, the addresses of its egress, and whether its role may list and write"
                found = _finding(HealthStatus.WRONG, "a sidecar could not save a file in the bucket", hint)
        return _released(kubectl, namespace, found) if is_held else found
    except ToolError as error:
        return _finding(HealthStatus.NOT_CHECKED, str(error), error.hint)
    finally:
        with suppress(ToolError):  # an error here does not change the result
            if is_held:
                pods.release(kubectl, namespace, object_names(_test_pods(kubectl, namespace)))
            kubectl.delete("jobs.batch", WRITE_TEST_NAME, namespace)


def _test_pods(kubectl: Kubectl, namespace: str) -> tuple[Mapping[str, Any], ...]:
    return kubectl.list("pods", namespace, f"{COMPONENT_LABEL}={WRITE_TEST_NAME}")


def _released(kubectl: Kubectl, namespace: str, found: HealthFinding) -> HealthFinding:
    """Return the finding of a test whose deleted pod must exist until it is released."""
    if found.state is not HealthStatus.OK:
        return found
    names = object_names(_test_pods(kubectl, namespace))
    kubectl.run("delete", "pods", *names, f"--namespace={namespace}", "--wait=false")
    kept = [pod for pod in _test_pods(kubectl, namespace) if pods.is_held(pod)]
    pods.release(kubectl, namespace, object_names(kept))
    if kept and not any(map(pods.is_held, _test_pods(kubectl, namespace))):
        return _finding(HealthStatus.OK, "a deleted pod was kept for its record, and released")
    text = "a deleted pod was not kept for its record" if not kept else "a pod could not be released"
    hint = "something in the cluster removes or keeps finalizers of pods: see its admission webhooks"
    return _finding(HealthStatus.WRONG, text, hint)


_finding = partial(HealthFinding, "storage", WRITE_TEST_TITLE)


def _await_job(kubectl: Kubectl, namespace: str, patience: float) -> HealthFinding:
    for job in _poll(lambda: kubectl.get("jobs.batch", WRITE_TEST_NAME, namespace), patience):
        if has_condition(job, "Complete"):
            return _finding(HealthStatus.OK, "a Job wrote and removed a file")
        if has_condition(job, "Failed"):
            hint = (
                f"at the volume's root: chgrp {TRIAL_USER} . && chmod 2770 ., unless its driver honours fsGroup; "
                "the kubelet makes folders as root, whom an NFS export may map to another user"
            )
            return _finding(HealthStatus.WRONG, "a Job could not write as a trial would", hint)
    hint = f"`kubectl get events --namespace {namespace}` shows why; to wait longer: --patience SECONDS"
    return _finding(HealthStatus.NOT_CHECKED, "no node ran the Job in time", hint)


def _poll(read: Callable[[], T], patience: float) -> Iterator[T]:
    """Yield a new reading each second until `patience` seconds have passed."""
    deadline = time.monotonic() + patience
    while True:
        yield read()
        if time.monotonic() >= deadline:
            return
        time.sleep(1)


TRANSFER_SECONDS = 1200

SEND_SCRIPT = """\
export LC_ALL=C
[ -d "$0" ] || exec head -c 1024 /dev/zero
cd "$0" || exit
list=$(find . -mindepth 2 -maxdepth 2 ! -path '*[!A-Za-z0-9./-]*' \
    \\( -name '*.json' -o -name '*.out' -o -name '*.err' \\) -type f -size -SIZE) || exit
[ -n "$list" ] || exec head -c 1024 /dev/zero
printf '%s\\n' "$list" | tar -cf - -T -
[ $? -le 1 ]
""".replace("SIZE", str(LARGEST_TRIAL_FILE // 512 + 1))
"""Writes a batch's folder as an archive to standard output; an empty archive if it has no files.

Beware: tar takes a line of the list that begins with a dash for an option, and file names are untrusted. Names
therefore begin with `./` and contain no line break. `-size` is the apparent size, so that no sparse file of a
terabyte is sent. Exit code 1 of tar means that a file changed meanwhile, because its trial still runs.
"""


READER_NAME = "sweep-reader"
"""Only one can exist at a time; the cluster refuses a second."""
READER_SECONDS = 1800
"""Deadline of a reader pod, even if the client dies."""


def reader_pod_manifest(namespace: str, claim: str, image: str, queue: str | None) -> dict[str, Any]:
    """Return the pod, which mounts the results volume read-only and sleeps."""
    labels = {"app.kubernetes.io/name": "sweepledger", COMPONENT_LABEL: READER_NAME}
    container = {
        "name": "reader",
        "image": image,
        "command": ["sleep", str(READER_SECONDS)],
        "resources": container_resources("128Mi"),
        "volumeMounts": [{"name": "results", "mountPath": RESULTS_PATH, "readOnly": True}],
    }
    volumes = [{"name": "results", "persistentVolumeClaim": {"claimName": claim, "readOnly": True}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": READER_NAME,
            "namespace": namespace,
            "labels": labels if queue is None else labels | {QUEUE_LABEL: queue},
        },
        "spec": hardened_pod_spec(container, volumes, activeDeadlineSeconds=READER_SECONDS),
    }


@dataclass(frozen=True, slots=True)
class ReaderPod:
    """A running reader pod."""

    kubectl: Kubectl
    name: str
    namespace: str

    def copy(self, batch: str, into: Path) -> None:
        """Copy a batch's folder completely, or not at all. Raises ClusterError, StorageError."""
        with tempfile.TemporaryDirectory(dir=into) as staging:
            folder = Path(staging) / "batch"
            folder.mkdir()
            try:
                with self._reading(
                    "sh", "-c", SEND_SCRIPT, f"{RESULTS_PATH}/{batch}", limit=LARGEST_ARCHIVE
                ) as source:
                    unpack(source, folder)
            except ArchiveError as error:
                message = f"the reader pod sent an invalid archive of {batch}: {error}"
                raise ClusterError(message, hint="check that its image is the intended one") from error
            except OSError as error:
                raise storage_error(into, error) from error
            folder.rename(into / batch)

    def opened(self, path: str, size: int) -> AbstractContextManager[ProcessStream]:
        """Return the content of a file of the volume; at most one byte more than `size` is read.

        The caller must verify its checksum: `cat` follows links, which a trial can create in its folder.
        """
        return self._reading("cat", "--", f"{RESULTS_PATH}/{path}", limit=size + 1)

    def _reading(self, *words: str, limit: int) -> AbstractContextManager[ProcessStream]:
        call = ("exec", self.name, f"--namespace={self.namespace}", "--container=reader", "--", *words)
        return self.kubectl.stream(*call, limits=Limits(TRANSFER_SECONDS, limit))


@contextmanager
def running_reader_pod(kubectl: Kubectl, pod: dict[str, Any], *, patience: float) -> Iterator[ReaderPod]:
    """Run the pod until the block ends. Raises ClusterError, also if no node runs the pod within `patience` seconds."""
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    kubectl.create(pod)
    try:
        phase = ""
        for found in _poll(lambda: kubectl.get("pods", name, namespace), patience):
            phase = "deleted" if found is None else str((found.get("status") or {}).get("phase"))
            if phase == "Running":
                break
            if phase in {"Failed", "Succeeded", "deleted"}:
                raise ClusterError(
                    f"the reader pod {name} did not keep running ({phase})",
                    hint=f"`kubectl get events --namespace {namespace}` shows why",
                )
        else:
            raise ClusterError(
                f"the reader pod {name} is still {phase}: no node has run it in time",
                hint=f"`kubectl describe pod {name} --namespace {namespace}` shows why while it waits",
            )
        yield ReaderPod(kubectl, name, namespace)
    finally:
        # The pod also ends by itself, and only the first error is reported.
        with suppress(ToolError):
            kubectl.delete("pods", name, namespace)
