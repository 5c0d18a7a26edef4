"""The next batch of each sweep: planned from specs and merged batches, and written to the work tree.

Refuses to plan over generated files that were edited by hand.
"""

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from sweepledger import search, storage
from sweepledger.errors import GeneratorError, RepositoryError, SpecError, UsageError
from sweepledger.operations.generation import spec_change
from sweepledger.operations.repository import batch_builder, programs
from sweepledger.operations.repository.workspace import Workspace, explore
from sweepledger.operations.rounds.evidence import RoundEvidence, evidence_file, read_evidence
from sweepledger.operations.rounds.next_round import (
    ResultsPending,
    RoundDue,
    SearchEnded,
    Step,
    next_step,
    repeated_batch,
)
from sweepledger.problems import Problem, Severity
from sweepledger.render.overlay import Overlay
from sweepledger.render.platform import batch_objects
from sweepledger.repo import base_files, batches, files
from sweepledger.repo.base_files import write_bases
from sweepledger.repo.batches import ACTIVE, StoredBatch
from sweepledger.repo.git import uncommitted_paths
from sweepledger.repo.state import create_state
from sweepledger.repo.stored_batches import StoredBatches, stored_batches
from sweepledger.spec import ParsedSpec
from sweepledger.structs.batch import Batch
from sweepledger.structs.file_tree import Drift, FileTree
from sweepledger.structs.program import Code, Program
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.trial import Trial, all_trials

DIFFERENCE_LINES = 20
"""Maximum number of lines shown of an edited file: enough to recognise the edit."""
UNCOMMITTED_EVIDENCE = "evidence-uncommitted"


class EditedError(RepositoryError):
    """A generated folder was edited; nothing is overwritten."""

    folder: str = ""
    """That of the batch."""
    paths: tuple[str, ...] = ()
    """The files that differ, relative to the repository."""

    @classmethod
    def of(
        cls,
        batch: StoredBatch,
        expected: FileTree | None,
        drift: Drift | None = None,
        *,
        merged: bool = False,
    ) -> Self:
        """Describe how a batch differs from the expected files; None if these are unknown."""
        if drift is None:
            assert expected is not None
            drift = files.difference(expected, batch.tree)
        restore = "`git checkout -- {0}`" if merged else "`rm -r {0}`, then `sweep generate {1}`"
        lines = "\n".join(_edit_lines(batch.tree, drift, expected))
        error = cls(
            f"{batch.folder} was edited by hand; it is not overwritten:\n{lines}",
            hint=f"change the spec instead; to drop the edit: {restore.format(batch.folder, batch.sweep)}",
        )
        error.folder = batch.folder
        paths = sorted((*drift.added, *drift.changed, *drift.stale))
        error.paths = tuple(f"{batch.folder}/{path}" for path in paths)
        return error


def _edit_lines(actual: FileTree, drift: Drift, expected: FileTree | None) -> Iterator[str]:
    yield from (f"  missing  {path}" for path in drift.added)
    yield from (f"  foreign  {path}" for path in drift.stale)
    for path in drift.changed:
        yield f"  changed  {path}"
        if expected is None:
            continue
        before, after = (tree[path].decode(errors="replace").splitlines() for tree in (expected, actual))
        lines = list(difflib.unified_diff(before, after, n=0, lineterm=""))[2:]
        yield from (f"    {line}" for line in lines[:DIFFERENCE_LINES])
        if len(lines) > DIFFERENCE_LINES:
            yield f"    … {len(lines) - DIFFERENCE_LINES} lines cut"


@dataclass(frozen=True, slots=True)
class NextBatch:
    """What a sweep needs: its trials, and the batch that requests the new trials."""

    trials: int
    """All trials, each counted once."""
    new: tuple[Trial, ...]
    batch: Overlay | None
    step: Step | None = None
    """The next step of a search, if it was computed."""
    kept: tuple[StoredBatch, ...] = ()
    """Proposed rounds before that step, which the records give."""


