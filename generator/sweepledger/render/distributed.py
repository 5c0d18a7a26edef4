"""Distributed shapes: one complete object per trial, of any kind, filled in at the paths that its base lists.

A kind is a folder below `base/`: `trial.yaml`, `batch.yaml` if all trials share an object, and `places.yaml`
with the paths. The steps of a path are separated by dots; a step into a list is an index, or the `name` of
an entry.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import msgspec

from sweepledger.formats import yaml
from sweepledger.render.base_files import SHAPE_FOLDERS, Bases
from sweepledger.render.manifest import Manifest, merge, merge_all
from sweepledger.render.pod import Pods
from sweepledger.structs.kubernetes import (
    INDEX_VARIABLE,
    RANK_VARIABLE,
    STORE_CONTAINER,
    trial_folder_by_variable,
)
from sweepledger.structs.node_pool import Pool, topology_annotations
from sweepledger.structs.run_config import RunConfig


@dataclass(frozen=True, slots=True)
class PodTemplatePath:
    """A pod template of an object."""

    path: str
    container: str
    """Name of the trial's container in it."""
    waits: bool = False
    """Whether its command is the base's, because another pod starts the processes in it."""


@dataclass(frozen=True, slots=True)
class ContainerPath:
    """A part of an object that describes a container."""

    path: str
    resources: str
    """Key of its resources."""


@dataclass(frozen=True, slots=True)
class WorkerPaths:
    """The entry of the pods other than rank 0; removed if there are none."""

    entry: str
    count: str


@dataclass(frozen=True, slots=True)
class FieldPaths:
    """Everything that the generator writes into one object of a base."""

    templates: tuple[PodTemplatePath, ...] = ()
    containers: tuple[ContainerPath, ...] = ()
    nodes: tuple[str, ...] = ()
    others: tuple[WorkerPaths, ...] = ()
    processes: tuple[str, ...] = ()
    retries: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Texts with the name `{batch}` or `{trial}`, by path."""


def get_field(manifest: Manifest, path: str) -> Any:
    """Return the value at a path. Raises KeyError if the base has no such path."""
    parent, step = _locate(manifest, path)
    return parent[step]


def set_field(manifest: Manifest, path: str, value: Any) -> None:
    """Replace the value at a path; a number becomes text if the base has text."""
    parent, step = _locate(manifest, path)
    parent[step] = str(value) if isinstance(parent[step], str) else value


def remove_field(manifest: Manifest, path: str) -> None:
    """Remove the entry at a path."""
    parent, step = _locate(manifest, path)
    del parent[step]


def _locate(manifest: Manifest, path: str) -> tuple[Any, Any]:
    *before, last = path.split(".")
    parent: Any = manifest
    for step in before:
        parent = parent[_key(parent, step)]
    return parent, _key(parent, last)


def _key(parent: Mapping[str, Any] | Sequence[Manifest], step: str) -> str | int:
    if isinstance(parent, Mapping):
        if step not in parent:
            raise KeyError(step)
        return step
    if step.isdigit():
        return int(step)
    return next(position for position, entry in enumerate(parent) if entry["name"] == step)


CONTAINER = "trial"
"""Name of the trial's container in options and components."""


@dataclass(frozen=True, slots=True)
class _Parts:
    shared: Manifest
    """Of all pods of the batch: the shared part."""
    own: Manifest
    """The part of this object's pods."""
    pool: Pool | None


