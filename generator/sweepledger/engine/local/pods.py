"""From a decision to a process and back: where a pod runs, what it is started with, what its end means."""

import socket
import sys
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from generator.engine.endings import Ending
from generator.engine.local import attempts, environment, events, machine, volumes
from generator.engine.local.environment import Extras, Translation
from generator.engine.local.node import Launch, PodExit, capabilities
from generator.engine.local.observed import PodState
from generator.engine.local.quantities import Resources
from generator.engine.local.volumes import TERMINATION_FILE, Folders
from generator.engine.local.workload import BatchSpec, JobSpec
from generator.structs.record import Status

STDERR_FILE = "stderr"

SAID_BYTES = 2048
"""Of a failed pod's stderr: one line of the launcher, or a traceback, which ends with its cause."""

PRUNED = "pruned"


@dataclass(frozen=True, slots=True)
class Desired:
    """A batch that git asks for, and what it needs that is not in its manifests."""

    batch: BatchSpec
    code: Path
    """Folder of the locked code: what the container has as its working directory."""
    data: Path | None = None
    """Folder of the dataset, for a batch that mounts one."""


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod that has not ended."""

    desired: Desired
    job: JobSpec
    index: int
    failures: int
    uid: str
    started: float
    stopping: str | None = None
    """Why it was told to end."""
    cpus: tuple[int, ...] = ()
    gpus: tuple[int, ...] = ()

    @property
    def state(self) -> PodState:
        """Say what the controller sees of it."""
        stopping = self.stopping is not None
        requests = self.job.pod.requests
        return PodState(self.uid, self.job.name, self.index, self.started, requests, stopping=stopping)

    @property
    def attempt(self) -> events.Attempt:
        """Say which attempt this is."""
        trial = self.desired.batch.table.rows[self.index].trial
        return events.Attempt(self.job.batch, self.job.name, self.index, trial, self.uid, self.failures + 1)


@dataclass(frozen=True, slots=True)
class Place:
    """The devices of a pod."""

    cpus: tuple[int, ...]
    """Empty for all."""
    gpus: tuple[int, ...]


def place(pod: Pod, others: Collection[Pod], capacity: Resources) -> Place:
    """Choose the least used CPUs, and GPUs that nobody has."""
    available = machine.cpus() if capabilities().pins_cpus else ()
    used = Counter(cpu for other in others for cpu in other.cpus)
    wanted = pod.job.pod.limits.cpus
    cpus = tuple(sorted(sorted(available, key=lambda cpu: (used[cpu], cpu))[:wanted]))
    taken = {gpu for other in others for gpu in other.gpus}
    free = [gpu for gpu in range(capacity.gpus) if gpu not in taken]
    return Place(cpus if wanted < len(available) else (), tuple(free[: pod.job.pod.requests.gpus]))


def launch(pod: Pod, folders: Folders, capacity: Resources) -> Launch:
    """Make everything that a pod needs. Raises StorageError, RepositoryError."""
    job, uid = pod.job, pod.uid
    identity = environment.Identity(uid, socket.gethostname(), pod.index, pod.failures)
    variables = environment.declared(job, identity)
    mounted = volumes.prepare(folders, job, uid, variables=variables, data=pod.desired.data)
    own = folders.pod(uid)
    translate = Translation({**mounted, job.pod.working_dir: pod.desired.code})
    extras = Extras(
        scratch=own,
        termination_log=own / TERMINATION_FILE,
        interpreter=Path(sys.executable).parent,
        variables=_devices(pod, capacity),
    )
    return Launch(
        uid=uid,
        argv=(
            *(translate(environment.expand(word, variables)) for word in job.pod.command),
            *(environment.expand(word, variables) for word in job.pod.arguments),
        ),
        cwd=pod.desired.code,
        environment=environment.complete(variables, identity, translate, extras),
        stderr=own / STDERR_FILE,
        cpus=pod.cpus,
        memory=job.pod.limits.memory or None,
        scratch=volumes.scratch_limits(folders, job, uid),
        grace=job.pod.grace,
    )


def _devices(pod: Pod, capacity: Resources) -> dict[str, str]:
    """Show a pod its own GPUs alone, none if it asked for none, as a device plugin would."""
    found = {"CUDA_VISIBLE_DEVICES": ",".join(map(str, pod.gpus))} if capacity.gpus else {}
    if pod.job.pod.limits.gpus > pod.job.pod.requests.gpus:
        found["SWEEP_WITHOUT_GPU"] = "1"
    return found


def settle(pod: Pod, ended: PodExit, folders: Folders, now: float) -> events.PodEnded:
    """Tell what a pod's end means, and see to it that it leaves a record. Raises StorageError."""
    batch = pod.desired.batch
    folder = volumes.trial_folder(folders, pod.job, pod.index)
    wanted = attempts.asked(batch, pod.index)
    said = ended.message or _said(folders.pod(pod.uid) / STDERR_FILE)
    record = attempts.find(folder, wanted, pod.uid)
    if record is None:
        known = attempts.read(folder, wanted, {}).result
        if known is not None:
            # A launcher that finds the work done says so and leaves no second record.
            return events.PodEnded(pod.attempt, known, "already-recorded", {}, 0.0, "")
        if attempts.has_record(folder, pod.uid) or pod.stopping == PRUNED:
            reason = PRUNED if pod.stopping == PRUNED else "record-invalid"
            return events.PodEnded(pod.attempt, Status.FAILED, reason, {}, now - pod.started, said)
        ending = Ending(
            uid=pod.uid,
            attempt=pod.failures + 1,
            code=ended.code,
            reason=_reason(pod, ended),
            started=pod.started,
            finished=now,
            node=socket.gethostname(),
            said=said,
        )
        log = folders.pod(pod.uid) / TERMINATION_FILE
        record = attempts.substitute(folder, wanted, ending, termination_log=log)
    said = "" if record.status.is_success else said
    return events.PodEnded(pod.attempt, record.status, record.reason, record.metrics, record.seconds, said)


def _reason(pod: Pod, ended: PodExit) -> str | None:
    if ended.reason != "stopped":
        return ended.reason
    return "deadline" if pod.stopping == "deadline" else "stopped"


def _said(path: Path) -> str:
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            file.seek(max(0, size - SAID_BYTES))
            return file.read(SAID_BYTES).decode(errors="replace").strip()
    except OSError:
        return ""
