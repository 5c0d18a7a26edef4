"""The commits that changed results: signed by a listed key, and confined to a results commit's paths."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sweepledger.commands.verification.file_diff import FileDifference
from sweepledger.render.platform import flux
from sweepledger.repo.batches import ACTIVE, ARCHIVE
from sweepledger.repo.git import CommitSignature, Entry, Repository, commit_signatures
from sweepledger.results.tree import RESULTS
from sweepledger.structs.names import is_sweep_name, split_batch_name


@dataclass(frozen=True, slots=True)
class UnsignedChange:
    """A commit that changed results without a listed key's signature, or a path whose content no signed commit has."""

    commit: str | None
    path: str
    message: str

    def as_data(self) -> dict[str, str | None]:
        """Return the JSON data."""
        return {"commit": self.commit, "path": self.path, "message": self.message}


@dataclass(frozen=True, slots=True)
class SignatureAudit:
    """What signatures show for some files."""

    commits: int
    """Commits that changed them."""
    signed: int
    unsigned: tuple[UnsignedChange, ...]


def audit_signatures(
    repository: Repository, commit: str, held: Mapping[str, Entry], folder: str, signers: Iterable[str]
) -> SignatureAudit:
    """Check every commit of a history that changed a folder, and the current content of its files."""
    found = commit_signatures(repository, None, commit, [f"{folder}/"], signers=signers)
    unsigned = [
        UnsignedChange(touch.id, touch.paths[0], "is signed by no listed key")
        for touch in found
        if not touch.is_signed
    ]
    rolled = _rolled_back(repository, found, held) if not unsigned else ()
    return SignatureAudit(len(found), sum(touch.is_signed for touch in found), (*unsigned, *rolled))


def _rolled_back(
    repository: Repository, found: Sequence[CommitSignature], held: Mapping[str, Entry]
) -> Iterator[UnsignedChange]:
    """Yield the files that a merge set back to an older version: no commit shows this as a change."""
    newest: dict[str, CommitSignature] = {}
    for touch in reversed(found):
        newest |= dict.fromkeys(touch.blobs, touch)
    for path in sorted(newest.keys() | held.keys()):
        blob = held[path].id if path in held else None
        last = newest.get(path)
        if last is not None and _blob_after(last, path) == blob:
            continue
        others = [touch for touch in found if path in touch.blobs and _blob_after(touch, path) == blob]
        if last is None or not any(not repository.contains(last.id, touch.id) for touch in others):
            yield UnsignedChange(
                last.id if last else None, path, "is not what the last signed commit left there"
            )


def _blob_after(touch: CommitSignature, path: str) -> str | None:
    blob = touch.blobs[path]
    return blob if blob.strip("0") else None


GONE = "0" * 40
PARTS = 3
"""Number of parts of `overlays/active/<batch>`; the path of a file has more."""


@dataclass(frozen=True)
class PathAudit:
    """What was found between two commits."""

    sweeps: tuple[str, ...]
    """Sweeps whose results changed."""
    stray: tuple[FileDifference, ...]
    """Paths that a results commit must not touch, or not so."""


def audit_paths(repository: Repository, since: str, until: str) -> PathAudit:
    """Check every commit since another that changes `results/`; in a merge, files that equal no parent's."""
    sweeps: set[str] = set()
    stray: set[FileDifference] = set()
    for touch in commit_signatures(repository, since, until, (), signers=()):
        named = {path.split("/")[1] for path in touch.paths if path.startswith(f"{RESULTS}/")}
        if named:
            sweeps |= named
            stray.update(_stray_paths(repository, touch, sorted(named)))
    return PathAudit(tuple(sorted(filter(is_sweep_name, sweeps))), tuple(sorted(stray)))


def _stray_paths(
    repository: Repository, touch: CommitSignature, sweeps: list[str]
) -> Iterator[FileDifference]:
    commit = touch.id[:12]
    if len(sweeps) > 1 or not is_sweep_name(sweeps[0]):
        message = f"commit {commit} must record one sweep, got {', '.join(map(repr, sweeps[:3]))}"
        yield FileDifference(RESULTS, "", "", message)
        return
    stood = repository.files(f"{touch.id}^", ACTIVE) if repository.commit(f"{touch.id}^") else {}
    for path, identity in sorted(touch.blobs.items()):
        if path.startswith(f"{RESULTS}/") or _is_move(path, identity, sweeps[0], stood):
            continue
        message = f"commit {commit} records {sweeps[0]} and must not touch this file"
        yield FileDifference(path, "", "", message)


def _is_move(path: str, identity: str, sweep: str, stood: Mapping[str, Entry]) -> bool:
    """Return whether a change belongs to an unchanged move of a batch to `archive/`."""
    place, _, name = path.removesuffix(".yaml").rpartition("/")
    if place == flux.ACTIVE:
        return identity == GONE and _is_batch_of(name, sweep)
    parts = path.split("/")
    if len(parts) <= PARTS or not _is_batch_of(parts[2], sweep):
        return False
    if "/".join(parts[:2]) == ACTIVE:
        return identity == GONE
    before = stood.get("/".join([ACTIVE, *parts[2:]]))
    return "/".join(parts[:2]) == ARCHIVE and before is not None and before.id == identity


def _is_batch_of(batch: str, sweep: str) -> bool:
    found = split_batch_name(batch)
    return found is not None and found[0] == sweep
