"""Run sweeps on this machine, and commit their results.

Batches and results are committed on the checked-out branch; no remote is needed. Run it again to continue after an
interruption. Other changes of yours are never committed. Without a controller in the settings, searches continue
round by round. `git push` moves a sweep on to a cluster; if it was interrupted, hand it over first: with a
controller in the settings, Ctrl-C does so.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from sweepledger.cli import completion, response
from sweepledger.cli.options import FormatOption, StateOption, WithoutGpuOption, argument, flag, option
from sweepledger.cli.text.progress import show_events
from sweepledger.cli.text.rounds import results_commit_text
from sweepledger.cli.text.values import count_text
from sweepledger.errors import GeneratorError, IdleError, PausedError, UsageError
from sweepledger.operations.reports.results import RankedTrials, rank_trials
from sweepledger.operations.repository.programs import LEFT_OUT, left_out_files
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.operations.run import RunEvent, RunOptions, SweepRun
from sweepledger.repo.state import create_state
from sweepledger.structs.record import Status, SummaryRow
from sweepledger.structs.settings import Controller
from sweepledger.verbs.generate import generated_text
from sweepledger.verbs.results import results_text

SHOWN_TRIALS = 5
"""Number of trials that `sweep run` shows at its end."""


def run(
    workspace: Workspace,
    names: list[str] = argument("NAME...", "Sweeps to run.", autocompletion=completion.sweeps),
    parallel: int | None = option(
        "--parallel -j N", "Run N trials at once, as far as they fit the machine.", min=1
    ),
    commit_code: bool = flag("--commit-code", "Commit uncommitted code first, in a commit of its own."),
    update: bool = flag("--update", "Run all trials with the current code if it changed."),
    fail_on_failed: bool = flag(
        "--fail-on-failed", "Exit with 5 if a trial failed or left no record; default: if no trial is ok."
    ),
    dry_run: bool = flag("--dry-run", "Print what would be committed and run, and do nothing."),
    hand_over: bool = flag(
        "--hand-over",
        "Run nothing; record the finished trials of interrupted batches, and request the others in new ones.",
    ),
    without_gpu: WithoutGpuOption = False,
    state: StateOption = None,
    form: FormatOption = response.Format.TEXT,
) -> response.Response:
    prepared = SweepRun.prepare(workspace, tuple(names))
    if dry_run:
        planned, uncommitted = prepared.dry_run(update=update), prepared.uncommitted_code()
        data = {"branch": prepared.branch, "sweeps": planned, "uncommitted": uncommitted}
        left_out = (f"not committed: {', '.join(uncommitted)}",) if uncommitted else ()
        text = (part for generated in planned for part in generated_text(generated, check=True))
        return response.Response(data, (f"on branch {prepared.branch}", *text, *left_out))
    folder = create_state(workspace.repository, state)
    if hand_over:
        return _hand_over_response(prepared, folder)
    events = prepared.run(RunOptions(folder, parallel, without_gpu, commit_code, update))
    try:
        return _run_response(prepared, events, form, state=folder, fail_on_failed=fail_on_failed)
    except KeyboardInterrupt:
        events.close()
        _show_interruption(prepared, folder, form)
        raise


def _hand_over_response(run: SweepRun, state: Path) -> response.Response:
    recorded, requested = run.hand_over(state)
    new = [item.batch for item in requested.generated if item.batch]
    data = {
        "branch": run.branch,
        "recorded": recorded,
        "batches": [{"batch": batch.name, "trials": batch.lock.trials} for batch in new],
    }
    lines = [
        *map(results_commit_text, recorded),
        *(f"{batch.name} requests the other {batch.lock.trials} trial(s)" for batch in new),
        f"no finished trial of {run.branch} is on this machine only: `git push` moves the sweep on"
        if recorded or new
        else "nothing to hand over: no trial of an unfinished batch has finished here",
    ]
    problems = tuple(problem for commit in recorded for problem in commit.problems)
    return response.Response(data, tuple(lines), problems)


def _show_interruption(run: SweepRun, state: Path, form: response.Format) -> None:
    """Hand over trials that a controller would repeat after a push; if checkpoints would be lost, only say how."""
    names = " ".join(sorted(run.names))
    command = f"`sweep run {names} --hand-over`"
    lines: Sequence[RenderableType] = (f"before `git push`: {command} records what has finished",)
    if run.workspace.settings.platform.controller is not Controller.NONE:
        try:
            if saved := run.batches_with_checkpoints(state):
                gives_up = f"before `git push`: {command}, which gives them up"
                lines = (
                    f"not handed over: trials of {', '.join(saved)} have checkpoints on this machine only",
                    f"`sweep run {names}` continues from them; {gives_up}",
                )
            else:
                lines = _hand_over_response(run, state).renderables
        except GeneratorError as error:
            lines = (f"not handed over: {error}", f"before `git push`: {command}")
    console = response.open_console(stderr=form is response.Format.JSON)
    console.print(*lines, sep="\n", markup=False, highlight=False)


def _run_response(
    run: SweepRun, events: Iterable[RunEvent], form: response.Format, *, state: Path, fail_on_failed: bool
) -> response.Response:
    shown = show_events(events, form, is_remote=False)
    if shown.exit_code:
        return shown
    ranked: list[RankedTrials] = []
    for name in sorted(run.names):
        with suppress(IdleError, UsageError):  # the user may have switched branches
            ranked.append(rank_trials(run.workspace, name, state=state))
    rows = [row for trials in ranked for row in trials.ranked_rows]
    failed = sum(row.status.kind in {Status.FAILED, Status.MISSING} for row in rows)
    data: dict[str, Any] = {
        **shown.data,
        "branch": run.branch,
        "failed": failed,
        "sweeps": [trials.first(SHOWN_TRIALS) for trials in ranked],
    }
    lines: list[RenderableType] = []
    for trials in ranked:
        count = len(trials.rows)
        more = f", the first {SHOWN_TRIALS} of {count}" if count > SHOWN_TRIALS else ""
        lines += [Text(f"{trials.sweep}{more}", "bold"), *results_text(trials.first(SHOWN_TRIALS))]
    if failed:
        told = list(_failure_lines(run, rows, failed))
        # The trials of a paused batch are not recorded yet, so that what repeats others refuses them.
        is_paused = any(isinstance(failure, PausedError) for failure in shown.failures)
        lines += [Text(line, "red") for line in (told[:1] if is_paused else told)]
    ends = [{row.status.is_success for row in trials.ranked_rows} for trials in ranked]
    code = response.EXIT_DRIFT if {False} in ends or (failed and fail_on_failed) else 0
    return response.Response(data, tuple(lines), exit_code=code, failures=shown.failures)


def _failure_lines(run: SweepRun, rows: Sequence[SummaryRow], failed: int) -> Iterator[str]:
    errors = [row.error for row in rows if row.error]
    name = next(iter(run.names)) if len(run.names) == 1 else "NAME"
    yield f"{count_text(failed, 'trial')} failed: `sweep logs {name} --failed` shows what they printed"
    full = sum(row.status is Status.OOM for row in rows)
    limits = ", ".join(sorted({parsed.sweep.run.resources.memory for parsed in run.specs}))
    if full:
        yield (
            f"{count_text(full, 'trial')} used more memory than run.resources.memory ({limits}): "
            f"raise it, then `sweep retry {name}`, then `sweep run {name}`"
        )
    yield f"after a change of the code: `sweep run {name} --commit-code --update` runs all trials with it"
    yield f"after a change of `metric`, or as is: `sweep retry {name}`, then `sweep run {name}` repeats them"
    if left_out := left_out_files(run.workspace, errors):
        yield LEFT_OUT.format(", ".join(map(response.escape_control_characters, left_out)))
