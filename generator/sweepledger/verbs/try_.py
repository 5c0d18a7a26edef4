"""Run one trial of the work tree here, and record nothing."""

import re
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Any

from msgspec import structs
from rich.console import RenderableType
from rich.text import Text

from sweepledger import process, storage
from sweepledger.cli import response
from sweepledger.cli.options import FormatOption, SweepArgument, flag, option
from sweepledger.cli.text.style import filled_table, status_with_reason, styled_status, untrusted_text
from sweepledger.cli.text.values import configuration_text, number_text
from sweepledger.engine.local.launcher_worker import WORK
from sweepledger.engine.local.local_batch import DesiredBatch, LocalPod, ResourceAmounts, local_batch
from sweepledger.engine.local.node import Launch
from sweepledger.engine.local.pod_folders import StateFolders, write_files
from sweepledger.engine.local.pods import prepare_launch
from sweepledger.errors import RepositoryError, SpecError, UsageError
from sweepledger.formats import record_json as records
from sweepledger.formats.launch_json import LAUNCH_FILE, read_table_layout
from sweepledger.operations.repository import programs
from sweepledger.operations.repository.outside_imports import StartedProgram, check_imports
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.operations.scaffold.metric_proposals import MetricProposal, propose
from sweepledger.problems import Problem, Severity
from sweepledger.reader.yaml_edit import format_flow, set_value
from sweepledger.render.overlay import overlay
from sweepledger.repo import datasets, files
from sweepledger.repo.base_files import read_bases
from sweepledger.repo.git import EXECUTABLE_MODE, Checkout, work_tree_files
from sweepledger.repo.state import DATA, state_folder
from sweepledger.search import expansion
from sweepledger.search.adaptive import SearchEnd
from sweepledger.search.adaptive.rounds import next_round
from sweepledger.spec import ParsedSpec
from sweepledger.structs.batch import Batch
from sweepledger.structs.names import LAUNCHER_PROGRAM, SPECS
from sweepledger.structs.node_pool import PROGRAM_GRACE_SECONDS
from sweepledger.structs.record import Record, Status
from sweepledger.structs.settings import Controller
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.trial import Trial, all_trials
from sweepledger.structs.values import bytes_digest


def try_(
    workspace: Workspace,
    name: SweepArgument,
    trial: int = option("--trial N", "Run trial N of `sweep plan`, counted from 0.", default=0),
    keep: bool = flag("--keep", "Leave the folder that the trial has written to, and show its path."),
    write: bool = flag("--write", "Write a proposed metric into the spec if the trial reports none."),
    form: FormatOption = response.Format.TEXT,
) -> response.Response:
    tried = try_trial(workspace, name, trial, quiet=form is response.Format.JSON, keep=keep)
    block = tried.proposal.block if write and tried.proposal is not None else None
    is_written = block is not None
    if block is not None:
        path = workspace.root / f"{SPECS}/{name}.yaml"
        text = set_value(path.read_text(encoding="utf-8"), ("metric",), block)
        storage.write_file(path, text.encode())
    code = response.EXIT_PROBLEMS * (not (tried.is_ok or is_written))
    return response.Response(
        tried, (*_parts(tried), *_proposed(tried, name, is_written=is_written)), tried.warnings, code
    )


WORK_TREE = "0" * 40
"""A placeholder for the code tree: the trial runs the files of the work tree."""

PLACEHOLDER_ID = "try"
"""A placeholder for the trial id, which depends on the code tree."""


@dataclass(frozen=True)
class Tried:
    """A trial that ran once, and its record."""

    trial: Trial
    number: int
    of: int
    record: Record | None
    exit_code: int
    warnings: tuple[Problem, ...] = ()
    """Imports that no trial of a batch would find."""
    folder: Path | None = None
    """Where it started, with what it has written; None: deleted."""
    advice: tuple[str, ...] = ()
    """What to change if the program refused its arguments, or lacks a file of the work tree."""
    proposal: MetricProposal | None = None
    """A metric block that reads what the trial left, if it did not report its metric."""

    @property
    def is_ok(self) -> bool:
        """Return whether the trial would count."""
        return self.record is not None and self.record.status.is_success

    def as_data(self) -> dict[str, Any]:
        """Return the JSON data."""
        return {
            "trial": self.number,
            "of": self.of,
            "configuration": dict(self.trial.assignment),
            "status": str(self.record.status) if self.record else str(Status.MISSING),
            "reason": self.record.reason if self.record else None,
            "metrics": dict(self.record.metrics) if self.record else {},
            "seconds": self.record.seconds if self.record else None,
            "exit_code": self.exit_code,
            "folder": None if self.folder is None else str(self.folder),
            "proposed_metric": dict(self.proposal.block) if self.proposal and self.proposal.block else None,
        }


