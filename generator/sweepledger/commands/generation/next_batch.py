"""The next batch of each sweep: planned from specs and merged batches, and written to the work tree.

Refuses to plan over generated files that were edited by hand.
"""

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from sweepledger import search, storage
from sweepledger.commands.generation import spec_change
from sweepledger.commands.repository import batch_builder, programs
from sweepledger.commands.repository.workspace import Workspace, staging_folder
from sweepledger.commands.rounds.evidence import EvidenceSource, RoundEvidence, evidence_file
from sweepledger.commands.rounds.next_round import (
    ResultsPending,
    RoundDue,
    SearchEnded,
    Step,
    next_step,
    repeated_batch,
)
from sweepledger.errors import GeneratorError, RepositoryError, SpecError, UsageError
from sweepledger.problems import Problem, Severity
from sweepledger.render.overlay import Overlay
from sweepledger.render.platform import batch_objects
from sweepledger.repo import base_files, batches, files
from sweepledger.repo.base_files import write_bases
from sweepledger.repo.batches import ACTIVE, StoredBatch
from sweepledger.repo.git import uncommitted_paths
from sweepledger.repo.stored_batches import StoredBatches, stored_batches
from sweepledger.spec import ParsedSpec
from sweepledger.structs.file_tree import Drift, FileTree
from sweepledger.structs.program import Code, Program
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.trial import Trial, all_trials

DIFFERENCE_LINES = 20
"""Maximum number of lines shown of an edited file: enough to recognise the edit."""
UNCOMMITTED_EVIDENCE = "evidence-uncommitted"


class EditedError(RepositoryError):
    """A generated folder was edited; nothing is overwritten."""

    paths: tuple[str, ...] = ()
    """The files that differ, relative to the repository."""

    @classmethod
    def of(cls, batch: StoredBatch, drift: Drift, expected: FileTree | None, *, merged: bool = False) -> Self:
        """Describe how a batch differs from the expected files, as far as these are known."""
        restore = "`git checkout -- {0}`" if merged else "`rm -r {0}`, then `sweep generate {1}`"
        lines = "\n".join(_edit_lines(batch.tree, drift, expected))
        error = cls(
            f"{batch.folder} was edited by hand; it is not overwritten:\n{lines}",
            hint=f"change the spec instead; to drop the edit: {restore.format(batch.folder, batch.sweep)}",
        )
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
    """What a sweep needs: its trials, and the batch that requests the new ones."""

    trials: int
    """All trials, each counted once."""
    new: tuple[Trial, ...]
    batch: Overlay | None
    step: Step | None = None
    """The next step of a search, if it was computed."""
    kept: tuple[StoredBatch, ...] = ()
    """Proposed rounds before that step, which the records give."""


