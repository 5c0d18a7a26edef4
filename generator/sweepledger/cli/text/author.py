"""The output of `generate` and `try`."""

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from rich.console import RenderableType
from rich.text import Text

from sweepledger.cli.response import escape_control_characters
from sweepledger.cli.text.search_space import search_space_table
from sweepledger.cli.text.style import new_table, status_with_reason, styled_status
from sweepledger.cli.text.values import configuration_text, count_text, number_text
from sweepledger.commands.generation.next_batch import Generated
from sweepledger.commands.try_ import Tried
from sweepledger.repo.batches import ACTIVE
from sweepledger.structs.record import Status

FEW = 5
"""So many unchanged sweeps are named."""


def generated_text(generated: Iterable[Generated], *, check: bool) -> tuple[RenderableType, ...]:
    """Return the trials that each sweep adds, and the files that were written."""
    return tuple(part for item in generated for part in _generated_parts(item, check=check))


def settled_text(specs: Collection[Path]) -> tuple[RenderableType, ...]:
    """Return a line about the sweeps whose specs are as their newest batch was made from them, if there are any."""
    if not specs:
        return ()
    names = f" ({', '.join(sorted(path.stem for path in specs))})" if len(specs) <= FEW else ""
    return (Text(f"{count_text(len(specs), 'sweep')} unchanged{names}: nothing to write"),)


def _generated_parts(generated: Generated, *, check: bool) -> Iterator[RenderableType]:
    name = generated.sweep.name
    new = generated.trials - generated.known - generated.retried
    retried = f", {generated.retried} retried" if generated.retried else ""
    yield Text(f"{name}: {generated.trials} trials, {generated.known} known, {new} new{retried}", "bold")
    if generated.batch is None:
        hint = f"; `sweep cluster next {name}` adds rounds" if generated.sweep.search else ""
        yield Text(f"  nothing to write: {generated.why_nothing or f'every trial is in a batch{hint}'}")
    else:
        yield search_space_table(generated.sweep.design)
        verb = "unchanged" if generated.is_written else "missing" if check else "wrote"
        lock = generated.batch.lock
        where = "" if lock.cluster is None else f", cluster {lock.cluster}"
        facts = f"{lock.trials} trials, shape {lock.shape}{where}"
        yield Text(f"  {verb} {ACTIVE}/{generated.batch.name}/ ({facts})")
    for stale in generated.stale:
        yield Text(f"  {'stale' if check else 'removed'} {stale.folder}/")


def tried_text(tried: Tried) -> tuple[RenderableType, ...]:
    """Return the status, configuration and metrics of a trial that `sweep try` ran."""
    record = tried.record
    status = status_with_reason(record.status, record.reason) if record else styled_status(Status.MISSING)
    head = Text.assemble((f"trial {tried.number} of {tried.of}: ", "bold"), status)
    table = new_table("metric", "value")
    for name, value in (record.metrics if record else {}).items():
        table.add_row(Text(name), number_text(value))
    parts: list[RenderableType] = [head, Text(configuration_text(tried.trial.assignment))]
    parts += [table] if table.row_count else []
    if record is not None and not record.status.is_success and record.error_line:
        parts.append(Text(escape_control_characters(record.error_line), "red"))
    if tried.folder is not None:
        parts.append(Text(f"its folder: {escape_control_characters(str(tried.folder))}"))
    return tuple(parts)
