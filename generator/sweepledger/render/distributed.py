"""Distributed shapes: one complete object per trial, of any kind, filled in at the paths that its base lists.

A kind is a folder below `base/`: `trial.yaml`, `batch.yaml` if all trials share an object, and `places.yaml`
with the paths. The steps of a path are separated by dots; a step into a list is an index, or the `name` of
an entry.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from sweepledger.formats import yaml
from sweepledger.render.base_files import SHAPE_FOLDERS
from sweepledger.render.manifest import Manifest, merge
from sweepledger.render.pod import Pods
from sweepledger.render.scheduling import topology_annotations
from sweepledger.structs.kubernetes import (
    INDEX_VARIABLE,
    RANK_VARIABLE,
    STORE_CONTAINER,
    trial_folder_by_variable,
)
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
    names: Mapping[str, str] = field(default_factory=dict)
    """Texts with the name `{batch}` or `{trial}`, by path."""


def set_field(manifest: Manifest, path: str, value: Any) -> None:
    """Replace the value at a path; a number becomes text if the base has text."""
    parent, step = _locate(manifest, path)
    parent[step] = str(value) if isinstance(parent[step], str) else value


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


def manifests(pods: Pods) -> list[Manifest]:
    """Return the object that the trials share, if any, then one object per trial in the order of the table."""
    name, bases, folder = pods.name, pods.bases, SHAPE_FOLDERS[pods.batch.shape]
    where = msgspec.convert(yaml.load(bases[f"{folder}/places.yaml"]), dict[str, FieldPaths])
    made = {
        kind: _prepared(yaml.load(bases[f"{folder}/{kind}.yaml"]), pods.run, paths)
        for kind, paths in where.items()
    }
    shared, filled = pods.shared_template({}), []
    if "batch" in where:
        own = pods.output_mounts(trial_folder_by_variable(name, INDEX_VARIABLE))
        metadata: Manifest = {"name": name, "namespace": pods.trials.namespace, "labels": pods.labels}
        filled.append(_filled(pods, made["batch"], where["batch"], (shared, own), metadata))
    for index in range(len(pods.batch.trials)):
        partials = (shared, pods.trial_template(index))
        metadata = pods.trial_metadata(trial_name(name, index), index)
        filled.append(_filled(pods, made["trial"], where["trial"], partials, metadata))
    return filled


def trial_name(name: str, index: int) -> str:
    """Return the name of a trial's object; short, because operators append to it."""
    return f"{name}-{index}"


def _prepared(made: Manifest, run: RunConfig, where: FieldPaths) -> Manifest:
    """Fill in the numbers, which all trials share, in this object itself."""
    for others in where.others:
        if run.nodes > 1:
            set_field(made, others.count, run.nodes - 1)
        else:
            parent, step = _locate(made, others.entry)
            del parent[step]
    numbers = ((run.nodes, where.nodes), (run.processes, where.processes), (run.retries, where.retries))
    for number, paths in numbers:
        for path in paths:
            set_field(made, path, number)
    return made


def _filled(
    pods: Pods, base: Manifest, where: FieldPaths, partials: tuple[Manifest, Manifest], metadata: Manifest
) -> Manifest:
    """Return an object whose pod templates have the shared part and the trial's own part merged over them."""
    made = copy.deepcopy(base)
    made["metadata"] = merge(made["metadata"], metadata)
    gone = tuple(f"{others.entry}." for others in where.others) if pods.run.nodes <= 1 else ()
    templates = [template for template in where.templates if not template.path.startswith(gone)]
    asked = {} if pods.pool is None else topology_annotations(pods.pool, len(templates))
    for template in templates:
        parent, step = _locate(made, template.path)
        placed = merge(parent[step], *(_called(partial, template) for partial in partials))
        # The sidecar of a bucket knows the rank of its pod, as the launcher does: only rank 0 leaves files.
        (launcher,) = (item for item in placed["spec"]["containers"] if item["name"] == template.container)
        ranks = [variable for variable in launcher.get("env", ()) if variable["name"] == RANK_VARIABLE]
        for sidecar in placed["spec"].get("initContainers", ()):
            if sidecar["name"] == STORE_CONTAINER:
                sidecar["env"] = [*sidecar["env"], *copy.deepcopy(ranks)]
        parent[step] = merge(placed, {"metadata": {"annotations": asked}}) if asked else placed
    (shared,), (own,) = (partial["spec"]["containers"] for partial in partials)
    for part in where.containers:
        # The trial's part of a container; the shared object starts the launcher.
        own_part = {"image": shared["image"], "args": own["args"], "env": own["env"]}
        parent, step = _locate(made, part.path)
        parent[step] = merge(parent[step], own_part | {part.resources: shared["resources"]})
    for path, text in where.names.items():
        set_field(made, path, text.format(batch=pods.name, trial=metadata["name"]))
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
