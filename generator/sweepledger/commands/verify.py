"""`sweep verify`: all that follows from a clone worked out again, offline, and held against what is there.

It reads files and signatures; messages and trailers of commits have no say, so a merge, a squash or a rebase
changes nothing but who has signed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from generator.commands import auditing, committed, ledger, recorded, repeating
from generator.commands.auditing import Audit
from generator.commands.confined import confined
from generator.commands.differing import Difference, differences
from generator.commands.rebuilding import rebuilt, recorded_batches
from generator.commands.vouching import Vouched, vouched
from generator.commands.workspace import Workspace
from generator.errors import IdleError, RepositoryError, StorageError, UsageError
from generator.repo import batches, files
from generator.repo.batches import ARCHIVE, StoredBatch
from generator.repo.git import Entry, commits, uncommitted
from generator.results import results_folder
from generator.results.tree import RESULTS
from generator.structs.names import is_sweep_name
from generator.structs.settings import Settings


class State(StrEnum):
    """What can be said of a sweep's results."""

    VERIFIED = "verified"
    """They are what the records say, and listed keys signed every commit that touched them."""
    DIFFERS = "differs"
    UNSIGNED = "unsigned"
    """They are what the records say; who wrote those nobody vouches for."""


@dataclass(frozen=True)
class Verified:
    """A sweep's results, held against what they were made of."""

    sweep: str
    batches: int
    trials: int
    differences: tuple[Difference, ...]
    vouched: Vouched

    @property
    def state(self) -> State:
        """Say in a word what was found."""
        if self.differences:
            return State.DIFFERS
        return State.UNSIGNED if self.vouched.unsigned or not self.vouched.signed else State.VERIFIED

    def as_data(self) -> dict[str, Any]:
        """Give what machines want to know."""
        return {
            "sweep": self.sweep,
            "state": str(self.state),
            "batches": self.batches,
            "trials": self.trials,
            "commits": self.vouched.commits,
            "signed": self.vouched.signed,
            "differences": [one.as_data() for one in self.differences],
            "unsigned": [one.as_data() for one in self.vouched.unsigned],
        }


@dataclass(frozen=True)
class Verdict:
    """What was found at a commit."""

    commit: str
    signers: int
    """How many lines of allowed signers there are: with none nothing can be vouched for."""
    sweeps: tuple[Verified, ...]
    stray: tuple[Difference, ...] = ()
    """What results commits since a given one touched and must not."""

    @property
    def is_good(self) -> bool:
        """Tell whether nothing differs and, where keys are listed, all is signed."""
        bad = {State.DIFFERS, State.UNSIGNED} if self.signers else {State.DIFFERS}
        return not self.stray and not any(one.state in bad for one in self.sweeps)


def verify(
    workspace: Workspace,
    asked: str | None = None,
    *,
    revision: str | None = None,
    signers: Path | None = None,
) -> Verdict:
    """Verify one sweep's results or all, at HEAD with what lies in the work tree, or at another commit.

    `signers` is a file of git's allowed signers that counts instead of those of the settings at the commit:
    who rewrites a history can list a key of their own. Raises UsageError, or IdleError where nothing is
    recorded.
    """
    repository = workspace.repository
    commit = repository.commit(revision or "HEAD")
    if commit is None:
        raise UsageError(f"{revision or 'HEAD'} names no commit", hint="try a branch, a tag or HEAD~1")
    stored = batches.in_commit(repository, commit)
    present = {batch.sweep for batch in stored if not batch.is_active} | _folders(workspace, commit)
    names = (
        sorted(present) if asked is None else [ledger.chosen(workspace, asked, _known(workspace, present))]
    )
    lines = _signers(workspace, commit, signers)
    verifying = _Verifying(workspace, commit, stored, lines, with_work_tree=revision is None)
    found = tuple(one for one in map(verifying.sweep, names) if one is not None)
    if asked is not None and not found:
        raise IdleError(
            f"nothing is recorded of {names[0]!r} at {commit[:12]}", hint="`sweep status` says why"
        )
    return Verdict(commit, len(lines), found)


