"""NSGA-II by rounds: which recorded trials are a generation, and who of them are parents."""

from collections.abc import Sequence

from optuna import Study
from optuna.samplers import NSGAIISampler
from optuna.trial import FrozenTrial, TrialState

POPULATION = 16
"""Parents at least: small rounds make a generation together."""


class Generations(NSGAIISampler):
    """Optuna's sampler, whose generations are whole rounds, as many as make up a population."""

    def __init__(self, size: int, rounds: Sequence[int | None], seed: int) -> None:
        """Take the rounds of all trials that are told as ok, in order."""
        population = size * -(-POPULATION // size)
        super().__init__(population_size=population, seed=seed)
        self.numbers = generations(rounds, population)
        self.parents: list[FrozenTrial] | None = None

    def get_trial_generation(self, study: Study, trial: FrozenTrial) -> int:  # noqa: ARG002 - Optuna's
        """Say that whatever is proposed belongs to a generation after all that is told."""
        return max(self.numbers, default=-1) + 1

    def get_parent_population(self, study: Study, generation: int) -> list[FrozenTrial]:  # noqa: ARG002
        """Let the elite of each generation meet the next one, from the first on."""
        if self.parents is None:
            self.parents = self._elite(study)
        return self.parents

    def _elite(self, study: Study) -> list[FrozenTrial]:
        told = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        populations: dict[int, list[FrozenTrial]] = {}
        for number, trial in zip(self.numbers, told, strict=True):
            populations.setdefault(number, []).append(trial)
        parents: list[FrozenTrial] = []
        for number in sorted(populations):
            parents = self._elite_population_selection_strategy(study, populations[number] + parents)
        return parents


def generations(rounds: Sequence[int | None], population: int) -> list[int]:
    """Number generations: one ends with the round in which it becomes as large as a population."""
    numbers: list[int] = []
    generation, count, last = 0, 0, None
    for found in rounds:
        if found != last and count >= population:
            generation, count = generation + 1, 0
        last, count = found, count + 1
        numbers.append(generation)
    return numbers
