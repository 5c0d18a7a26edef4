"""Recompute results from records, and check the signatures.

It reads records and locks, offline, and compares what follows from them with what is committed. Prints for each
sweep: verified, differs (with file, row and column) or unsigned. Exits with 5 if something differs, or if signers
are listed and a commit that changed results has no valid signature.
"""

# It reads files and signatures, not messages and trailers of commits, so that a merge, a squash or a rebase
# changes only who has signed.

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from rich.console import RenderableType
from rich.text import Text

from sweepledger.cli.options import OptionalSweepArgument, option
from sweepledger.cli.response import EXIT_DRIFT, SHORT_COMMIT, Response
from sweepledger.cli.text.style import filled_table, untrusted_text
from sweepledger.errors import IdleError, RepositoryError, SpecError, StorageError, UsageError
from sweepledger.operations.checks import new_batches
from sweepledger.operations.checks.context import (
    BRANCHES,
    CheckContext,
    PushedRef,
    checked_out,
    specs_to_read,
)
from sweepledger.operations.repository import at_commit, catalog
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.operations.verification import batch_audit
from sweepledger.operations.verification.file_diff import FileDifference, file_differences
from sweepledger.problems import Problem, Severity
from sweepledger.render.platform.batch_objects import BATCH_FILE
from sweepledger.repo import batches, files, git
from sweepledger.repo.batches import ACTIVE, ARCHIVE, StoredBatch
from sweepledger.structs.names import (
    LAPTOP_WARNING,
    LOCK_FILE,
    RECORDS,
    RESULTS,
    SPECS,
    SUFFIX,
    batch_of_records,
    is_sweep_name,
    results_folder,
    split_batch_name,
)

LOCK = re.compile(rf"{ACTIVE}/[^/]+/{LOCK_FILE}")
PARTS = 3
"""Number of parts of `overlays/active/<batch>`; the path of a file has more."""


def verify(
    workspace: Workspace,
    name: OptionalSweepArgument = None,
    at: str | None = option(
        "--at REV", "Verify the results at this commit; default: HEAD and the work tree."
    ),
    since: str | None = option(
        "--since REV",
        "Verify only what changed after this commit, and that results commits changed nothing else.",
    ),
    signers: Path | None = option(
        "--signers FILE",
        "Check signatures against this file of allowed signers; default: `signers` at the commit.",
    ),
) -> Response:
    if since is None:
        verdict = verify_results(workspace, name, revision=at, signers=signers)
    elif name is not None:
        raise UsageError("--since verifies every sweep that changed", hint="omit the name")
    else:
        verdict = verify_since(workspace, since, revision=at, signers=signers)
    return Response(verdict, tuple(_lines(verdict)), exit_code=0 if verdict.is_good else EXIT_DRIFT)


class VerificationState(StrEnum):
    """The outcome of verifying a sweep's results."""

    VERIFIED = "verified"
    """They follow from the records, and listed keys signed every commit that changed them."""
    DIFFERS = "differs"
    UNSIGNED = "unsigned"
    """They follow from the records; no signature shows who wrote these."""
    DELETED = "deleted"
    """A commit deleted the sweep with all that was recorded of it; a listed key signed it, if any are listed."""
    LAPTOP = "laptop"
    """They follow from the records; some are of batches made on a laptop, which nobody signs. All others are signed."""


@dataclass(frozen=True, slots=True)
class UnsignedChange:
    """A commit that changed results without a listed key's signature, or a path whose content no signed commit has."""

    commit: str | None
    path: str
    message: str


@dataclass(frozen=True, slots=True)
class SweepVerification:
    """A sweep's results compared with those recomputed from its records."""

    sweep: str
    state: VerificationState
    batches: int
    trials: int
    commits: int
    """Commits that changed its results."""
    signed: int
    laptop: tuple[str, ...]
    """Recorded batches that are made on a laptop."""
    differences: tuple[FileDifference, ...]
    unsigned: tuple[UnsignedChange, ...]


@dataclass(frozen=True)
class Verification:
    """The verification of one or more sweeps at a commit."""

    commit: str
    signers: int
    """Number of lines of allowed signers; with none, no signature can be checked."""
    sweeps: tuple[SweepVerification, ...]
    stray: tuple[FileDifference, ...] = ()
    """Changes that results commits since a given one must not make."""

    @property
    def is_good(self) -> bool:
        """Return whether nothing differs and, if keys are listed, everything is signed."""
        bad = {VerificationState.DIFFERS, *([VerificationState.UNSIGNED] if self.signers else [])}
        return not self.stray and not any(sweep.state in bad for sweep in self.sweeps)


