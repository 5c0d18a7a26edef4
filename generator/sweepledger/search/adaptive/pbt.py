"""Rounds of population-based training: all members train on; the worst continue from the best with perturbed values.

A generation is a round. A member that stays keeps its values and its own checkpoints; a member of the worst
fifth, or one without a checkpoint, copies a member of the best fifth and perturbs its values.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import ceil

from sweepledger.search import configurations, encoding
from sweepledger.search.adaptive import termination
from sweepledger.search.adaptive.observations import KnownTrials, Observation, Round, SearchEnd, Suggestion
from sweepledger.search.adaptive.successive_halving import ENGINE, Rungs, without_resource
from sweepledger.search.candidates import feasible_configurations
from sweepledger.search.rng import RandomSequence, derive_seed
from sweepledger.structs.domain import Categorical, UnitInterval
from sweepledger.structs.search_block import AdaptiveSearch, Resource
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import Value, is_number

TRUNCATION = 0.2
"""Share of a population that is replaced, and share that replaces it."""
FACTORS = (0.8, 1.2)
"""A number is multiplied by one of these, as DeepMind and Katib do."""
RESAMPLE_PROBABILITY = 0.25
"""How often a value is drawn again instead."""
STEP = 0.1
"""Largest step of an ordinal, as a share of its values."""
REDRAWS = 50


@dataclass(slots=True)
class _Variation:
    """What is needed to vary configurations, and the configurations in use."""

    space: encoding.EncodedSpace
    build: configurations.ConfigurationBuilder
    random: RandomSequence
    spare: Iterator[configurations.Configuration]
    used: configurations.TriedConfigurations = field(default_factory=configurations.TriedConfigurations)
    redrawn: int = 0
    replaced: int = 0


def next_round(sweep: Sweep, search: AdaptiveSearch, trials: KnownTrials, number: int) -> Round | SearchEnd:
    """Compute the next generation of a population."""
    resource, own = search.resource, trials.own
    assert resource is not None
    amounts = resource.generations
    reached = max(
        (at for at, amount in enumerate(amounts) for trial in own if _has_amount(trial, resource, amount)),
        default=-1,
    )
    if reached + 1 == len(amounts):
        return SearchEnd("last-rung", f"the population has reached {amounts[-1]} {resource.parameter}")
    variation = _Variation(
        encoding.encode_space(search.space),
        configurations.configuration_builder(search.space),
        RandomSequence(derive_seed(search.seed, number, "variation")),
        feasible_configurations(search.space, derive_seed(search.seed, number, "newcomers")),
    )
    parents = [trial for trial in own if reached >= 0 and _has_amount(trial, resource, amounts[reached])]
    members: list[tuple[configurations.Configuration, str | None]]
    if parents:
        members = [*_next_generation(Rungs.of(sweep, resource, own), variation, parents)]
    else:
        new = filter(variation.used.add, variation.spare)
        members = [(configuration, None) for configuration in islice(new, search.rounds.size)]
    amount = amounts[reached + 1]
    suggestions = [
        Suggestion({**configuration, resource.parameter: amount}, parent) for configuration, parent in members
    ]
    suggestions = suggestions[: termination.remaining_configurations(sweep, search, own)]
    if not suggestions:
        return SearchEnd("exhausted", "no member of the population is left that could continue")
    return Round(number, tuple(suggestions), variation.redrawn, variation.replaced, ENGINE)


def _has_amount(trial: Observation, resource: Resource, amount: int) -> bool:
    return trial.configuration.get(resource.parameter) == amount


def _next_generation(
    rungs: Rungs, variation: _Variation, parents: Sequence[Observation]
) -> Iterator[tuple[configurations.Configuration, str]]:
    ranked = rungs.ranked(parents)
    share = max(1, ceil(TRUNCATION * len(parents)))
    staying = ranked[: max(1, len(parents) - share)]
    for trial in staying:
        configuration = without_resource(trial.configuration, rungs.resource)
        variation.used.add(configuration)
        yield configuration, trial.id
    for _ in range(len(parents) - len(staying) if ranked else 0):
        model = ranked[variation.random.below(min(share, len(ranked)))]
        varied = _vary(variation, without_resource(model.configuration, rungs.resource))
        if varied is not None:
            yield varied, model.id


def _vary(variation: _Variation, model: configurations.Configuration) -> configurations.Configuration | None:
    """Perturb a member until it is legal and new; otherwise draw a new configuration, if one exists."""
    coordinates = variation.space.encode(model)
    for _ in range(REDRAWS if coordinates is not None else 0):
        candidate = variation.space.decode(
            lambda dimension: _perturb(dimension, coordinates or {}, model, variation.random)
        )
        built = variation.build(candidate)
        if not isinstance(built, configurations.Unbuilt) and variation.used.add(built):
            return built
        variation.redrawn += 1
    replacement = next((spare for spare in variation.spare if variation.used.add(spare)), None)
    variation.replaced += replacement is not None
    return replacement


def _perturb(
    dimension: encoding.EncodedDimension,
    coordinates: encoding.Coordinates,
    model: Mapping[str, Value],
    random: RandomSequence,
) -> encoding.Coordinate:
    """Perturb a coordinate, or draw it anew: sometimes, and always if the copied member lacks it."""
    coordinate = coordinates.get(dimension.name)
    kind = dimension.kind
    if coordinate is None or random.fraction() < RESAMPLE_PROBABILITY:
        return random.fraction() if isinstance(kind, UnitInterval) else random.below(kind.count)
    if isinstance(kind, Categorical):
        return coordinate
    up = random.below(2)
    if isinstance(kind, UnitInterval):
        factor = FACTORS[up]
        (member,) = dimension.members
        value = model[member.name]
        assert is_number(value)
        coordinate = dimension.encode({member.name: value * factor})
        if coordinate is not None:
            return round(float(coordinate), encoding.DECIMALS)
        return 1.0 if (factor > 1) is (value > 0) else 0.0
    largest_step = max(1, round(STEP * kind.count))
    step = (2 * up - 1) * (1 + random.below(largest_step))
    return min(max(int(coordinate) + step, 0), kind.count - 1)
