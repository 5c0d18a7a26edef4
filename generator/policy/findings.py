"""What a rule finds in an object: where, what, and the way out. No file yet: who asked knows it."""

from dataclasses import dataclass

from generator.problems import Severity
from generator.reader.paths import Path


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that an object breaks."""

    path: Path
    """From the object's top."""
    message: str
    code: str
    hint: str | None = None
    severity: Severity = Severity.ERROR
    is_surplus: bool = False
    """A field too many: what is beside it can be looked at all the same."""