def verify_results(
    workspace: Workspace,
    reference: str | None = None,
    *,
    revision: str | None = None,
    signers: Path | None = None,
) -> Verification:
    """Verify one sweep's results or all, at HEAD with the work tree, or at another commit.

    `signers` is a file of git's allowed signers that replaces those of the settings at the commit: an author
    who rewrites a history could list their own key. Raises UsageError, RepositoryError for a shallow clone, or
    IdleError if nothing is recorded.
    """
    repository = workspace.repository
    if repository.is_shallow:
        raise RepositoryError("this clone is shallow, so who made its records is unknown", hint=git.UNSHALLOW)
    commit = workspace.commit(revision or "HEAD")
    stored = batches.in_commit(repository, commit)
    changed = (path for change in git.commits(repository, RESULTS, revision=commit) for path in change.files)
    present = {*filter(is_sweep_name, (path.split("/")[1] for path in changed if path.count("/") > 1))}
    present |= {batch.sweep for batch in stored if not batch.is_active}
    if reference is None:
        names = sorted(present)
    else:
        here = catalog.sweep_names(workspace, batches.in_work_tree(workspace.root))
        names = [catalog.choose_sweep(workspace.root, reference, present | here)]
    lines = _signers(workspace, commit, signers)
    verifying = _Verification(workspace, commit, stored, lines, with_work_tree=revision is None)
    checked = tuple(verification for verification in map(verifying.sweep, names) if verification is not None)
    if reference is not None and not checked:
        raise IdleError(
            f"nothing is recorded of {names[0]!r} at {commit[:12]}", hint="`sweep status` shows the state"
        )
    return Verification(commit, len(lines), checked)


def verify_since(
    workspace: Workspace, since: str, *, revision: str | None = None, signers: Path | None = None
) -> Verification:
    """Verify the sweeps whose results changed since a commit, and that no results commit changed anything else.

    Batches added since then must be those that the generator writes from the previous commit: a round that the
    collector pushed has no other check if no hook runs.

    Raises UsageError for a revision that does not exist.
    """
    repository = workspace.repository
    before, until = workspace.commit(since), workspace.commit(revision or "HEAD")
    touched, stray = audit_paths(repository, before, until)
    stray = (*stray, *_forged_batches(repository, before, until))
    lines = _signers(workspace, before, signers)  # a change of the keys is verified with the earlier keys
    stored = batches.in_commit(repository, until)
    verifying = _Verification(workspace, until, stored, lines, with_work_tree=False)
    changed = tuple(filter(None, map(verifying.sweep, touched)))
    return Verification(until, len(lines), changed, stray)


def _forged_batches(repository: git.Repository, since: str, until: str) -> Iterator[FileDifference]:
    """Yield the differences of batches added between `since` and `until` from those that the generator writes."""
    listed = repository.run(
        *("log", "--first-parent", "-m", "--no-renames", "--diff-filter=A"),
        *("--name-only", "--format=commit %H"),
        *(f"{since}..{until}", "--", f":(glob){ACTIVE}/*/{LOCK_FILE}"),
    )
    present = {batch.name for batch in batches.in_commit(repository, until)}
    branch = f"{BRANCHES}{at_commit.settings_or_defaults(repository, until).git.branch}"
    for part in listed.split("commit ")[1:]:
        commit, *paths = part.split()
        folders = tuple(path.removesuffix(LOCK_FILE) for path in paths if path.split("/")[-2] in present)
        if folders:
            ref = PushedRef(branch, repository.commit(f"{commit}^"), commit)
            with checked_out(repository.git_path("objects").parent, {}, ref) as change:
                for problem in () if change is None else _batch_problems(change, ref.old):
                    if f"{problem.file}/".startswith((*folders, f"{SPECS}/")):
                        message = f"{problem.message} [{problem.code}]"
                        yield FileDifference(problem.file, "", problem.path, message)


def _batch_problems(change: Workspace, base: str | None) -> Iterator[Problem]:
    context = CheckContext(change, base)
    try:
        problems = tuple(new_batches.unreadable_batches(context))
        specs = change.read(() if problems else specs_to_read(context, change.spec_paths()))
        problems = problems or tuple(new_batches.check_new_batches(context, specs))
    except SpecError as error:
        problems = error.problems
    yield from (problem for problem in problems if problem.severity is Severity.ERROR)


def _signers(workspace: Workspace, commit: str, chosen: Path | None) -> tuple[str, ...]:
    if chosen is None:
        return at_commit.settings_or_defaults(workspace.repository, commit).git.signers
    text = files.read_input(chosen).decode(errors="replace")
    return tuple(line for line in text.splitlines() if line and not line.startswith("#"))


