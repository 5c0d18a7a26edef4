"""Edits, which keep comments, of the settings and, for `sweep cancel`, `retry` and `cluster pause`, of a spec."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from sweepledger import spec
from sweepledger.errors import RepositoryError, UsageError
from sweepledger.operations.repository.workspace import Target, Workspace, parse_settings
from sweepledger.reader.yaml_edit import remove_key, set_value
from sweepledger.render.platform.batch_objects import batch_paths
from sweepledger.repo import batches
from sweepledger.repo.batches import StoredBatch
from sweepledger.repo.git import Change, uncommitted_paths
from sweepledger.repo.stored_batches import StoredBatches, with_recorded
from sweepledger.structs.names import SETTINGS_FILE
from sweepledger.structs.record import Status
from sweepledger.structs.settings import Settings
from sweepledger.structs.sweep import Sweep


@dataclass(frozen=True)
class SpecEdit:
    """A sweep with its committed spec, and its batches at HEAD and at the base commit."""

    workspace: Workspace
    sweep: Sweep
    head: str
    """The commit that the change is made on."""
    base: str

    @classmethod
    def at(cls, workspace: Workspace, name: str, head: str, *, base: str | None = None) -> "SpecEdit":
        """Open a sweep for a commit on top of `head`, which is checked out; `base` has its merged batches.

        Raises SpecError, UsageError, and RepositoryError unless a branch is checked out and the spec is
        committed.
        """
        (sweep,) = workspace.sweeps([name])
        repository = workspace.repository
        if repository.branch() is None:
            raise RepositoryError(
                "no branch is checked out, so no branch would contain the commit",
                hint=f"`git switch {workspace.settings.git.branch}`, or `git switch -c NAME`; then run it again",
            )
        if uncommitted_paths(repository, sweep.path) or sweep.path not in repository.files(head, sweep.path):
            raise RepositoryError(
                f"{sweep.path} has changes that are not committed",
                hint="commit or stash them, then run this again",
            )
        return cls(workspace, sweep, head, base or workspace.base_commit(None) or head)

    @cached_property
    def _stored(self) -> StoredBatches:
        at_base = batches.of_sweep_in_commit(self.workspace.repository, self.base, self.sweep.name)
        return with_recorded(self.workspace.repository, StoredBatches(self.base, at_base, ()))

    @cached_property
    def merged(self) -> tuple[StoredBatch, ...]:
        """The sweep's batches at the base commit, and those that HEAD has recorded."""
        return self._stored.merged_of.get(self.sweep.name, ())

    @property
    def results(self) -> str | None:
        """The commit that has the sweep's results, once `require_current` has passed."""
        return self._stored.results_of.get(self.sweep.name, self.base)

    @cached_property
    def committed(self) -> tuple[StoredBatch, ...]:
        """The sweep's batches at HEAD."""
        return batches.of_sweep_in_commit(self.workspace.repository, self.head, self.sweep.name)

    def merged_batch(self, name: str) -> StoredBatch:
        """Return a merged or recorded batch by name. Raises UsageError, RepositoryError for a proposed one."""
        for batch in self.merged:
            if batch.name == name:
                return batch
        self.refuse_proposals(name)
        hint = f"batches: {', '.join(batch.name for batch in self.merged) or 'none yet'}"
        raise UsageError(f"{self.sweep.name} has no merged batch {name!r}", hint=hint)

    def refuse_proposals(self, *names: str) -> None:
        """Raise RepositoryError if HEAD has an active batch, one of `names` if any are given, that is not merged."""
        sweep, merged = self.sweep.name, {batch.name for batch in self.merged}
        for batch in self.committed:
            if batch.is_active and batch.name not in merged and (not names or batch.name in names):
                raise RepositoryError(
                    f"{batch.folder} is committed here and not on {self.workspace.settings.git.branch} yet",
                    hint="push or merge it, then run this again; "
                    f"or `sweep run {sweep}` here; or change the spec, and `sweep generate {sweep}` replaces it",
                )

    def require_current(self) -> None:
        """Refuse a checkout that lacks merged or archived batches. Raises RepositoryError."""
        committed = {batch.folder for batch in self.committed}
        archived = {batch.name for batch in self.committed if not batch.is_active}
        for batch in self.merged:
            if batch.folder not in committed and batch.name not in archived:
                pull = f"`git pull {self.workspace.remote} {self.workspace.settings.git.branch}`"
                raise RepositoryError(
                    f"the commit that is checked out does not contain {batch.folder}",
                    hint=f"update it: {pull}",
                )

    def append(self, *items: tuple[str, object]) -> tuple[spec.ParsedSpec, bytes]:
        """Append items to lists of the spec; return the resulting spec and its text.

        Raises SpecError, and RepositoryError if the text cannot be changed safely.
        """
        hint = f"add it by hand: {', '.join(f'{key}: {item}' for key, item in items)}"
        edits = [partial(set_value, path=(key,), value=item, append=True) for key, item in items]
        return self._edited(edits, hint)

    def set_values(self, key: str, values: Mapping[str, object]) -> tuple[spec.ParsedSpec, bytes]:
        """Set keys of a mapping of the spec; return the resulting spec and its text. Raises as `append` does."""
        hint = (
            f"write it by hand below {key}: {', '.join(f'{name}: {value}' for name, value in values.items())}"
        )
        edits = [partial(set_value, path=(key, name), value=value) for name, value in values.items()]
        return self._edited(edits, hint)

    def _edited(self, edits: Iterable[Callable[[str], str]], hint: str) -> tuple[spec.ParsedSpec, bytes]:
        text = self.workspace.repository.read(self.head, self.sweep.path)[self.sweep.path].decode()
        with automatic_edit(self.sweep.path, hint):
            for edit in edits:
                text = edit(text)
        return self.workspace.parse_text(text.encode(), self.sweep.path), text.encode()


