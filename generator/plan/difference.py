"""What a changed spec asks for more and less than it did: by trial, never by line of YAML."""

from collections.abc import Sequence
from dataclasses import dataclass

from generator.problems import Problem
from generator.structs.trial import Trial


@dataclass(frozen=True, slots=True)
class Difference:
    """Trials of the spec as it is and as it was, under one program."""

    former: str | None
    """The file of the spec as it was; None where there was none."""
    added: tuple[Trial, ...]
    removed: tuple[Trial, ...]
    unchanged: int
    is_same_text: bool = False
    """Whether the spec is word for word the one there."""

    @property
    def is_empty(self) -> bool:
        """Tell whether both ask for the same trials."""
        return not self.added and not self.removed


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The spec as it was is wrong by today's rules, so nobody can say what it asked for."""

    former: str
    problems: tuple[Problem, ...]


def difference(former: str | None, before: Sequence[Trial], after: Sequence[Trial]) -> Difference:
    """Compare trials by their digests; each side keeps its order."""
    was = {trial.digest for trial in before}
    now = {trial.digest for trial in after}
    added = tuple(trial for trial in after if trial.digest not in was)
    removed = tuple(trial for trial in before if trial.digest not in now)
    return Difference(former, added, removed, len(after) - len(added))
