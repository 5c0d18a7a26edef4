"""Pods that the tool starts by itself: what the engine runs, and the admission policy lets through."""

from dataclasses import dataclass

COMPONENT_LABEL = "app.kubernetes.io/component"


@dataclass(frozen=True, slots=True)
class Errand:
    """One container that does one thing."""

    component: str
    """The label by which the pod is known."""
    command: tuple[str, ...]


PROOF = Errand(
    "sweep-doctor",
    ("python3", "-c", "import os; p = '/sweep/results/written'; open(p, 'w').close(); os.remove(p)"),
)
"""Writes to the results volume as a trial would, in a folder called like the component."""

READER_SECONDS = 1800
"""It ends by itself after so long, however the person's machine fared."""

READER = Errand("sweep-reader", ("sleep", str(READER_SECONDS)))
"""Stays while a person copies results out of a volume that it can only read."""
