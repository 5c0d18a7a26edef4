"""Rendered objects and the parts that rules read: kind, names, all pods that they start; findings."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sweepledger.problems import DocumentPath, Problem, format_path
from sweepledger.structs.kubernetes import TRAINING_RUNTIME, Manifest
from sweepledger.structs.run_config import SHAPE_KINDS


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
_KINDS = (*SHAPE_KINDS.values(), TRAINING_RUNTIME)
TEMPLATES: Mapping[str, DocumentPath] = {kind.kind: kind.templates for kind in _KINDS if kind.templates}
"""Path of the pod templates in each kind; other kinds of a batch have none."""


@dataclass(frozen=True, slots=True)
class Container:
    """A container of any type, and its path."""

    path: DocumentPath
    data: Manifest
    list_name: str
    """The list of the pod that it is in, or `trainer`."""


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod that an object is or would start."""

    path: DocumentPath
    """Path of its template; its spec is below."""
    template: Manifest
    containers: tuple[Container, ...]

    @property
    def metadata(self) -> Manifest:
        """Its labels, annotations and finalizers; empty if there are none."""
        metadata: Manifest = self.template.get("metadata") or {}
        return metadata

    @property
    def labels(self) -> Manifest:
        """Its labels."""
        labels: Manifest = self.metadata.get("labels") or {}
        return labels

    @property
    def volumes(self) -> list[Manifest]:
        """Its volumes."""
        volumes: list[Manifest] = (self.template.get("spec") or {}).get("volumes") or []
        return volumes


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


def to_problem(obj: Object, finding: Finding, file: str) -> Problem:
    """Return a finding as a problem of the object's file."""
    kind = obj.data.get("kind")
    title = "/".join([*([kind] if isinstance(kind, str) else []), *([obj.name] if obj.name else [])])
    path = ".".join(part for part in (title, format_path(finding.path)) if part)
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
        Container((*path, "spec", name, index), data, name)
        for name in ("initContainers", "containers")
        if isinstance(spec.get(name), list)
        for index, data in enumerate(spec[name])
    )
    return Pod(path, template, containers)


def without_path(data: Any, path: DocumentPath) -> Any:
    """Return a copy of a document without the value at a path."""
    key, *below = path
    copy: Any = dict(data) if isinstance(data, Mapping) else [*data]
    if below:
        copy[key] = without_path(copy[key], tuple(below))
    else:
        del copy[key]
    return copy


def value_at(data: Any, path: DocumentPath) -> Any:
    """Return the value at a path. Raises LookupError."""
    for key in path:
        data = data[key]
    return data