@dataclass(frozen=True)
class _Demand:
    """A sweep and its program, with its merged and recorded batches and the proposed ones of the work tree."""

    workspace: Workspace
    sweep: Sweep
    program: Program
    stored: StoredBatches
    merged: tuple[StoredBatch, ...]
    """Its batches that are merged or recorded."""
    proposed: tuple[StoredBatch, ...]
    """Its other batches in the work tree."""
    retried: frozenset[str]
    """The digests of trials that the spec requests again."""

    @property
    def results(self) -> str | None:
        """The commit that has the results of its batches."""
        return self.stored.results_of.get(self.sweep.name, self.stored.commit)

    def evidence(self) -> RoundEvidence:
        """Return the evidence of its merged batches."""
        repository, program = self.workspace.repository, self.program.digest
        return read_evidence(repository, self.results, self.sweep, program, stored=self.merged)

    def of_trials(self, trials: tuple[Trial, ...]) -> NextBatch:
        """Return a batch of the spec's trials that no batch lists, and of the trials that the spec requests again."""
        listed = {trial.digest for batch in self.merged for trial in batch.trials}
        new = tuple(trial for trial in trials if trial.digest not in listed or trial.digest in self.retried)
        return NextBatch(len(trials), new, self._batch(new))

    def of_search(self, *, propose: bool) -> NextBatch:
        """Return what a sweep with rounds needs.

        The next round is computed if `propose` is true, if the work tree proposes one, and if there was no
        round yet. Raises RepositoryError, UsageError.
        """
        listed = len({row.trial for batch in self.merged for row in batch.rows})
        if not (propose or not self.merged or any(batch.lock.round is not None for batch in self.proposed)):
            current = self.program.digest
            merged = self.merged if self.retried else ()
            known = {trial.digest: trial for batch in merged for trial in batch.trials}
            wanted = (trial for digest, trial in known.items() if digest in self.retried)
            due = tuple(trial for trial in wanted if trial.program_digest == current)
            return NextBatch(listed, due, self._batch(due))
        step, kept = self._next_step()
        listed += sum(batch.lock.trials for batch in kept)
        if not isinstance(step, RoundDue):
            return NextBatch(listed, (), None, step, kept)
        return NextBatch(listed + len(step.trials), step.trials, step.batch, step, kept)

    def of_lost(self) -> NextBatch | None:
        """Return the batch of the trials that infrastructure ended; None if none is due."""
        evidence = self.evidence()
        batch = repeated_batch(evidence, self.program, batch_builder.RenderInputs.of(self.workspace))
        return NextBatch(evidence.trials, evidence.repeated, batch) if batch else None

    def _batch(self, trials: tuple[Trial, ...]) -> Overlay | None:
        if not trials:
            return None
        requested = Batch(
            self.sweep,
            self.program,
            trials,
            parents=batch_builder.parent_trials(trials, self.merged),
            stop=() if self.sweep.early_stop is None else self.evidence().stop,
        )
        inputs = batch_builder.RenderInputs.of(self.workspace)
        return batch_builder.build_overlay(requested, self.merged, inputs)

    def _next_step(self) -> tuple[Step, tuple[StoredBatch, ...]]:
        """Return the last proposed round, or the step that replaces it, and the proposed rounds before it.

        Raises EditedError if a proposed round differs from the generator's output.
        """
        evidence, kept = self._newest_evidence(), list[StoredBatch]()
        inputs = batch_builder.RenderInputs.of(self.workspace)
        while True:
            step = next_step(evidence, self.program, inputs)
            name = step.batch.name if isinstance(step, RoundDue) else None
            proposed = next((batch for batch in self.proposed if batch.name == name), None)
            if proposed is None or not isinstance(step, RoundDue) or len(kept) + 1 == len(self.proposed):
                return step, tuple(kept)
            following = evidence.expecting(proposed)
            if following.is_full:
                return step, tuple(kept)
            if proposed.tree != step.batch.tree:
                raise EditedError.of(proposed, step.batch.tree)
            kept.append(proposed)
            evidence = following

    def _newest_evidence(self) -> RoundEvidence:
        """Read the evidence from HEAD if HEAD contains the base commit: it may have newer evidence for a warm start.

        Raises RepositoryError if base commit and HEAD have recorded different batches: no commit has all results.
        """
        if self.sweep.name in self.stored.apart:
            raise RepositoryError(
                f"no commit has all results of {self.sweep.name}: HEAD and the base commit have recorded different "
                "batches",
                hint=f"merge the base commit first: `git merge {self.stored.commit}`",
            )
        repository, base = self.workspace.repository, self.stored.commit
        head = repository.commit("HEAD")
        if head is None or not (base is None or repository.contains(head, base)):
            return self.evidence()
        known = {batch.name: batch for batch in self.merged}
        if head not in {base, self.results}:  # a check counts what signed commits record
            at_head = batches.of_sweep_in_commit(repository, head, self.sweep.name)
            known |= {batch.name: batch for batch in at_head if not batch.is_active}
        stored = batches.in_order(known.values())
        return read_evidence(repository, head, self.sweep, self.program.digest, stored=stored)


