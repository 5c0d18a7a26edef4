"""What the cluster holds of batches: how many of their objects, and how many of those have ended."""

from collections.abc import Iterable
from dataclasses import dataclass

from generator.engine.cluster.kubectl import ClusterError, Kubectl, has_ended
from generator.structs.kinds import RUNNERS
from generator.structs.labels import BATCH_LABEL
from generator.structs.sweep import Shape

PODS = "/api/v1/namespaces/{}/pods"
ABSENT = frozenset({"NotFound", "UnknownKind"})


@dataclass(frozen=True, slots=True)
class Held:
    """Of one batch, the objects that run its trials."""

    objects: int = 0
    ended: int = 0

    def is_over(self, wanted: int) -> bool:
        """Tell whether every object was made, is still there, and says that it has ended."""
        return self.objects >= wanted and self.ended == self.objects


def resource(shape: Shape) -> str:
    """Give the API path, with a place for the namespace, of the objects that run a shape's trials."""
    kind = RUNNERS[shape]
    return f"/apis/{kind.api_version}/namespaces/{{}}/{kind.plural}"


def held(kubectl: Kubectl, namespace: str, shapes: Iterable[Shape]) -> dict[tuple[str, str], Held]:
    """Count the objects of all batches, by name of the batch and API path; what others made is left out.

    A kind that the server does not know has none. Raises ClusterError.
    """
    found: dict[tuple[str, str], Held] = {}
    for path in sorted({resource(shape) for shape in shapes}):
        try:
            for portion in kubectl.portions(path.format(namespace), BATCH_LABEL):
                for one in portion:
                    metadata = one["metadata"]
                    batch = metadata.get("labels", {}).get(BATCH_LABEL)
                    # Without the label nobody asked for it; with an owner, another kind's controller made it.
                    if batch is None or metadata.get("ownerReferences"):
                        continue
                    key = (batch, path)
                    before = found.get(key, Held())
                    found[key] = Held(before.objects + 1, before.ended + has_ended(one))
        except ClusterError as error:
            if error.reason not in ABSENT:
                raise
    return found


def has_pods(kubectl: Kubectl, namespace: str, batch: str) -> bool:
    """Tell whether any pod of a batch is there, whatever its phase. Raises ClusterError."""
    portions = kubectl.portions(PODS.format(namespace), f"{BATCH_LABEL}={batch}", size=1)
    return any(next(portions, ()))
