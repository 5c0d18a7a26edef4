"""Whether results commits keep to their places: a sweep's results, its batches' move, their Flux files."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from generator.commands.differing import Difference
from generator.render.platform import flux
from generator.repo.batches import ACTIVE, ARCHIVE
from generator.repo.git import Entry, Repository, Touch, touches
from generator.results.tree import RESULTS
from generator.structs.names import is_sweep_name, split_batch_name

GONE = "0" * 40
PARTS = 3
"""Of `overlays/active/<batch>`, and of what follows it a path more."""


@dataclass(frozen=True)
class Confined:
    """What was found between two commits."""

    sweeps: tuple[str, ...]
    """Whose results changed."""
    stray: tuple[Difference, ...]
    """Paths that a results commit must not touch, or not so."""


def confined(repository: Repository, since: str, until: str) -> Confined:
    """Look at every commit in between that changes `results/`; of a merge, at what no parent of it has."""
    sweeps: set[str] = set()
    stray: set[Difference] = set()
    for touch in touches(repository, since, until, (), signers=()):
        named = {path.split("/")[1] for path in touch.paths if path.startswith(f"{RESULTS}/")}
        if named:
            sweeps |= named
            stray.update(_stray(repository, touch, sorted(named)))
    return Confined(tuple(sorted(filter(is_sweep_name, sweeps))), tuple(sorted(stray)))


def _stray(repository: Repository, touch: Touch, sweeps: list[str]) -> Iterator[Difference]:
    commit = touch.id[:12]
    if len(sweeps) > 1 or not is_sweep_name(sweeps[0]):
        message = f"commit {commit} must record one sweep, got {', '.join(map(repr, sweeps[:3]))}"
        yield Difference(RESULTS, "", "", message)
        return
    stood = repository.files(f"{touch.id}^", ACTIVE) if repository.commit(f"{touch.id}^") else {}
    for path, identity in sorted(touch.blobs.items()):
        if path.startswith(f"{RESULTS}/") or _is_move(path, identity, sweeps[0], stood):
            continue
        message = f"commit {commit} records {sweeps[0]} and must not touch this file"
        yield Difference(path, "", "", message)


def _is_move(path: str, identity: str, sweep: str, stood: Mapping[str, Entry]) -> bool:
    """Tell whether it is part of an unchanged move from `active/` to `archive/`, or of what goes with it."""
    place, _, name = path.removesuffix(".yaml").rpartition("/")
    if place == flux.ACTIVE:
        return identity == GONE and _is_of(name, sweep)
    parts = path.split("/")
    if len(parts) <= PARTS or not _is_of(parts[2], sweep):
        return False
    if "/".join(parts[:2]) == ACTIVE:
        return identity == GONE
    before = stood.get("/".join([ACTIVE, *parts[2:]]))
    return "/".join(parts[:2]) == ARCHIVE and before is not None and before.id == identity


def _is_of(batch: str, sweep: str) -> bool:
    found = split_batch_name(batch)
    return found is not None and found[0] == sweep