@dataclass(frozen=True)
class Generated:
    """What one sweep needs: its trials, its unlisted trials, and the batch that requests these."""

    sweep: Sweep
    code: Code
    trials: int
    known: int
    batch: Overlay | None
    """The batch that the work tree must have besides the merged ones; None if nothing is new."""
    stale: tuple[StoredBatch, ...]
    """New batches that the spec no longer requests."""
    kept: tuple[StoredBatch, ...]
    """New rounds of a search before its last."""
    is_written: bool
    """Whether the work tree contained the batch already."""
    retried: int = 0
    """Trials of the batch that an earlier batch lists."""
    warnings: tuple[Problem, ...] = ()
    step: Step | None = None
    """The next step of a search whose next round was requested or proposed."""
    why_nothing: str = ""
    """Why an update to the current program requests nothing."""
    running: Mapping[str, bytes | None] = field(default_factory=dict)
    """Files of active batches that the spec requests otherwise than they are; None: no such file."""

    @property
    def is_pending(self) -> bool:
        """Return whether `sweep generate` would write anything."""
        return not self.is_written or bool(self.stale) or bool(self.running)

    def as_data(self) -> dict[str, Any]:
        """Return the batch that was written, or would be written, as JSON data."""
        return {
            "name": self.sweep.name,
            "trials": self.trials,
            "known": self.known,
            "new": self.trials - self.known,
            "batch": self.batch.name if self.batch else None,
            "written": bool(self.batch) and not self.is_written,
            "removed": [stored.folder for stored in self.stale],
        }


def write_batches(workspace: Workspace, planned: Sequence[Generated]) -> None:
    """Write the planned batches to the work tree."""
    if not planned:
        return
    locks = [generated.batch.lock for generated in planned if generated.batch]
    write_bases(workspace.root, {name for lock in locks for name in lock.needed_bases})
    # On the repository's file system, where neither git nor a controller reads.
    staging = create_state(workspace.repository) / "staging"
    files.refuse_links(workspace.root, staging.relative_to(workspace.root))
    storage.clear_leftovers(staging)
    for generated in planned:
        for path, content in generated.running.items():
            if content is None:
                (workspace.root / path).unlink(missing_ok=True)
            else:
                storage.write_file(workspace.root / path, content)
        for stored in generated.stale:
            # References to a folder are removed before it and written after it: a crash leaves none dangling.
            for path in batch_objects.batch_paths(
                stored.name, (None, *sorted(workspace.settings.fleet.clusters))
            ):
                files.refuse_links(workspace.root, path)
                storage.remove_file(workspace.root / path)
            files.remove_folder(workspace.root / stored.folder, staging=staging)
        if generated.batch and not generated.is_written:
            target = workspace.root / ACTIVE / generated.batch.name
            if not target.is_dir():
                files.write_folder(target, generated.batch.tree, staging=staging)
            settings, lock = workspace.settings, generated.batch.lock
            controller, namespace = settings.platform.controller, settings.trials.namespace
            batch_files = batch_objects.batch_files(controller, namespace, {lock.name: lock.cluster})
            for path, content in batch_files.items():
                files.refuse_links(workspace.root, path)
                storage.write_file(workspace.root / path, content)


def generate_batches(
    workspace: Workspace,
    names: Iterable[str] = (),
    *,
    check: bool = False,
    base: str | None = None,
    update: bool = False,
) -> tuple[Generated, ...]:
    """Write the next batch of each named sweep; with `check` only return it.

    With `update`, a batch requests every trial of the spec if the current program is not the locked one. Raises
    SpecError for wrong specs, and RepositoryError if a generated file was edited by hand; nothing is written then.
    """
    chosen = tuple(names)
    specs = workspace.specs(chosen)
    planned = plan_batches(workspace, specs, base=base, update=update)
    if not check:
        write_batches(workspace, planned)
    # Of a sweep that nobody named, older code is no news.
    return with_code_warnings(workspace, specs, planned, includes_listed=bool(chosen))


def plan_batches(
    workspace: Workspace,
    specs: Iterable[ParsedSpec],
    *,
    base: str | None = None,
    stored: StoredBatches | None = None,
    update: bool = False,
    next_round: bool = False,
) -> tuple[Generated, ...]:
    """Return what each sweep needs besides its batches at the base commit; `stored` has these if they are known.

    With `next_round` a search gets its next round; else only its first, and rounds that the work tree proposes.
    Raises SpecError with the problems of all sweeps, RepositoryError if a generated file was edited by hand.
    """
    expansions = expand_specs(specs)
    names = [parsed.sweep.name for parsed, _ in expansions]
    known = stored or stored_batches(workspace.repository, workspace.settings.git.branch, base, names)
    # A check compares all batches; to generate, those of the planned sweeps are enough.
    planning = (
        known.present if stored else [batch for name in names for batch in known.present_of.get(name, ())]
    )
    refuse_edits(known.merged, planning)
    planned = [
        _plan_sweep(workspace, parsed, expansion, known, update=update, onward=next_round)
        for parsed, expansion in expansions
    ]
    return tuple(_without_errors(planned))


