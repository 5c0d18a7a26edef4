"""Show a sweep's finished trials, best first.

If its trials ran several programs, those of HEAD's code and spec are ranked, and the others listed after them.
Trials that have finished here and are not recorded yet are marked.
"""

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.text import Text

from sweepledger import storage
from sweepledger.cli import response
from sweepledger.cli.options import StateOption, SweepOrSpecArgument
from sweepledger.cli.text.results import laptop_lines, results_text
from sweepledger.cli.text.style import new_table
from sweepledger.cli.text.values import count_text, value_text
from sweepledger.commands.reports import results as ranking
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.errors import IdleError, UsageError
from sweepledger.repo.state import state_folder
from sweepledger.structs.values import Value


def results(
    name: SweepOrSpecArgument,
    sort: Annotated[
        str | None,
        typer.Option(
            "--sort", metavar="METRIC", help="Sort by this metric, or by seconds; default: the objective."
        ),
    ] = None,
    top: Annotated[
        int | None, typer.Option("--top", min=1, metavar="K", help="Show the first K trials only.")
    ] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--where",
            metavar="CONDITION",
            help="Show trials that meet it only, such as \"rate < 0.1 and status == 'ok'\"; can be repeated.",
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option("--columns", metavar="A,B", help="Show these columns: parameters, metrics, status …"),
    ] = None,
    digits: Annotated[
        int,
        typer.Option("--digits", min=1, max=17, help="Round numbers of --columns to N significant digits."),
    ] = 6,
    output: Annotated[
        str | None,
        typer.Option(
            "--output", metavar="csv|json|parquet", help="Print all columns in a format for other programs."
        ),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="FILE", help="With --output: write to this file instead of stdout."),
    ] = None,
    all_programs: Annotated[
        bool,
        typer.Option(
            "--all-programs",
            help="Rank the trials of all programs together, not those of HEAD's before others.",
        ),
    ] = False,
    state: StateOption = None,
) -> response.Response:
    workspace = Workspace.find(response.current_folder())
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
        return response.idle_response(idle, {"sweep": name, "sorted_by": sort, "trials": []})
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
        values = ((column, ranking.cell_value(row, column)) for column in columns)
        texts = (
            "null" if ranking.is_null(row, column) else _rounded(value, digits) for column, value in values
        )
        table.add_row(*map(Text, texts))
    barred = Counter(filter(None, ranked.barred))
    at_end = ", ".join(f"{count_text(count, 'trial')} ({why})" for why, count in sorted(barred.items()))
    return (
        table,
        *([Text(f"not ranked, at the end: {at_end}", "dim")] if at_end else []),
        *laptop_lines(ranked),
    )


def _rounded(value: Value, digits: int) -> str:
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    return "" if value is None else response.escape_control_characters(value_text(value))
