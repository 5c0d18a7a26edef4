"""A pod of the local engine: its devices, its process, and the event and record of its end."""

import json
import os
import socket
import sys
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path

from msgspec.structs import replace

from sweepledger.engine.local import (
    attempt_records,
    environment,
    events,
    job_controller,
    machine,
    pod_folders,
)
from sweepledger.engine.local.environment import PathTranslation
from sweepledger.engine.local.local_batch import DesiredBatch, LocalPod, ResourceAmounts
from sweepledger.engine.local.node import Launch, PodExit
from sweepledger.engine.local.pod_folders import STDERR_FILE, TERMINATION_FILE, StateFolders
from sweepledger.engine.termination import Termination
from sweepledger.errors import StorageError
from sweepledger.storage import data_state, write_file
from sweepledger.structs.record import Status

EARLIER_FILE = "earlier.json"
ENVIRONMENTS = "environments"
"""Folder of a batch's results with the lists of distributions that its trials ran with, each of them once."""

DAEMONS = (
    "/run/docker.sock",
    "/var/run/docker.sock",
    "/run/containerd/containerd.sock",
    "/run/podman/podman.sock",
)
"""Whoever may use them can start containers with a trial's folder, where they see no overlay of a namespace."""

STDERR_TAIL_BYTES = 2048
"""The end of a failed pod's stderr: a line of the launcher, or a traceback, which ends with its cause."""

PRUNED = "pruned"

PACK_JOURNAL = ".pack"
"""File in which the pods of several rows note which of them have begun: base/components/pack."""


def with_devices(pod: LocalPod, others: Collection[LocalPod], capacity: ResourceAmounts) -> LocalPod:
    """Return a pod with the least used CPUs, and with GPUs that no other pod uses."""
    available = machine.cpus() if machine.can_pin_cpus() else ()
    used = Counter(cpu for other in others for cpu in other.cpus)
    count = pod.batch.limits.cpus
    cpus = tuple(sorted(sorted(available, key=lambda cpu: (used[cpu], cpu))[:count]))
    taken = {gpu for other in others for gpu in other.gpus}
    free = [gpu for gpu in range(capacity.gpus) if gpu not in taken]
    return replace(
        pod, cpus=cpus if count < len(available) else (), gpus=tuple(free[: pod.batch.requests.gpus])
    )


