"""What the cluster holds of batches: the objects that run their trials, and what these say of themselves."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from generator.engine.cluster import parts
from generator.engine.cluster.kubectl import ClusterError, Kubectl, Manifest, conditions
from generator.structs.kinds import RUNNERS, Kind
from generator.structs.labels import BATCH_LABEL, INDEX_LABEL
from generator.structs.sweep import Shape

ABSENT = frozenset({"NotFound", "UnknownKind"})
WELL = ("Complete", "Completed", "Succeeded")
ENDS = (*WELL, "Failed")
"""Conditions by which a Job, or another kind's, says that it has ended for good."""

NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)
RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Runner:
    """An object that runs one trial of a batch, or all of them."""

    index: int | None
    """None: all of them, each with its completion index."""
    has_ended: bool
    is_complete: bool
    """Whether it ended well."""
    finished: float | None
    """When it ended."""
    is_suspended: bool
    """Whether nothing of it runs because a queue, or a person, holds it back."""
    completed: str = ""
    failed: str = ""
    """The completion indexes that are over, as a Job writes them: `0,3-7`."""

    def succeeded(self, trials: int) -> Iterator[int]:
        """Yield the trials that ended well."""
        if self.index is None:
            yield from indexes(self.completed, trials)
        elif self.is_complete and self.index < trials:
            yield self.index

    def over(self, trials: int) -> Iterator[int]:
        """Yield the trials that are not tried again."""
        if self.index is not None:
            yield from range(self.index, min(self.index + 1, trials) if self.has_ended else self.index)
        elif self.has_ended:
            yield from range(trials)
        else:
            yield from indexes(self.completed, trials)
            yield from indexes(self.failed, trials)


@dataclass(frozen=True, slots=True)
class Held:
    """Of one batch, the objects that run its trials."""

    runners: tuple[Runner, ...] = ()

    @property
    def is_running(self) -> bool:
        """Tell whether any object has not ended."""
        return any(not one.has_ended for one in self.runners)

    def is_over(self, wanted: int) -> bool:
        """Tell whether every object was made, is still there, and says that it has ended."""
        return len(self.runners) >= wanted and not self.is_running

    @property
    def finished(self) -> float | None:
        """When the last of those that say so ended."""
        return max((one.finished for one in self.runners if one.finished is not None), default=None)

    def succeeded(self, trials: int) -> frozenset[int]:
        """Name the trials, of so many, that ended well."""
        return frozenset(index for one in self.runners for index in one.succeeded(trials))

    def suspended(self, trials: int) -> frozenset[int]:
        """Name the trials, of so many, that are held back."""
        held = [one for one in self.runners if one.is_suspended]
        every = range(trials) if any(one.index is None for one in held) else ()
        return frozenset((*every, *(one.index for one in held if one.index is not None)))

    def over(self, trials: int) -> frozenset[int]:
        """Name the trials, of so many, that are not tried again."""
        return frozenset(index for one in self.runners for index in one.over(trials))


def resource(shape: Shape) -> str:
    """Give the API path, with a place for the namespace, of the objects that run a shape's trials."""
    kind = RUNNERS[shape]
    return f"/apis/{kind.api_version}/namespaces/{{}}/{kind.plural}"


def held(kubectl: Kubectl, namespace: str, shapes: Iterable[Shape]) -> dict[tuple[str, str], Held]:
    """Look at the objects of all batches, by name of the batch and API path; what others made is left out.

    A kind that the server does not know has none. Raises ClusterError.
    """
    found: dict[tuple[str, str], list[Runner]] = {}
    for path, kind in sorted({(resource(shape), RUNNERS[shape]) for shape in shapes}, key=_path):
        try:
            for portion in kubectl.portions(path.format(namespace), BATCH_LABEL):
                for one in portion:
                    metadata = one["metadata"]
                    batch = metadata.get("labels", {}).get(BATCH_LABEL)
                    # Without the label nobody asked for it; with an owner, another kind's controller made it.
                    if batch is not None and not metadata.get("ownerReferences"):
                        found.setdefault((batch, path), []).append(runner(one, kind))
        except ClusterError as error:
            if error.reason not in ABSENT:
                raise
    return {key: Held(tuple(runners)) for key, runners in found.items()}


def _path(found: tuple[str, Kind]) -> str:
    return found[0]


def runner(manifest: Manifest, kind: Kind) -> Runner:
    """Read an object that runs trials; in a list it does not say of which kind it is."""
    index = parts.text(manifest, "metadata", "labels", INDEX_LABEL)
    seen = conditions(manifest)
    has_ended = any(seen.get(name) == "True" for name in ENDS)
    ended = [
        moment
        for name in ENDS
        if (moment := parts.moment(parts.condition(manifest, name), "lastTransitionTime")) is not None
    ]
    return Runner(
        index=int(index) if NUMBER.fullmatch(index) else None,
        has_ended=has_ended,
        is_complete=any(seen.get(name) == "True" for name in WELL),
        finished=max(ended, default=None) if has_ended else None,
        is_suspended=parts.at(manifest, *kind.policy, "suspend") is True,
        completed=parts.text(manifest, "status", "completedIndexes"),
        failed=parts.text(manifest, "status", "failedIndexes"),
    )


def indexes(text: str, below: int) -> Iterator[int]:
    """Yield the completion indexes that a Job lists, those below a number: it may list anything."""
    for part in text.split(","):
        if found := RANGE.fullmatch(part):
            first = int(found[1])
            yield from range(first, min(int(found[2] or first) + 1, below))
