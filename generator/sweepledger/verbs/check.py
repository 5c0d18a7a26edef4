"""Check a change before the merge, as CI does.

It checks specs, drift, merged batches, base files, builds and manifests.
"""

import json
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from rich.console import RenderableType
from rich.text import Text

from sweepledger import __version__, storage
from sweepledger.cli import response
from sweepledger.cli.options import BaseOption, MonthOption, flag, option
from sweepledger.cli.response import EXIT_DRIFT, Response, has_errors
from sweepledger.cli.text import plan
from sweepledger.cli.text.values import count_text
from sweepledger.errors import GeneratorError, RepositoryError
from sweepledger.formats.problem_reports import code_quality, sarif
from sweepledger.operations.checks import cluster_files, layout, merged_batches, new_batches
from sweepledger.operations.checks.context import (
    CheckContext,
    checked_out,
    is_collector,
    read_refs,
    specs_to_read,
)
from sweepledger.operations.generation.next_batch import EditedError, added_files, plan_batches
from sweepledger.operations.repository import at_commit
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.plan.budgets import PoolUsage, pool_usage
from sweepledger.plan.review import pool_usage_as_data
from sweepledger.problems import Problem, Severity, escape_cell
from sweepledger.render.platform.batch_objects import batch_paths
from sweepledger.repo import files
from sweepledger.repo.batches import StoredBatch
from sweepledger.repo.git import Repository
from sweepledger.repo.stored_batches import StoredBatches
from sweepledger.results.display import escape_markdown, markdown_code
from sweepledger.structs.names import LOCK_FILE, SPECS

PATCH_FILE = "mend.patch"


MOST_PATHS = 10
"""Untracked paths that are listed."""
MOST_ROWS = 100
"""Problems in the Markdown table."""
LONGEST_CELL = 200
"""Characters of a cell of the Markdown table."""
MOST_ANNOTATIONS = 10
"""Annotations for errors, and for warnings: GitHub shows no more of one step."""
LONGEST_ANNOTATION = 1_000
"""Characters of an annotation; GitHub cuts at 4 KiB."""

BATCH_FOLDER = re.compile(r"overlays/(?:active|archive)/[^/]+")


