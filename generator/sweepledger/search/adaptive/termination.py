"""Termination of a search, and how many configurations its next round may have."""

from collections.abc import Iterable, Sequence

from sweepledger.search import limits
from sweepledger.search.adaptive.observations import KnownTrials, Observation, SearchEnd
from sweepledger.structs.metric import Metric, pareto_indices
from sweepledger.structs.record import Status
from sweepledger.structs.search_block import AdaptiveSearch, Rounds
from sweepledger.structs.space import MAX_TRIALS
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import canonical_json

Values = tuple[float, ...]


def find_end(sweep: Sweep, search: AdaptiveSearch, trials: KnownTrials, *, number: int) -> SearchEnd | None:
    """Return why a search has no further round; None if it continues."""
    end = find_early_end(sweep, search.rounds, trials.own, number=number)
    if end is not None:
        return end
    requested = trials.requested
    known = count_configurations(requested)
    if search.cap is not None and known >= search.cap:
        return SearchEnd("run-cap", f"{known} of run_cap {search.cap} configurations are used")
    for _, message, _ in limits.budget_excesses(sweep, len(requested) + sweep.replicates):
        return SearchEnd("budget", f"{len(requested)} trials exist; with more, the sweep {message}")
    return None


def find_early_end(
    sweep: Sweep, rounds: Rounds, own: Sequence[Observation], *, number: int
) -> SearchEnd | None:
    """Return why a sweep has no further round although configurations are left; None if it continues."""
    max_rounds = rounds.max
    if max_rounds is not None and number > max_rounds:
        return SearchEnd("rounds", f"all {max_rounds} rounds are recorded")
    metric, target = sweep.metric, sweep.metric.target
    for trial in own:
        if target is not None and trial.status is Status.OK and trial.values:
            value = trial.values[0]
            if not metric.better(target, value):
                return SearchEnd("target", f"{trial.id} has {metric.name} {value:g}")
    patience = rounds.patience
    if patience is not None and (stale := _rounds_without_improvement(own, sweep.metrics)) >= patience:
        return SearchEnd("patience", f"{stale} rounds without improvement")
    return None


def remaining_configurations(sweep: Sweep, search: AdaptiveSearch, requested: Sequence[Observation]) -> int:
    """Return how many configurations run_cap and all limits leave besides the requested trials."""
    remaining = (limits.affordable_trials(sweep, MAX_TRIALS) - len(requested)) // sweep.replicates
    if search.cap is not None:
        remaining = min(remaining, search.cap - count_configurations(requested))
    return max(0, remaining)


def count_configurations(own: Iterable[Observation]) -> int:
    """Count the different configurations of trials."""
    return len({canonical_json(trial.configuration) for trial in own})


def _rounds_without_improvement(own: Iterable[Observation], metrics: Sequence[Metric]) -> int:
    """Count the rounds since the last one that improved the Pareto front."""
    front = set[Values]()
    stale = 0
    rounds: dict[int, list[Values]] = {}
    for trial in own:
        if trial.status.kind not in {Status.MISSING, Status.CANCELLED}:
            values = rounds.setdefault(trial.round or 0, [])
            if trial.status is Status.OK and trial.values is not None:
                values.append(trial.values)
    for round_values in (rounds[number] for number in sorted(rounds)):
        points = [*front, *round_values]
        unbeaten = {points[place] for place in pareto_indices(points, metrics)}
        stale = stale + 1 if unbeaten <= front else 0
        front = unbeaten
    return stale
