"""The next round of a search or of a static sweep, or the reason why there is none."""

from collections.abc import Callable, Collection, Iterable
from importlib import import_module

from sweepledger.errors import SpecError
from sweepledger.search.adaptive import termination
from sweepledger.search.adaptive.model_based import PLAIN_ENGINE, model_round
from sweepledger.search.adaptive.observations import KnownTrials, Observation, Round, SearchEnd, Suggestion
from sweepledger.search.expansion import Expansion, explore
from sweepledger.structs.search_block import AdaptiveSearch
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.trial import Trial


def next_round(
    sweep: Sweep, observations: Iterable[Observation], *, number: int, pending: Iterable[Observation] = ()
) -> Round | SearchEnd:
    """Compute a search's next round, the first of which is number 1, or the reason why there is none.

    `observations` are all recorded trials of the sweep's batches, in any order and with any status, and those
    of its warm starts; `pending` are the trials of its other batches. Raises ToolError if a
    library is missing.
    """
    search, trials = sweep.search, KnownTrials.of(observations, pending)
    assert search is not None, "only an adaptive search proposes rounds"
    return termination.find_end(sweep, search, trials, number=number) or _compute_round(
        sweep, search, trials, number
    )


def find_end(
    sweep: Sweep, observations: Iterable[Observation], *, number: int, pending: Iterable[Observation] = ()
) -> SearchEnd | None:
    """Return why there is no next round, without loading the library of a model, which takes time.

    A model's search may still end because it finds no new configuration.
    """
    search, trials = sweep.search, KnownTrials.of(observations, pending)
    assert search is not None, "only an adaptive search proposes rounds"
    end = termination.find_end(sweep, search, trials, number=number)
    if end is not None or search.method.has_model:
        return end
    computed = _compute_round(sweep, search, trials, number)
    return computed if isinstance(computed, SearchEnd) else None


def _compute_round(
    sweep: Sweep, search: AdaptiveSearch, trials: KnownTrials, number: int
) -> Round | SearchEnd:
    method = search.method
    compute: RoundFunction = model_round if method.has_model else import_module(method.module).next_round
    return compute(sweep, search, trials, number)


RoundFunction = Callable[[Sweep, AdaptiveSearch, KnownTrials, int], Round | SearchEnd]
"""The function `next_round` of the module of a method without a model."""


def static_round(
    sweep: Sweep, program: str, listed: Collection[str], observations: Iterable[Observation], number: int
) -> tuple[Round, tuple[Trial, ...]] | SearchEnd:
    """Return the next configurations of a static sweep, in their order, or why there is none.

    `program` is the digest of the program; `listed` are the digests of the trials that batches list;
    the observations decide whether the sweep ends early. Raises SpecError if the sweep cannot be expanded.
    """
    rounds = sweep.rounds
    assert rounds is not None
    own = KnownTrials.of(observations).own
    end = termination.find_early_end(sweep, rounds, own, number=number)
    if end is not None:
        return end
    expansion = explore(sweep)
    if not isinstance(expansion, Expansion):
        raise SpecError(expansion)
    suggestions: list[Suggestion] = []
    trials: list[Trial] = []
    for configuration in expansion.configurations:
        replicates = (Trial(configuration, program, replicate) for replicate in range(sweep.replicates))
        new = [trial for trial in replicates if trial.digest not in listed]
        if new:
            suggestions.append(Suggestion(configuration))
            trials += new
        if len(suggestions) == rounds.size:
            break
    if not trials:
        return SearchEnd("exhausted", f"all {len(expansion.configurations)} configurations are requested")
    return Round(number, tuple(suggestions), 0, 0, PLAIN_ENGINE), tuple(trials)
