"""New batches must equal the generator's output, fit the budgets, and come with unchanged settings.

Every overlay builds, passes policy, and renders no object of another overlay.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from sweepledger import contract
from sweepledger.errors import RepositoryError, SpecError, ToolError, UnreadableError
from sweepledger.operations.checks.context import CheckContext, referenced_bases
from sweepledger.operations.generation import next_batch
from sweepledger.operations.repository import at_commit, batch_records, costs, programs, rendered_manifests
from sweepledger.operations.rounds.next_round import ResultsPending, RoundDue, SearchEnded, Step
from sweepledger.plan.budgets import counts_towards, reservation
from sweepledger.problems import Problem, Severity
from sweepledger.reader import safe_repr
from sweepledger.render.overlay import Overlay
from sweepledger.repo import base_files, batches, kustomize
from sweepledger.repo.batch_files import KUSTOMIZATION
from sweepledger.repo.batches import ACTIVE, StoredBatch
from sweepledger.repo.files import read_input
from sweepledger.repo.git import code_tree, commit_with_code, reachable_trees
from sweepledger.repo.stored_batches import StoredBatches
from sweepledger.spec import ParsedSpec
from sweepledger.structs.kubernetes import Manifest
from sweepledger.structs.names import LOCK_FILE, SETTINGS_FILE, SPECS, SUFFIX
from sweepledger.structs.program import ConfigFile, Data, EnvironmentLock
from sweepledger.structs.settings import GenerateMode
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import as_data


def check_builds(context: CheckContext, *, everything: bool) -> tuple[tuple[str, ...], tuple[Problem, ...]]:
    """Build all active overlays, or those whose input changed since the base commit; return names and problems.

    Raises ToolError if kustomize cannot be found: a check that cannot run is not a pass.
    """
    active = [batch for batch in context.present if batch.is_active]
    merged = {stood.folder: stood for stood in context.merged}
    if context.changed_bases:
        batches.prefetch((stood for stood in context.merged if stood.is_active), KUSTOMIZATION)
    to_build = [
        batch
        for batch in active
        if context.settings.git.manifests and (everything or not _is_as_merged(context, batch, merged))
    ]
    if to_build:
        kustomize.command()
    problems: list[Problem] = []
    rendered: dict[str, tuple[Manifest, ...]] = {}
    for batch in to_build:
        found, rendered[batch.name] = _build(context, batch)
        problems += found
    names = [batch.name for batch in active]
    return tuple(rendered), (*problems, *duplicate_objects(rendered, names))


def _is_as_merged(context: CheckContext, batch: StoredBatch, merged: Mapping[str, StoredBatch]) -> bool:
    """Return whether every file that the build reads equals the base commit's, so the build is equal, too."""
    original = merged.get(batch.folder)
    if original is None:
        return False
    if batch.folder not in context.unchanged and batches.difference(original, batch):
        return False
    if batch.running_file != original.running_file:
        return False
    if not context.changed_bases or KUSTOMIZATION not in original.contents.paths:
        return True
    # To parse hundreds of kustomizations takes long. The generator names a base as it is, and escapes newlines alone;
    # another escape or a tag can hide a name, in one that was merged despite the check.
    kustomization = original.contents.read(KUSTOMIZATION).replace(b"\\n", b" ")
    signs = ("\\", "!", *context.changed_versions)
    return not any(sign.encode() in kustomization for sign in signs)


def _build(context: CheckContext, batch: StoredBatch) -> tuple[tuple[Problem, ...], tuple[Manifest, ...]]:
    unsafe = contract.check_kustomization(batch.tree.files, context.bases.files, place=batch.folder)
    if unsafe:
        return tuple(unsafe), ()
    try:
        _ = batch.running  # kustomize reads it, too, so it must be as the generator writes it
    except UnreadableError as error:
        return error.problems, ()
    try:
        manifests = kustomize.build(context.workspace.root / batch.folder)
    except ToolError as error:
        return (Problem(batch.folder, 0, 0, "", str(error), "build-failed", error.hint),), ()
    bases, settings = context.bases.files, context.settings_of(batch)
    return rendered_manifests.check_built(batch, manifests, bases, settings, context.present), manifests


def check_unwritten(context: CheckContext, spec: str, overlay: Overlay) -> Iterator[Problem]:
    """Build the batch that will be written after a spec is merged, and report its problems at the spec."""
    if not overlay.lock.has_manifests:
        return
    bases = base_files.read_bases(context.workspace.root)
    batch = StoredBatch(f"{ACTIVE}/{overlay.name}", overlay.tree)
    try:
        rendered_manifests.render(batch, bases, context.workspace.settings, context.present)
    except ToolError as error:
        yield Problem(spec, 0, 0, "", str(error), "build-failed", error.hint)
    except SpecError as error:
        for problem in error.problems:
            yield replace(problem, file=spec, line=0, column=0)


