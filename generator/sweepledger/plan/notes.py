"""Notes on a valid sweep: facts that a reviewer may overlook, but no problems."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sweepledger.plan.review import DesignReview, Note
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.trial import Trial
from sweepledger.structs.values import Value, is_number

TIGHT = 0.05
"""Share of candidates; a constraint that keeps less may be a mistake."""
BATCH_SIZE = "batch_size"
FILES_NOT_KEPT = "results.store keeps records only: output, artifacts and checkpoints are gone with the pods"


@dataclass(frozen=True, slots=True)
class BestTrial:
    """The best recorded trial of the sweep so far."""

    trial: str
    configuration: Mapping[str, Value]


def notes(
    sweep: Sweep,
    trials: Sequence[Trial],
    design: DesignReview,
    *,
    best: BestTrial | None = None,
    examples: int | None = None,
    foreign: Sequence[str] = (),
    keeps_files: bool = True,
) -> tuple[Note, ...]:
    """Return the notes on a sweep, with its foreign evidence; `examples` is the number of training examples."""
    return (
        *(Note("start-mapping", mapping.text) for mapping in (sweep.search.mappings if sweep.search else ())),
        *(() if keeps_files else (Note("files-not-kept", FILES_NOT_KEPT),)),
        *(Note("foreign-evidence", f"starts from {label}") for label in foreign),
        *_tight_constraints(design),
        *_best_at_boundary(trials, best),
        *_no_replicates(sweep, trials),
        *_batch_size_above_data(trials, examples),
    )


def _tight_constraints(design: DesignReview) -> Iterator[Note]:
    for constraint in design.constraints:
        kept = 1 - constraint.rejected / design.candidates if design.candidates else 1
        if kept < TIGHT:
            yield Note("tight-constraint", f"{100 * kept:.2g} % of the candidates satisfy {constraint.text}")


def _best_at_boundary(trials: Sequence[Trial], best: BestTrial | None) -> Iterator[Note]:
    """Yield a note if the best value is the smallest or largest: values beyond it may be better."""
    if best is None:
        return
    for name, value in sorted(best.configuration.items()):
        tried = {float(other) for trial in trials if is_number(other := trial.assignment.get(name))}
        if not is_number(value) or len(tried) < 2:  # noqa: PLR2004 - one value has no ends
            continue
        ends = {"smallest": min(tried) >= value, "largest": max(tried) <= value}
        for end in (end for end, is_reached in ends.items() if is_reached):
            text = f"{name}={value!r} of the best trial so far, {best.trial}, is the {end} value tried"
            yield Note("best-at-an-end", text)


def _no_replicates(sweep: Sweep, trials: Sequence[Trial]) -> Iterator[Note]:
    if sweep.replicates == 1 and len(trials) > 1:
        yield Note(
            "no-replicates",
            "without replicates, the effect of a configuration cannot be separated from seed noise",
        )


def _batch_size_above_data(trials: Sequence[Trial], examples: int | None) -> Iterator[Note]:
    sizes = (
        (float(value), name)
        for trial in trials
        for name, value in trial.assignment.items()
        if name.rpartition(".")[2] == BATCH_SIZE and is_number(value)
    )
    size, name = max(sizes, default=(0.0, ""))
    if examples is not None and size > examples:
        yield Note(
            "batch-larger-than-data", f"{name}={size:g} is more than the {examples:,} examples of the data"
        )
