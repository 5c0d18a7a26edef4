"""NSGA-II by rounds: which recorded trials form a generation, and which of them are parents.

It overrides a private hook of Optuna, so pyproject.toml limits Optuna's version.
"""

from collections.abc import Sequence

from sweepledger.search.adaptive.optuna_proposer import optuna_proposer, without_warnings
from sweepledger.search.adaptive.proposer import Evidence, Proposer
from sweepledger.search.encoding import EncodedSpace
from sweepledger.structs.record import Status
from sweepledger.structs.search_block import AdaptiveSearch
from sweepledger.structs.sweep import Sweep

# isort: split
# The module above reports a missing Optuna.
from optuna import Study
from optuna.samplers import NSGAIISampler
from optuna.trial import FrozenTrial, TrialState

POPULATION = 16
"""Smallest population: several small rounds form one generation."""

MIN_PARENTS = 2
"""A crossover of fewer parents fails in Optuna."""


class RoundwiseNSGAII(NSGAIISampler):
    """Optuna's sampler with generations that consist of whole rounds."""

    def __init__(self, size: int, rounds: Sequence[int | None], seed: int) -> None:
        """Take the round size, and the round of each complete trial of the study, in order."""
        population = size * -(-POPULATION // size)
        super().__init__(population_size=population, seed=seed)
        # A generation ends with the round in which it is as large as the population.
        self.generations: list[int] = []
        generation, count, previous = 0, 0, None
        for round_number in rounds:
            if round_number != previous and count >= population:
                generation, count = generation + 1, 0
            previous, count = round_number, count + 1
            self.generations.append(generation)
        self.parents: list[FrozenTrial] | None = None

    def get_trial_generation(self, study: Study, trial: FrozenTrial) -> int:  # noqa: ARG002 - Optuna's signature
        """Return the generation after all recorded ones."""
        return max(self.generations, default=-1) + 1

    def get_parent_population(self, study: Study, generation: int) -> list[FrozenTrial]:  # noqa: ARG002
        """Return the elite of the recorded generations; without enough parents Optuna draws at random."""
        if self.parents is None:
            complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
            populations: dict[int, list[FrozenTrial]] = {}
            for number, trial in zip(self.generations, complete, strict=True):
                populations.setdefault(number, []).append(trial)
            elite: list[FrozenTrial] = []
            for number in sorted(populations):  # from each together with the elite of the one before
                elite = self._elite_population_selection_strategy(study, populations[number] + elite)
            self.parents = elite if len(elite) >= MIN_PARENTS else []
        return self.parents


def create_proposer(
    sweep: Sweep, search: AdaptiveSearch, space: EncodedSpace, evidence: Sequence[Evidence], seed: int
) -> Proposer:
    """Create the model of a round."""
    rounds = [entry.round for entry in evidence if entry.state is Status.OK]
    with without_warnings():
        sampler = RoundwiseNSGAII(search.rounds.size, rounds, seed)
    return optuna_proposer(sweep, sampler, space, evidence)