def duplicate_objects(
    rendered: Mapping[str, tuple[Manifest, ...]], active: Sequence[str]
) -> Iterator[Problem]:
    """Yield a problem for each object that two active overlays render: each would prune or refuse the other's object.

    The contract ensures that the names of a batch's objects begin with the batch's name. Therefore, an overlay that
    was not built can share an object only if the object's name begins with the overlay's.
    """
    makers: dict[tuple[str, str], str] = {}
    for batch, manifests in rendered.items():
        for manifest in manifests:
            metadata = manifest.get("metadata")
            kind = str(manifest.get("kind"))
            name = str(metadata.get("name")) if isinstance(metadata, Mapping) else ""
            other = makers.setdefault((kind, name), batch)
            longer = [
                batch_name
                for batch_name in active
                if len(batch_name) > len(batch) and f"{name}-".startswith(f"{batch_name}-")
            ]
            for shared in longer if other == batch else [other]:
                message, hint = f"{kind} {name} is {shared}'s, too", "rename one of the sweeps"
                yield Problem(f"{ACTIVE}/{batch}", 0, 0, "", message, "object-twice", hint)


def check_settings_unchanged(context: CheckContext) -> Iterator[Problem]:
    """Refuse new batches together with settings that differ from those of the base commit."""
    if (
        SETTINGS_FILE in context.base_entries
        and context.added
        and context.workspace.settings != context.settings
    ):
        message = (
            f"must not change together with new batches, got {len(context.added)}: they are judged by it"
        )
        hint = "merge the settings first, then generate the batches"
        yield Problem(SETTINGS_FILE, 0, 0, "", message, "settings-changed", hint)


def check_bases_apart(context: CheckContext) -> Iterator[Problem]:
    """Refuse new batches together with changes of a base that they use, unless it is the generator's own."""
    for batch, folder in referenced_bases(context.added) if context.edited_bases else ():
        for path in context.edited_bases:
            if path.startswith(f"{folder}/"):
                message = f"must not change together with {batch.name}, which is made from it"
                hint = "merge the base first, then generate the batch"
                yield Problem(path, 0, 0, "", message, "base-with-batch", hint)


def check_budgets(context: CheckContext, planned: Sequence[next_batch.Generated]) -> Iterator[Problem]:
    """Refuse new batches and resumes that exceed a budget in the settings of the base commit.

    The usage recorded in the month counts, and the upper bound of all unrecorded batches: the second of
    two merges is compared with what remains after the first.
    """
    settings = context.settings if SETTINGS_FILE in context.base_entries else context.workspace.settings
    if not settings.teams.budgets:
        return
    added = {batch.name for batch in context.added}
    on_merge = settings.git.generate is GenerateMode.ON_MERGE
    merged = batches.by_sweep(context.merged)
    specs = at_commit.SpecReader(context.workspace.repository, settings)
    requested = [
        (reservation(each.sweep.name, each.sweep.run, each.sweep.pool, each.batch.lock.trials), "run")
        for each in planned
        if each.batch and (on_merge or each.batch.name in added)
    ]
    requested += [
        (charge, "running")
        for each in planned
        for charge in costs.resume_charges(specs, context.base, each.sweep, merged.get(each.sweep.name, ()))
    ]
    if not requested:
        return
    active = {batch.name for batch in context.present if batch.is_active}
    leaving = (
        (batch.name, contents)
        for batch in context.merged
        if batch.is_active and batch.name not in active
        # One that is cancelled may have used all that it reserves, until its records say otherwise.
        if (contents := batch_records.read_records_files(context.workspace.root, batch))
    )
    charges = (charge for charge, _ in requested)
    for month, balance in costs.exceeded_budgets(
        specs, context.base, context.month, charges, merged=context.merged, leaving=leaving
    ):
        budget = settings.teams.budgets[balance.team]
        name, key = next((each.sweep, key) for each, key in requested if counts_towards(budget, each.sweep))
        yield costs.overdrawn(f"{SPECS}/{name}{SUFFIX}", key, balance, month, settings.teams.currency)


def unreadable_batches(context: CheckContext) -> Iterator[Problem]:
    """Yield a problem for each new batch whose lock cannot be read: no other check can run on it."""
    for batch in context.added:
        try:
            _ = batch.lock
        except RepositoryError as error:
            hint = "remove the folder and run `sweep generate`"
            yield Problem(f"{batch.folder}/{LOCK_FILE}", 0, 0, "", str(error), "batch-forged", hint)


