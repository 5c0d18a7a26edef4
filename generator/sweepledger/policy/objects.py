"""Rendered objects with what the rules read of them: kind, names, and all pods and Jobs that they start; findings."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sweepledger.problems import Problem
from sweepledger.reader.document import DocumentPath, format_path
from sweepledger.structs.kubernetes import WORKLOAD_KINDS_BY_NAME, Manifest

BATCH_MANIFEST = "batch-manifest"
"""Problem code: a batch renders what the generator does not write."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that an object breaks."""

    path: DocumentPath
    """From the object's top."""
    message: str
    code: str
    hint: str | None = None
    is_surplus: bool = False
    """Whether it is an unknown field: the other fields can be checked nevertheless."""


EACH = "*"
_REPLICATED = ("replicatedJobs", EACH, "template", "spec")
_RUNTIME = ("spec", "template", "spec", *_REPLICATED)

JOBS: Mapping[str, DocumentPath] = {
    "Job": ("spec",),
    "JobSet": ("spec", *_REPLICATED),
    "TrainingRuntime": _RUNTIME,
}
"""Path of the Job specs in each kind."""

TEMPLATES: Mapping[str, DocumentPath] = {
    **{kind: (*path, "template") for kind, path in JOBS.items()},
    **{
        name: ("spec", kind.replicas, EACH, "template")
        for name, kind in WORKLOAD_KINDS_BY_NAME.items()
        if kind.replicas is not None
    },
}
"""Path of the pod templates in each kind; other kinds of a batch have none."""

CONTAINERS = ("initContainers", "containers")


@dataclass(frozen=True, slots=True)
class Container:
    """A container of any type, and its path."""

    path: DocumentPath
    data: Manifest
    sort: str
    """Which of the pod's lists it is in, or `trainer`."""


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod that an object is or would start."""

    path: DocumentPath
    """Path of its template; its spec is below."""
    metadata: Manifest
    spec: Manifest
    containers: tuple[Container, ...]

    @property
    def at(self) -> DocumentPath:
        """Path of its spec."""
        return (*self.path, "spec")

    @property
    def security(self) -> Manifest:
        """Its security context."""
        context: Manifest = self.spec.get("securityContext") or {}
        return context

    @property
    def volumes(self) -> list[Manifest]:
        """Its volumes."""
        volumes: list[Manifest] = self.spec.get("volumes") or []
        return volumes


@dataclass(frozen=True, slots=True)
class Job:
    """The spec of a Job, alone or within another kind."""

    path: DocumentPath
    spec: Manifest
    pod: Pod | None


@dataclass(frozen=True)
class Object:
    """One rendered object."""

    data: Manifest

    @cached_property
    def api(self) -> str:
        """Group and version."""
        return str(self.data.get("apiVersion"))

    @cached_property
    def kind(self) -> str:
        """The kind's name."""
        return str(self.data.get("kind"))

    @cached_property
    def metadata(self) -> Manifest:
        """Names, labels and annotations; empty if there are none."""
        metadata = self.data.get("metadata")
        return metadata if isinstance(metadata, Mapping) else {}

    @property
    def name(self) -> str:
        """The object's name."""
        return str(self.metadata.get("name", ""))

    @property
    def title(self) -> str:
        """Kind and name as `kubectl` writes them; empty parts are left out."""
        kind = self.data.get("kind")
        return "/".join([*([kind] if isinstance(kind, str) else []), *([self.name] if self.name else [])])

    @cached_property
    def pods(self) -> tuple[Pod, ...]:
        """Every pod that it would start. Its schema must have been checked before."""
        if self.kind not in TEMPLATES:
            return ()
        return tuple(_pod(path, template) for path, template in _at(self.data, TEMPLATES[self.kind]))

    @cached_property
    def containers(self) -> tuple[Container, ...]:
        """Every container that it would start, and a TrainJob's changes to the containers of its runtime."""
        trainer = (self.data.get("spec") or {}).get("trainer") if self.kind == "TrainJob" else None
        partial = () if trainer is None else (Container(("spec", "trainer"), trainer, "trainer"),)
        return (*partial, *(container for pod in self.pods for container in pod.containers))

    @cached_property
    def jobs(self) -> tuple[Job, ...]:
        """Every Job that it is or would start."""
        if self.kind not in JOBS:
            return ()
        pods = {pod.path[:-1]: pod for pod in self.pods}
        return tuple(Job(path, spec, pods.get(path)) for path, spec in _at(self.data, JOBS[self.kind]))


def to_problem(obj: Object, finding: Finding, file: str) -> Problem:
    """Return a finding in an object as a problem of a file."""
    path = ".".join(part for part in (obj.title, format_path(finding.path)) if part)
    return Problem(file, 0, 0, path, finding.message, finding.code, finding.hint)


def _at(data: Any, path: DocumentPath, walked: DocumentPath = ()) -> Iterator[tuple[DocumentPath, Manifest]]:
    """Yield the values at a path; `EACH` follows every entry."""
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


def _pod(path: DocumentPath, template: Manifest) -> Pod:
    spec = template.get("spec") or {}
    containers = tuple(
        Container((*path, "spec", sort, index), data, sort)
        for sort in CONTAINERS
        if isinstance(spec.get(sort), list)
        for index, data in enumerate(spec[sort])
    )
    return Pod(path, template.get("metadata") or {}, spec, containers)
