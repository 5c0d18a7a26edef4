"""The output of `results`, `logs`, `log`, `show`, `status` and `collect`."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from sweepledger.cli.response import SHORT_COMMIT, escape_control_characters
from sweepledger.cli.text import rounds
from sweepledger.cli.text.style import new_table, status_with_reason, styled_status
from sweepledger.cli.text.values import (
    configuration_text,
    count_text,
    number_text,
    value_text,
)
from sweepledger.formats.summary_csv import METRIC_PREFIX, PARAMETER_PREFIX
from sweepledger.results.paths import LAPTOP_WARNING
from sweepledger.structs.names import split_batch_name
from sweepledger.structs.record import Status

if TYPE_CHECKING:
    from rich.console import RenderableType

    from sweepledger.commands.collection.results_commit import ResultsCommit
    from sweepledger.commands.reports.outputs import Logs
    from sweepledger.commands.reports.results import RankedTrials
    from sweepledger.commands.reports.show import TrialDetails
    from sweepledger.formats.summary_csv import SummaryRow
    from sweepledger.structs.values import Value


NOT_RECORDED = "not recorded yet"

RESULT_COLUMNS = frozenset(
    {
        "",
        "trial",
        "front",
        "not ranked",
        "recorded",
        "status",
        "reason",
        "seed",
        "seconds",
        "batch",
        "program",
    }
)
"""Columns of the table of results besides those of parameters and metrics."""


def results_commit_text(commit: ResultsCommit) -> str:
    """Return the batches of a results commit, and the next step of the search."""
    text = f"recorded {', '.join(commit.batches)} in {commit.commit[:SHORT_COMMIT]}"
    return f"{text}{rounds.next_step_text(commit.step)}"


def results_text(ranked: RankedTrials) -> tuple[RenderableType, ...]:
    """Return a table of trials, best first, with the parameters that vary; the CSV has all columns.

    Only eligible trials have a rank; the others have the reason.
    """
    names = [name for name in ranked.table.parameters if _varies(name, ranked.table.rows)]
    metrics = (ranked.column, *ranked.others)
    batch = ["batch"] * (len({row.batch for row in ranked.table.rows}) > 1)
    not_ranked = ["not ranked"] * any(ranked.barred)
    new = ["recorded"] * any(_is_new(ranked, row) for row in ranked.rows)
    status = ["status"] * any(row.status is not Status.OK for row in ranked.rows)
    reason = ["reason"] * any(row.reason for row in ranked.rows)
    seed = ["seed"] * (len({row.replicate for row in ranked.table.rows}) > 1)
    front = ["front"] * bool(ranked.others)
    headings = _unique_headings(metrics, names)
    table = new_table(
        *("", "trial", *front, *not_ranked, *new, *status, *reason, *headings, *seed, "seconds"),
        *batch,
    )
    ranks = itertools.count(1)
    for row, why in zip(ranked.rows, ranked.barred, strict=True):
        table.add_row(
            "" if why else str(next(ranks)),
            Text(row.trial),
            *("yes" if row.trial in ranked.front and not why else "" for _ in front),
            *(Text(why or "") for _ in not_ranked),
            *(Text(NOT_RECORDED if _is_new(ranked, row) else "") for _ in new),
            *(styled_status(str(row.status)) for _ in status),
            *(Text(escape_control_characters(row.reason or "")) for _ in reason),
            *(number_text(row.metrics.get(name)) for name in metrics),
            *(Text(_parameter_cell(row, name)) for name in names),
            *("" if row.seed is None else str(row.seed) for _ in seed),
            number_text(row.seconds),
            *(Text(_short_batch_name(row.batch)) for _ in batch),
        )
    # What older programs said concerns nobody who runs the ranked one.
    current = filter(ranked.is_of_ranked_program, ranked.rows)
    return (table, *_error_lines(current), *_program_lines(ranked), *_laptop_lines(ranked))


SHORT_PROGRAM = 8


def _is_new(ranked: RankedTrials, row: SummaryRow) -> bool:
    return (row.batch, row.index) in ranked.unrecorded


def _program_lines(ranked: RankedTrials) -> Iterator[RenderableType]:
    """Yield which program the batches of the table ran, if there are several."""
    if len(ranked.programs) > 1:
        batches: dict[str, dict[str, None]] = {digest: {} for digest in ranked.programs}
        for row in ranked.table.rows:
            batches.get(row.program, {})[_short_batch_name(row.batch)] = None
        for digest, program in ranked.programs.items():
            names = ", ".join(batches[digest])
            head = ", HEAD's" if digest == ranked.head else ""
            code = f"code {program.code.path}@{program.code.tree[:12]}"
            yield Text(
                f"{names}: program {digest[:SHORT_PROGRAM]}{head}: {code}, image {program.image}", "dim"
            )


MOST_ERRORS = 5
"""Different errors of failed trials that are listed below a table."""


def _error_lines(rows: Iterable[SummaryRow]) -> Iterator[RenderableType]:
    """Yield what failed trials said, the most frequent first, with the number of trials."""
    errors = Counter(row.error for row in rows if row.error)
    common = sorted(errors, key=lambda error: (-errors[error], error))
    for error in common[:MOST_ERRORS]:
        yield Text(f"{count_text(errors[error], 'trial')}: {escape_control_characters(error)}", "red")
    if len(common) > MOST_ERRORS:
        yield Text(f"{len(common) - MOST_ERRORS} other errors: `--columns trial,error` lists all", "dim")


def _laptop_lines(ranked: RankedTrials) -> Iterator[RenderableType]:
    if ranked.laptop:
        yield Text(f"{LAPTOP_WARNING}: {', '.join(ranked.laptop)}", "yellow")


def chosen_columns_text(
    ranked: RankedTrials, columns: Sequence[str], *, digits: int = 6
) -> tuple[RenderableType, ...]:
    """Return a table of trials with some columns; numbers have so many significant digits."""
    from sweepledger.commands.reports.results import cell_value, is_null

    table = new_table(*columns)
    for row in ranked.rows:
        values = ((column, cell_value(row, column)) for column in columns)
        texts = ("null" if is_null(row, column) else _rounded(value, digits) for column, value in values)
        table.add_row(*map(Text, texts))
    barred = Counter(filter(None, ranked.barred))
    at_end = ", ".join(f"{count_text(count, 'trial')} ({why})" for why, count in sorted(barred.items()))
    return (
        table,
        *([Text(f"not ranked, at the end: {at_end}", "dim")] if at_end else []),
        *_laptop_lines(ranked),
    )


def _rounded(value: Value, digits: int) -> str:
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    return "" if value is None else escape_control_characters(value_text(value))


def _short_batch_name(batch: str) -> str:
    """Return the name of a batch without its sweep: `b2` of `peak-b2-3f9a1c2e`."""
    name = split_batch_name(batch)
    return f"b{name[1]}" if name else batch


def _unique_headings(metrics: Sequence[str], parameters: Iterable[str]) -> Iterator[str]:
    """Yield headings of metrics and parameters, with prefixes if two columns had the same heading."""
    yield from (f"{METRIC_PREFIX}{name}" if name in RESULT_COLUMNS else name for name in metrics)
    taken = RESULT_COLUMNS | {*metrics}
    yield from (f"{PARAMETER_PREFIX}{name}" if name in taken else name for name in parameters)


def _parameter_cell(row: SummaryRow, name: str) -> str:
    return value_text(row.assignment[name]) if name in row.assignment else ""


def _varies(name: str, rows: Iterable[SummaryRow]) -> bool:
    return len({_parameter_cell(row, name) for row in rows}) > 1


def trial_text(details: TrialDetails) -> tuple[RenderableType, ...]:
    """Return everything that is known of one trial."""
    lock, result = details.batch.lock, details.result
    table = new_table("", "")
    table.show_header = False
    # Only values such as digests are folded, not the names.
    table.columns[1].no_wrap = False

    def add(name: str, value: object) -> None:
        table.add_row(Text(name, "bold"), value if isinstance(value, Text) else Text(str(value)))

    add("trial", f"{details.trial}, row {details.index} of {lock.name}")
    add("values", configuration_text(details.assignment))
    if lock.round is not None:
        add("round", f"{lock.round}, by {lock.method} ({lock.engine})")
    if details.parent:
        add("parent", details.parent)
    add("status", status_with_reason(result.status, result.reason) if result else styled_status("missing"))
    if details.message:
        add("error", escape_control_characters(details.message))
    if result:
        add("attempts", result.attempts)
    for name, number in (result.metrics if result else {}).items():
        add(name, number_text(number))
    add("spec", f"{lock.spec.path} {lock.spec.digest}")
    add("code", f"{lock.program.code.path} {lock.program.code.tree}")
    for name, text in _identified_parts(details):
        add(name, text)
    if result and result.ran:
        seconds = number_text(result.seconds)
        add("ran", f"{result.ran}, seed {result.seed}, {seconds} s from {result.started}")
    for action, commit in details.commits:
        title = escape_control_characters(f"{commit.author}: {commit.subject}")
        add(action, f"{commit.id[:SHORT_COMMIT]} {commit.date[:10]} {title}")
    return (table,)


def _identified_parts(details: TrialDetails) -> Iterator[tuple[str, str]]:
    """Yield what else a trial ran with: dataset, locked or else recorded environment, output, and a laptop."""
    program, recorded = details.batch.lock.program, details.environment
    if program.workdir is not None:
        yield "workdir", program.workdir
    if program.data:
        yield "data", " ".join([program.data.name, program.data.digest, *program.data.place_texts])
    if program.environment:
        yield "environment", f"{program.environment.path} {program.environment.digest}"
    elif recorded:
        yield "environment", f"{recorded.kind} {recorded.digest}"
    if details.logs:
        yield "output", details.logs
    for text in details.foreign:
        yield "started from", escape_control_characters(text)
    if details.is_laptop:
        yield "made", LAPTOP_WARNING.removeprefix("made ")


def logs_text(logs: Logs) -> tuple[RenderableType, ...]:
    """Return what each attempt printed."""
    return tuple(
        part for attempt in logs.attempts for part in _attempt_log(attempt.uid, attempt.out, attempt.err)
    )


FAILED_LINES = 15
"""Last lines of stderr that are shown of each failed trial: a traceback ends with its cause."""


def failed_logs_text(kept: Sequence[Logs]) -> tuple[RenderableType, ...]:
    """Return the end of what each failed trial wrote to stderr, in its last attempt that wrote there."""
    lines: list[RenderableType] = []
    for logs in kept:
        lines.append(Text(f"-- {logs.trial} of {logs.batch}", "bold"))
        text = next((attempt.err for attempt in reversed(logs.attempts) if attempt.err), "")
        end = "\n".join(text.rstrip("\n").split("\n")[-FAILED_LINES:])
        lines.append(Text(escape_control_characters(end or logs.error or "nothing on stderr is kept here")))
    return tuple(lines) or (Text("no trial has failed"),)


def _attempt_log(uid: str, out: str, err: str) -> Iterator[RenderableType]:
    if not (out or err):
        yield Text(f"-- {uid} printed nothing", "bold")
    for name, text in (("stdout", out), ("stderr", err)):
        if text:
            yield Text(f"-- {uid} {name}", "bold")
            yield Text(escape_control_characters(text.rstrip("\n")))