def try_trial(workspace: Workspace, name: str, number: int, *, quiet: bool, keep: bool = False) -> Tried:
    """Run trial `number` of a sweep's plan under the launcher, as a pod would; `quiet` keeps stdout free.

    With `keep`, the trial's folder is not deleted. The plan of a search is its first round.
    Raises SpecError, UsageError for a trial that does not exist, StorageError for wrong data, ToolError.
    """
    # A cluster needs an image, this machine does not.
    platform = structs.replace(workspace.settings.platform, controller=Controller.NONE)
    settings = structs.replace(workspace.settings, platform=platform)
    (parsed,) = replace(workspace, settings=settings).specs([name])
    programs.refuse_rewritten_code(workspace.repository, parsed)
    sweep = parsed.sweep
    program = programs.requested_program(workspace.settings.trials, sweep, tree=WORK_TREE)
    trials = (
        expansion.expand(sweep, program, parsed.source)
        if sweep.search is None
        else _first_round(sweep, program.digest)
    )
    of = len(trials)
    if not 0 <= number < of:
        raise UsageError(f"{sweep.name} has trials 0 to {of - 1}, got {number}")
    alone = structs.replace(sweep, run=structs.replace(sweep.run, pack=None))
    batch = Batch(alone, program, (trials[number],))
    scratch = Path(tempfile.mkdtemp(prefix="sweep-try-"))
    folder, start, proposal, is_done = None, None, None, False
    try:
        code = _code(workspace, sweep, scratch / "code")
        batch = _with_config(parsed, batch, code)
        started = StartedProgram(program, sweep.run, code)
        python_path, outside = check_imports(started, workspace.repository, sweep.path)
        launch = _launch(workspace, batch, StateFolders(scratch), code, python_path)
        exit_code = process.run_foreground(
            launch.argv,
            folder=launch.cwd,
            environment=launch.environment,
            grace=PROGRAM_GRACE_SECONDS,
            quiet=quiet,
        )
        record = _record(launch, batch.trials[0])
        # None if the launcher refused the trial before it had one.
        (*_, folder) = (None, *Path(launch.environment["SWEEP_SCRATCH"]).glob(f"trial-*/{WORK}"))
        start = None if folder is None else folder / (program.workdir or "")
        if start is not None and record is not None and record.reason in UNREAD_METRIC:
            results = Path(launch.environment["SWEEP_RESULTS"])
            printed = (results / f"{launch.uid}.{end}" for end in ("out", "err"))
            out, err = (path.read_text(errors="replace") if path.is_file() else "" for path in printed)
            proposal = propose(sweep.metric, out, err, start, code / (program.workdir or ""))
        is_done = True
    finally:
        if not (is_done and keep and folder is not None):
            storage.remove_folder(scratch)
    missing = (replace(problem, severity=Severity.WARNING) for problem in outside)
    warnings = (*programs.misread_booleans(workspace.root, parsed), *missing)
    error = (record.error_line if record else None) or ""
    advice = tuple(programs.argument_advice(workspace.root, sweep, error))
    if left_out := programs.left_out_files(workspace, (error,)):
        advice += (programs.LEFT_OUT.format(", ".join(map(response.escape_control_characters, left_out))),)
    start = start if keep else None
    return Tried(batch.trials[0], number, of, record, exit_code, warnings, start, advice, proposal)


def _with_config(parsed: ParsedSpec, batch: Batch, code: Path) -> Batch:
    """Return the batch with the configuration file of the work tree. Raises RepositoryError, SpecError."""
    if (config := batch.program.config) is None:
        return batch
    path = code / config.base
    content = files.read_input(path) if path.is_file() else None
    config = programs.read_config(batch.sweep, config, content, "the work tree")
    if problems := [*programs.unfit_parameters(parsed, config)]:
        raise SpecError(problems)
    return structs.replace(batch, program=structs.replace(batch.program, config=config))


UNREAD_METRIC = frozenset({"metric-missing", "result-invalid"})
"""Reasons of trials that ended without their metric."""


def _first_round(sweep: Sweep, program: str) -> tuple[Trial, ...]:
    """Return the trials of a search's first round, which depends on no results."""
    proposal = next_round(sweep, (), number=1)
    if isinstance(proposal, SearchEnd):
        raise UsageError(f"{sweep.name} has no trial to try: {proposal.text}")
    return all_trials(sweep, (suggestion.configuration for suggestion in proposal.suggestions), program)


