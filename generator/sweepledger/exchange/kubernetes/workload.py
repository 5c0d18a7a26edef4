"""A manifest of any kind as the command and the run configuration of a trial.

Kinds with several pods become the shape of the same kind, if there is one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sweepledger.exchange.fields import Fields, show_value
from sweepledger.exchange.kubernetes.command import Placeholders
from sweepledger.exchange.kubernetes.container import ImportedTrial, read_container, read_pod
from sweepledger.structs.run_config import Shape

MOST_RETRIES = 10
NO_SHAPE = "sweeps have no shape for this kind"
ALL_ALIKE = "all pods of a trial have one command, one image and the same resources here"


@dataclass(frozen=True, slots=True)
class ReplicaKind:
    """A kind with a mapping of replica types."""

    shape: Shape | None
    replicas: str
    """The key of the mapping."""
    first: Sequence[str]
    """Replica types whose command is that of the trial, in this order."""
    workers: Sequence[str]
    """Replica types that count as nodes."""
    processes: str = ""
    """The key for the number of processes per pod."""


REPLICA_KINDS: Mapping[str, ReplicaKind] = {
    "PyTorchJob": ReplicaKind(
        Shape.PYTORCH_JOB, "pytorchReplicaSpecs", ["Master", "Worker"], ["Master", "Worker"], "nprocPerNode"
    ),
    "TFJob": ReplicaKind(
        Shape.TF_JOB, "tfReplicaSpecs", ["Chief", "Master", "Worker"], ["Chief", "Master", "Worker"]
    ),
    "MPIJob": ReplicaKind(
        Shape.MPI_JOB, "mpiReplicaSpecs", ["Launcher", "Worker"], ["Worker"], "slotsPerWorker"
    ),
    "XGBoostJob": ReplicaKind(None, "xgbReplicaSpecs", ["Master", "Worker"], []),
    "PaddleJob": ReplicaKind(None, "paddleReplicaSpecs", ["Master", "Worker"], []),
}


def read_manifest(
    manifest: Fields, primary: str | None, placeholders: Placeholders, trial: ImportedTrial
) -> None:
    """Read a trial's manifest. Raises ForeignError for malformed ones."""
    kind = manifest.text("kind")
    manifest.text("apiVersion")
    # Here the names of a trial's objects are derived from its values.
    manifest.inner("metadata").taken |= {"name", "namespace", "creationTimestamp"}
    reader = _Reader(primary, placeholders, trial)
    match kind:
        case "Job":
            reader.job(manifest.inner("spec"))
        case "TrainJob":
            reader.train_job(manifest.inner("spec"))
        case "JobSet":
            reader.job_set(manifest.inner("spec"))
        case str() if kind in REPLICA_KINDS:
            reader.replicas(manifest.inner("spec"), kind)
        case _:
            why = f"{NO_SHAPE}; a trial is one process of its first container"
            trial.losses.add(f"{manifest.path}.kind: {kind}", why)
            reader.unknown(manifest)
    trial.losses += manifest.rest()


