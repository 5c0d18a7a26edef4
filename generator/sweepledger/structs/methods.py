"""The methods of a search: what the program must know of each, in one table; their functions are in `search`.

A method is an entry here and the module that it names, which is loaded when a sweep uses it.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from msgspec import Struct

from sweepledger.model.keys import EMPTY

GRID, LIST = "grid", "list"
"""Methods without a sampler: all combinations, and configurations as listed."""


class NamedMethod(Struct, frozen=True, eq=False):
    """A method that has a module."""

    name: str
    module: str
    text: str
    elsewhere: Mapping[str, str] = EMPTY
    """Its name in other tools."""

    def __str__(self) -> str:
        return self.name


class Sampler(NamedMethod, frozen=True, eq=False):
    """A method that draws its configurations with a seed: its module has `points(seed, names, count)`."""

    is_even: bool = True
    """Whether its points cover the space more evenly than independent ones."""
    has_fixed_count: bool = False
    """Whether the number of points decides all of them, so that none can be added."""
    needs_power_of_two: bool = False
    """Whether only a power of two of its points is balanced."""


class Method(NamedMethod, frozen=True, eq=False):
    """A method whose next configurations depend on recorded results.

    With a model, its module has `create_proposer(sweep, search, space, evidence, seed)`; without one
    `next_round(sweep, search, trials, number)`.
    """

    library: str = ""
    """The package that its model needs; empty for a method whose trials continue from others."""
    extra: str = "adaptive"
    """The extra that installs the package."""
    redraws: int = 0
    """Further proposals for one configuration of a round; they take about as long as the round itself."""
    most_columns: int | None = None
    """The largest number of columns that its model can have."""
    overlaps: bool = True
    """Whether its rounds may overlap; a round of the others is computed from all trials of the one before."""
    has_several_metrics: bool = False
    """Whether it searches the Pareto front of several metrics."""
    has_startup: bool = False
    """Whether it begins with random configurations."""
    needs_numbers: bool = False
    """Whether it needs two numbers that every configuration has."""
    ends: bool = False
    """Whether it ends without a limit."""
    must_continue: bool = False
    """Whether its trials cannot begin anew with more of the resource."""
    starts_brackets: bool = False
    """Whether its first round starts trials on every rung."""

    @property
    def has_model(self) -> bool:
        """Whether it models the metric; trials of the others continue from the checkpoints of parent trials."""
        return bool(self.library)


SAMPLERS: dict[str, Sampler] = {
    sampler.name: sampler
    for sampler in (
        Sampler("random", "sweepledger.search.random_points", "independent draws", is_even=False),
        Sampler(
            "sobol",
            "sweepledger.search.sobol",
            "draws that cover the space more evenly; a set is balanced for a power of two",
            needs_power_of_two=True,
            elsewhere={"katib": "sobol"},
        ),
        Sampler("halton", "sweepledger.search.halton", "draws that cover the space more evenly"),
        Sampler(
            "latin-hypercube",
            "sweepledger.search.latin_hypercube",
            "draws with one value in each part of each range",
            has_fixed_count=True,
        ),
    )
}
PLAIN = SAMPLERS["random"]
"""What explores a space of which nothing is known."""

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            "tpe",
            "sweepledger.search.adaptive.tpe",
            "rounds of trials proposed by estimators of good and bad configurations",
            library="optuna",
            redraws=12,
            has_several_metrics=True,
            has_startup=True,
            elsewhere={"optuna": "TPESampler", "katib": "multivariate-tpe"},
        ),
        Method(
            "bayes",
            "sweepledger.search.adaptive.gaussian_process",
            "rounds of trials proposed by a Gaussian process",
            library="egobox",
            extra="bayes",
            redraws=3,
            # The time of a proposal grows faster than with the cube of the columns: 40 take a second, 100 take
            # fifteen; from about 150 on, egobox panics.
            most_columns=40,
            has_several_metrics=True,
            has_startup=True,
            elsewhere={"optuna": "GPSampler", "katib": "bayesianoptimization", "wandb": "bayes"},
        ),
        Method(
            "cma-es",
            "sweepledger.search.adaptive.cma_es",
            "rounds of trials proposed by an evolution strategy for numbers",
            library="cmaes",
            redraws=50,
            needs_numbers=True,
            elsewhere={"optuna": "CmaEsSampler", "katib": "cmaes"},
        ),
        Method(
            "nsga2",
            "sweepledger.search.adaptive.nsga2",
            "rounds of trials proposed by a genetic algorithm",
            library="optuna",
            redraws=50,
            has_several_metrics=True,
            elsewhere={"optuna": "NSGAIISampler"},
        ),
        Method(
            "halving",
            "sweepledger.search.adaptive.hyperband",
            "rounds in which the best trials of the round before continue with more of a `resource`",
            overlaps=False,
            ends=True,
        ),
        Method(
            "hyperband",
            "sweepledger.search.adaptive.hyperband",
            "halving in brackets, each of which starts with another amount of the `resource`",
            overlaps=False,
            ends=True,
            starts_brackets=True,
        ),
        Method(
            "asha",
            "sweepledger.search.adaptive.asha",
            "rounds in which a trial continues as soon as it is among the best of its amount of the `resource`",
        ),
        Method(
            "pbt",
            "sweepledger.search.adaptive.pbt",
            "a population that trains on; its worst members go on from the best ones",
            overlaps=False,
            ends=True,
            must_continue=True,
        ),
    )
}


def methods_with(fact: Callable[[Method], bool]) -> list[str]:
    """Return the sorted names of the methods of which something is true."""
    return sorted(name for name, method in METHODS.items() if fact(method))


FIRST_SEARCH, LARGER_SEARCH = METHODS["bayes"], METHODS["tpe"]
"""What suits a search of few parameters, and what suits any other."""
TEXTS = MappingProxyType(
    {
        GRID: "every combination; the last parameter varies fastest",
        **{sampler.name: sampler.text for sampler in SAMPLERS.values()},
        LIST: "the configurations in `assignments`",
        **{method.name: method.text for method in METHODS.values()},
    }
)
"""What each method does, for readers."""
NAMES = tuple(TEXTS)