@dataclass(frozen=True)
class _Verification:
    workspace: Workspace
    commit: str
    stored: tuple[StoredBatch, ...]
    signers: tuple[str, ...]
    with_work_tree: bool

    def sweep(self, sweep: str) -> SweepVerification | None:
        """Verify one sweep; return None if it has no recorded results."""
        repository, folder = self.workspace.repository, results_folder(sweep)
        audit = batch_audit.SweepAudit(repository, self.commit, sweep)
        stored = batches.of_sweep(self.stored, sweep)
        archived = [batch for batch in stored if not batch.is_active]
        marks = catalog.laptop_batches_at(repository, self.commit, sweep)
        marked = tuple(batch.name for batch in archived if batch.name in marks)
        changes = git.commit_signatures(repository, None, self.commit, [f"{folder}/"], signers=self.signers)
        if not audit.entries and not changes:
            return None
        unsigned = tuple(_unsigned(repository, changes, audit.entries, folder, marked))
        is_deleted = not (
            audit.entries or stored or repository.files(self.commit, f"{SPECS}/{sweep}{SUFFIX}")
        )
        differences = set() if is_deleted else {*audit.differences()}
        if self.with_work_tree:
            differences.update(self._work_tree(folder, *(batch.folder for batch in archived)))
        rows = sum(batch.lock.trials for batch in batches.readable(audit.done))
        signed = sum(change.is_signed for change in changes)
        state = VerificationState.LAPTOP if marked else VerificationState.VERIFIED
        if differences:
            state = VerificationState.DIFFERS
        elif is_deleted and not (self.signers and unsigned):
            state = VerificationState.DELETED
        elif unsigned or not (signed or marked):
            state = VerificationState.UNSIGNED
        done, listed = len(audit.done), tuple(sorted(differences))
        return SweepVerification(sweep, state, done, rows, len(changes), signed, marked, listed, unsigned)

    def _work_tree(self, *folders: str) -> Iterator[FileDifference]:
        repository, root = self.workspace.repository, self.workspace.root
        changed = git.uncommitted_paths(repository, *folders)
        committed = repository.read(self.commit, *changed) if changed else {}
        for path in changed:
            try:
                content = files.read_file(root / path) if (root / path).is_file() else None
            except StorageError as error:
                yield FileDifference(path, "", "", str(error))
                continue
            yield from file_differences(path, committed.get(path), content, because="as it is committed")


STATE_STYLES = {
    "verified": "green",
    "differs": "red",
    "unsigned": "yellow",
    "deleted": "yellow",
    "laptop": "yellow",
}
MOST_UNSIGNED = 10
"""Commits without a valid signature that are listed per sweep."""


def _lines(verdict: Verification) -> Iterator[RenderableType]:
    headings = ("sweep", "state", "batches", "trials", "commits", "signed", "differences")
    rows = (
        (
            *(
                sweep.sweep,
                Text(sweep.state, STATE_STYLES[sweep.state]),
                str(sweep.batches),
                str(sweep.trials),
            ),
            *(str(sweep.commits), str(sweep.signed), str(len(sweep.differences))),
        )
        for sweep in verdict.sweeps
    )
    if verdict.sweeps:
        yield filled_table(headings, rows)
    elif not verdict.stray:
        yield "no results to verify"
    for sweep in verdict.sweeps:
        yield from _sweep_lines(sweep, with_signers=bool(verdict.signers))
    if verdict.sweeps and not verdict.signers:
        yield Text("no signers are listed: the author of these results is unknown", "yellow")
        yield "  hint: list the collector's key under `signers` in sweepledger.yaml, or pass known keys with --signers"
    yield from (untrusted_text(str(difference), "red") for difference in verdict.stray)


def _sweep_lines(sweep: SweepVerification, *, with_signers: bool) -> Iterator[RenderableType]:
    yield from map(str, sweep.differences)
    if any("/results/" in f"/{difference.path}" for difference in sweep.differences):
        yield f"  hint: `git log -- results/{sweep.sweep}` shows who changed it; only the collector may"
    if sweep.laptop:
        yield Text(f"{sweep.sweep}: {LAPTOP_WARNING}: {', '.join(sweep.laptop)}", "yellow")
    if not with_signers:
        return
    for unsigned in sweep.unsigned[:MOST_UNSIGNED]:
        commit = f"commit {unsigned.commit[:SHORT_COMMIT]}" if unsigned.commit else "no commit"
        yield f"{unsigned.path}: {commit} {unsigned.message}"
    if len(sweep.unsigned) > MOST_UNSIGNED:
        yield f"  and {len(sweep.unsigned) - MOST_UNSIGNED} more commits of {sweep.sweep}"


