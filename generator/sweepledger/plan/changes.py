"""Changes since the base commit: trials that a spec adds and removes, and outdated parts of its locked program."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sweepledger.problems import Problem
from sweepledger.structs.program import Program
from sweepledger.structs.trial import Trial


@dataclass(frozen=True, slots=True)
class Difference:
    """The trials of a spec compared with those at the base commit, under one program."""

    former: str | None
    """Path of the spec at the base commit; None if it is new."""
    added: tuple[Trial, ...]
    removed: tuple[Trial, ...]
    unchanged: int
    is_same_text: bool = False
    """Whether the files are equal."""

    @property
    def is_empty(self) -> bool:
        """Whether both specs have the same trials."""
        return not self.added and not self.removed


@dataclass(frozen=True, slots=True)
class UnreadableSpec:
    """A spec at the base commit that has errors by the current rules, so its trials are unknown."""

    former: str
    problems: tuple[Problem, ...]


def difference(former: str | None, before: Sequence[Trial], after: Sequence[Trial]) -> Difference:
    """Compare trials by their digests; each side keeps its order."""
    old = {trial.digest for trial in before}
    new = {trial.digest for trial in after}
    added = tuple(trial for trial in after if trial.digest not in old)
    removed = tuple(trial for trial in before if trial.digest not in new)
    return Difference(former, added, removed, len(after) - len(added))


@dataclass(frozen=True, slots=True)
class OutdatedPart:
    """A part of a program whose locked version is not the current one."""

    part: str
    """Code, image or data."""
    name: str
    """The folder of the code, or the name of the dataset; empty for the image."""
    locked: str
    current: str
    """Empty if the part does not exist any more."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file that differs between two versions of the code."""

    path: str
    """Relative to the repository."""
    added: int | None
    """Number of lines; None for a file that is not text."""
    removed: int | None


@dataclass(frozen=True, slots=True)
class CodeChange:
    """What differs between two versions of the code."""

    since: str | None
    """The merged batch that runs the former version; None: the later version is the last commit's, and does not run."""
    files: tuple[FileChange, ...] | None
    """None if this clone lacks one of the versions."""


def outdated_parts(locked: Program, current: Program) -> tuple[OutdatedPart, ...]:
    """Compare the program of a batch with the program that `sweep generate --update` would lock."""
    return tuple(part for part in _parts(locked, current) if part.locked != part.current)


def _parts(locked: Program, current: Program) -> Iterator[OutdatedPart]:
    yield OutdatedPart("code", str(locked.code), locked.code.tree, current.code.tree)
    yield OutdatedPart("image", "", locked.image, current.image)
    if locked.data:
        digest = current.data.digest if current.data else ""
        yield OutdatedPart("data", locked.data.name, locked.data.digest, digest)
