"""Population-based training: all train on; the worst members go on from the best, with other values.

A generation is a round. Whoever stays keeps its values and its own checkpoints; whoever is among the worst
fifth, or has nothing to go on from, takes over a member of the best fifth and varies what it has.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

from generator.search.adaptive import ending
from generator.search.adaptive.chance import Dice, feasible, seed_of
from generator.search.adaptive.coding import (
    DECIMALS,
    CodedSpace,
    Dimension,
    Fraction,
    Place,
    Places,
    Unordered,
    coded,
)
from generator.search.adaptive.evidence import key_of
from generator.search.adaptive.rungs import ENGINE, Ladder, configuration
from generator.search.adaptive.values import Finished, Observation, Round, Suggestion
from generator.search.settling import Assignment, Failed, Rejected, Settle, settling
from generator.structs.adaptive import Resource, Search
from generator.structs.sweep import Sweep
from generator.structs.values import Value

SHARE = 0.2
"""Of a population, that is replaced, and that replaces."""
FACTORS = (0.8, 1.2)
"""A number is multiplied by one of them; DeepMind's choice, and Katib's."""
RESAMPLED = 0.25
"""How often a value is drawn anew instead."""
STEP = 0.1
"""Of a range of whole numbers, to a neighbour that far away at most."""
REDRAWS = 50


@dataclass(slots=True)
class _Breeding:
    """What variations are made with, and what they must not be again."""

    space: CodedSpace
    settle: Settle
    dice: Dice
    spare: Iterator[Assignment]
    taken: set[str] = field(default_factory=set)
    redrawn: int = 0
    replaced: int = 0


def bred(sweep: Sweep, search: Search, own: Sequence[Observation], number: int) -> Round | Finished:
    """Make the next generation of a population."""
    resource = search.resource
    assert resource is not None
    amounts = resource.generations
    reached = max(
        (at for at, amount in enumerate(amounts) for one in own if _has(one, resource, amount)), default=-1
    )
    if reached + 1 == len(amounts):
        return Finished("last-rung", f"the population has had {amounts[-1]} {resource.parameter}")
    breeding = _Breeding(
        coded(search.space),
        settling(search.space),
        Dice(seed_of(search.seed, number, "variation")),
        feasible(search.space, seed_of(search.seed, number, "newcomers")),
    )
    parents = [one for one in own if _has(one, resource, amounts[reached])] if own else []
    found = list(_generation(Ladder.of(sweep, resource, own), breeding, parents, search))
    amount = amounts[reached + 1]
    suggestions = [Suggestion({**one, resource.parameter: amount}, parent) for one, parent in found]
    suggestions = suggestions[: ending.room(sweep, search, own)]
    if not suggestions:
        return Finished("exhausted", "no member of the population is left that could go on")
    return Round(number, tuple(suggestions), breeding.redrawn, breeding.replaced, ENGINE)


def _has(one: Observation, resource: Resource, amount: int) -> bool:
    return one.assignment.get(resource.parameter) == amount


def _generation(
    ladder: Ladder, breeding: _Breeding, parents: Sequence[Observation], search: Search
) -> Iterator[tuple[Assignment, str | None]]:
    if not parents:
        for assignment in breeding.spare:
            if len(breeding.taken) == search.rounds.size:
                return
            if _takes(breeding, assignment):
                yield assignment, None
        return
    ranked = ladder.ranked(parents)
    share = max(1, ceil(SHARE * len(parents)))
    staying = ranked[: max(1, len(parents) - share)]
    for one in staying:
        assignment = _without(one.assignment, ladder.resource)
        breeding.taken.add(configuration(one.assignment, ladder.resource))
        yield assignment, one.id
    for _ in range(len(parents) - len(staying) if ranked else 0):
        model = ranked[breeding.dice.below(min(share, len(ranked)))]
        varied = _varied(breeding, _without(model.assignment, ladder.resource))
        if varied is not None:
            yield varied, model.id


def _without(assignment: Assignment, resource: Resource) -> dict[str, Value]:
    return {name: value for name, value in assignment.items() if name != resource.parameter}


def _varied(breeding: _Breeding, model: Assignment) -> Assignment | None:
    """Vary a member until it is legal and like no other; else draw one by chance, if there is one."""
    places = breeding.space.encode(model)
    for _ in range(REDRAWS if places is not None else 0):
        candidate = breeding.space.decode(
            lambda dimension: _moved(dimension, places or {}, model, breeding.dice)
        )
        settled = breeding.settle(candidate)
        if not isinstance(settled, Rejected | Failed) and _takes(breeding, settled):
            return settled
        breeding.redrawn += 1
    found = next((one for one in breeding.spare if _takes(breeding, one)), None)
    breeding.replaced += found is not None
    return found


def _takes(breeding: _Breeding, assignment: Assignment) -> bool:
    key = key_of(assignment)
    if key in breeding.taken:
        return False
    breeding.taken.add(key)
    return True


def _moved(dimension: Dimension, places: Places, model: Mapping[str, Value], dice: Dice) -> Place:
    """Vary the place of a dimension; one that the model lacks is drawn anew."""
    place = places.get(dimension.name)
    kind = dimension.kind
    if place is None or dice.fraction() < RESAMPLED:
        return dice.fraction() if isinstance(kind, Fraction) else dice.below(kind.count)
    if isinstance(kind, Unordered):
        return place
    up = dice.below(2)
    if isinstance(kind, Fraction):
        return _scaled(dimension, model, FACTORS[up])
    furthest = max(1, round(STEP * kind.count))
    return min(max(int(place) + (2 * up - 1) * (1 + dice.below(furthest)), 0), kind.count - 1)


def _scaled(dimension: Dimension, model: Mapping[str, Value], factor: float) -> Place:
    """Multiply a number; what would leave the domain stops at its end."""
    (member,) = dimension.members
    value = model[member.name]
    assert isinstance(value, int | float)
    found = dimension.encode({member.name: value * factor})
    if found is not None:
        return round(float(found), DECIMALS)
    return 1.0 if (factor > 1) is (value > 0) else 0.0