def check_new_batches(context: CheckContext, specs: Sequence[ParsedSpec]) -> Iterator[Problem]:
    """Compare the work tree's new batches with the specs. Raises as `plan_batches` does.

    Warnings are repeated only while trials are new: the reviewer of merged trials has read them.
    """
    commit, merged = context.base, context.merged
    if context.laptop:  # what follows them, such as the next round, follows from their results
        commit, merged = context.workspace.repository.commit("HEAD"), (*merged, *context.laptop)
    stored = StoredBatches(commit, merged, context.present)
    stored.prefetch(parsed.sweep.name for parsed in specs)
    unreadable = {
        parsed.sweep.name: problems
        for parsed in specs
        if (problems := tuple(_unreadable_merged(context, parsed.sweep)))
    }
    yield from chain.from_iterable(unreadable.values())
    readable = [parsed for parsed in specs if parsed.sweep.name not in unreadable]
    try:
        planned = next_batch.plan_batches(context.workspace, readable, base=commit, stored=stored)
    except next_batch.EditedError as first:
        edits = tuple(next_batch.edits(stored.merged, stored.present)) or (first,)
        message = "is not what the generator writes"
        for error in edits:
            yield from (Problem(path, 0, 0, "", message, "batch-forged", error.hint) for path in error.paths)
        return
    for generated in planned:
        yield from _plan_problems(context, generated)
    yield from check_budgets(context, planned)
    wanted = {generated.batch.name for generated in planned if generated.batch}
    wanted |= {batch.name for generated in planned for batch in generated.kept}
    stale = {batch.name for generated in planned for batch in generated.stale}
    for batch in context.added:
        if batch.name not in wanted | stale and batch not in context.laptop:
            message = f"belongs to no spec: {SPECS}/{batch.sweep}{SUFFIX} is missing"
            yield Problem(batch.folder, 0, 0, "", message, "drift", "add the spec, or remove the folder")
    for batch in context.added:
        if batch.name not in wanted and (known := context.known_trial(batch)):
            message = f"{known[0]} is in {known[1]} already"
            yield Problem(batch.folder, 0, 0, "", message, "trial-repeated", "run `sweep generate`")
    yield from _program_problems(context, {parsed.sweep.name: parsed.sweep for parsed in specs})


def _unreadable_merged(context: CheckContext, sweep: Sweep) -> Iterator[Problem]:
    """Yield warnings for unreadable merged batches of a sweep that the change does not touch."""
    if context.base_entries.get(sweep.path) != context.index.get(sweep.path):
        return
    for batch in batches.of_sweep(context.merged, sweep.name):
        try:
            batch.vetted()
        except UnreadableError as error:
            yield from (replace(problem, severity=Severity.WARNING) for problem in error.problems)


def _plan_problems(context: CheckContext, generated: next_batch.Generated) -> Iterator[Problem]:
    yield from generated.warnings if generated.batch else ()
    path, name = generated.sweep.path, generated.sweep.name
    hint = f"run `sweep generate {name}` and commit what it writes"
    if generated.step is not None and generated.known:
        yield from _round_problems(generated, generated.step)
        return
    if generated.batch and generated.batch.name not in {batch.name for batch in context.added}:
        count, missing = generated.batch.lock.trials, f"{generated.batch.name} is missing"
        on_merge = context.workspace.settings.git.generate is GenerateMode.ON_MERGE
        code, severity = "pending", Severity.WARNING
        if on_merge:
            text = "that no batch lists; their batch is written after the merge"
        elif not batches.of_sweep((*context.merged, *context.added), name) and context.is_merged_content(
            path, read_input(context.workspace.root / path)
        ):
            # The spec was merged without a batch, like that of a new repository: do not block other merges.
            text = f"that no batch lists yet; {missing}"
        elif generated.retried == count:
            # A results commit may have made them due: do not block other merges.
            text = f"are due again; {missing}"
        else:
            text, code, severity = f"that no batch lists; {missing}", "drift", Severity.ERROR
        message = f"{count} trial(s) {text}"
        yield Problem(path, 0, 0, "", message, code, None if on_merge else hint, severity)
        if on_merge:
            yield from check_unwritten(context, path, generated.batch)
    for stale in generated.stale:
        yield Problem(stale.folder, 0, 0, "", "the spec does not give this batch", "drift", hint)