def _unsigned(
    repository: git.Repository,
    changes: Sequence[git.CommitSignature],
    entries: Mapping[str, git.Entry],
    folder: str,
    marked: Collection[str],
) -> Iterator[UnsignedChange]:
    """Yield commits without a listed key's signature that changed a results folder, else files without a signed commit.

    `marked` are batches made on a laptop: commits that only add their records are unsigned; reports follow from
    records.
    """
    first = {path: change for change in changes for path in change.paths}  # the oldest comes last
    is_signed = True
    for change in changes:
        records = [path for path in change.paths if path.startswith(f"{folder}/{RECORDS}/")]
        only_adds = all(batch_of_records(path) in marked and first[path] is change for path in records)
        if not change.is_signed and not (records and only_adds):
            is_signed = False
            yield UnsignedChange(change.id, change.paths[0], "is signed by no listed key")
    if is_signed:
        yield from _rolled_back(repository, changes, entries)


def _rolled_back(
    repository: git.Repository, changes: Sequence[git.CommitSignature], entries: Mapping[str, git.Entry]
) -> Iterator[UnsignedChange]:
    """Yield the files that a merge set back to an older version: no commit shows this as a change."""
    newest: dict[str, git.CommitSignature] = {}
    for change in reversed(changes):
        newest |= dict.fromkeys(change.blobs, change)

    for path in sorted(newest.keys() | entries.keys()):
        last, entry = newest.get(path), entries.get(path)
        if last is not None and last.left(path, entry):
            continue
        others = [change for change in changes if path in change.blobs and change.left(path, entry)]
        if last is None or not any(not repository.contains(last.id, change.id) for change in others):
            yield UnsignedChange(
                last.id if last else None, path, "is not what the last signed commit left there"
            )


def audit_paths(
    repository: git.Repository, since: str, until: str
) -> tuple[tuple[str, ...], tuple[FileDifference, ...]]:
    """Check every commit after a given one that changes `results/`; in a merge, files that differ from all parents'.

    Return the sweeps whose results changed, and the changes that a results commit must not make.
    """
    sweeps: set[str] = set()
    stray: set[FileDifference] = set()
    for change in git.commit_signatures(repository, since, until, (), signers=()):
        named = {path.split("/")[1] for path in change.paths if path.startswith(f"{RESULTS}/")}
        if named:
            sweeps |= named
            stray.update(_stray_paths(repository, change, sorted(named)))
    return tuple(sorted(filter(is_sweep_name, sweeps))), tuple(sorted(stray))


def _stray_paths(
    repository: git.Repository, change: git.CommitSignature, sweeps: list[str]
) -> Iterator[FileDifference]:
    commit = change.id[:12]
    if len(sweeps) > 1 or not is_sweep_name(sweeps[0]):
        message = f"commit {commit} must record one sweep, got {', '.join(map(repr, sweeps[:3]))}"
        yield FileDifference(RESULTS, "", "", message)
        return
    active = repository.files(f"{change.id}^", ACTIVE) if repository.commit(f"{change.id}^") else {}
    locks = [
        path for path, identity in change.blobs.items() if LOCK.fullmatch(path) and not _is_gone(identity)
    ]
    added = {path.split("/")[2] for path in locks if path not in active}
    for path, identity in sorted(change.blobs.items()):
        if path.startswith(f"{RESULTS}/") or _is_move(path, identity, sweeps[0], active, added):
            continue
        message = f"commit {commit} records {sweeps[0]} and must not touch this file"
        yield FileDifference(path, "", "", message)


def _is_gone(identity: str) -> bool:
    return not identity.strip("0")


def _is_move(
    path: str, identity: str, sweep: str, active: Mapping[str, git.Entry], added: Collection[str]
) -> bool:
    """Return whether a change belongs to an unchanged move of a batch to `archive/`, or to one in `added`.

    `verify_since` compares the content of an added batch.
    """
    parts, announced = path.split("/"), BATCH_FILE.fullmatch(path)
    batch = announced["batch"] if announced else parts[2] if len(parts) > PARTS else ""
    if (split_batch_name(batch) or ("",))[0] != sweep:
        return False
    if announced or path.startswith(f"{ACTIVE}/"):
        return _is_gone(identity) or batch in added
    before = active.get("/".join([ACTIVE, *parts[2:]]))
    return path.startswith(f"{ARCHIVE}/") and before is not None and before.id == identity
