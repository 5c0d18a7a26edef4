"""Show a sweep's finished trials, best first.

If its trials ran several programs, those of HEAD's code and spec are ranked, and the others listed after them.
Trials that have finished here and are not recorded yet are marked.
"""

import itertools
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import RenderableType
from rich.text import Text

from sweepledger import storage
from sweepledger.cli import completion, response
from sweepledger.cli.options import StateOption, argument, flag, option
from sweepledger.cli.response import escape_control_characters
from sweepledger.cli.text.style import new_table, styled_status
from sweepledger.cli.text.values import count_text, number_text, value_text
from sweepledger.errors import IdleError, UsageError
from sweepledger.formats.summary_csv import METRIC_PREFIX, PARAMETER_PREFIX
from sweepledger.operations.reports import results as ranking
from sweepledger.operations.reports.results import RankedTrials
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.repo.state import state_folder
from sweepledger.structs.names import LAPTOP_WARNING, split_batch_name
from sweepledger.structs.record import Status, SummaryRow


def results(
    workspace: Workspace,
    name: str = argument("NAME", "Name or spec of the sweep.", autocompletion=completion.sweeps),
    sort: str | None = option("--sort METRIC", "Sort by this metric, or by seconds; default: the objective."),
    top: int | None = option("--top K", "Show the first K trials only.", min=1),
    where: list[str] | None = option(
        "--where CONDITION",
        "Show trials that meet it only, such as \"rate < 0.1 and status == 'ok'\"; can be repeated.",
    ),
    columns: str | None = option("--columns A,B", "Show these columns: parameters, metrics, status …"),
    digits: int = option(
        "--digits", "Round numbers of --columns to N significant digits.", default=6, min=1, max=17
    ),
    output: str | None = option(
        "--output csv|json|parquet", "Print all columns in a format for other programs."
    ),
    to: Path | None = option("--to FILE", "With --output: write to this file instead of stdout."),
    all_programs: bool = flag(
        "--all-programs", "Rank the trials of all programs together, not those of HEAD's before others."
    ),
    state: StateOption = None,
) -> response.Response:
    try:
        ranked = ranking.rank_trials(
            workspace,
            name,
            state=state_folder(workspace.repository, state),
            by=sort,
            top=top,
            all_programs=all_programs,
            where=where or (),
        )
    except IdleError as idle:
        if output is not None:
            raise
        return response.error_response(idle, {"sweep": name, "sorted_by": sort, "trials": []})
    if output is not None:
        return _write(workspace, ranked, output, to)
    if columns is None:
        return response.Response(ranked, results_text(ranked))
    chosen = [column.strip() for column in columns.split(",")]
    ranking.require_columns(ranked.table, chosen)
    return response.Response(ranked, _columns_text(ranked, chosen, digits))


def _write(
    workspace: Workspace, ranked: ranking.RankedTrials, output: str, to: Path | None
) -> response.Response:
    """Write trials in a format for other programs; the response has no text if they went to standard output."""
    if output not in set(ranking.ResultsFormat):
        raise UsageError(f"--output must be one of {', '.join(ranking.ResultsFormat)}, got {output!r}")
    form = ranking.ResultsFormat(output)
    if to is None and form is ranking.ResultsFormat.PARQUET and sys.stdout.isatty():
        raise UsageError(
            "parquet cannot be printed to a terminal", hint="use --to FILE, or redirect the output"
        )
    content = ranking.encode_results(workspace, ranked, form)
    if to is not None:
        storage.write_file(storage.output_path(to), content)
        data = {"sweep": ranked.sweep, "trials": len(ranked.rows), "file": str(to)}
        return response.Response(data, (f"wrote {to}",))
    with response.ignore_broken_pipe():
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    return response.Response({"sweep": ranked.sweep, "trials": len(ranked.rows)})


def _columns_text(
    ranked: ranking.RankedTrials, columns: Sequence[str], digits: int
) -> tuple[RenderableType, ...]:
    table = new_table(*columns)
    for row in ranked.rows:
        texts = []
        for column in columns:
            value = ranking.cell_value(row, column)
            text = (
                f"{value:.{digits}g}"
                if isinstance(value, float)
                else ""
                if value is None
                else value_text(value)
            )
            is_null = row.assignment.get(column, text) is None  # it has null, and not nothing
            texts.append(Text("null" if is_null else text))
        table.add_row(*texts)
    barred = Counter(filter(None, ranked.barred))
    at_end = ", ".join(f"{count_text(count, 'trial')} ({why})" for why, count in sorted(barred.items()))
    return (
        table,
        *([Text(f"not ranked, at the end: {at_end}", "dim")] if at_end else []),
        *laptop_lines(ranked),
    )