def plan_each(
    workspace: Workspace, specs: Iterable[ParsedSpec], stored: StoredBatches
) -> tuple[Generated | GeneratorError, ...]:
    """Return what each sweep needs besides the batches at the base commit, or why its batch cannot be made.

    Raises EditedError if a generated file of any batch was edited by hand.
    """
    refuse_edits(stored.merged, stored.present)
    specs = tuple(specs)
    stored.prefetch(parsed.sweep.name for parsed in specs)
    planned: list[Generated | GeneratorError] = []
    for parsed in specs:
        try:
            ((_, expansion),) = expand_specs([parsed])
            planned += _without_errors([_plan_sweep(workspace, parsed, expansion, stored)])
        except EditedError:
            raise
        except (SpecError, RepositoryError, UsageError) as error:
            planned.append(error)
    return tuple(planned)


def _without_errors(planned: Sequence[Generated]) -> Sequence[Generated]:
    """Return planned batches. Raises SpecError if one of their warnings is an error."""
    problems = [problem for generated in planned for problem in generated.warnings]
    if any(problem.severity is Severity.ERROR for problem in problems):
        raise SpecError(problems)
    return planned


def with_code_warnings(
    workspace: Workspace,
    specs: Iterable[ParsedSpec],
    planned: Iterable[Generated],
    *,
    includes_listed: bool = False,
) -> tuple[Generated, ...]:
    """Add a warning to each planned batch whose code is older than the author's.

    With `includes_listed` also to each sweep whose trials are all in a batch already.
    """
    warned = []
    for parsed, generated in zip(specs, planned, strict=True):
        trials = "new trials" if generated.batch else "its trials"
        newer: Iterable[Problem] = ()
        if generated.batch or includes_listed:
            newer = spec_change.newer_code(workspace.repository, parsed, generated.code, trials=trials)
        warned.append(replace(generated, warnings=(*generated.warnings, *newer)))
    return tuple(warned)


def expand_specs(specs: Iterable[ParsedSpec]) -> tuple[tuple[ParsedSpec, search.Expansion], ...]:
    """Return the configurations of every sweep. Raises SpecError with the problems of all sweeps."""
    expansions, problems = explore(specs)
    if problems:
        raise SpecError(problems)
    return tuple(expansions)