def manifests(pods: Pods) -> list[Manifest]:
    """Return the object that the trials share, if any, then one object per trial in the order of the table."""
    name, bases, folder = pods.name, pods.bases, SHAPE_FOLDERS[pods.batch.shape]
    where: Mapping[str, Any] = yaml.load(bases[f"{folder}/places.yaml"])
    shared, made = pods.shared_template({}), []
    if "batch" in where:
        read = msgspec.convert(where["batch"], FieldPaths)
        base = _prepared(bases, f"{folder}/batch.yaml", pods.run, read)
        own = pods.output_mounts(trial_folder_by_variable(name, INDEX_VARIABLE))
        metadata = {"name": name, "namespace": pods.trials.namespace, "labels": pods.labels}
        made.append(_filled(base, read, _Parts(shared, own, pods.pool), metadata, name))
    read = msgspec.convert(where["trial"], FieldPaths)
    base = _prepared(bases, f"{folder}/trial.yaml", pods.run, read)
    for index in range(len(pods.batch.trials)):
        parts = _Parts(shared, pods.trial_template(index), pods.pool)
        metadata = pods.trial_metadata(trial_name(name, index), index)
        made.append(_filled(base, read, parts, metadata, name))
    return made


def trial_name(name: str, index: int) -> str:
    """Return the name of a trial's object; short, because operators append to it."""
    return f"{name}-{index}"


def _prepared(bases: Bases, file: str, run: RunConfig, where: FieldPaths) -> Manifest:
    made: Manifest = yaml.load(bases[file])
    for others in where.others:
        if run.nodes > 1:
            set_field(made, others.count, run.nodes - 1)
        else:
            remove_field(made, others.entry)
    numbers = ((run.nodes, where.nodes), (run.processes, where.processes), (run.retries, where.retries))
    for number, paths in numbers:
        for path in paths:
            set_field(made, path, number)
    return made


def _filled(base: Manifest, where: FieldPaths, parts: _Parts, metadata: Manifest, batch: str) -> Manifest:
    made = copy.deepcopy(base)
    made["metadata"] = merge(made["metadata"], metadata)
    gone = tuple(f"{others.entry}." for others in where.others if not _is_there(made, others.entry))
    templates = [template for template in where.templates if not template.path.startswith(gone)]
    asked = {} if parts.pool is None else topology_annotations(parts.pool, len(templates))
    for template in templates:
        partials = [_called(partial, template) for partial in (parts.shared, parts.own)]
        placed = _with_rank(merge_all(get_field(made, template.path), *partials), template)
        if asked:
            placed = merge(placed, {"metadata": {"annotations": asked}})
        set_field(made, template.path, placed)
    for part in where.containers:
        set_field(made, part.path, merge(get_field(made, part.path), _container(part, parts)))
    for path, text in where.names.items():
        set_field(made, path, text.format(batch=batch, trial=metadata["name"]))
    return made


def _is_there(manifest: Manifest, path: str) -> bool:
    try:
        get_field(manifest, path)
    except KeyError:
        return False
    return True


def _with_rank(made: Manifest, template: PodTemplatePath) -> Manifest:
    """Let the sidecar of a bucket know the rank of its pod, as the launcher does: only rank 0 leaves files."""
    (launcher,) = (item for item in made["spec"]["containers"] if item["name"] == template.container)
    ranks = [variable for variable in launcher.get("env", ()) if variable["name"] == RANK_VARIABLE]
    for sidecar in made["spec"].get("initContainers", ()):
        if sidecar["name"] == STORE_CONTAINER:
            sidecar["env"] = [*sidecar["env"], *copy.deepcopy(ranks)]
    return made


def _called(partial: Manifest, template: PodTemplatePath) -> Manifest:
    """Return a partial pod template whose container has the name that the kind requires."""
    made = copy.deepcopy(partial)
    for container in made["spec"]["containers"]:
        if container["name"] == CONTAINER:
            container["name"] = template.container
            for key in ("command", "args", "env") if template.waits else ():
                container.pop(key, None)
    return made


def _container(part: ContainerPath, parts: _Parts) -> Manifest:
    """Return the trial's part of a container; the shared object starts the launcher."""
    (shared,), (own,) = parts.shared["spec"]["containers"], parts.own["spec"]["containers"]
    return {
        "image": shared["image"],
        "args": own["args"],
        "env": own["env"],
        part.resources: shared["resources"],
    }
