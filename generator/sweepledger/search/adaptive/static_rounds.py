"""Rounds of a static sweep: the next of its configurations, in their order."""

from collections.abc import Collection, Iterable

from sweepledger.errors import SpecError
from sweepledger.search.adaptive import termination
from sweepledger.search.adaptive.observations import KnownTrials, Observation, Round, SearchEnd, Suggestion
from sweepledger.search.expansion import Expansion, explore
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.trial import Trial

ENGINE = "sweepledger"
"""Without a version: the same spec permanently gives the same configurations."""


def static_round(
    sweep: Sweep, program: str, listed: Collection[str], observations: Iterable[Observation], number: int
) -> tuple[Round, tuple[Trial, ...]] | SearchEnd:
    """Return a round with its trials under the program with this digest, or why there is none.

    `listed` are the digests of the trials that batches list; the observations decide whether the sweep ends early.
    Raises SpecError if the sweep cannot be expanded.
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
    return Round(number, tuple(suggestions), 0, 0, ENGINE), tuple(trials)
