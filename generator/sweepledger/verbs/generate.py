"""Write the next batch of each sweep: trials that no batch has.

If you name no sweep, those of valid specs are written, and the problems of the others are reported.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from sweepledger.cli import completion
from sweepledger.cli.options import BaseOption, argument, flag
from sweepledger.cli.response import EXIT_DRIFT, EXIT_PROBLEMS, Response
from sweepledger.cli.text.plan import search_space_table
from sweepledger.cli.text.values import count_text
from sweepledger.errors import GeneratorError, SpecError, UsageError
from sweepledger.operations.generation import next_batch
from sweepledger.operations.generation.spec_change import as_changes
from sweepledger.operations.repository import at_commit
from sweepledger.operations.repository.workspace import NO_SPECS, Target, Workspace
from sweepledger.problems import Problem
from sweepledger.repo.batches import ACTIVE
from sweepledger.repo.git import Change
from sweepledger.repo.state import state_folder
from sweepledger.repo.stored_batches import StoredBatches, settled_specs, stored_batches
from sweepledger.spec import ParsedSpec
from sweepledger.structs.names import SETTINGS_FILE, SPECS
from sweepledger.structs.settings import GenerateMode

FEW = 5
"""So many unchanged sweeps are named."""


def generate(
    workspace: Workspace,
    names: list[str] | None = argument(
        "[NAME]...", "Names of sweeps; default: all of sweeps/.", autocompletion=completion.sweeps
    ),
    check_only: bool = flag("--check", "Write nothing; exit with 5 if a batch is missing."),
    exit_code: bool = flag("--exit-code", "Exit with 5 if anything was written, for hooks."),
    update: bool = flag(
        "--update", "Request all trials of the named sweeps again if code, image or data changed."
    ),
    push: bool = flag("--push", "Commit on the branch; requires `generate: on-merge` in the settings."),
    base: BaseOption = None,
) -> Response:
    if push and (check_only or exit_code or update or base is not None):
        raise UsageError("--push cannot be combined with --check, --exit-code, --update or --base")
    if update and not names:
        raise UsageError("--update needs the names of sweeps: all of their trials run again")
    if push:
        made, commit = push_batches(workspace, names or ())
        is_complete = not made.problems and not made.failures
        nothing = f"nothing to commit{': every trial is in a batch' * is_complete}"
        return _response(made, {"commit": commit}, (f"committed as {commit}" if commit else nothing,))
    if names:
        made = Generation(
            next_batch.generate_batches(workspace, names, check=check_only, base=base, update=update)
        )
    else:
        made = generate_changed(workspace, check=check_only, base=base)
    has_drift = (check_only or exit_code) and any(item.is_pending for item in made.generated)
    unchanged = sorted(path.stem for path in made.unchanged)
    lines = [] if workspace.spec_paths() else [NO_SPECS]
    if unchanged:
        listed = f" ({', '.join(unchanged)})" if len(unchanged) <= FEW else ""
        lines.insert(0, f"{count_text(len(unchanged), 'sweep')} unchanged{listed}: nothing to write")
    unread = () if names else workspace.unread_specs()
    return _response(
        made, {"unchanged": unchanged}, lines, unread, check=check_only, code=EXIT_DRIFT * has_drift
    )


@dataclass(frozen=True, slots=True)
class Generation:
    """The next batches of all sweeps that can have one, and the reasons why other sweeps have none."""

    generated: tuple[next_batch.Generated, ...]
    problems: tuple[Problem, ...] = ()
    """Of the specs that are wrong."""
    failures: tuple[GeneratorError, ...] = ()
    """Of specs whose batch cannot be made here, for example because their code is not committed."""
    unchanged: frozenset[Path] = frozenset()
    """Specs that were not read: their newest batch was made from them as they are."""


def generate_changed(workspace: Workspace, *, check: bool = False, base: str | None = None) -> Generation:
    """Write the next batch of each sweep that may lack it; a wrong spec does not affect other sweeps.

    Specs that `settled_specs` lists are not read. Raises RepositoryError if a generated file was edited by hand;
    nothing is written then.
    """
    state_folder(workspace.repository)  # as when specs are read: a repository with planted state is refused
    workspace.refuse_sweeps_elsewhere()
    stored = stored_batches(workspace.repository, workspace.settings.git.branch, base, known_to_git=True)
    entries = workspace.repository.files(stored.commit, SPECS, SETTINGS_FILE)
    paths = workspace.spec_paths()
    unsettled = (*stored.added, *stored.copies)
    settled = settled_specs(workspace.root, entries, stored.merged, unsettled, paths)
    # Who edits a batch of another sweep should know it while the batch runs; its archive is for `sweep check`.
    names = {path.stem for path in settled}
    compared = tuple(batch for batch in stored.present if batch.is_active or batch.sweep not in names)
    to_plan = (path for path in paths if path not in settled)
    made = _plan_each(workspace, to_plan, replace(stored, present=compared))
    if not check:
        next_batch.write_batches(workspace, made.generated)
    return replace(made, unchanged=settled)


def _plan_each(workspace: Workspace, paths: Iterable[Path], stored: StoredBatches) -> Generation:
    """Return the next batches of the specs that can have one, and why other specs cannot. Raises EditedError."""
    read = [workspace.parse(path) for path in paths]
    specs = [item for item in read if isinstance(item, ParsedSpec)]
    planned = [*zip(specs, next_batch.plan_each(workspace, specs, stored), strict=True)]
    valid = [spec for spec, item in planned if isinstance(item, next_batch.Generated)]
    made = [item for _, item in planned if isinstance(item, next_batch.Generated)]
    errors = [(spec, item) for spec, item in planned if not isinstance(item, next_batch.Generated)]
    wrong = [item.problems for _, item in errors if isinstance(item, SpecError)]
    return Generation(
        next_batch.with_code_warnings(workspace, valid, made),
        tuple(sorted(problem for item in (*read, *wrong) if isinstance(item, tuple) for problem in item)),
        tuple(
            type(error)(f"{spec.sweep.path}: {error}", hint=error.hint)
            for spec, error in errors
            if not isinstance(error, SpecError)
        ),
    )


def push_batches(workspace: Workspace, names: Iterable[str] = ()) -> tuple[Generation, str | None]:
    """Commit the missing batches to the branch that controllers follow; return them and the commit.

    If no sweep is named, a wrong spec does not affect others. Raises UsageError if the settings leave this to authors,
    SpecError for a named spec, RepositoryError if the server refuses, ContentionError.
    """
    _require_on_merge(workspace)
    chosen = tuple(names)

    def make(commit: str) -> tuple[Change | None, Generation]:
        with at_commit.checked_out(workspace.repository, commit) as folder:
            return _batch_commit(Workspace.find(folder), chosen, commit)

    target = Target(workspace.repository, workspace.remote, workspace.settings.git.branch)
    commit, made = target.commit(make)
    return made or Generation(()), commit


def _batch_commit(
    workspace: Workspace, names: tuple[str, ...], commit: str
) -> tuple[Change | None, Generation]:
    """Return the change that adds the missing batches to a checked-out commit, and these batches."""
    _require_on_merge(workspace)
    if names:
        made = Generation(next_batch.plan_batches(workspace, workspace.specs(names), base=commit))
    else:
        made = _plan_each(
            workspace,
            workspace.spec_paths(),
            stored_batches(workspace.repository, workspace.settings.git.branch, commit, known_to_git=True),
        )
    writes: dict[str, bytes] = {}
    for generated in made.generated:
        writes |= next_batch.added_files(workspace, generated)
    existing = sorted(writes.keys() & workspace.repository.files(commit).keys())
    assert not existing, f"a new batch adds only new files, but {existing[0]} exists"
    running = {path: content for generated in made.generated for path, content in generated.running.items()}
    written, removed = as_changes(running)
    changed = tuple(generated for generated in made.generated if generated.batch or generated.running)
    change = Change(next_batch.batch_message(changed), writes | written, removes=removed) if changed else None
    return change, replace(made, generated=changed)


def _require_on_merge(workspace: Workspace) -> None:
    if workspace.settings.git.generate is not GenerateMode.ON_MERGE:
        raise UsageError(
            f"{SETTINGS_FILE} does not contain `generate: on-merge`",
            hint="run `sweep generate`, and commit what it writes in the pull request",
        )


def _response(
    made: Generation,
    data: Mapping[str, Any],
    lines: Iterable[str],
    unread: tuple[Problem, ...] = (),
    *,
    check: bool = False,
    code: int = 0,
) -> Response:
    """Return the new batches, and the problems of specs without one, which determine the exit code."""
    texts = (part for generated in made.generated for part in generated_text(generated, check=check))
    warnings = sorted(warning for generated in made.generated for warning in generated.warnings)
    if made.problems:
        code = EXIT_PROBLEMS
    elif made.failures:
        code = min(failure.exit_code for failure in made.failures)
    problems = (*made.problems, *warnings, *unread)
    return Response(
        {"sweeps": made.generated, **data}, (*texts, *map(Text, lines)), problems, code, made.failures
    )


def generated_text(generated: next_batch.Generated, *, check: bool) -> Iterator[RenderableType]:
    """Yield the trials that a sweep adds, and the files that were written."""
    name = generated.sweep.name
    new = generated.trials - generated.known - generated.retried
    retried = f", {generated.retried} retried" if generated.retried else ""
    yield Text(f"{name}: {generated.trials} trials, {generated.known} known, {new} new{retried}", "bold")
    if generated.batch is None:
        hint = f"; `sweep cluster next {name}` adds rounds" if generated.sweep.search else ""
        yield f"  nothing to write: {generated.why_nothing or f'every trial is in a batch{hint}'}"
    else:
        yield search_space_table(generated.sweep.design)
        verb = "unchanged" if generated.is_written else "missing" if check else "wrote"
        lock = generated.batch.lock
        where = "" if lock.cluster is None else f", cluster {lock.cluster}"
        facts = f"{lock.trials} trials, shape {lock.shape}{where}"
        yield f"  {verb} {ACTIVE}/{generated.batch.name}/ ({facts})"
    for stale in generated.stale:
        yield f"  {'stale' if check else 'removed'} {stale.folder}/"