@dataclass(frozen=True, slots=True)
class _Reader:
    primary: str | None
    """Name of the container whose command is that of the trial."""
    placeholders: Placeholders
    trial: ImportedTrial

    def pod(self, pod: Fields) -> None:
        read_pod(pod, self.primary, self.placeholders, self.trial)

    def job(self, job: Fields) -> None:
        retries, deadline = job.whole("backoffLimit"), job.whole("activeDeadlineSeconds")
        if retries is not None:
            self.trial.run["retries"] = min(retries, MOST_RETRIES)
            if retries > MOST_RETRIES:
                self.trial.losses.add(
                    f"{job.at('backoffLimit')}: {retries}", f"{MOST_RETRIES} is the most here"
                )
        if deadline is not None:
            self.trial.run["timeout"] = f"{deadline}s"
        template = job.inner("template")
        self.trial.losses += job.rest()
        self.pod(template)

    def shape(self, shape: Shape, nodes: int, processes: int = 1) -> None:
        """Set the shape, and how many pods and processes a trial has; one process is a Job of any shape."""
        if nodes <= 1 and processes <= 1:
            return
        self.trial.run["shape"] = str(shape)
        self.trial.run["nodes"] = max(1, nodes)
        if processes > 1:
            self.trial.run["processes"] = processes

    def train_job(self, job: Fields) -> None:
        trainer, runtime = job.inner("trainer"), job.inner("runtimeRef")
        nodes, processes = trainer.whole("numNodes"), _count(trainer, "numProcPerNode")
        read_container(trainer, self.placeholders, self.trial, resources="resourcesPerNode")
        self.shape(Shape.TRAIN_JOB, nodes or 1, processes or 1)
        if runtime.data:
            why = "a batch has its own TrainingRuntime here; what this one adds is not in the file"
            self.trial.losses.add(f"{runtime.path}: {show_value(runtime.data.get('name'))}", why)
        self.trial.losses += job.rest()

    def job_set(self, jobs: Fields) -> None:
        entries = jobs.each("replicatedJobs")
        for place, entry in enumerate(entries):
            job = entry.inner("template").inner("spec")
            count = (entry.whole("replicas") or 1) * (job.whole("parallelism") or 1)
            job.taken |= {"completions", "completionMode"}
            if place:
                why = "all pods of a trial run one command here"
                self.trial.losses.add(
                    f"{entry.path}: {show_value(entry.data.get('name'))}, {count} pods", why
                )
                continue
            self.job(job)
            self.shape(Shape.JOB_SET, count)
            entry.text("name")
            self.trial.losses += entry.rest()
        self.trial.losses += jobs.rest()

    def replicas(self, spec: Fields, kind_name: str) -> None:
        kind = REPLICA_KINDS[kind_name]
        types = spec.inner(kind.replicas)
        replicas = {name: types.inner(name) for name in types.data}
        order = [name for name in kind.first if name in replicas]
        if order:
            self.pod(replicas[order[0]].inner("template"))
        counts = {name: _count(fields, "replicas") or 1 for name, fields in replicas.items()}
        processes = (_count(spec, kind.processes) or 1) if kind.processes else 1
        nodes = sum(counts[name] for name in kind.workers if name in replicas)
        if kind.shape is None:
            others = sum(counts.values()) - 1
            why = f"{NO_SHAPE}; a trial is one process of {order[0] if order else 'none'}, without {others} other pods"
            self.trial.losses.add(f"{kind_name}", why)
        else:
            if kind.shape is Shape.MPI_JOB:
                nodes += spec.take("runLauncherAsWorker") is True
                self.trial.losses.add(
                    f"{types.at('Launcher')}", "the pod of the launcher is one of the nodes here"
                )
            self.shape(kind.shape, nodes, processes)
        for name, fields in replicas.items():
            self._replica(fields, replicas[order[0]] if order else None)
            if kind.shape is not None and name not in {*kind.workers, *kind.first[:1]}:
                self.trial.losses.add(
                    f"{fields.path}: {counts[name]} pods", "this shape has no such role; left out"
                )
        self.trial.losses += [*types.rest(), *spec.rest()]

    def _replica(self, replica: Fields, first: Fields | None) -> None:
        """List what a replica type has besides its number and what the first has."""
        policy = replica.text("restartPolicy")
        if policy not in {None, "Never"}:
            why = "a failed trial is started again only by run.retries or `sweep retry`"
            self.trial.losses.add(f"{replica.at('restartPolicy')}: {policy}", why)
        template = replica.take("template")
        if first is not None and template is not None and template != first.data.get("template"):
            self.trial.losses.add(replica.at("template"), f"differs from {first.at('template')}; {ALL_ALIKE}")
        self.trial.losses += replica.rest()

    def unknown(self, manifest: Fields) -> None:
        for data, path in _pods(manifest.data, manifest.path):
            self.pod(Fields.of(data, path))
        manifest.taken |= manifest.data.keys()


def _count(fields: Fields, key: str) -> int | None:
    """Return a number of pods or processes, also if it is text; None if it is absent or not a number."""
    text = fields.text(key)
    if text is not None and text.isascii() and text.isdecimal():
        return int(text)
    fields.taken.discard(key)
    return None


def _pods(data: Any, path: str) -> Iterator[tuple[Any, str]]:
    if isinstance(data, dict):
        if isinstance(data.get("spec"), dict) and "containers" in data["spec"]:
            yield data, path
            return
        for key, inner in data.items():
            yield from _pods(inner, f"{path}.{key}")