def verify_since(
    workspace: Workspace, since: str, *, revision: str | None = None, signers: Path | None = None
) -> Verdict:
    """Verify the sweeps whose results changed since a commit, and that no results commit touched more.

    Raises UsageError for a revision that does not exist.
    """
    repository = workspace.repository
    known = {name: repository.commit(name) for name in (since, revision or "HEAD")}
    for name, commit in known.items():
        if commit is None:
            raise UsageError(f"{name} names no commit", hint="try a branch, a tag or HEAD~1")
    before, until = (known[name] or "" for name in (since, revision or "HEAD"))
    touched = confined(repository, before, until)
    lines = _signers(workspace, before, signers)  # who changes the keys is judged by those that stood
    stored = batches.in_commit(repository, until)
    verifying = _Verifying(workspace, until, stored, lines, with_work_tree=False)
    found = tuple(one for one in map(verifying.sweep, touched.sweeps) if one is not None)
    return Verdict(until, len(lines), found, touched.stray)


def _known(workspace: Workspace, present: set[str]) -> set[str]:
    return present | ledger.sweeps(workspace, batches.in_work_tree(workspace.root))


def _folders(workspace: Workspace, commit: str) -> set[str]:
    """Name the folders below results/, of the commit and of its history: what is gone was there."""
    paths = {path for one in commits(workspace.repository, RESULTS, revision=commit) for path in one.files}
    names = {path.split("/")[1] for path in paths if path.count("/") > 1}
    return {name for name in names if is_sweep_name(name)}


def _signers(workspace: Workspace, commit: str, chosen: Path | None) -> tuple[str, ...]:
    if chosen is not None:
        text = files.read_input(chosen).decode(errors="replace")
        return tuple(line for line in text.splitlines() if line and not line.startswith("#"))
    settings = committed.settings(workspace.repository, commit)
    return settings.signers if isinstance(settings, Settings) else ()


@dataclass(frozen=True)
class _Verifying:
    workspace: Workspace
    commit: str
    stored: tuple[StoredBatch, ...]
    signers: tuple[str, ...]
    with_work_tree: bool

    def sweep(self, sweep: str) -> Verified | None:
        """Verify one sweep; None where nothing of it is recorded yet."""
        repository, folder = self.workspace.repository, results_folder(sweep)
        held = repository.files(self.commit, folder)
        archived = [batch for batch in batches.of_sweep(self.stored, sweep) if not batch.is_active]
        seen = vouched(repository, self.commit, held, folder, self.signers)
        if not held and not seen.commits:
            return None
        listed = {path: entry for path, entry in held.items() if path.startswith(f"{folder}/")}
        contents = repository.read(self.commit, folder)
        done = recorded_batches(repository, self.commit, sweep, listed)
        batches.load(done)
        found = set(self._found(sweep, done, listed, contents))
        if found:
            found.update(repeating.told(sweep, done, contents))
        if self.with_work_tree:
            found.update(self._work_tree(folder, *(batch.folder for batch in archived)))
        rows = sum(batch.lock.trials for batch in done if _is_legible(batch))
        return Verified(sweep, len(done), rows, tuple(sorted(found)), seen)

    def _found(
        self,
        sweep: str,
        done: tuple[StoredBatch, ...],
        held: Mapping[str, Entry],
        contents: Mapping[str, bytes],
    ) -> Iterator[Difference]:
        repository, folder = self.workspace.repository, results_folder(sweep)
        audit = Audit(repository, self.commit)
        whole = {**held, **repository.files(self.commit, ARCHIVE)}
        yield from auditing.modes({**held, **auditing.inputs_of(sweep, whole)})
        for batch in done:
            yield from audit.batch(batch)
            yield from auditing.records(batch, contents[recorded.records_file(batch)])
        yield from audit.inputs(sweep, whole)
        try:
            wanted = rebuilt(repository, self.commit, sweep)
        except (RepositoryError, KeyError, ValueError) as error:
            yield Difference(folder, "", "", f"cannot be worked out again: {error}")
            return
        for path in sorted({*held, *(f"{folder}/{path}" for path, _ in wanted)}):
            must = wanted.files.get(path.removeprefix(f"{folder}/"))
            yield from differences(path, must, contents.get(path), because="by the records")

    def _work_tree(self, *folders: str) -> Iterator[Difference]:
        """Say what in the work tree nobody has committed."""
        repository, root = self.workspace.repository, self.workspace.root
        changed = uncommitted(repository, *folders)
        stood = repository.read(self.commit, *changed) if changed else {}
        for path in changed:
            try:
                lies = files.read_file(root / path) if (root / path).is_file() else None
            except StorageError as error:
                yield Difference(path, "", "", str(error))
                continue
            yield from differences(path, stood.get(path), lies, because="as it is committed")


def _is_legible(batch: StoredBatch) -> bool:
    try:
        return batch.lock.trials >= 0
    except RepositoryError:
        return False