def _launch(
    workspace: Workspace, batch: Batch, folders: StateFolders, code: Path, python_path: tuple[Path, ...]
) -> Launch:
    """Return the launch of a batch's only trial, as the local engine would start it."""
    bases, settings = read_bases(workspace.root), workspace.settings
    made = overlay(batch, bases, settings.trials, settings.network, settings.results, settings.git)
    contents, instructions = {}, made.tree[LAUNCH_FILE]
    for file in read_table_layout(instructions).files:
        # The launcher checks the digest of the table, from which the id goes.
        content = made.tree[file]
        table = content.replace(f"\n{batch.trials[0].id}".encode(), f"\n{PLACEHOLDER_ID}".encode())
        instructions = instructions.replace(bytes_digest(content).encode(), bytes_digest(table).encode())
        contents[file] = table
    contents[LAUNCH_FILE] = instructions
    programs_here = {path: content for path, content in bases.items() if re.fullmatch(LAUNCHER_PROGRAM, path)}
    launcher = {PurePath(path).name: content for path, content in programs_here.items()}
    local = local_batch(made.lock, contents, launcher)
    data = workspace.settings.trials.dataset(batch.program.data)
    folder = None
    if data is not None:
        cache = state_folder(workspace.repository) / DATA
        folder = datasets.verified_data(data, cache, code=code).folder
    write_files(folders, local)
    desired = DesiredBatch(local, code, folder, python_path)
    return prepare_launch(LocalPod(desired, 0, 0, str(uuid.uuid4()), 0.0), folders, ResourceAmounts())


def _record(launch: Launch, trial: Trial) -> Record | None:
    file = Path(launch.environment["SWEEP_RESULTS"]) / f"{launch.uid}.json"
    content = file.read_bytes() if file.is_file() else b""
    # A record requires a trial id.
    named = content.replace(f'"trial":"{PLACEHOLDER_ID}"'.encode(), f'"trial":"{trial.id}"'.encode())
    record = records.read(named)
    return record if isinstance(record, Record) else None


def _code(workspace: Workspace, sweep: Sweep, folder: Path) -> Path:
    """Write the code that a commit of the work tree would contain to a folder; return the folder."""
    path, selection = sweep.run.code_path, sweep.run.code_selection
    if selection is None and not (workspace.root / path).is_dir():
        raise RepositoryError(
            f"{path}/ is not a folder here",
            hint="set the code's folder: `run: {code: {path: …}}` in the spec; the default is trainer",
        )
    listed = work_tree_files(workspace.repository, *sweep.run.code_roots)
    chosen = listed if selection is None else tuple(filter(selection.selector(), listed))
    files.copy_files(workspace.root, chosen, folder)
    for name, (entry, content) in (
        Checkout(workspace.repository, *sweep.run.code_roots).rewritten(chosen).items()
    ):
        storage.write_file(folder / name, content)
        (folder / name).chmod(0o755 if entry.mode == EXECUTABLE_MODE else 0o644)
    return folder


def _parts(tried: Tried) -> Iterator[RenderableType]:
    record = tried.record
    status = status_with_reason(record.status, record.reason) if record else styled_status(Status.MISSING)
    yield Text.assemble((f"trial {tried.number} of {tried.of}: ", "bold"), status)
    yield Text(configuration_text(tried.trial.assignment))
    if record is not None and record.metrics:
        rows = ((Text(name), number_text(value)) for name, value in record.metrics.items())
        yield filled_table(("metric", "value"), rows)
    if record is not None and not record.status.is_success and record.error_line:
        yield untrusted_text(record.error_line, "red")
    if tried.folder is not None:
        yield untrusted_text(f"its folder: {tried.folder}")


def _proposed(tried: Tried, name: str, *, is_written: bool) -> Iterator[Text]:
    """Yield proposals: other arguments, or a metric block, with the numbers that the trial wrote instead."""
    yield from (Text(f"hint: {advice}") for advice in tried.advice)
    if tried.proposal is None:
        return
    for place, shown in tried.proposal.shown:
        yield untrusted_text(f"  {place}: {shown}")
    if tried.proposal.block is None:
        names = f" ({', '.join(tried.proposal.names)})" if tried.proposal.names else ""
        yield Text(
            f"hint: no number has the metric's name: write the name of the right one{names} as `metric.name` into "
            f"{SPECS}/{name}.yaml, then `sweep try {name} --write`"
        )
        return
    block = f"metric: {format_flow(tried.proposal.block)}"
    yield Text(f"wrote to {SPECS}/{name}.yaml: {block}" if is_written else f"proposed: {block}")
    then = (
        f"`sweep try {name}`, then `sweep run {name}`"
        if is_written
        else f"`sweep try {name} --write` writes it"
    )
    yield Text(f"next: {then}")
