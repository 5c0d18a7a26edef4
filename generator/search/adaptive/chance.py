"""Assignments by chance: what a search begins with, and falls back on where proposals are no good."""

from collections.abc import Iterator
from hashlib import blake2b
from itertools import islice

from generator.search.distributions.quantiles import position
from generator.search.drawing import candidates
from generator.search.draws import stream
from generator.search.settling import Assignment, Failed, Rejected, settling
from generator.search.shuffled import shuffled
from generator.structs.counting import MOST_COMBINATIONS, combinations
from generator.structs.dimensions import size
from generator.structs.domain import Quantized
from generator.structs.space import SearchSpace
from generator.structs.sweep import Draw, Sampler
from generator.structs.values import canonical_json

MOST_DRAWS = 20_000
"""Candidates looked at for a round; a space that has no more in so many is taken for exhausted."""

SEED_BYTES = 6
"""Fewer than a double's whole numbers have: the seed of a draw is one of these."""


def seed_of(seed: int, number: int, purpose: str) -> int:
    """Derive a seed of its own for each round and each use in it."""
    found = blake2b(canonical_json([seed, number, purpose]).encode(), digest_size=SEED_BYTES).digest()
    return int.from_bytes(found, "big")


class Dice:
    """Draws of a stream, one after the other."""

    def __init__(self, seed: int) -> None:
        self._stream = stream(seed, "", purpose="dice")
        self._thrown = 0

    def fraction(self) -> float:
        """Draw a number from 0 to 1, which it never is."""
        self._thrown += 1
        return self._stream.uniforms(range(self._thrown - 1, self._thrown))[0]

    def below(self, limit: int) -> int:
        """Draw a whole number from 0 to limit - 1."""
        return position(self.fraction(), limit)


def feasible(space: SearchSpace, seed: int) -> Iterator[Assignment]:
    """Draw assignments that satisfy all constraints; one may come again unless the space is finite."""
    settle = settling(space)
    source = (
        shuffled(space, seed) if _is_small(space) else candidates(Draw(Sampler.RANDOM, space, seed, cap=1))
    )
    for candidate in islice(source, MOST_COMBINATIONS if _is_small(space) else MOST_DRAWS):
        settled = settle(candidate)
        if not isinstance(settled, Rejected | Failed):
            yield settled


def _is_small(space: SearchSpace) -> bool:
    """Tell whether all of a space can be looked at: then it is known for certain when it is exhausted."""
    domains = [parameter.domain for parameter in space.parameters]
    if any(size(domain) is None or isinstance(domain, Quantized) for domain in domains):
        return False
    return combinations(space) <= MOST_DRAWS
