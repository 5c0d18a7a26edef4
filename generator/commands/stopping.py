"""By which rules the trials of a sweep's next batch are ended early: what is recorded of curves decides.

Chooses the evidence; how curves become thresholds is in search/stopping.py.
"""

from collections.abc import Iterable, Iterator

from generator.results import BatchResults, judge
from generator.search.stopping import Curve, compiled
from generator.structs.record import Status
from generator.structs.stopping import StopRule
from generator.structs.sweep import Sweep


def rules(
    sweep: Sweep, program: str, own: Iterable[BatchResults], started: Iterable[BatchResults] = ()
) -> tuple[StopRule, ...]:
    """Work out the rules from a sweep's recorded batches, and from those of sweeps that it starts from.

    Of its own trials only those of the program that is to run are a measure, by its digest.
    """
    if sweep.early_stop is None:
        return ()
    current = (batch for batch in own if batch.lock.program.digest == program)
    curves = [curve for batch in (*current, *started) for curve in _curves(sweep, batch)]
    return compiled(sweep.early_stop, sweep.metric, curves)


def _curves(sweep: Sweep, batch: BatchResults) -> Iterator[Curve]:
    metric = batch.lock.metric
    if (metric.name, metric.goal) == (sweep.metric.name, sweep.metric.goal):
        for outcome in judge(batch).outcomes:
            if outcome.record is not None and outcome.record.curve and outcome.status.is_final:
                yield Curve(outcome.record.curve, outcome.status is Status.OK)
