"""The batches that a command made, or would make: as text, and as JSON."""

from collections.abc import Iterable, Iterator
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from sweepledger.cli.text.search_space import search_space_table
from sweepledger.commands.generation.next_batch import Generated
from sweepledger.repo.batches import ACTIVE


def generated_data(generated_sweeps: Iterable[Generated]) -> dict[str, Any]:
    """Return what was written, or would be."""
    return {
        "sweeps": [
            {
                "name": generated.sweep.name,
                "trials": generated.trials,
                "known": generated.known,
                "new": generated.trials - generated.known,
                "batch": generated.batch.name if generated.batch else None,
                "written": bool(generated.batch) and not generated.is_written,
                "removed": [stored.folder for stored in generated.stale],
            }
            for generated in generated_sweeps
        ]
    }


def generated_text(generated: Iterable[Generated], *, check: bool) -> tuple[RenderableType, ...]:
    """Return the trials that each sweep adds, and the files that were written."""
    return tuple(part for item in generated for part in _generated_parts(item, check=check))


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
