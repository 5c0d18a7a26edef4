"""How the configurations of a sweep are chosen: grid, random search, configuration list and adaptive search.

A design is a method with a search space. An `AdaptiveSearch` uses recorded results, in rounds.
"""

from collections.abc import Mapping
from math import ceil
from typing import Annotated, Any, ClassVar

from msgspec import Meta, Struct

from sweepledger.model.keys import EMPTY, Key
from sweepledger.structs.methods import GRID, LIST, Method, Sampler
from sweepledger.structs.space import MAX_TRIALS, SearchSpace
from sweepledger.structs.values import LARGEST_EXACT_INTEGER, Value

DEFAULT_STARTUP = 10
"""As with Optuna."""


class Rounds(Struct, frozen=True):
    """Size and end of the rounds of a sweep. Without the key, a static sweep requests all trials at once."""

    size: Annotated[int, Meta(ge=1, le=10_000, examples=[8])]
    """Configurations per round; for `halving` and `hyperband` those of the first rung, for `pbt` the population."""
    max: Annotated[int, Meta(ge=1, le=MAX_TRIALS, examples=[12])] | None = None
    """Largest number of rounds."""
    patience: Annotated[int, Meta(ge=1, le=MAX_TRIALS, examples=[3])] | None = None
    """The search ends after this number of rounds without a better value."""
    ahead: Annotated[int, Meta(ge=1, le=100, examples=[4])] = 1
    """Largest number of rounds that run or wait for their results at the same time."""
    startup: Annotated[int, Meta(ge=1, le=10_000, examples=[20])] = DEFAULT_STARTUP
    """Random configurations before the first that the model of `tpe` or `bayes` proposes."""


class Resource(Struct, frozen=True):
    """The parameter that the method increases for promoted trials. Do not list it in `parameters`."""

    parameter: Annotated[str, Meta(examples=["epochs"])]
    """The parameter's name."""
    minimum: Annotated[int, Key("min"), Meta(ge=1, le=LARGEST_EXACT_INTEGER, examples=[1])]
    """The resource of a trial in the first rung; for `pbt` the amount that each round adds."""
    maximum: Annotated[int, Key("max"), Meta(ge=2, le=LARGEST_EXACT_INTEGER, examples=[27])]
    """The largest resource of a trial."""
    eta: Annotated[int, Meta(ge=2, le=100, examples=[3])] = 3
    """One trial of eta in each rung is promoted, with eta times the resource."""
    continues: Annotated[bool, Meta(examples=[False])] = True
    """Whether a promoted trial continues from the checkpoints of its parent trial; `false` for an amount of data, a
    resolution or a model size."""

    @property
    def rungs(self) -> tuple[int, ...]:
        """Resource of each rung: `eta` times the previous, and finally the maximum."""
        rungs = [self.minimum]
        while rungs[-1] * self.eta < self.maximum:
            rungs.append(rungs[-1] * self.eta)
        return (*rungs, self.maximum)

    @property
    def generations(self) -> tuple[int, ...]:
        """Total resource of each generation of a population, earlier generations included."""
        return (*range(self.minimum, self.maximum, self.minimum), self.maximum)

    def brackets(self, size: int) -> tuple[tuple[int, int], ...]:
        """Return Hyperband's brackets: the first rung of each, and the number of trials that start there.

        With a size of `eta` to the power of the number of steps these are the paper's; others are in proportion.
        """
        steps = len(self.rungs) - 1
        return tuple(
            (rung, max(1, ceil(size * (steps + 1) / ((steps - rung + 1) * self.eta**rung))))
            for rung in range(steps + 1)
        )


class StartMapping(Struct, frozen=True):
    """How the configurations of a sweep under `start`, which has another space, are read in this one."""

    sweep: Annotated[str, Meta(examples=["lr-coarse"])]
    """The name of the sweep or of the foreign evidence."""
    renamed: Annotated[
        Mapping[str, str], Key("rename"), Meta(max_length=100, examples=[{"lr": "learning_rate"}])
    ] = EMPTY
    """Names of parameters there, and their names here."""
    values: Annotated[
        Mapping[str, Annotated[Any, Meta(extra_json_schema={"$ref": "#/$defs/value"})]],
        Meta(max_length=100, examples=[{"dropout": 0.0}]),
    ] = EMPTY
    """What trials there ran with, of the parameters that only this search has."""
    ignored: Annotated[tuple[str, ...], Key("ignore"), Meta(max_length=100, examples=[["width"]])] = ()
    """Parameters there that this search does not have."""

    def apply(self, configuration: Mapping[str, Value]) -> dict[str, Value]:
        """Return a configuration in this space; a value that the trial has itself is kept."""
        own = {
            self.renamed.get(name, name): value
            for name, value in configuration.items()
            if name not in self.ignored
        }
        return {**self.values, **own}


class AdaptiveSearch(Struct, frozen=True):
    """Rounds of configurations; each depends on the spec, the records, the seed and its number only."""

    method: Method
    space: SearchSpace
    seed: int
    rounds: Rounds
    start: tuple[str, ...] = ()
    """Sweeps whose recorded trials warm-start the search."""
    resource: Resource | None = None
    """Given for methods with parent trials, and only for these."""
    cap: int | None = None
    """Limit of configurations in all rounds together."""
    mappings: tuple[StartMapping, ...] = ()
    """Of the sweeps under `start` that have another space."""

    @property
    def continues_trials(self) -> bool:
        """Whether its trials continue from the checkpoints of parent trials."""
        return self.resource is not None and self.resource.continues

    @property
    def restarts_trials(self) -> bool:
        """Whether its promoted trials begin anew, with more of the resource."""
        return self.resource is not None and not self.resource.continues

    @property
    def largest_round(self) -> int:
        """Largest number of configurations in a round."""
        size = self.rounds.size
        if self.method.starts_brackets and self.resource is not None:
            size = sum(count for _, count in self.resource.brackets(size))
        return size if self.cap is None else min(size, self.cap)

    @property
    def names(self) -> tuple[str, ...]:
        """Name of the resource, a column in addition to those of the search space."""
        return () if self.resource is None else (self.resource.parameter,)


class GridSearch(Struct, frozen=True):
    """All combinations; the last parameter varies fastest."""

    space: SearchSpace
    cap: int | None = None
    """Limit of configurations."""

    method: ClassVar[str] = GRID


class RandomSearch(Struct, frozen=True):
    """Configurations drawn from the search space; equal seeds give equal configurations permanently."""

    method: Sampler
    space: SearchSpace
    seed: int
    cap: int
    """Number of configurations after constraints and without duplicates."""


class ConfigurationList(Struct, frozen=True):
    """Configurations listed in the spec; the search space adds constants, derived values and constraints."""

    space: SearchSpace
    assignments: tuple[Mapping[str, Value], ...]

    method: ClassVar[str] = LIST

    @property
    def names(self) -> tuple[str, ...]:
        """Names in the configurations, in the order of their first appearance."""
        return tuple(dict.fromkeys(name for assignment in self.assignments for name in assignment))


Design = GridSearch | RandomSearch | ConfigurationList | AdaptiveSearch