@contextmanager
def automatic_edit(path: str, hint: str) -> Iterator[None]:
    """Raise RepositoryError with a hint if a block cannot change the text of a file safely."""
    try:
        yield
    except ValueError as error:
        raise RepositoryError(f"{path} cannot be changed automatically: {error}", hint=hint) from error


@dataclass(frozen=True)
class BatchesChange:
    """A commit that changes batches of a sweep."""

    sweep: str
    batches: tuple[str, ...]
    trials: int
    commit: str


def commit_batches(
    workspace: Workspace, make: Callable[[str], tuple[Change, tuple[StoredBatch, ...]]]
) -> BatchesChange:
    """Commit on HEAD the change of some batches that `make` computes from HEAD. Raises as Target.commit does."""
    commit, chosen = Target(workspace.repository).commit(make)
    assert commit is not None
    assert chosen is not None
    names = tuple(batch.name for batch in chosen)
    return BatchesChange(chosen[0].sweep, names, sum(batch.lock.trials for batch in chosen), commit)


def cancellation(edit: SpecEdit, chosen: tuple[StoredBatch, ...], *, replace: bool) -> Change:
    """Return the change that cancels batches; with `replace` the spec requests their unfinished trials again."""
    retries = [
        ("retry", {"batch": batch.name, "only": [str(Status.CANCELLED)]})
        for batch in chosen
        if replace
        and not any(
            retry.batch == batch.name and Status.CANCELLED in retry.statuses for retry in edit.sweep.retry
        )
    ]
    unnamed = [batch for batch in chosen if batch.name not in edit.sweep.cancel]
    _, text = edit.append(*(("cancel", batch.name) for batch in unnamed), *retries)
    folders = {batch.folder for batch in edit.committed}
    # A batch that HEAD has archived already, for which the spec lost its entry, is only named again.
    moves, written, left = batches.archiving(batch for batch in chosen if batch.folder in folders)
    return Change(
        message=batches_message("cancel", edit.sweep.name, chosen),
        writes={**written, edit.sweep.path: text},
        moves=moves,
        removes=left | {path for batch in chosen for path in batch_paths(batch.name, [batch.lock.cluster])},
    )


def batches_message(verb: str, sweep: str, chosen: tuple[StoredBatch, ...]) -> str:
    """Return the message of a commit that changes batches."""
    names = ", ".join(batch.name for batch in chosen)
    trials = sum(batch.lock.trials for batch in chosen)
    trailers = "".join(f"Batch: {batch.name}\n" for batch in chosen)
    return f"{verb}({sweep}): {names} ({trials} trials)\n\nSweep: {sweep}\n{trailers}"


@dataclass(frozen=True)
class SettingsEdit:
    """The text of the settings after a change, and the settings read from it."""

    text: str
    settings: Settings
    changes: tuple[str, ...]
    """The keys that changed, each as `key.key: value`."""


def edit_settings(
    content: bytes, values: Mapping[tuple[str, ...], Any], *, unpinned: bool = False
) -> SettingsEdit:
    """Set values by the path of their keys; None removes a key of the document.

    With `unpinned` an image may lack a digest.

    Raises RepositoryError if the text cannot be changed safely, SpecError if the result is wrong.
    """
    text, changes = content.decode(), []
    for keys, value in values.items():
        before = text
        with automatic_edit(SETTINGS_FILE, f"set {'.'.join(keys)}: {value} by hand"):
            text = remove_key(text, keys[0]) if value is None else set_value(text, keys, value)
        if text != before:
            shown = str(value).lower() if isinstance(value, bool) else value
            changes.append(f"{'.'.join(keys)}: {shown}")
    settings = parse_settings(text.encode(), unpinned=unpinned)
    return SettingsEdit(text, settings, tuple(changes))
