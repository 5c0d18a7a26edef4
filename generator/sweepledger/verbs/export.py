"""Convert a sweep or a batch to another tool's file.

It lists what could not be converted. With slurm and shell, its committed batch becomes a script that runs it, and
`sweep cluster collect` records it.
"""

import shlex
import sys
from collections.abc import Iterator
from math import ceil
from pathlib import Path

from msgspec.structs import replace

from sweepledger import search
from sweepledger.cli.options import FormatOption, OutputOption, SweepArgument, format_argument, option
from sweepledger.cli.response import (
    EXIT_PROBLEMS,
    Format,
    Response,
    has_errors,
    ignore_broken_pipe,
    open_console,
)
from sweepledger.cli.text.style import filled_table
from sweepledger.engine.local.environment import PathTranslation, process_environment, program_path
from sweepledger.engine.local.local_batch import DesiredBatch, Parent
from sweepledger.engine.local.pod_folders import StateFolders, write_files
from sweepledger.errors import RepositoryError, SpecError, UsageError
from sweepledger.exchange.conversion import Exported, Loss
from sweepledger.exchange.registry import formats
from sweepledger.operations.cluster_local import DesiredState, Options, RefusedBatch
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.problems import Problem, escape_cell
from sweepledger.repo import batches
from sweepledger.repo.git import Mirror
from sweepledger.repo.state import create_state
from sweepledger.storage import refuse_existing, write_file
from sweepledger.structs.batch import BatchLock
from sweepledger.structs.program import LOCAL_IMAGE

SLURM, SHELL = "slurm", "shell"
BATCH_FORMATS = (SLURM, SHELL)
"""Formats that a committed batch is converted to, instead of a spec."""
FORMATS = (*(name for name, each in formats().items() if each.write), *BATCH_FORMATS)

MOST_TASKS = 1000
"""Tasks of one array: Slurm allows the indexes 0 to 1000 by default. Each task runs several rows if needed."""
MEBIBYTE = 1 << 20
SCRIPTS = Path(__file__).with_name("scripts")
"""`rows.sh` runs a row, and is the same for every batch; the others call it, each in one format."""


def export(
    *,
    workspace: Workspace,
    foreign: str = format_argument(FORMATS),
    name: SweepArgument,
    batch: str | None = option("--batch BATCH", "For slurm and shell: the batch; default: the active one."),
    output: OutputOption = None,
    form: FormatOption = Format.TEXT,
) -> Response:
    refuse_existing(output)
    problems: tuple[Problem, ...] = ()
    if foreign in BATCH_FORMATS:
        exported = export_batch(workspace, foreign, name, batch=batch)
    elif batch is not None:
        raise UsageError(f"--batch is for {', '.join(sorted(BATCH_FORMATS))}, got {foreign}")
    else:
        exported, problems = export_sweep(workspace, foreign, name)
    return converted(form, "text", exported, problems, output)


def converted(
    form: Format,
    key: str,
    exported: Exported,
    problems: tuple[Problem, ...],
    output: Path | None,
    *,
    then: str = "",
) -> Response:
    """Write or print a file of another format, byte for byte, and print its losses to standard error."""
    text, losses, message = exported.text, exported.losses, exported.text
    if output is not None:
        write_file(output, text.encode())
        message = f"wrote {output.as_posix()}{then}\n"
    if form is Format.TEXT:
        if losses:
            rows = ((escape_cell(loss.part), escape_cell(loss.reason)) for loss in losses)
            open_console(stderr=True).print(filled_table(("not carried over", "instead, or why"), rows))
        with ignore_broken_pipe():
            sys.stdout.flush()
            sys.stdout.buffer.write(message.encode())
    data = {key: text, "path": output and output.as_posix(), "losses": losses}
    return Response(data, problems=problems, exit_code=EXIT_PROBLEMS * has_errors(problems))


def export_sweep(workspace: Workspace, format_name: str, name: str) -> tuple[Exported, tuple[Problem, ...]]:
    """Convert a sweep to the format of another tool; return it with its warnings. Raises SpecError, UsageError."""
    (parsed,) = workspace.specs([name])
    sweep = parsed.sweep
    chosen = formats()[format_name]
    assert chosen.write is not None
    if sweep.search is not None and not chosen.is_search:
        others = " or ".join(
            sorted(each.name for each in formats().values() if each.is_search and each.write)
        )
        raise UsageError(
            f"{name} is an adaptive search, and {format_name} lists known configurations",
            hint=f"export {others}; `sweep results --output csv` has what ran",
        )
    expansion = search.explore(sweep, parsed.source)
    if not isinstance(expansion, search.Expansion):
        raise SpecError(expansion)
    warnings = tuple(sorted([*parsed.warnings, *expansion.warnings]))
    return chosen.write(sweep, expansion.configurations), warnings


