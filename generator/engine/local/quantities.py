"""What a pod asks for, or a machine has."""

from dataclasses import dataclass
from math import ceil


@dataclass(frozen=True, slots=True)
class Resources:
    """What a pod asks for, or a machine has."""

    milli_cpus: int = 0
    memory: int = 0
    """Bytes."""
    gpus: int = 0

    def plus(self, other: "Resources") -> "Resources":
        """Add what another pod asks for."""
        return Resources(
            self.milli_cpus + other.milli_cpus, self.memory + other.memory, self.gpus + other.gpus
        )

    def fits(self, capacity: "Resources") -> bool:
        """Tell whether all of it is there."""
        return (
            self.milli_cpus <= capacity.milli_cpus
            and self.memory <= capacity.memory
            and self.gpus <= capacity.gpus
        )

    @property
    def cpus(self) -> int:
        """Whole CPUs that are needed to give it what it asks for; 0 where it asks for none."""
        return ceil(self.milli_cpus / 1000)
