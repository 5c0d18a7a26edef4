"""Checks of the commits that changed results: signatures and changed paths."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from sweepledger.commands.verification.file_diff import FileDifference
from sweepledger.render.platform import flux
from sweepledger.repo.batches import ACTIVE, ARCHIVE
from sweepledger.repo.git import CommitSignature, Entry, Repository, commit_signatures
from sweepledger.results.paths import RECORDS, RESULTS, batch_of_records
from sweepledger.structs.names import LOCK_FILE, is_sweep_name, split_batch_name


@dataclass(frozen=True, slots=True)
class UnsignedChange:
    """A commit that changed results without a listed key's signature, or a path whose content no signed commit has."""

    commit: str | None
    path: str
    message: str


@dataclass(frozen=True, slots=True)
class SignatureAudit:
    """The signatures of the commits that changed some files."""

    commits: int
    """Commits that changed them."""
    signed: int
    unsigned: tuple[UnsignedChange, ...]
    laptop: int = 0
    """Unsigned commits that bring records of batches marked as made on a laptop, and of no other batch."""


def audit_signatures(
    repository: Repository,
    commit: str,
    entries: Mapping[str, Entry],
    folder: str,
    signers: Iterable[str],
    *,
    marked: Collection[str] = (),
) -> SignatureAudit:
    """Check every commit of a history that changed a results folder, and the current content of its files.

    `marked` are batches that are made on a laptop: nobody signs what only adds their records.
    """
    changes = commit_signatures(repository, None, commit, [f"{folder}/"], signers=signers)
    signed = sum(change.is_signed for change in changes)
    first = {path: change for change in changes for path in change.paths}  # the oldest comes last
    laptop = [
        change for change in changes if not change.is_signed and _only_adds(change, first, folder, marked)
    ]
    unsigned = [
        UnsignedChange(change.id, change.paths[0], "is signed by no listed key")
        for change in changes
        if not change.is_signed and change not in laptop
    ]
    rolled = _rolled_back(repository, changes, entries) if not unsigned else ()
    return SignatureAudit(len(changes), signed, (*unsigned, *rolled), len(laptop))


def _only_adds(
    change: CommitSignature, first: Mapping[str, CommitSignature], folder: str, marked: Collection[str]
) -> bool:
    """Return whether a commit changes no records but adds those of marked batches; reports follow from records."""
    records = [path for path in change.paths if path.startswith(f"{folder}/{RECORDS}/")]
    return bool(records) and all(
        batch_of_records(path) in marked and first[path] is change for path in records
    )


def _rolled_back(
    repository: Repository, changes: Sequence[CommitSignature], entries: Mapping[str, Entry]
) -> Iterator[UnsignedChange]:
    """Yield the files that a merge set back to an older version: no commit shows this as a change."""
    newest: dict[str, CommitSignature] = {}
    for change in reversed(changes):
        newest |= dict.fromkeys(change.blobs, change)
    for path in sorted(newest.keys() | entries.keys()):
        blob = entries[path].id if path in entries else None
        last = newest.get(path)
        if last is not None and _blob_after(last, path) == blob:
            continue
        others = [change for change in changes if path in change.blobs and _blob_after(change, path) == blob]
        if last is None or not any(not repository.contains(last.id, change.id) for change in others):
            yield UnsignedChange(
                last.id if last else None, path, "is not what the last signed commit left there"
            )


def _blob_after(change: CommitSignature, path: str) -> str | None:
    blob = change.blobs[path]
    return blob if blob.strip("0") else None


LOCK = re.compile(rf"{ACTIVE}/[^/]+/{LOCK_FILE}")
GONE = "0" * 40
PARTS = 3
"""Number of parts of `overlays/active/<batch>`; the path of a file has more."""


def audit_paths(
    repository: Repository, since: str, until: str
) -> tuple[tuple[str, ...], tuple[FileDifference, ...]]:
    """Check every commit since another that changes `results/`; in a merge, files that equal no parent's.

    Return the sweeps whose results changed, and the changes that a results commit must not make.
    """
    sweeps: set[str] = set()
    stray: set[FileDifference] = set()
    for change in commit_signatures(repository, since, until, (), signers=()):
        named = {path.split("/")[1] for path in change.paths if path.startswith(f"{RESULTS}/")}
        if named:
            sweeps |= named
            stray.update(_stray_paths(repository, change, sorted(named)))
    return tuple(sorted(filter(is_sweep_name, sweeps))), tuple(sorted(stray))


def _stray_paths(
    repository: Repository, change: CommitSignature, sweeps: list[str]
) -> Iterator[FileDifference]:
    commit = change.id[:12]
    if len(sweeps) > 1 or not is_sweep_name(sweeps[0]):
        message = f"commit {commit} must record one sweep, got {', '.join(map(repr, sweeps[:3]))}"
        yield FileDifference(RESULTS, "", "", message)
        return
    active = repository.files(f"{change.id}^", ACTIVE) if repository.commit(f"{change.id}^") else {}
    locks = [path for path, identity in change.blobs.items() if LOCK.fullmatch(path) and identity != GONE]
    added = {path.split("/")[2] for path in locks if path not in active}
    for path, identity in sorted(change.blobs.items()):
        if path.startswith(f"{RESULTS}/") or _is_move(path, identity, sweeps[0], active, added):
            continue
        message = f"commit {commit} records {sweeps[0]} and must not touch this file"
        yield FileDifference(path, "", "", message)


def _is_move(
    path: str, identity: str, sweep: str, active: Mapping[str, Entry], added: Collection[str]
) -> bool:
    """Return whether a change belongs to an unchanged move of a batch to `archive/`, or to one in `added`.

    `verify_since` compares what an added batch contains.
    """
    if announced := flux.BATCH_FILE.fullmatch(path):
        return _is_batch_of(announced[1], sweep) and (identity == GONE or announced[1] in added)
    parts = path.split("/")
    if len(parts) <= PARTS or not _is_batch_of(parts[2], sweep):
        return False
    if "/".join(parts[:2]) == ACTIVE:
        return identity == GONE or parts[2] in added
    before = active.get("/".join([ACTIVE, *parts[2:]]))
    return "/".join(parts[:2]) == ARCHIVE and before is not None and before.id == identity


def _is_batch_of(batch: str, sweep: str) -> bool:
    parts = split_batch_name(batch)
    return parts is not None and parts[0] == sweep