@dataclass(frozen=True)
class SearchProposal:
    """A search, with its merged and recorded batches and the proposed ones of the work tree."""

    workspace: Workspace
    sweep: Sweep
    program: Program
    stored: StoredBatches
    merged: Sequence[StoredBatch]
    """Its batches that are merged or recorded."""
    proposed: Sequence[StoredBatch]
    """Its other batches in the work tree."""

    def wanted(self, retried: Collection[str], *, propose: bool) -> NextBatch:
        """Return what the search needs; `retried` are digests of trials that its spec requests again.

        The next round is computed if `propose` is true, if the work tree proposes one, and if there was no
        round yet. Raises RepositoryError, UsageError.
        """
        listed = len({row.trial for batch in self.merged for row in batch.rows})
        propose = propose or not self.merged or any(batch.lock.round is not None for batch in self.proposed)
        due = self._due(retried) if retried and not propose else ()
        if due:
            parents = batch_builder.parent_trials(due, self.merged)
            results = self.stored.results_of.get(self.sweep.name, self.stored.commit)
            source = EvidenceSource(self.workspace.repository, results, batches=tuple(self.merged))
            stop = source.stop(self.sweep, self.program.digest)
            request = batch_builder.BatchRequest(self.sweep, self.program, due, parents=parents, stop=stop)
            overlay = batch_builder.build_overlay(
                request, self.merged, batch_builder.RenderInputs.of(self.workspace)
            )
            return NextBatch(listed, due, overlay)
        if not propose:
            return NextBatch(listed, (), None)
        step, kept = self._next_step()
        listed += sum(batch.lock.trials for batch in kept)
        if not isinstance(step, RoundDue):
            return NextBatch(listed, (), None, step, kept)
        return NextBatch(listed + len(step.trials), step.trials, step.batch, step, kept)

    def _next_step(self) -> tuple[Step, tuple[StoredBatch, ...]]:
        """Return the last proposed round, or the step instead of it, and the proposed rounds before it.

        Raises EditedError if one of them is not what the generator writes.
        """
        evidence, kept = self._evidence(), list[StoredBatch]()
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
                raise EditedError.of(
                    proposed, files.difference(step.batch.tree, proposed.tree), step.batch.tree
                )
            kept.append(proposed)
            evidence = following

    def _due(self, retried: Collection[str]) -> tuple[Trial, ...]:
        listed = {trial.digest: trial for batch in self.merged for trial in batch.trials}
        current = self.program.digest
        return tuple(
            trial for key, trial in listed.items() if key in retried and trial.program_digest == current
        )

    def _evidence(self) -> RoundEvidence:
        """Read the evidence from HEAD if it contains the base commit: other evidence to start from may be new there.

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
        is_ahead = head is not None and (base is None or repository.contains(head, base))
        results = self.stored.results_of.get(self.sweep.name, self.stored.commit)
        commit = head if is_ahead else results
        known = {batch.name: batch for batch in self.merged}
        if commit not in {base, results}:  # a check counts what signed commits record
            at_head = batches.of_sweep_in_commit(repository, commit, self.sweep.name)
            known |= {batch.name: batch for batch in at_head if not batch.is_active}
        source = EvidenceSource(repository, commit, batches=batches.in_order(known.values()))
        return source.evidence(self.sweep, self.program.digest)


@dataclass(frozen=True)
class Generated:
    """What one sweep needs: its trials, the unlisted ones, and the batch that requests them."""

    sweep: Sweep
    code: Code
    """The code that its trials run."""
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
    """Warnings for the author of the spec."""
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
        """Return what was written, or would be, as JSON data."""
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
    staging = staging_folder(workspace)
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
            batch_files = batch_objects.batch_files(
                settings.platform.controller, settings.trials.namespace, {lock.name: lock.cluster}
            )
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
    """Write the next batch of each named sweep, or of none; with `check` only return it.

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
    """Return what each sweep needs besides the batches at the base commit; `stored` if these are known.

    With `next_round` a search gets its next round; else only its first, and what the work tree proposes.
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

    Raises EditedError if a generated file was edited by hand, whichever batch it is of.
    """
    refuse_edits(stored.merged, stored.present)
    specs = tuple(specs)
    stored.prefetch(parsed.sweep.name for parsed in specs)
    return tuple(_planned_or_error(workspace, parsed, stored) for parsed in specs)


def _planned_or_error(
    workspace: Workspace, parsed: ParsedSpec, stored: StoredBatches
) -> Generated | GeneratorError:
    try:
        ((_, expansion),) = expand_specs([parsed])
        planned = _plan_sweep(workspace, parsed, expansion, stored)
        return _without_errors([planned])[0]
    except EditedError:
        raise
    except (SpecError, RepositoryError, UsageError) as error:
        return error


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
    """Add a warning to each planned batch whose code is older than what the author has.

    With `includes_listed` also to each sweep whose trials are all in a batch already.
    """
    return tuple(
        replace(
            generated,
            warnings=(
                *generated.warnings,
                *spec_change.newer_code(
                    workspace.repository,
                    parsed,
                    generated.code,
                    trials="new trials" if generated.batch else "its trials",
                ),
            ),
        )
        if generated.batch or includes_listed
        else generated
        for parsed, generated in zip(specs, planned, strict=True)
    )