def prepare_launch(pod: LocalPod, folders: StateFolders, capacity: ResourceAmounts) -> Launch:
    """Create the folders of a pod, and return how to start it. Raises StorageError."""
    batch, uid = pod.batch, pod.uid
    variables = batch.declared_variables(pod.index, batch.parents.get(pod.index))
    read_only = batch.read_only_folders(folders.state, pod.desired.code, pod.desired.data)
    translate = PathTranslation(pod_folders.prepare_folders(folders, batch, pod.index, uid, read_only))
    pod_folder = folders.pod(uid)
    interpreter, launcher = batch.command
    added = {
        "SWEEP_ENVIRONMENTS": f"{folders.results}/{batch.name}/{ENVIRONMENTS}",
        environment.POD_UID_VARIABLE: uid,
        "SWEEP_FAILURES": str(pod.failures),
        "SWEEP_NODE": socket.gethostname(),
        "SWEEP_RAN": "process",
        "SWEEP_TERMINATION_LOG": f"{pod_folder}/{TERMINATION_FILE}",
        **_states(pod),
    }
    if capacity.gpus:  # its own only, as a device plugin shows them
        added["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, pod.gpus))
    if batch.limits.gpus > batch.requests.gpus:
        added["SWEEP_WITHOUT_GPU"] = "1"
    if batch.pack is not None:  # as many at once as the machine has room for
        added |= {"SWEEP_AT_ONCE": str(batch.pack.at_once), "SWEEP_ROWS": f"{pod.rows[0]}-{pod.rows[-1]}"}
    if pod.desired.thresholds is not None:
        added["SWEEP_THRESHOLDS"] = str(pod.desired.thresholds)
    if earlier := {
        str(row): dict(pod.desired.earlier[row]) for row in pod.rows if row in pod.desired.earlier
    }:
        write_file(pod_folder / EARLIER_FILE, json.dumps(earlier).encode())
        added["SWEEP_EARLIER"] = str(pod_folder / EARLIER_FILE)
    return Launch(
        uid=uid,
        argv=(translate(environment.program_path(interpreter)), translate(launcher)),
        cwd=pod_folder,
        environment=environment.process_environment(
            variables, translate, own=pod_folder, added=added, python_path=pod.desired.python_path
        ),
        stderr=pod_folder / STDERR_FILE,
        cpus=pod.cpus,
        memory=batch.limits.memory or None,
        scratch=pod_folders.scratch_limits(folders, batch, uid),
        grace=batch.grace,
    )


def _states(pod: LocalPod) -> dict[str, str]:
    """Return the states by which the launcher notices changed code or data, and whether copies are kept."""
    states = {"SWEEP_CODE_STATE": pod.desired.code_state, "SWEEP_DATA_STATE": pod.desired.launcher_data_state}
    if can_share_copies(pod):
        states["SWEEP_COPIES"] = "1"
        if os.environ.get("SWEEP_WALL") != "directory" and not any(map(os.path.exists, DAEMONS)):
            states["SWEEP_OVERLAY"] = "1"
    return {name: state for name, state in states.items() if state}


def has_data_changed(desired: DesiredBatch) -> bool:
    """Return whether the dataset changed during a trial whose launcher did not compare it."""
    if desired.data is None or desired.compares_data:
        return False
    try:
        return data_state(desired.data) != desired.data_state
    except StorageError:  # some of it is gone
        return True


def can_share_copies(pod: LocalPod) -> bool:
    """Return whether a later pod may use the copy of the code: all processes of this pod end with it."""
    return sys.platform == "linux" and pod.batch.pack is None and bool(pod.desired.code_state)


def settle_pod(
    pod: LocalPod, pod_exit: PodExit, folders: StateFolders, now: float
) -> Iterator[events.PodEnded]:
    """Yield the events of an ended pod, and write the records that it should have left. Raises StorageError."""
    if pod.batch.pack is None:
        yield _settle(pod, pod.index, pod_exit, folders, now)
        return
    journal = pod_folders.pod_results(folders, pod.batch, pod.index) / PACK_JOURNAL
    # A row that it has begun is for the next pod: only that one knows whether it has another attempt.
    has_begun = pod.uid.encode() in attempt_records.read_file(journal)
    for row in pod.rows:
        folder, uid = pod_folders.trial_folder(folders, pod.batch, row), pod.batch.attempt(pod.uid, row)
        expected = pod.batch.trials[row]
        state = attempt_records.read_attempts(folder, expected, {})
        is_skipped = has_begun or pod.stopping == PRUNED or not job_controller.is_open(pod.batch, state)
        if attempt_records.has_record(folder, uid) or not is_skipped:
            yield _settle(pod, row, pod_exit, folders, now)


def _settle(pod: LocalPod, row: int, pod_exit: PodExit, folders: StateFolders, now: float) -> events.PodEnded:
    """Return how the attempt at a row ended, and write its record if it left none. Raises StorageError."""
    folder = pod_folders.trial_folder(folders, pod.batch, row)
    expected = pod.batch.trials[row]
    output = pod_exit.message or _read_stderr(folders.pod(pod.uid) / STDERR_FILE)
    attempt = pod.attempt(row, pod.failures)
    record = attempt_records.find_record(folder / f"{attempt.uid}.json", expected, attempt.uid)
    if record is not None and has_data_changed(pod.desired):
        record = attempt_records.refuse_result(folder, record)
    if record is None:
        before = attempt_records.read_attempts(folder, expected, {})
        if pod.batch.pack is not None:  # its failures are those of its pod
            attempt = pod.attempt(row, len(before.failures))
        if before.result is not None:
            # A launcher that finds a result writes no second record.
            return events.PodEnded(attempt, before.result, "already-recorded", {}, 0.0, "")
        if attempt_records.has_record(folder, attempt.uid) or pod.stopping == PRUNED:
            reason = PRUNED if pod.stopping == PRUNED else "record-invalid"
            return events.PodEnded(attempt, Status.FAILED, reason, {}, now - pod.started, output)
        was_late = (pod_exit.reason, pod.stopping) == ("stopped", "deadline")
        ending = Termination(
            uid=attempt.uid,
            attempt=attempt.number,
            code=pod_exit.code,
            reason=pod.stopping if was_late else pod_exit.reason,
            started=pod.started,
            finished=now,
            node=socket.gethostname(),
            message=output,
        )
        log = folders.pod(pod.uid) / TERMINATION_FILE
        record = attempt_records.write_substitute(folder, expected, ending, termination_log=log)
    # Of a pod with several rows, the last lines may be those of another.
    output = "" if record.status.is_success else record.error_line if pod.batch.pack else output
    error = (record.error_line or attempt_records.last_error_line(folder, attempt.uid)) if output else ""
    return events.PodEnded(
        replace(attempt, number=record.attempt) if pod.batch.pack else attempt,
        record.status,
        record.reason,
        record.metrics,
        record.seconds,
        output,
        error=error,
    )


def _read_stderr(path: Path) -> str:
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            file.seek(max(0, size - STDERR_TAIL_BYTES))
            return file.read(STDERR_TAIL_BYTES).decode(errors="replace").strip()
    except OSError:
        return ""
