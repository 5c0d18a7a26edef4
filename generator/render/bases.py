"""The building blocks that overlays copy, fill in, or refer to."""

from collections.abc import Mapping
from dataclasses import dataclass

LAUNCHER = "launcher/v1"
LAUNCHER_FILE = "launch.py"


@dataclass(frozen=True, slots=True)
class Bases:
    """What lies below `base/`: overlays copy it, fill it in, or refer to it."""

    files: Mapping[str, bytes]
    """By path below `base/`, such as `launcher/v1/launch.py`."""

    @property
    def launcher(self) -> bytes:
        """The launcher, of which every overlay has a copy."""
        return self.files[f"{LAUNCHER}/{LAUNCHER_FILE}"]