def export_batch(workspace: Workspace, format_name: str, name: str, *, batch: str | None = None) -> Exported:
    """Convert the committed, active batch of a sweep to a script and its files in the state folder.

    The script runs the trials that the batch's own Jobs would run: the same launcher, rows and ids. Raises SpecError
    if a script cannot run the batch, UsageError, RepositoryError, StorageError, ToolError.
    """
    stored = _active_batch(workspace, name, batch)
    if stored.lock.run.pack is not None:
        raise UsageError(
            f"the pods of {stored.name} run several trials, and {format_name} starts each of its own",
            hint="delete run.pack, `sweep cancel` the batch with --replace, and export the new one",
        )
    prepared = _prepare(workspace, stored)
    script = _script(prepared, format_name, max_disruptions=stored.lock.run.max_disruptions)
    return Exported(script, tuple(_losses(stored.lock, prepared.batch.max_failed)))


def _active_batch(workspace: Workspace, name: str, batch: str | None) -> batches.StoredBatch:
    repository = workspace.repository
    committed = batches.of_sweep_in_commit(repository, repository.commit("HEAD"), name)
    active = [stored for stored in committed if stored.is_active]
    chosen = [stored for stored in active if batch in {None, stored.name}]
    if len(chosen) == 1:
        return chosen[0].vetted()
    if chosen:
        listed = ", ".join(stored.name for stored in chosen)
        hint = "choose one by --batch"
        raise RepositoryError(f"{name} has {len(chosen)} active batches: {listed}", hint=hint)
    hint = f"`sweep generate {name}`, commit what it writes, and export again"
    raise RepositoryError(f"no active {batch or f'batch of {name}'} is committed", hint=hint)


def _prepare(workspace: Workspace, stored: batches.StoredBatch) -> DesiredBatch:
    """Check a batch, and put its code, dataset and tables into the state folder; paths are relative to this folder.

    Raises SpecError.
    """
    repository = workspace.repository
    commit = repository.commit("HEAD")
    assert commit is not None, "the batch is in a commit"
    state = create_state(repository).resolve()
    branch = repository.branch() or workspace.settings.git.branch
    options = Options(url=str(repository.folder), branch=branch, state=state)
    mirror = Mirror(state, repository, branch)
    desired = DesiredState(repository, mirror, options, repository).desired(commit, stored)
    if isinstance(desired, RefusedBatch):
        raise SpecError(desired.problems)
    write_files(StateFolders(state), desired.batch)
    states = f"{desired.code_state} {desired.launcher_data_state}\n"  # not in the script, as each clone has its own
    write_file(StateFolders(state).job(stored.name) / "states", states.encode())
    code = desired.code.resolve()
    return replace(
        desired,
        code=code.relative_to(state),
        data=desired.data and desired.data.resolve().relative_to(state),
        python_path=tuple(path.resolve().relative_to(code) for path in desired.python_path),
    )


def _losses(lock: BatchLock, most: int | None) -> Iterator[Loss]:
    """Yield the features that a batch has in a cluster but not in a script; at most `most` of its trials may fail."""
    if lock.program.image != LOCAL_IMAGE:
        yield Loss(
            f"image: {lock.program.image}",
            "no container is started: trials use the programs on PATH, and their records say process",
        )
    if lock.run.pool:
        yield Loss(f"pool: {lock.run.pool}", "nodes, queues and prices are those of the script's own options")
    if most is not None and most < lock.trials:
        yield Loss(f"max_failed: {most}", "failed trials stop no others")
    yield Loss("network and rights", "trials have those of the user who starts the script")


