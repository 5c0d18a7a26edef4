"""Searches by rounds: recorded trials in, the next round out; the same for the same evidence, always."""

from collections.abc import Iterable

from generator.search.adaptive import ending
from generator.search.adaptive.evidence import in_order
from generator.search.adaptive.population import bred
from generator.search.adaptive.proposing import proposed
from generator.search.adaptive.rungs import climbed
from generator.search.adaptive.values import Finished, Observation, Round, Suggestion
from generator.structs.adaptive import Method, Search
from generator.structs.sweep import Sweep

__all__ = ["Finished", "Observation", "Round", "Suggestion", "finished", "next_round"]


def next_round(sweep: Sweep, observations: Iterable[Observation], *, number: int) -> Round | Finished:
    """Make a search's next round, the first of which is number 1, or say why there is none.

    `observations` are all trials of the batches that this sweep has, in any order, whatever became of them,
    and what is recorded of the sweeps that it starts with. Raises ToolError where a library is missing.
    """
    search = sweep.search
    assert search is not None, "only a search goes by rounds"
    ordered = in_order(observations)
    own = [one for one in ordered if one.round is not None]
    over = ending.finished(sweep, search, own, number=number)
    if over is not None:
        return over
    return _drawn(sweep, search, ordered, own, number)


def finished(sweep: Sweep, observations: Iterable[Observation], *, number: int) -> Finished | None:
    """Say why there is no next round as far as that is known before a model is asked: its library takes time.

    Of a sampler it is not known whether it still finds anything new.
    """
    search = sweep.search
    assert search is not None, "only a search goes by rounds"
    ordered = in_order(observations)
    own = [one for one in ordered if one.round is not None]
    over = ending.finished(sweep, search, own, number=number)
    if over is not None or search.method.is_sampler:
        return over
    found = _drawn(sweep, search, ordered, own, number)
    return found if isinstance(found, Finished) else None


def _drawn(
    sweep: Sweep, search: Search, ordered: list[Observation], own: list[Observation], number: int
) -> Round | Finished:
    match search.method:
        case Method.PBT:
            return bred(sweep, search, own, number)
        case Method.HALVING | Method.HYPERBAND | Method.ASHA:
            return climbed(sweep, search, own, number)
        case _:
            return proposed(sweep, search, ordered, number)