def _round_problems(generated: next_batch.Generated, step: Step) -> Iterator[Problem]:
    """Yield a problem if a proposed round differs from the round that the records give."""
    regenerate = f"remove it and run `sweep cluster next {generated.sweep.name}`"
    match step:
        case RoundDue(round=proposal, batch=batch):
            why = f"the records do not give this batch: round {proposal.number} is {batch.name}"
        case ResultsPending(evidence=evidence):
            names = ", ".join(evidence.pending)
            awaited = f"{names} must be recorded" if names else evidence.awaited
            why = f"the records do not give this batch yet: {awaited}"
        case SearchEnded(reason=reason, text=text):
            why = f"the search is over ({reason}): {text}"
    for stale in generated.stale:
        if isinstance(step, RoundDue) and stale.lock.engine not in {None, step.round.engine}:
            engines = f"drawn by {stale.lock.engine}; here is {step.round.engine}"
            message = f"cannot be recomputed: it was {engines}"
            hint = f"install that version, or {regenerate}"
            yield Problem(f"{stale.folder}/{LOCK_FILE}", 0, 0, "engine", message, "engine-differs", hint)
        else:
            yield Problem(stale.folder, 0, 0, "", why, "drift", regenerate)


def _program_problems(context: CheckContext, sweeps: Mapping[str, Sweep]) -> Iterator[Problem]:
    """Yield a problem for each new batch whose program differs from the program that the reviewer sees.

    A reviewer sees the code of the next commit and the settings, and knows the program of the last merged batch.
    """
    for batch in context.added:
        merged = batches.newest(batches.of_sweep(context.merged, batch.sweep))
        problem = _code_problem(context, batch, merged)
        if problem is not None:
            yield problem
        elif batch.sweep in sweeps and (
            merged is None or as_data(batch.lock.program) != as_data(merged.lock.program)
        ):
            yield from _unknown_parts(context, batch, sweeps[batch.sweep], merged)


def _code_problem(context: CheckContext, batch: StoredBatch, merged: StoredBatch | None) -> Problem | None:
    """Return a problem if a batch runs code that a reviewer does not see, such as that of an intermediate commit."""
    repository, code = context.workspace.repository, batch.lock.program.code
    if code.tree == code_tree(repository, "HEAD", code.path, code.selection):
        return None
    revisions = ("HEAD", context.base)
    if (
        commit_with_code(repository, code, revisions) is None
        if code.selection
        else code.tree not in reachable_trees(repository, revisions, code.path)
    ):
        message = f"{code} at {code.tree[:12]} is in no commit that will be merged"
        return _program_problem(batch, "code.tree", message, "code-unreachable")
    if merged is not None and code == merged.lock.program.code:
        return None
    known = "the last commit's" if merged is None else f"the last commit's or that of {merged.name}"
    message = f"must be {known}, so that the change shows what runs; got {code} at {code.tree[:12]}"
    return _program_problem(batch, "code.tree", message, "program-not-shown")


def _unknown_parts(
    context: CheckContext, batch: StoredBatch, sweep: Sweep, merged: StoredBatch | None
) -> Iterator[Problem]:
    """Yield a problem for each part of a program that does not follow from spec, settings and the last commit.

    The image of a spec that names none, the data and the content of a lock file are only in the lock.
    """
    workspace, program = context.workspace, batch.lock.program
    trials = workspace.settings.trials
    try:
        given = programs.locked_program_at(workspace.repository, "HEAD", trials, sweep, None)
    except RepositoryError as error:
        yield _program_problem(batch, "", str(error), "program-not-shown")
        return
    shown = (given.code, merged.lock.program.code) if merged else (given.code,)
    sizes = sorted({code.disk for code in shown if code.tree == program.code.tree})
    if program.code.disk not in sizes:
        message = f"must be what the code takes, {' or '.join(map(str, sizes))}, got {program.code.disk}"
        yield _program_problem(batch, "code.disk", message, "program-not-shown")
    for part in ("image", "data", "environment", "workdir", "config"):
        wanted, got = getattr(given, part), getattr(program, part)
        if got != wanted:
            message = f"must be what settings and spec give, {_shown(wanted)}, got {_shown(got)}"
            yield _program_problem(batch, part, message, "program-not-shown")


def _shown(part: str | ConfigFile | Data | EnvironmentLock | None) -> str:
    if isinstance(part, Data) and part.at:
        return safe_repr(f"{part.digest} at {', '.join(path for path in part.at.values())}")
    if isinstance(part, ConfigFile):
        return safe_repr(f"{part.base} with {part.text}")
    return safe_repr(part if part is None or isinstance(part, str) else part.digest)


def _program_problem(batch: StoredBatch, part: str, message: str, code: str) -> Problem:
    place, path = f"{batch.folder}/{LOCK_FILE}", f"program.{part}".rstrip(".")
    return Problem(place, 0, 0, path, message, code, f"run `sweep generate {batch.sweep} --update`")
