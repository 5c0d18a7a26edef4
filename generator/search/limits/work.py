"""What looking at candidates costs, in steps that are counted before any candidate is made.

A step is about a fifth of a microsecond: a name or a sign of an expression, a value put into an assignment.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import assert_never

from generator.search.distributions.quantiles import exact_share
from generator.search.draws import LONGEST_SORTED
from generator.structs.adaptive import Search
from generator.structs.counting import MOST_COMBINATIONS, combinations
from generator.structs.dimensions import dimensions
from generator.structs.domain import (
    Beta,
    Choice,
    Constant,
    Domain,
    IntUniform,
    LogNormal,
    LogUniform,
    Normal,
    Quantized,
    Uniform,
)
from generator.structs.expression import Call, Comparison, Expression, Listed, Literal, Name, children
from generator.structs.sweep import Block, Draw, Grid, Listing, Sampler
from generator.structs.values import Value

MOST_WORK = 40_000_000
"""Steps of a sweep, all blocks together: about eight seconds. A million combinations of six parameters may
have a constraint of twenty names and signs, or ten thousand draws four pages of them."""

LEAST_CANDIDATES = 10_000
CANDIDATES_EACH = 1_000
MOST_CANDIDATES = 2_000_000
"""One assignment in a thousand candidates is found."""

CANDIDATE = 8
"""Steps that each candidate takes, whatever it is."""
CONDITION = 3
FUNCTION = 4
LETTERS = 1024
"""Of a text, that are compared in a step; of a list it is one item."""

DRAWN_POSITION = 5
DRAWN_NUMBER = 10
DRAWN_BETA = 40
EXACT = 750
"""Steps of a quantile in sixty digits."""
TAIL = 16
"""So many standard deviations squared from the middle, it takes twice as many."""
MIXED = 120
"""Steps for a place of a permutation that is too long for a sorted list."""


@dataclass(frozen=True, slots=True)
class Price:
    """What a block costs at least, and what each further candidate does."""

    candidates: int
    """That are looked at in any case."""
    steps: int
    """Of each candidate."""

    @property
    def work(self) -> int:
        """Steps of all that is looked at in any case."""
        return self.candidates * self.steps


def price(block: Block) -> Price:
    """Count what a block costs, by arithmetic."""
    return Price(_least(block), CANDIDATE + _made(block) + _settled(block))


def bound(block: Block) -> int | None:
    """Limit the candidates that are looked at, however few assignments they give; None: all there are."""
    match block:
        case Draw(sampler=Sampler.LATIN_HYPERCUBE, cap=cap):
            return cap
        case Draw(cap=cap):
            return min(max(LEAST_CANDIDATES, CANDIDATES_EACH * cap), MOST_CANDIDATES)
        case Grid(cap=int(cap), seed=int()):
            return min(max(LEAST_CANDIDATES, CANDIDATES_EACH * cap, MOST_COMBINATIONS), MOST_CANDIDATES)
        case Grid() | Listing() | Search():
            return None
        case _:
            assert_never(block)


def _least(block: Block) -> int:
    match block:
        case Draw(cap=cap):
            return cap
        case Grid(space, cap, seed) if seed is not None:
            total = prod(dimension.size for dimension in dimensions(space))
            return total if cap is None else min(cap, total)
        case Grid(space):
            return combinations(space)
        case Listing(_, assignments):
            return len(assignments)
        case Search():
            return 0
        case _:
            assert_never(block)


def _made(block: Block) -> int:
    """Count the steps in which a candidate gets its values."""
    domains = [parameter.domain for parameter in block.space.parameters]
    match block:
        case Draw() | Search():
            return sum(map(_drawn, domains))
        case Grid(space, _, seed) if seed is not None:
            total = prod(dimension.size for dimension in dimensions(space))
            return 2 * len(domains) + (MIXED if total > LONGEST_SORTED else 0)
        case Grid():
            return 0
        case Listing():
            return len(domains)
        case _:
            assert_never(block)


def _drawn(domain: Domain) -> int:
    match domain:
        case Constant():
            return 0
        case Choice() | IntUniform():
            return DRAWN_POSITION
        case Beta() | Quantized(Beta()):
            return DRAWN_BETA
        case Quantized(of, q):
            return DRAWN_NUMBER + int(exact_share(of, q) * _exact(of))
        case Uniform() | LogUniform() | Normal() | LogNormal():
            return DRAWN_NUMBER + int(exact_share(domain) * _exact(domain))
        case _:
            assert_never(domain)


def _exact(domain: Domain) -> float:
    match domain:
        case Normal(mu, sigma, low, high):
            ends = [abs(end - mu) / sigma for end in (low, high) if end is not None]
            # Beyond forty deviations nothing is summed.
            return EXACT * (1 + max((end for end in ends if end <= 40), default=0) ** 2 / TAIL)  # noqa: PLR2004
        case _:
            return EXACT


def _settled(block: Block) -> int:
    """Count the steps in which a candidate becomes an assignment, or does not."""
    space = block.space
    names = {*(parameter.name for parameter in space.parameters)}
    lengths = {parameter.name: longest(_values(parameter.domain)) for parameter in space.parameters}
    if isinstance(block, Listing):
        names |= {*block.names}
        for assignment in block.assignments:
            for name, value in assignment.items():
                lengths[name] = max(lengths.get(name, 0), longest((value,)))
    conditions = sum(len(parameter.when) for parameter in space.parameters)
    steps = len(names) + CONDITION * conditions + sum(lengths.values())
    for derived in space.derived:
        steps += 2 + nodes(derived.expression, lengths)
        lengths[derived.name] = nodes(derived.expression, lengths)
    return steps + sum(2 + nodes(constraint.expression, lengths) for constraint in space.constraints)


def _values(domain: Domain) -> Iterable[Value]:
    match domain:
        case Constant(value):
            return (value,)
        case Choice(values):
            return values
        case _:
            return ()


def longest(values: Iterable[Value]) -> int:
    """Count the steps that the longest text or list among values takes."""
    return max(map(_length, values), default=0)


def _length(value: Value) -> int:
    match value:
        case str():
            return len(value) // LETTERS
        case list() | tuple():
            return len(value) + sum(len(item) // LETTERS for item in value if isinstance(item, str))
        case _:
            return 0


def nodes(expression: Expression, lengths: Mapping[str, int]) -> int:
    """Count the steps that an expression takes: one a node, and more for functions and lists."""
    match expression:
        case Name(name):
            return 1 + lengths.get(name, 0)
        case Comparison(first, ((_, Listed(items)),)) if all(isinstance(item, Literal) for item in items):
            return 2 + nodes(first, lengths)  # looked up in a set
        case Call(_, arguments):
            return FUNCTION + sum(nodes(argument, lengths) for argument in arguments)
        case _:
            return 1 + sum(nodes(child, lengths) for child in children(expression))
