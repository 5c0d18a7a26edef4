"""The next round of a search, or the reason why there is none."""

from collections.abc import Iterable, Sequence

from sweepledger.search.adaptive import termination
from sweepledger.search.adaptive.model_based import model_round
from sweepledger.search.adaptive.observations import Observation, Round, SearchEnd, sort_observations
from sweepledger.search.adaptive.pbt import pbt_round
from sweepledger.search.adaptive.successive_halving import halving_round
from sweepledger.structs.search_block import AdaptiveSearch, Method
from sweepledger.structs.sweep import Sweep


def next_round(sweep: Sweep, observations: Iterable[Observation], *, number: int) -> Round | SearchEnd:
    """Compute a search's next round, the first of which is number 1, or the reason why there is none.

    `observations` are all trials of the sweep's batches, in any order and with any status, and the recorded
    trials of the sweeps that it starts from. Raises ToolError if a library is missing.
    """
    search, ordered = _require_search(sweep), sort_observations(observations)
    return _known_end(sweep, ordered, number) or _compute_round(sweep, search, ordered, number)


def find_end(sweep: Sweep, observations: Iterable[Observation], *, number: int) -> SearchEnd | None:
    """Return why there is no next round, without loading the library of a model, which takes time.

    A model's search may still end because it finds no new configuration.
    """
    search, ordered = _require_search(sweep), sort_observations(observations)
    end = _known_end(sweep, ordered, number)
    if end is not None or search.method.is_sampler:
        return end
    computed = _compute_round(sweep, search, ordered, number)
    return computed if isinstance(computed, SearchEnd) else None


def _require_search(sweep: Sweep) -> AdaptiveSearch:
    assert sweep.search is not None, "only an adaptive search has rounds"
    return sweep.search


def _known_end(sweep: Sweep, ordered: Sequence[Observation], number: int) -> SearchEnd | None:
    return termination.find_end(sweep, _require_search(sweep), _own(ordered), number=number)


def _own(ordered: Sequence[Observation]) -> list[Observation]:
    return [trial for trial in ordered if trial.round is not None]


def _compute_round(
    sweep: Sweep, search: AdaptiveSearch, ordered: Sequence[Observation], number: int
) -> Round | SearchEnd:
    match search.method:
        case Method.PBT:
            return pbt_round(sweep, search, _own(ordered), number)
        case Method.HALVING | Method.HYPERBAND | Method.ASHA:
            return halving_round(sweep, search, _own(ordered), number)
        case _:
            return model_round(sweep, search, ordered, number)
