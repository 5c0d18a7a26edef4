"""What a trial may use: cores, memory, disk, time."""

from collections.abc import Iterator

from generator.problems import Problem
from generator.reader import shown
from generator.spec import units
from generator.spec.draft import Draft
from generator.spec.rules import amounts
from generator.structs import quantities
from generator.structs.sweep import Resources

RESOURCES = ("run", "resources")


def cpu(draft: Draft) -> Iterator[Problem]:
    """Cores are a Kubernetes quantity."""
    yield from amounts.cores(draft, (*RESOURCES, "cpu"))


def memory(draft: Draft) -> Iterator[Problem]:
    """So are memory and what is like it."""
    for key in ("memory", "scratch", "shared_memory"):
        yield from amounts.memory(draft, (*RESOURCES, key))


def shared_memory(draft: Draft) -> Iterator[Problem]:
    """What lies in `/dev/shm` is memory of the trial: more of it could never be used."""
    place = (*RESOURCES, "shared_memory")
    shared = draft.get(*place, kind=str)
    whole = draft.get(*RESOURCES, "memory", kind=str) or Resources().memory
    if shared is None or not (units.is_memory(shared) and units.is_memory(whole)):
        return
    if quantities.parse(shared) > quantities.parse(whole):
        message = f"must be at most the memory ({whole}), of which it is a part, got {shown(shared)}"
        yield draft.problem(place, message, code="shared-memory", hint="raise run.resources.memory as well")


def timeout(draft: Draft) -> Iterator[Problem]:
    """A trial that hangs must end some day."""
    yield from amounts.duration(draft, ("run", "timeout"), units.seconds)
