"""What a reviewer may overlook in a sweep that is right: worth a look, and no reason to refuse it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from generator.plan.effects import is_number
from generator.plan.review import BlockReview, Note
from generator.structs.sweep import Sweep
from generator.structs.trial import Trial
from generator.structs.values import Value

TIGHT = 0.05
"""Constraints that keep less than that are hardly meant so."""
BATCH_SIZE = "batch_size"


@dataclass(frozen=True, slots=True)
class Best:
    """The best recorded trial of the sweep so far."""

    trial: str
    assignment: Mapping[str, Value]


def notes(
    sweep: Sweep,
    trials: Sequence[Trial],
    blocks: Sequence[BlockReview],
    *,
    best: Best | None = None,
    examples: int | None = None,
) -> tuple[Note, ...]:
    """Remark on what is asked for, given the recorded trial to beat and how much there is to train on."""
    return (
        *_tight(blocks),
        *_at_an_end(trials, best),
        *_single(sweep, trials),
        *_too_large(trials, examples),
    )


def _tight(blocks: Sequence[BlockReview]) -> Iterator[Note]:
    for number, block in enumerate(blocks, start=1):
        for one in block.constraints:
            kept = 1 - one.rejected / block.candidates if block.candidates else 1
            if kept < TIGHT:
                yield Note("tight-constraint", f"block {number} keeps {100 * kept:.2g} % by {one.text}")


def _at_an_end(trials: Sequence[Trial], best: Best | None) -> Iterator[Note]:
    """The best lies at the end of what is tried: better ones may lie beyond."""
    for name, value in sorted(best.assignment.items()) if best else ():
        tried = {float(found) for trial in trials if is_number(found := trial.assignment.get(name))}
        if not is_number(value) or len(tried) < 2:  # noqa: PLR2004 - one value has no ends
            continue
        ends = {"smallest": min(tried) >= value, "largest": max(tried) <= value}
        for end in (end for end, is_there in ends.items() if is_there):
            text = (
                f"{name}={value!r} of the best so far, {best.trial if best else ''}, is the {end} one tried"
            )
            yield Note("best-at-an-end", text)


def _single(sweep: Sweep, trials: Sequence[Trial]) -> Iterator[Note]:
    if sweep.replicates == 1 and len(trials) > 1:
        yield Note("no-replicates", "each assignment runs once: its luck cannot be told from its merit")


def _too_large(trials: Sequence[Trial], examples: int | None) -> Iterator[Note]:
    found = (
        (float(value), name)
        for trial in trials
        for name, value in trial.assignment.items()
        if name.rpartition(".")[2] == BATCH_SIZE and is_number(value)
    )
    size, name = max(found, default=(0.0, ""))
    if examples is not None and size > examples:
        yield Note("batch-larger-than-data", f"{name}={size:g} is more than all {examples:,} examples")