NOT_RECORDED = "not recorded yet"

RESULT_COLUMNS = frozenset(
    {
        *("", "trial", "front", "not ranked", "recorded", "status", "reason"),
        *("seed", "seconds", "batch", "program"),
    }
)
"""Columns of the table of results besides those of parameters and metrics."""


def results_text(ranked: RankedTrials) -> tuple[RenderableType, ...]:
    """Return a table of trials, best first, with the parameters that vary; the CSV file has all columns.

    Only eligible trials have a rank; other trials have the reason.
    """
    names = [
        name
        for name in ranked.table.parameters
        if len({_parameter_cell(row, name) for row in ranked.table.rows}) > 1
    ]
    metrics = (ranked.column, *ranked.others)
    batch = ["batch"] * (len({row.batch for row in ranked.table.rows}) > 1)
    not_ranked = ["not ranked"] * any(ranked.barred)
    new = ["recorded"] * any(not ranked.is_recorded(row) for row in ranked.rows)
    status = ["status"] * any(row.status is not Status.OK for row in ranked.rows)
    reason = ["reason"] * any(row.reason for row in ranked.rows)
    seed = ["seed"] * (len({row.replicate for row in ranked.table.rows}) > 1)
    front = ["front"] * bool(ranked.others)
    # Headings have prefixes if two columns had the same one.
    taken = RESULT_COLUMNS | {*metrics}
    headings = [f"{METRIC_PREFIX}{name}" if name in RESULT_COLUMNS else name for name in metrics]
    headings += [f"{PARAMETER_PREFIX}{name}" if name in taken else name for name in names]
    table = new_table(
        *("", "trial", *front, *not_ranked, *new, *status, *reason, *headings, *seed, "seconds"), *batch
    )
    ranks = itertools.count(1)
    for row, why in zip(ranked.rows, ranked.barred, strict=True):
        table.add_row(
            "" if why else str(next(ranks)),
            row.trial,
            *("yes" if row.trial in ranked.front and not why else "" for _ in front),
            *((why or "") for _ in not_ranked),
            *(("" if ranked.is_recorded(row) else NOT_RECORDED) for _ in new),
            *(styled_status(str(row.status)) for _ in status),
            *(row.reason or "" for _ in reason),
            *(number_text(row.metrics.get(name)) for name in metrics),
            *(_parameter_cell(row, name) for name in names),
            *("" if row.seed is None else str(row.seed) for _ in seed),
            number_text(row.seconds),
            *(_short_batch_name(row.batch) for _ in batch),
        )
    # What older programs said concerns nobody who runs the ranked one.
    errors = Counter(
        row.error for row in ranked.rows if row.error and ranked.ranked_program in {None, row.program}
    )
    common = sorted(errors, key=lambda error: (-errors[error], error))
    lines = [
        Text(f"{count_text(errors[error], 'trial')}: {escape_control_characters(error)}", "red")
        for error in common[:MOST_ERRORS]
    ]
    if len(common) > MOST_ERRORS:
        more = f"{len(common) - MOST_ERRORS} other errors: `--columns trial,error` lists all"
        lines.append(Text(more, "dim"))
    return (table, *lines, *_program_lines(ranked), *laptop_lines(ranked))


SHORT_PROGRAM = 8


def _program_lines(ranked: RankedTrials) -> Iterator[RenderableType]:
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


def laptop_lines(ranked: RankedTrials) -> Iterator[RenderableType]:
    """Yield the listed batches that were made on a laptop."""
    if ranked.laptop:
        yield Text(f"{LAPTOP_WARNING}: {', '.join(ranked.laptop)}", "yellow")


def _short_batch_name(batch: str) -> str:
    """Return the name of a batch without its sweep: `b2` of `peak-b2-3f9a1c2e`."""
    name = split_batch_name(batch)
    return f"b{name[1]}" if name else batch


def _parameter_cell(row: SummaryRow, name: str) -> str:
    return value_text(row.assignment[name]) if name in row.assignment else ""
