"""A pod of the local engine: its devices, its process, and the event and record of its end."""

import socket
import sys
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from sweepledger.engine.local import attempt_records, environment, events, machine, volumes
from sweepledger.engine.local.environment import HostVariables, PathTranslation
from sweepledger.engine.local.job_controller import PodState
from sweepledger.engine.local.job_spec import BatchSpec, JobSpec, ResourceAmounts
from sweepledger.engine.local.node import Launch, PodExit
from sweepledger.engine.local.volumes import TERMINATION_FILE, StateFolders
from sweepledger.engine.termination import Termination
from sweepledger.structs.record import Status

STDERR_FILE = "stderr"

STDERR_TAIL_BYTES = 2048
"""The end of a failed pod's stderr: a line of the launcher, or a traceback, which ends with its cause."""

PRUNED = "pruned"


@dataclass(frozen=True, slots=True)
class DesiredBatch:
    """A desired batch, and the folders that its manifests do not contain."""

    batch: BatchSpec
    code: Path
    """Folder of the code tree, which is the container's working directory."""
    data: Path | None = None
    """Folder of the dataset; None if the batch has none."""
    python_path: tuple[Path, ...] = ()
    """Folders of the code in which Python looks first."""


@dataclass(frozen=True, slots=True)
class LocalPod:
    """A pod that has not ended."""

    desired: DesiredBatch
    job: JobSpec
    index: int
    failures: int
    uid: str
    started: float
    stopping: str | None = None
    """Reason why it is being stopped; None if it is not."""
    cpus: tuple[int, ...] = ()
    gpus: tuple[int, ...] = ()

    @property
    def state(self) -> PodState:
        """The pod as the Job controller observes it."""
        stopping = self.stopping is not None
        requests = self.job.pod.requests
        return PodState(self.uid, self.job.name, self.index, self.started, requests, stopping=stopping)

    @property
    def attempt(self) -> events.PodAttempt:
        """The attempt that the pod runs."""
        trial = self.desired.batch.table.rows[self.index].trial
        return events.PodAttempt(
            self.job.batch, self.job.name, self.index, trial, self.uid, self.failures + 1
        )


@dataclass(frozen=True, slots=True)
class PodDevices:
    """The devices of a pod."""

    cpus: tuple[int, ...]
    """Empty: all."""
    gpus: tuple[int, ...]


def choose_devices(pod: LocalPod, others: Collection[LocalPod], capacity: ResourceAmounts) -> PodDevices:
    """Return the least used CPUs, and GPUs that no other pod has."""
    available = machine.cpus() if machine.can_pin_cpus() else ()
    used = Counter(cpu for other in others for cpu in other.cpus)
    count = pod.job.pod.limits.cpus
    cpus = tuple(sorted(sorted(available, key=lambda cpu: (used[cpu], cpu))[:count]))
    taken = {gpu for other in others for gpu in other.gpus}
    free = [gpu for gpu in range(capacity.gpus) if gpu not in taken]
    return PodDevices(cpus if count < len(available) else (), tuple(free[: pod.job.pod.requests.gpus]))


def prepare_launch(pod: LocalPod, folders: StateFolders, capacity: ResourceAmounts) -> Launch:
    """Create the folders of a pod, and return how to start it. Raises StorageError, RepositoryError."""
    job, uid = pod.job, pod.uid
    identity = environment.PodIdentity(uid, socket.gethostname(), pod.index, pod.failures)
    variables = environment.declared_variables(job, identity)
    mounted = volumes.prepare_mounts(folders, job, uid, variables=variables, data=pod.desired.data)
    pod_folder = folders.pod(uid)
    translate = PathTranslation({**mounted, job.pod.working_dir: pod.desired.code})
    extras = HostVariables(
        scratch=pod_folder,
        termination_log=pod_folder / TERMINATION_FILE,
        interpreter=Path(sys.executable).parent,
        variables=_devices(pod, capacity),
        python_path=pod.desired.python_path,
    )
    return Launch(
        uid=uid,
        argv=(
            *(translate(environment.expand(word, variables)) for word in job.pod.command),
            *(environment.expand(word, variables) for word in job.pod.arguments),
        ),
        cwd=pod.desired.code,
        environment=environment.process_environment(variables, identity, translate, extras),
        stderr=pod_folder / STDERR_FILE,
        cpus=pod.cpus,
        memory=job.pod.limits.memory or None,
        scratch=volumes.scratch_limits(folders, job, uid),
        grace=job.pod.grace,
    )


def _devices(pod: LocalPod, capacity: ResourceAmounts) -> dict[str, str]:
    """Return variables that show a pod its own GPUs only, as a device plugin does."""
    variables = {"CUDA_VISIBLE_DEVICES": ",".join(map(str, pod.gpus))} if capacity.gpus else {}
    if pod.job.pod.limits.gpus > pod.job.pod.requests.gpus:
        variables["SWEEP_WITHOUT_GPU"] = "1"
    return variables


def settle_pod(pod: LocalPod, pod_exit: PodExit, folders: StateFolders, now: float) -> events.PodEnded:
    """Return the event of an ended pod, and write its record if it left none. Raises StorageError."""
    batch = pod.desired.batch
    folder = volumes.trial_folder(folders, pod.job, pod.index)
    expected = attempt_records.expected_record(batch, pod.index)
    output = pod_exit.message or _read_stderr(folders.pod(pod.uid) / STDERR_FILE)
    record = attempt_records.find_record(folder, expected, pod.uid)
    if record is None:
        known = attempt_records.read_attempts(folder, expected, {}).result
        if known is not None:
            # A launcher that finds a result writes no second record.
            return events.PodEnded(pod.attempt, known, "already-recorded", {}, 0.0, "")
        if attempt_records.has_record(folder, pod.uid) or pod.stopping == PRUNED:
            reason = PRUNED if pod.stopping == PRUNED else "record-invalid"
            return events.PodEnded(pod.attempt, Status.FAILED, reason, {}, now - pod.started, output)
        ending = Termination(
            uid=pod.uid,
            attempt=pod.failures + 1,
            code=pod_exit.code,
            reason=_reason(pod, pod_exit),
            started=pod.started,
            finished=now,
            node=socket.gethostname(),
            message=output,
        )
        log = folders.pod(pod.uid) / TERMINATION_FILE
        record = attempt_records.write_substitute(folder, expected, ending, termination_log=log)
    output = "" if record.status.is_success else output
    # Records of launcher version 1 say nothing of a failed command.
    error = (record.error_line or attempt_records.last_error_line(folder, pod.uid)) if output else ""
    return events.PodEnded(
        pod.attempt, record.status, record.reason, record.metrics, record.seconds, output, error=error
    )


def _reason(pod: LocalPod, pod_exit: PodExit) -> str | None:
    if pod_exit.reason != "stopped":
        return pod_exit.reason
    return "deadline" if pod.stopping == "deadline" else "stopped"


def _read_stderr(path: Path) -> str:
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            file.seek(max(0, size - STDERR_TAIL_BYTES))
            return file.read(STDERR_TAIL_BYTES).decode(errors="replace").strip()
    except OSError:
        return ""
