"""Who vouches for recorded results: whether every commit that touched them is signed by a listed key."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from generator.repo.git import Entry, Repository, Touch, touches


@dataclass(frozen=True, slots=True)
class Unsigned:
    """A commit that changed results and that no listed key signed; or a path that no signed one left so."""

    commit: str | None
    path: str
    message: str

    def as_data(self) -> dict[str, str | None]:
        """Give what machines want to know."""
        return {"commit": self.commit, "path": self.path, "message": self.message}


@dataclass(frozen=True, slots=True)
class Vouched:
    """What signatures say of some files."""

    commits: int
    """That touched them."""
    signed: int
    unsigned: tuple[Unsigned, ...]


def vouched(
    repository: Repository, commit: str, held: Mapping[str, Entry], folder: str, signers: Iterable[str]
) -> Vouched:
    """Look at every commit of a history that touched a folder, and at what its files are now."""
    found = touches(repository, None, commit, [f"{folder}/"], signers=signers)
    unsigned = [
        Unsigned(touch.id, touch.paths[0], "is signed by no listed key")
        for touch in found
        if not touch.is_signed
    ]
    rolled = _rolled_back(repository, found, held) if not unsigned else ()
    return Vouched(len(found), sum(touch.is_signed for touch in found), (*unsigned, *rolled))


def _rolled_back(
    repository: Repository, found: Sequence[Touch], held: Mapping[str, Entry]
) -> Iterator[Unsigned]:
    """Find what a merge has put back to an older version: no commit shows that as a change."""
    newest: dict[str, Touch] = {}
    for touch in reversed(found):
        newest |= dict.fromkeys(touch.blobs, touch)
    for path in sorted(newest.keys() | held.keys()):
        blob = held[path].id if path in held else None
        last = newest.get(path)
        if last is not None and _left(last, path) == blob:
            continue
        others = [touch for touch in found if path in touch.blobs and _left(touch, path) == blob]
        if last is None or not any(not repository.holds(last.id, touch.id) for touch in others):
            yield Unsigned(last.id if last else None, path, "is not what the last signed commit left there")


def _left(touch: Touch, path: str) -> str | None:
    blob = touch.blobs[path]
    return blob if blob.strip("0") else None
