"""Distributed shapes: one complete object a trial, of any kind, filled in where its base says.

A kind is a folder below `base/`: `trial.yaml`, `batch.yaml` if all trials share an object, and `places.yaml`.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from generator.formats import yaml
from generator.formats.table import Table
from generator.render import components, options, places, pod
from generator.render.bases import Bases
from generator.render.merging import merge, merge_all
from generator.render.places import ContainerPlace, Places, Template
from generator.render.pod import Manifest
from generator.structs.batch import Batch
from generator.structs.labels import INDEX_VARIABLE, TRIAL_LABEL
from generator.structs.settings import Settings

CONTAINER = "trial"
"""What options and components call the container of a trial."""


@dataclass(frozen=True, slots=True)
class _Pods:
    """What an object's pods have beside their base."""

    shared: Manifest
    """Of all pods of the batch."""
    own: Manifest
    """Of this object's."""


def manifests(name: str, batch: Batch, settings: Settings, table: Table, bases: Bases) -> list[Manifest]:
    """Give the object that the trials share, if any, then one object a trial in the table's order."""
    folder = f"{batch.shape}/v1"
    where: Mapping[str, Any] = yaml.load(bases.files[f"{folder}/places.yaml"])
    shared = merge_all(
        {},
        *(components.patch(bases, component) for component in components.chosen(batch, settings)),
        options.template(name, batch, settings, table.shards),
    )
    made = []
    if "batch" in where:
        base = _prepared(bases, f"{folder}/batch.yaml", batch, places.read(where["batch"]))
        own = options.folders(settings, {"subPathExpr": f"{name}/$({INDEX_VARIABLE})"})
        pods = _Pods(shared, own)
        labels = pod.labels(name, batch, settings)
        metadata = {"name": name, "namespace": settings.namespace, "labels": labels}
        made.append(_filled(base, places.read(where["batch"]), pods, metadata, name))
    read = places.read(where["trial"])
    base = _prepared(bases, f"{folder}/trial.yaml", batch, read)
    for index in range(len(batch.trials)):
        pods = _Pods(shared, options.of_trial(name, batch, settings, table, index))
        made.append(_filled(base, read, pods, _metadata(name, batch, settings, index), name))
    return made


def trial_name(name: str, index: int) -> str:
    """Name a trial's object. Short, since operators make it the beginning of longer names of pods."""
    return f"{name}-{index}"


def _metadata(name: str, batch: Batch, settings: Settings, index: int) -> Manifest:
    labels = pod.labels(name, batch, settings) | pod.queue_labels(batch, settings)
    digest = batch.trials[index].digest
    return {
        "name": trial_name(name, index),
        "namespace": settings.namespace,
        "labels": labels | pod.trial_labels(batch, index),
        "annotations": pod.annotations(batch) | {TRIAL_LABEL: f"sha256:{digest}"},
    }


def _prepared(bases: Bases, file: str, batch: Batch, where: Places) -> Manifest:
    """Write the batch's numbers into an object of the base."""
    made: Manifest = yaml.load(bases.files[file])
    run = batch.run
    for others in where.others:
        if run.nodes > 1:
            places.put(made, others.count, run.nodes - 1)
        else:
            places.remove(made, others.entry)
    numbers = ((run.nodes, where.nodes), (run.processes, where.processes), (run.retries, where.retries))
    for number, paths in numbers:
        for path in paths:
            places.put(made, path, number)
    return made


def _filled(base: Manifest, where: Places, pods: _Pods, metadata: Manifest, batch: str) -> Manifest:
    made = copy.deepcopy(base)
    made["metadata"] = merge(made["metadata"], metadata)
    gone = tuple(f"{others.entry}." for others in where.others if not _is_there(made, others.entry))
    for template in where.templates:
        if not template.path.startswith(gone):
            places.put(made, template.path, _pod(places.get(made, template.path), template, pods))
    for part in where.containers:
        places.put(made, part.path, merge(places.get(made, part.path), _container(part, pods)))
    for path, text in where.names.items():
        places.put(made, path, text.format(batch=batch, trial=metadata["name"]))
    return made


def _is_there(manifest: Manifest, path: str) -> bool:
    try:
        places.get(manifest, path)
    except KeyError:
        return False
    return True


def _pod(base: Manifest, template: Template, pods: _Pods) -> Manifest:
    """Merge what the batch and the trial say over a pod template of the base."""
    said = [_called(partial, template) for partial in (pods.shared, pods.own)]
    return merge_all(base, *said)


def _called(partial: Manifest, template: Template) -> Manifest:
    """Give the container of a partial pod template the name that the kind demands."""
    made = copy.deepcopy(partial)
    for container in made["spec"]["containers"]:
        if container["name"] == CONTAINER:
            container["name"] = template.container
            for key in ("command", "args", "env") if template.waits else ():
                container.pop(key, None)
    return made


def _container(part: ContainerPlace, pods: _Pods) -> Manifest:
    """Say of the trial's container what is the trial's; the launcher is started by what trials share."""
    (shared,), (own,) = pods.shared["spec"]["containers"], pods.own["spec"]["containers"]
    return {
        "image": shared["image"],
        "args": own["args"],
        "env": own["env"],
        part.resources: shared["resources"],
    }