class CheckFormat(StrEnum):
    """Output formats of `sweep check`; GitHub shows annotations next to the lines of a pull request."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"


def check(
    base: BaseOption = None,
    month: MonthOption = None,
    everything: bool = flag("--all", "Build every active overlay, changed or not."),
    hook: bool = flag(
        "--hook", "On a git server, as its pre-receive hook: check what the push would bring to the branch."
    ),
    form: CheckFormat = option(
        "--format", "Print text, one JSON object, or annotations for GitHub.", default=CheckFormat.TEXT
    ),
    report: Path | None = option(
        "--report DIR",
        "Also write check.json, check.sarif, code-quality.json (for GitLab) and, if a patch can fix "
        f"the change, {PATCH_FILE} to this folder.",
    ),
    summary: Path | None = option("--summary FILE", "Also append the result to this file, as Markdown."),
) -> Response:
    patch = b""
    try:
        if hook:
            checked = _hook_response(month)
        else:
            workspace = Workspace.find(response.current_folder())
            checked_change = check_change(workspace, base=base, everything=everything, month=month)
            if report is not None:
                patch = build_fix(workspace, checked_change.problems, base=base)
            checked = _response(checked_change)
    except GeneratorError as error:
        checked = response.error_response(error)
    _write_reports(checked, report, summary, patch)
    if form is CheckFormat.GITHUB:
        for line in github_annotations(response.all_problems(checked)):
            print(line)
    return checked


@dataclass(frozen=True)
class CheckReport:
    """The problems of a change, and the subjects of the check."""

    specs: int
    problems: tuple[Problem, ...]
    built: tuple[str, ...] = ()
    """Active overlays that were rendered."""
    unchanged: tuple[str, ...] = ()
    """Those that did not need to be."""
    rooms: tuple[tuple[str, PoolUsage], ...] = ()
    """The capacity that each new batch takes of its pool, by batch name."""
    untracked: tuple[str, ...] = ()
    """Files and folders that were checked and that git does not track: a merge would not include them."""


def check_change(
    workspace: Workspace,
    *,
    base: str | None = None,
    everything: bool = False,
    month: str | None = None,
    by_collector: bool = False,
) -> CheckReport:
    """Check specs, drift, merged batches, history, frozen bases, kustomize builds and rendered manifests.

    Files that equal the base commit are trusted unless `everything` is true. Where no signer is listed, a change
    `by_collector` may record history. Raises SpecError if a spec is wrong; all other problems are in the report.
    """
    workspace.refuse_sweeps_elsewhere()
    context = CheckContext(workspace, workspace.base_commit(base), month)
    problems = [*layout.check_state(context), *layout.check_layout(context)] or list(
        new_batches.unreadable_batches(context)
    )
    if problems:  # otherwise a link in the tree might be followed
        return CheckReport(0, tuple(sorted(problems)))
    paths = workspace.spec_paths()
    specs = workspace.read(paths if everything else specs_to_read(context, paths))
    sweeps = [parsed.sweep for parsed in specs]
    changed = context.changed | context.uncommitted(f"{SPECS}/")
    problems += (unread for unread in workspace.unread_specs() if everything or unread.file in changed)
    problems += layout.check_attributes(context, specs)
    problems += new_batches.check_settings_unchanged(context)
    problems += new_batches.check_bases_apart(context)
    merged_problems = [
        *merged_batches.check_merged_batches(context, sweeps),
        *merged_batches.check_frozen_bases(context),
    ]
    problems += merged_problems
    if has_errors(merged_problems):  # a plan of edited batches would only repeat these problems
        guarded: tuple[str, ...] = merged_batches.RESULTS_FOLDERS
    else:
        problems += new_batches.check_new_batches(context, specs)
        guarded = merged_batches.GUARDED_FOLDERS
    if context.settings.git.signers or not by_collector:
        problems += merged_batches.check_recorded_history(context, sweeps, places=guarded)
    problems += cluster_files.check_batch_files(context)
    problems += cluster_files.check_secrets(context)
    problems += cluster_files.check_owners(context)
    problems += cluster_files.check_platform(context, specs)
    built, build_problems = new_batches.check_builds(context, everything=everything)
    active = (batch.name for batch in context.present if batch.is_active)
    unchanged = tuple(name for name in active if name not in built)
    by_name = {sweep.name: sweep for sweep in sweeps}
    usage = tuple(
        (batch.name, used)
        for batch in context.added
        if batch.is_active and batch.lock.sweep in by_name
        if (used := pool_usage(by_name[batch.lock.sweep], batch.lock.trials)) is not None
    )
    untracked = context.work_tree.whole_folders(context.index)
    problems = sorted([*problems, *build_problems])
    return CheckReport(len(paths), tuple(problems), built, unchanged, usage, untracked)


def _response(report: CheckReport) -> Response:
    built, unchanged = report.built, report.unchanged
    counts = f"{report.specs} spec(s)"
    counts += f", {len(built)} overlay(s) built" if built else ""
    counts += f", {len(unchanged)} as merged" if unchanged else ""
    is_wrong = has_errors(report.problems)
    lines: list[RenderableType] = [f"{name}: {plan.pool_usage(usage)}" for name, usage in report.rooms]
    lines.append(Text(f"problems: {counts}", "red") if is_wrong else Text(f"ok: {counts}", "green"))
    if paths := report.untracked:
        texts = [f"{count_text(len(paths), 'path')} not in git yet, so a merge would not contain them:"]
        texts += [f"  git add {shlex.quote(path)}" for path in paths[:MOST_PATHS]]
        if len(paths) > MOST_PATHS:
            texts.append(f"  … {len(paths) - MOST_PATHS:,} more; `git status` shows them")
        lines += (Text(text, "yellow") for text in texts)
    data = {
        "specs": report.specs,
        "built": built,
        "unchanged": unchanged,
        "untracked": report.untracked,
        "pools": {name: pool_usage_as_data(usage) for name, usage in report.rooms},
    }
    return Response(data, tuple(lines), report.problems, EXIT_DRIFT * is_wrong)


def _hook_response(month: str | None) -> Response:
    """Check a push to the branch; accept all other refs."""
    environment = dict(os.environ)  # git commands forget what names the pushed objects
    # With it, git changes no ref, not even in the temporary work tree.
    os.environ.pop("GIT_QUARANTINE_PATH", None)
    by_collector = is_collector(environment)
    for ref in read_refs(sys.stdin.read()):
        with checked_out(response.current_folder(), environment, ref) as workspace:
            if workspace is not None:
                everything = ref.old is None
                return _response(
                    check_change(
                        workspace, base=ref.old, everything=everything, month=month, by_collector=by_collector
                    )
                )
    return Response({}, ())


def _write_reports(checked: Response, report: Path | None, summary: Path | None, patch: bytes) -> None:
    problems = response.all_problems(checked)
    if report is not None:
        documents = {
            "check.sarif": sarif(problems, version=__version__),
            "code-quality.json": code_quality(problems),
        }
        contents = {
            "check.json": response.format_envelope("check", checked).encode(),
            **({PATCH_FILE: patch} if patch else {}),
            **{
                name: json.dumps(document, indent=1, ensure_ascii=False).encode("utf-8", "replace")
                for name, document in documents.items()
            },
        }
        for name, content in contents.items():
            storage.write_file(storage.output_path(report / name), content.rstrip(b"\n") + b"\n")
    if summary is not None:
        text = check_markdown(problems, patch=PATCH_FILE if patch else None)
        with storage.storage_errors(summary), storage.output_path(summary).open("ab") as file:
            file.write(text.encode("utf-8", "replace"))


def check_markdown(problems: Sequence[Problem], *, patch: str | None) -> str:
    """Return the problems of a change as Markdown, with the name of the patch that fixes them, if there is one."""
    rows = [_problem_row(problem) for problem in sorted(problems)]
    errors = sum(problem.severity is Severity.ERROR for problem in problems)
    lines = [f"## Not ready to merge: {count_text(errors, 'problem')}" if errors else "## Ready to merge", ""]
    if rows:
        lines += ["| location | problem | hint |", "| --- | --- | --- |", *rows[:MOST_ROWS], ""]
    if len(rows) > MOST_ROWS:
        lines += [f"… {len(rows) - MOST_ROWS:,} more; `sweep check` shows them.", ""]
    if patch and errors:
        way = f"To fix the change, download `{patch}` from the artifact of this workflow run, run "
        lines.append(f"{way}`git apply {patch}`, and commit.")
    return plan.fit_comment([*lines, ""])


def _problem_row(problem: Problem) -> str:
    position = f"{problem.file}:{problem.line}:{problem.column}" if problem.line else problem.file
    location = markdown_code(plan.shorten(position, LONGEST_CELL)) if position else ""
    text = f"{problem.path}: {problem.message}" if problem.path else problem.message
    severity = "" if problem.severity is Severity.ERROR else "warning: "
    message, hint = (escape_markdown(plan.shorten(cell, LONGEST_CELL)) for cell in (text, problem.hint or ""))
    return f"| {location} | {severity}{message} `{problem.code}` | {hint} |"


def github_annotations(problems: Iterable[Problem]) -> Iterator[str]:
    """Return annotations for the first errors and warnings, with the number of the others."""
    ordered = sorted(problems)
    for severity in Severity:
        selected = [problem for problem in ordered if problem.severity is severity]
        first = selected if len(selected) <= MOST_ANNOTATIONS else selected[: MOST_ANNOTATIONS - 1]
        yield from map(_annotation, first)
        if len(first) < len(selected):
            count = len(selected) - len(first)
            yield f"::{severity} title=more::{count:,} more are in the summary of this workflow run"


def _annotation(problem: Problem) -> str:
    # A folder has no lines: a problem of a batch is annotated in its lock.
    file = f"{problem.file}/{LOCK_FILE}" if BATCH_FOLDER.fullmatch(problem.file) else problem.file
    position = {"line": problem.line, "col": problem.column} if problem.line else {"line": 1}
    location = {"file": file, **position} if file else {}
    properties = {**location, "title": problem.code}
    property_list = ",".join(
        f"{name}={_escape_message(str(value)).replace(':', '%3A').replace(',', '%2C')}"
        for name, value in properties.items()
    )
    path = f"{problem.path}: " if problem.path else ""
    lines = [f"{path}{problem.message}", *([problem.hint] if problem.hint else [])]
    return f"::{problem.severity} {property_list}::{'%0A'.join(map(_escape_message, lines))}"


def _escape_message(text: str) -> str:
    return escape_cell(text[:LONGEST_ANNOTATION]).replace("%", "%25")


def write_patch(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> bytes:
    """Return the patch from some files to others, by path; empty if they are equal."""
    with tempfile.TemporaryDirectory(prefix="sweep-patch-") as scratch:
        repository = Repository(Path(scratch))
        repository.run("init", "--quiet", "--template=")
        trees = []
        for contents in (before, after):
            for path, content in contents.items():
                storage.write_file(repository.folder / path, content)
            repository.run(*at_commit.AS_COMMITTED, "add", "--all", "--force")
            trees.append(repository.run("write-tree").strip())
            for path in contents:
                storage.remove_file(repository.folder / path)
        options = ("--binary", "--full-index", "--no-renames", "--no-color", "--no-ext-diff")
        return repository.run_bytes("diff-tree", "-r", "--patch", *options, *trees)


FIXABLE_CODES = frozenset({"drift", "pending", "batch-forged"})
"""Codes of problems that `sweep generate` could fix."""


def build_fix(workspace: Workspace, problems: Iterable[Problem], *, base: str | None = None) -> bytes:
    """Return the patch that fixes missing, stale and edited batches; empty if a patch cannot fix anything.

    Raises as `plan_batches` does for specs, which were read before problems of batches could be found.
    """
    errors = {problem.code for problem in problems if problem.severity is Severity.ERROR}
    if not errors & FIXABLE_CODES:
        return b""
    context = CheckContext(workspace, workspace.base_commit(base))
    merged = {batch.name for batch in context.merged}
    unsound: list[StoredBatch] = []
    kept: list[StoredBatch] = []
    for batch in context.present:
        try:
            is_sound = batch.name in merged or not batch.hand_edits()
        except RepositoryError:  # an unreadable lock cannot be compared
            is_sound = False
        (kept if is_sound else unsound).append(batch)
    specs = workspace.read(specs_to_read(context, workspace.spec_paths()))
    try:
        stored = StoredBatches(context.base, context.merged, tuple(kept))
        planned = plan_batches(workspace, specs, stored=stored.prefetch(each.sweep.name for each in specs))
    except EditedError:  # an edited merged batch must be restored from git instead
        return b""
    before: dict[str, bytes] = {}
    after: dict[str, bytes] = {}
    for batch in (*unsound, *(stale for generated in planned for stale in generated.stale)):
        before |= {f"{batch.folder}/{path}": content for path, content in batch.tree}
        before |= _existing_files(
            workspace, batch_paths(batch.name, (None, *sorted(workspace.settings.fleet.clusters)))
        )
    for generated in planned:
        after |= added_files(workspace, generated)
    return write_patch(before | _existing_files(workspace, after), after)


def _existing_files(workspace: Workspace, paths: Iterable[str]) -> dict[str, bytes]:
    contents = {}
    for path in paths:
        files.refuse_links(workspace.root, path)
        if (workspace.root / path).is_file():
            contents[path] = files.read_file(workspace.root / path)
    return contents