def expand_specs(specs: Iterable[ParsedSpec]) -> tuple[tuple[ParsedSpec, search.Expansion], ...]:
    """Return the assignments of every sweep. Raises SpecError with the problems of all."""
    expansions = [(parsed, search.explore(parsed.sweep, parsed.source)) for parsed in specs]
    problems = [problem for _, one in expansions if not isinstance(one, search.Expansion) for problem in one]
    if problems:
        raise SpecError(problems)
    return tuple((parsed, one) for parsed, one in expansions if isinstance(one, search.Expansion))


def _plan_sweep(
    workspace: Workspace,
    parsed: ParsedSpec,
    expansion: search.Expansion,
    stored: StoredBatches,
    *,
    update: bool = False,
    onward: bool = False,
) -> Generated:
    merged = stored.merged_of.get(parsed.sweep.name, ())
    new = tuple(
        batch
        for batch in stored.present_of.get(parsed.sweep.name, ())
        if batch.name not in {batch.name for batch in merged}
    )
    own = [batch for batch in new if batch.is_made_from(parsed.sweep.digest)]
    sweep = parsed.sweep
    locks = (batch.lock for batch in (*reversed(new), *reversed(merged)))
    newest = next((lock for lock in locks if not lock.repairs), None)
    program = (
        programs.current_program(workspace, sweep)
        if update
        else programs.locked_program(workspace, sweep, newest.program if newest else None)
    )
    problems = (
        tuple(
            spec_change.running_problems(
                sweep, merged, workspace.settings.platform.controller, workspace.settings.trials.pools
            )
        )
        if sweep.running
        else ()
    )
    if problems:
        raise SpecError(problems)
    results = stored.results_of.get(sweep.name, stored.commit)
    retried = spec_change.retried_trials(workspace.repository, sweep, merged, results)
    respelled: tuple[Problem, ...] = ()
    if sweep.rounds is None:
        listed = batch_builder.BatchRequest(
            sweep, program, all_trials(sweep, expansion.configurations, program.digest)
        )
        needed = _next_listed(workspace, listed, stored, retried)
        respelled = tuple(spec_change.respelled_values(sweep, listed.trials, merged, retried))
    else:
        proposal = SearchProposal(workspace, sweep, program, stored, merged, new)
        # The first round of another program is added by whoever asks for that program.
        is_begun_anew = update and newest is not None and program.digest != newest.program.digest
        needed = proposal.wanted(retried, propose=onward or is_begun_anew)
    if needed.batch is None and any(batch.lock.after_infrastructure for batch in own):
        source = EvidenceSource(workspace.repository, results, batches=tuple(merged))
        evidence = source.evidence(sweep, program.digest)
        inputs = batch_builder.RenderInputs.of(workspace)
        if repeat := repeated_batch(evidence, program, inputs):  # of trials that infrastructure ended
            needed = NextBatch(evidence.trials, evidence.repeated, repeat)
    overlay = needed.batch
    wanted = {overlay.name if overlay else None, *(batch.name for batch in needed.kept)}
    wanted |= {batch.name for batch in own if batch.lock.repairs}
    stale = tuple(batch for batch in new if batch.is_active and batch.name not in wanted)
    stale += tuple(batch for batch in stored.copies if batch.sweep == sweep.name)
    existing = [batch for batch in new if overlay is not None and batch.name == overlay.name]
    if overlay is not None and existing and existing[0].tree != overlay.tree:
        raise EditedError.of(existing[0], files.difference(overlay.tree, existing[0].tree), overlay.tree)
    written = overlay is None or (
        bool(existing)
        and all(
            (workspace.root / path).is_file() and (workspace.root / path).read_bytes() == content
            for path, content in batch_objects.batch_files(
                workspace.settings.platform.controller,
                workspace.settings.trials.namespace,
                {overlay.name: overlay.lock.cluster},
            ).items()
        )
    )
    missing = programs.missing_scripts(workspace.repository, parsed, program) if overlay else ()
    refusals = (
        spec_change.spec_change_problems(
            workspace.spec_reader, workspace.settings.platform.controller, parsed, merged, program
        )
        if overlay
        else ()
    )
    return Generated(
        sweep,
        program.code,
        needed.trials,
        needed.trials - len(needed.new),
        overlay,
        stale,
        needed.kept,
        written,
        retried=sum(trial.digest in retried for trial in needed.new),
        warnings=(
            *parsed.warnings,
            *expansion.warnings,
            *missing,
            *(programs.misread_booleans(workspace.root, parsed) if overlay else ()),
            *refusals,
            *respelled,
            *(
                spec_change.renamed_by_hand(workspace.root, sweep, expansion, stored.merged)
                if overlay and not own
                else ()
            ),
            *_uncommitted_evidence(workspace, sweep),
        ),
        step=needed.step,
        running=_running_files(sweep, merged, stored.present_of.get(sweep.name, ())),
        why_nothing=_why_nothing(needed, merged, program) if update and overlay is None else "",
    )