def _script(prepared: DesiredBatch, format_name: str, *, max_disruptions: int) -> str:
    """Return an array job for `sbatch`, or a script for bash that runs several trials at once with xargs.

    Both run the trials without a result.
    """
    batch, amounts = prepared.batch, prepared.batch.limits
    kind, last, directives = "a shell script", f"parallelism={batch.parallelism}", list[str]()
    use = "Run it in the root of the clone with bash; JOBS=N sets how many trials run at once."
    if format_name == SLURM:
        tasks = min(len(batch.trials), MOST_TASKS)
        rows, seconds = ceil(len(batch.trials) / tasks), batch.pod_deadline
        limit = f"%{batch.parallelism}" if batch.parallelism < tasks else ""
        kind, last = "a Slurm array", f"tasks={tasks}"
        use = "Submit it in the root of the clone with `sbatch`; submitted again, it runs what has no result."
        directives = [
            f"--job-name={batch.name}",
            f"--array=0-{tasks - 1}{limit}",
            "--nodes=1",
            "--ntasks=1",
            f"--cpus-per-task={max(1, amounts.cpus)}",
            f"--mem={ceil(amounts.memory / MEBIBYTE)}M",
            *([f"--gres=gpu:{amounts.gpus}"] if amounts.gpus else []),
            *([] if seconds is None else [f"--time={ceil(seconds * (batch.retries + 1) * rows / 60)}"]),
            "--requeue",  # after the loss of a node or a preemption
            "--open-mode=append",
            "--output=slurm-%x.log",
        ]
    lines = [
        "#!/usr/bin/env bash",
        f"# Batch {batch.name} as {kind}. Do not edit: `sweep export` writes it again.",
        f"# {use}",
        "# `sweep cluster collect` records what has ended; trials without a record are recorded as missing by",
        f"# `sweep cluster collect --ended {batch.name}`.",
        *(f"#SBATCH {text}" for text in directives),
        "set -u",
        "",
        f"batch={shlex.quote(batch.name)} trials={len(batch.trials)}",
        f"retries={batch.retries} max_disruptions={max_disruptions}",
        f"code={shlex.quote(str(prepared.code))} data={shlex.quote(str(prepared.data or 'data'))}",
        *_description(prepared),
        last,
        "",
    ]
    parts = ((SCRIPTS / f"{name}.sh").read_text(encoding="utf-8") for name in ("rows", format_name))
    return "\n".join([*lines, *parts])


def _description(prepared: DesiredBatch) -> Iterator[str]:
    """Yield a shell function that describes a row: first the shared parts, then those of continued trials."""
    variables, folders, words = _described(prepared, None)
    yield "describe_row() {"
    yield f"  variables=({' '.join(variables)})"
    yield f"  folders=({' '.join(folders)})"
    yield f"  words=({' '.join(words)})"
    if prepared.batch.parents:
        yield "  case $row in"
        for row, parent in sorted(prepared.batch.parents.items()):
            more, others, _ = _described(prepared, parent)
            yield f"    {row})"
            yield f"      variables+=({' '.join(word for word in more if word not in variables)})"
            yield f"      folders+=({' '.join(word for word in others if word not in folders)})"
            yield "      ;;"
        yield "  esac"
    yield "}"


def _described(prepared: DesiredBatch, parent: Parent | None) -> tuple[tuple[str, ...], ...]:
    """Return the variables, new folders and words that start the launcher of a row, as shell words."""
    batch, code, row = prepared.batch, Path(_shell("code")), _shell("row")
    made = {
        **batch.kept_folders(row, parent, Path(_shell("state"))),
        **batch.temporary_folders(Path(_shell("scratch"))),
    }
    data = None if batch.data is None else Path(_shell("data"))
    translate = PathTranslation({**made, **batch.read_only_folders(Path(_shell("state")), code, data)})
    environment = process_environment(
        batch.declared_variables(row, parent),
        translate,
        own=Path(_shell("scratch")),
        added={
            "SWEEP_CODE_STATE": _shell("code_state"),
            "SWEEP_DATA_STATE": _shell("data_state"),
            "SWEEP_POD_UID": _shell("uid"),
            "SWEEP_FAILURES": _shell("failures"),
            "SWEEP_DISRUPTIONS": _shell("disruptions"),
            "SWEEP_NODE": _shell("node"),
            "SWEEP_RAN": "process",
        },
        python_path=[code / folder for folder in prepared.python_path],
    )
    del environment["PATH"]  # that of the user who starts the script
    interpreter, launcher = batch.command
    return (
        tuple(shell_word(f"{name}={value}") for name, value in environment.items()),
        tuple(sorted({shell_word(str(folder)) for folder in made.values()})),
        (shell_word(translate(program_path(interpreter))), shell_word(translate(launcher))),
    )


def _shell(name: str) -> str:
    """Return the placeholder of a script variable: no text of a manifest has its NUL characters."""
    return f"\0{name}\0"


def shell_word(text: str) -> str:
    """Return a shell word for a text with placeholders: everything except the variables is literal."""
    parts = text.split("\0")
    return "".join(
        (shlex.quote(part) if part else "") if number % 2 == 0 else f'"${{{part}}}"'
        for number, part in enumerate(parts)
    )
