"""An object as the rules see it: its kind, its names, and every pod and Job that it would start."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from generator.reader.paths import Path
from generator.structs.kinds import RUNNING

Manifest = Mapping[str, Any]

EACH = "*"
_REPLICATED = ("replicatedJobs", EACH, "template", "spec")
_RUNTIME = ("spec", "template", "spec", *_REPLICATED)

JOBS: Mapping[str, Path] = {
    "ClusterTrainingRuntime": _RUNTIME,
    "CronJob": ("spec", "jobTemplate", "spec"),
    "Job": ("spec",),
    "JobSet": ("spec", *_REPLICATED),
    "TrainingRuntime": _RUNTIME,
}
"""Where each kind has the specs of Jobs."""

TEMPLATES: Mapping[str, Path] = {
    **{kind: (*path, "template") for kind, path in JOBS.items()},
    "DaemonSet": ("spec", "template"),
    "Deployment": ("spec", "template"),
    "Pod": (),
    "StatefulSet": ("spec", "template"),
    **{
        name: ("spec", kind.replicas, EACH, "template")
        for name, kind in RUNNING.items()
        if kind.replicas is not None
    },
}
"""Where each kind has the templates of pods; in other kinds they are searched for."""

PODLESS = frozenset({"ConfigMap", "Namespace", "TrainJob"})

CONTAINERS = ("initContainers", "containers", "ephemeralContainers")


@dataclass(frozen=True, slots=True)
class Container:
    """A container of any sort, and where it stands."""

    path: Path
    data: Manifest
    sort: str
    """Which of the pod's three lists it is in, or `trainer`."""


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod that an object is or would start."""

    path: Path
    """Of its template; its spec stands below."""
    metadata: Manifest
    spec: Manifest
    containers: tuple[Container, ...]

    @property
    def at(self) -> Path:
        """Give the place of its spec."""
        return (*self.path, "spec")

    @property
    def security(self) -> Manifest:
        """Give its security context."""
        found: Manifest = self.spec.get("securityContext") or {}
        return found

    @property
    def volumes(self) -> list[Manifest]:
        """Give its volumes."""
        found: list[Manifest] = self.spec.get("volumes") or []
        return found


@dataclass(frozen=True, slots=True)
class Job:
    """The spec of a Job, alone or within another kind."""

    path: Path
    spec: Manifest
    pod: Pod | None


@dataclass(frozen=True)
class Object:
    """One rendered object."""

    data: Manifest
    is_known: bool = True
    """Whether its schema was looked at. Where it was not, a `Job` may be anything."""

    @cached_property
    def api(self) -> str:
        """Group and version."""
        return str(self.data.get("apiVersion"))

    @cached_property
    def kind(self) -> str:
        """The kind's name, as the rules know it."""
        return str(self.data.get("kind")) if self.is_known else f"{self.data.get('kind')} of {self.api}"

    @cached_property
    def metadata(self) -> Manifest:
        """Names, labels and annotations; empty where there are none to be read."""
        found = self.data.get("metadata")
        return found if isinstance(found, Mapping) else {}

    @property
    def name(self) -> str:
        """The object's name."""
        return str(self.metadata.get("name", ""))

    @property
    def title(self) -> str:
        """Kind and name, as `kubectl` writes them; whichever of them it has."""
        kind = self.data.get("kind")
        return "/".join([*([kind] if isinstance(kind, str) else []), *([self.name] if self.name else [])])

    @cached_property
    def pods(self) -> tuple[Pod, ...]:
        """Every pod it would start. Its schema must have been looked at before."""
        if self.kind in PODLESS:
            return ()
        known = TEMPLATES.get(self.kind)
        found = _search(self.data) if known is None else _at(self.data, known)
        return tuple(_pod(path, template) for path, template in found)

    @cached_property
    def containers(self) -> tuple[Container, ...]:
        """Every container it would start, and what it says of those that another object describes."""
        trainer = (self.data.get("spec") or {}).get("trainer") if self.kind == "TrainJob" else None
        partial = () if trainer is None else (Container(("spec", "trainer"), trainer, "trainer"),)
        return (*partial, *(container for pod in self.pods for container in pod.containers))

    @cached_property
    def jobs(self) -> tuple[Job, ...]:
        """Every Job it is or would start."""
        if self.kind not in JOBS:
            return ()
        pods = {pod.path[:-1]: pod for pod in self.pods}
        return tuple(Job(path, spec, pods.get(path)) for path, spec in _at(self.data, JOBS[self.kind]))


def _at(data: Any, path: Path, walked: Path = ()) -> Iterator[tuple[Path, Manifest]]:
    """Follow a path, into each entry where it says so."""
    if not path:
        if isinstance(data, Mapping):
            yield walked, data
        return
    if path[0] == EACH:
        pairs = (
            data.items() if isinstance(data, Mapping) else enumerate(data) if isinstance(data, list) else ()
        )
        for key, below in pairs:
            yield from _at(below, path[1:], (*walked, key))
    elif isinstance(data, Mapping) and path[0] in data:
        yield from _at(data[path[0]], path[1:], (*walked, path[0]))


def _search(data: Any, walked: Path = ()) -> Iterator[tuple[Path, Manifest]]:
    """Find whatever looks like a pod's template."""
    if isinstance(data, Mapping):
        spec = data.get("spec")
        listed = spec.get("containers") if isinstance(spec, Mapping) else None
        if isinstance(listed, list) and all(isinstance(each, Mapping) for each in listed):
            yield walked, data
            return
    pairs = data.items() if isinstance(data, Mapping) else enumerate(data) if isinstance(data, list) else ()
    for key, below in pairs:
        yield from _search(below, (*walked, key))


def _pod(path: Path, template: Manifest) -> Pod:
    spec = template.get("spec") or {}
    containers = tuple(
        Container((*path, "spec", sort, index), data, sort)
        for sort in CONTAINERS
        if isinstance(spec.get(sort), list)
        for index, data in enumerate(spec[sort])
    )
    return Pod(path, template.get("metadata") or {}, spec, containers)