def _plan_sweep(
    workspace: Workspace,
    parsed: ParsedSpec,
    expansion: search.Expansion,
    stored: StoredBatches,
    *,
    update: bool = False,
    onward: bool = False,
) -> Generated:
    sweep, settings = parsed.sweep, workspace.settings
    merged, present = (stored_of.get(sweep.name, ()) for stored_of in (stored.merged_of, stored.present_of))
    known = {batch.name for batch in merged}
    new = tuple(batch for batch in present if batch.name not in known)
    own = [batch for batch in new if batch.is_made_from(sweep.digest)]
    locks = (batch.lock for batch in (*reversed(new), *reversed(merged)))
    newest = next((lock for lock in locks if not lock.repairs), None)
    kept = None if update or newest is None else newest.program
    program = programs.locked_program(workspace, sweep, kept)
    if problems := tuple(
        spec_change.running_problems(sweep, merged, settings.platform.controller, settings.trials.pools)
    ):
        raise SpecError(problems)
    results = stored.results_of.get(sweep.name, stored.commit)
    retried = spec_change.retried_trials(workspace.repository, sweep, merged, results)
    demand = _Demand(workspace, sweep, program, stored, merged, new, retried)
    warnings = [*parsed.warnings, *expansion.warnings]
    if sweep.rounds is None:
        trials = all_trials(sweep, expansion.configurations, program.digest)
        needed = demand.of_trials(trials)
        warnings += spec_change.respelled_values(sweep, trials, merged, retried)
    else:
        # The first round of another program is added by whoever asks for that program.
        is_begun_anew = update and newest is not None and program.digest != newest.program.digest
        needed = demand.of_search(propose=onward or is_begun_anew)
    if needed.batch is None and any(batch.lock.after_infrastructure for batch in own):
        needed = demand.of_lost() or needed
    overlay = needed.batch
    wanted = {overlay.name if overlay else None, *(batch.name for batch in needed.kept)}
    wanted |= {batch.name for batch in own if batch.lock.repairs}
    stale = tuple(batch for batch in new if batch.is_active and batch.name not in wanted)
    stale += tuple(batch for batch in stored.copies if batch.sweep == sweep.name)
    is_written = True
    if overlay is not None:
        existing = next((batch for batch in new if batch.name == overlay.name), None)
        if existing is not None and existing.tree != overlay.tree:
            raise EditedError.of(existing, overlay.tree)
        controller, namespace = settings.platform.controller, settings.trials.namespace
        batch_files = batch_objects.batch_files(controller, namespace, {overlay.name: overlay.lock.cluster})
        is_written = existing is not None and all(
            (workspace.root / path).is_file() and (workspace.root / path).read_bytes() == content
            for path, content in batch_files.items()
        )
        warnings += programs.missing_scripts(workspace.repository, parsed, program)
        warnings += programs.misread_booleans(workspace.root, parsed)
        warnings += spec_change.spec_change_problems(
            workspace.spec_reader, settings.platform.controller, parsed, merged, program
        )
        if not own:
            warnings += spec_change.renamed_by_hand(workspace.root, sweep, expansion, stored.merged)
    return Generated(
        sweep,
        program.code,
        needed.trials,
        needed.trials - len(needed.new),
        overlay,
        stale,
        needed.kept,
        is_written,
        retried=sum(trial.digest in retried for trial in needed.new),
        warnings=(*warnings, *_uncommitted_evidence(workspace, sweep)),
        step=needed.step,
        running={
            path: content
            for batch in batches.readable(present)
            if batch.is_active and batch.name in known
            for path, content in spec_change.running_files(sweep, batch).items()
        },
        why_nothing=_why_nothing(needed, merged, program) if update and overlay is None else "",
    )


def _why_nothing(needed: NextBatch, merged: Sequence[StoredBatch], program: Program) -> str:
    if isinstance(needed.step, ResultsPending):
        return f"{needed.step.evidence.awaited} must be recorded first"
    same = [batch.name for batch in merged if batch.lock.program.digest == program.digest]
    current = f"{same[-1] if same else 'its newest batch'} has the current code, image and data"
    return f"{current}, and {needed.step.text}" if isinstance(needed.step, SearchEnded) else current


def _uncommitted_evidence(workspace: Workspace, sweep: Sweep) -> Iterator[Problem]:
    """Warn of uncommitted foreign evidence, which rounds do not use because they read commits."""
    for path in map(evidence_file, sweep.search.start if sweep.search else ()):
        if (workspace.root / path).is_file() and uncommitted_paths(workspace.repository, path):
            message = f"{path} is not committed, so no round uses this version"
            hint = "commit it before the round is generated"
            yield Problem(sweep.path, 0, 0, "start", message, UNCOMMITTED_EVIDENCE, hint, Severity.WARNING)


def refuse_edits(merged: Iterable[StoredBatch], present: Iterable[StoredBatch]) -> None:
    """Refuse generated files that were edited by hand, and show the first edit. Raises EditedError."""
    for error in edits(merged, present):
        raise error


def edits(merged: Iterable[StoredBatch], present: Iterable[StoredBatch]) -> Iterator[EditedError]:
    """Yield the error of each batch whose files were edited by hand."""
    by_name = {batch.name: batch for batch in merged}
    for batch in present:
        original = by_name.get(batch.name)
        drift = batches.difference(original, batch) if original else batch.hand_edits()
        if drift:
            expected = original.tree if original else None
            yield EditedError.of(batch, expected, drift, merged=original is not None)


def added_files(workspace: Workspace, generated: Generated) -> dict[str, bytes]:
    """Return the files that a batch adds, by path in the repository."""
    overlay = generated.batch
    if overlay is None:
        return {}
    return {
        **base_files.missing_bases(workspace.root, overlay.lock.needed_bases),
        **{path: b"" for path in base_files.KEEP_FILES if not (workspace.root / path).exists()},
        **batch_builder.batch_files(overlay, workspace.settings.platform, workspace.settings.trials),
    }


def batch_message(new: Iterable[Generated]) -> str:
    """Return the message of the commit that adds batches."""
    counts = {one.sweep.name: 0 if one.batch is None else one.batch.lock.trials for one in new}
    body = "".join(f"Batch: {generated.batch.name}\n" for generated in new if generated.batch)
    return f"generate({', '.join(counts)}): {sum(counts.values())} trials\n\n{body}"
