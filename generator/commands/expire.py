"""`sweep expire`: folders of batches on the volumes, deleted once git has held their records for long."""

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from generator.commands import committed
from generator.commands.expiring import RESULTS_VOLUME, Branch, Case, Fate, State, fate_of
from generator.commands.workspace import Workspace
from generator.errors import IdleError, RepositoryError, SpecError
from generator.repo.git import fetch
from generator.repo.shelf import GONE, Shelf
from generator.structs.names import split_batch_name
from generator.structs.settings import Settings

DAY = 86_400


@dataclass(frozen=True)
class Expired:
    """What became of everything that lies on the volumes."""

    keep_days: int
    fates: tuple[Fate, ...]
    unknown: tuple[str, ...]
    """What is no batch's folder, by its path: never touched."""

    def in_state(self, state: State) -> tuple[Fate, ...]:
        """List the batches in a state."""
        return tuple(fate for fate in self.fates if fate.state is state)


def expire(
    workspace: Workspace, volumes: Mapping[str, Path], *, remote: str, now: float, dry_run: bool = False
) -> Expired:
    """Delete what the branch has held for `results.keep`; `volumes` has `results` and may have others.

    The remote's branch decides, its settings included, whatever lies in the work tree. Raises IdleError
    where they say no time, SpecError, RepositoryError, StorageError.
    """
    branch = Branch(workspace.repository, fetch(workspace.repository, remote, workspace.settings.branch))
    days = _days(branch, f"{remote}/{workspace.settings.branch}", workspace.settings.branch)
    with ExitStack() as stack:
        shelves: dict[str, Shelf] = {}
        for name, place in sorted(volumes.items(), key=lambda item: (item[0] == RESULTS_VOLUME, item[0])):
            shelf = stack.enter_context(Shelf.opened(place))
            same = [known for known, other in shelves.items() if other.identity == shelf.identity]
            for known in same:
                del shelves[known]
            shelves[name] = shelf
        found = _Found.on(shelves)
        cases = [Case(name, branch, held, now - days * DAY) for name, held in found.batches.items()]
        return Expired(days, tuple(fate_of(case, dry_run=dry_run) for case in cases), found.unknown)


def _days(branch: Branch, followed: str, name: str) -> int:
    """Ask the branch itself how long folders are kept. Raises IdleError, SpecError, RepositoryError."""
    settings = committed.settings(branch.repository, branch.tip)
    if not isinstance(settings, Settings):
        raise SpecError(settings)
    if settings.branch != name:
        raise RepositoryError(
            f"{followed} is not what the cluster follows: its settings say branch {settings.branch!r}",
            hint="what is not there yet may still be lost: set `branch:` as the branch itself has it",
        )
    if settings.results.keep_days is None:
        raise IdleError(
            f"results.keep is not set on {followed}: nothing is deleted",
            hint="for example `results: {keep: 30d}`, and merge that",
        )
    return settings.results.keep_days


@dataclass(frozen=True)
class _Found:
    """What lies on the volumes."""

    batches: Mapping[str, Mapping[str, Shelf]]
    """By name the volumes that hold a folder of it, in their order."""
    unknown: tuple[str, ...]

    @classmethod
    def on(cls, shelves: Mapping[str, Shelf]) -> "_Found":
        known: dict[str, dict[str, Shelf]] = {}
        unknown = []
        for volume, shelf in shelves.items():
            for name in shelf.names():
                batch = name.removeprefix(GONE)
                if split_batch_name(batch) is not None and shelf.holds(name):
                    known.setdefault(batch, {})[volume] = shelf
                else:
                    unknown.append(str(shelf.place / name))
        return cls(dict(sorted(known.items())), tuple(unknown))
