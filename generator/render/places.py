"""Where a base of a distributed shape is filled in: `places.yaml`, read once, and paths followed.

A path's steps stand between dots; a step into a list is a position, or the `name` of an entry.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from generator.render.pod import Manifest


@dataclass(frozen=True, slots=True)
class Template:
    """A pod template of an object."""

    path: str
    container: str
    """Which of its containers is the trial's."""
    waits: bool = False
    """Its command is the base's: another pod starts what runs in it."""


@dataclass(frozen=True, slots=True)
class ContainerPlace:
    """A part that says as much of a container as its kind knows."""

    path: str
    resources: str
    """What resources are called there."""


@dataclass(frozen=True, slots=True)
class Others:
    """An entry for the pods beside that of rank 0: without any of them it goes."""

    entry: str
    count: str


@dataclass(frozen=True, slots=True)
class Places:
    """Everything that the generator writes into one object of a base."""

    templates: tuple[Template, ...] = ()
    containers: tuple[ContainerPlace, ...] = ()
    nodes: tuple[str, ...] = ()
    others: tuple[Others, ...] = ()
    processes: tuple[str, ...] = ()
    retries: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Texts that hold the name `{batch}` or `{trial}`, by path."""


def read(data: Mapping[str, Any]) -> Places:
    """Read one object's places."""
    return Places(
        templates=tuple(Template(**entry) for entry in data.get("templates", ())),
        containers=tuple(ContainerPlace(**entry) for entry in data.get("containers", ())),
        nodes=tuple(data.get("nodes", ())),
        others=tuple(Others(**entry) for entry in data.get("others", ())),
        processes=tuple(data.get("processes", ())),
        retries=tuple(data.get("retries", ())),
        names=dict(data.get("names", {})),
    )


def get(manifest: Manifest, path: str) -> Any:
    """Give what stands at a path. Raises KeyError where the base has no such place."""
    parent, step = _place(manifest, path)
    return parent[step]


def put(manifest: Manifest, path: str, value: Any) -> None:
    """Put a value in the place of what stands there; a number is text where the base has text."""
    parent, step = _place(manifest, path)
    parent[step] = str(value) if isinstance(parent[step], str) else value


def remove(manifest: Manifest, path: str) -> None:
    """Take an entry out."""
    parent, step = _place(manifest, path)
    del parent[step]


def _place(manifest: Manifest, path: str) -> tuple[Any, Any]:
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