def _why_nothing(needed: NextBatch, merged: Sequence[StoredBatch], program: Program) -> str:
    if isinstance(needed.step, ResultsPending):
        return f"{needed.step.evidence.awaited} must be recorded first"
    same = [batch.name for batch in merged if batch.lock.program.digest == program.digest]
    current = f"{same[-1] if same else 'its newest batch'} has the current code, image and data"
    return f"{current}, and {needed.step.text}" if isinstance(needed.step, SearchEnded) else current


def _running_files(
    sweep: Sweep, merged: Sequence[StoredBatch], present: Iterable[StoredBatch]
) -> dict[str, bytes | None]:
    known = {batch.name for batch in merged}
    return {
        path: content
        for batch in batches.readable(present)
        if batch.is_active and batch.name in known
        for path, content in spec_change.running_files(sweep, batch).items()
    }


def _uncommitted_evidence(workspace: Workspace, sweep: Sweep) -> Iterator[Problem]:
    """Warn of foreign evidence that rounds do not use yet, because they read commits."""
    for path in map(evidence_file, sweep.search.start if sweep.search else ()):
        if (workspace.root / path).is_file() and uncommitted_paths(workspace.repository, path):
            message = f"{path} is not committed, so no round uses this version"
            hint = "commit it before the round is generated"
            yield Problem(sweep.path, 0, 0, "start", message, UNCOMMITTED_EVIDENCE, hint, Severity.WARNING)


def _next_listed(
    workspace: Workspace, request: batch_builder.BatchRequest, stored: StoredBatches, retried: Collection[str]
) -> NextBatch:
    """Return the trials of a spec that no batch lists, and those that it requests again, as a batch."""
    merged = stored.merged_of.get(request.sweep.name, ())
    listed = {trial.digest for batch in merged for trial in batch.trials}
    trials = tuple(trial for trial in request.trials if trial.digest not in listed or trial.digest in retried)
    if not trials:
        return NextBatch(len(request.trials), trials, None)
    results = stored.results_of.get(request.sweep.name, stored.commit)
    source = EvidenceSource(workspace.repository, results, batches=tuple(merged))
    stop = source.stop(request.sweep, request.program.digest)
    request_new = replace(request, trials=trials, stop=stop)
    return NextBatch(
        len(request.trials),
        trials,
        batch_builder.build_overlay(request_new, merged, batch_builder.RenderInputs.of(workspace)),
    )


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
            yield EditedError.of(batch, drift, expected, merged=original is not None)


def added_files(workspace: Workspace, generated: Generated) -> dict[str, bytes]:
    """Return the files that a batch adds, by path in the repository."""
    overlay = generated.batch
    if overlay is None:
        return {}
    return {
        **base_files.missing_bases(workspace.root, overlay.lock.needed_bases),
        **{path: b"" for path in base_files.KEEP_FILES if not (workspace.root / path).exists()},
        **batch_builder.batch_files(
            overlay, workspace.settings.platform.controller, workspace.settings.trials.namespace
        ),
    }


def batch_message(new: Iterable[Generated]) -> str:
    """Return the message of the commit that adds batches."""
    counts = {one.sweep.name: 0 if one.batch is None else one.batch.lock.trials for one in new}
    body = "".join(f"Batch: {generated.batch.name}\n" for generated in new if generated.batch)
    return f"generate({', '.join(counts)}): {sum(counts.values())} trials\n\n{body}"
