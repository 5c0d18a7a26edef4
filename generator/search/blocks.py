"""One block: where its candidates come from, how many are looked at, and what became of them."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import assert_never

from generator.search.drawing import candidates
from generator.search.grid import grid
from generator.search.listing import listed
from generator.search.settling import Assignment, Candidate, Failed, Rejected, settling
from generator.search.shuffled import shuffled
from generator.structs.counting import MOST_COMBINATIONS
from generator.structs.sweep import Block, Draw, Grid, Listing, Sampler

LEAST_CANDIDATES = 10_000
CANDIDATES_EACH = 1_000
MOST_CANDIDATES = 2_000_000
"""One assignment in a thousand candidates is found, and no block is looked at for longer than a minute."""

Key = Callable[[Assignment], Hashable]


@dataclass(slots=True)
class Explored:
    """What became of a block's candidates; it grows while they are looked at."""

    block: Block
    distinct: dict[Hashable, Assignment] = field(default_factory=dict)
    """By what makes them equal, in the order found."""
    candidates: int = 0
    rejected: int = 0
    rejections: Counter[int] = field(default_factory=Counter)
    """How often each constraint did not hold, by its place in the space."""
    failed: Failed | None = None
    """The block was left where an expression had no result."""
    is_exhausted: bool = False
    """There are no further candidates."""

    @property
    def duplicates(self) -> int:
        """Candidates equal to one before."""
        return self.candidates - self.rejected - len(self.distinct) - (self.failed is not None)

    @property
    def cap(self) -> int | None:
        """How many assignments the block may have at most."""
        return None if isinstance(self.block, Listing) else self.block.cap


def explored(block: Block, key: Key, *, most: int) -> Explored:
    """Look at a block's candidates until there are enough, or one more than `most`, or no more."""
    found = Explored(block)
    enough = min(most + 1, _wanted(block) or most + 1)
    settle = settling(block.space, block.names if isinstance(block, Listing) else ())
    source = _candidates(block)
    for candidate in islice(source, bound(block)):
        found.candidates += 1
        settled = settle(candidate)
        match settled:
            case Rejected(constraints):
                found.rejected += 1
                found.rejections.update(constraints)
            case Failed():
                found.failed = settled
                return found
            case _:
                found.distinct.setdefault(key(settled), settled)
                if len(found.distinct) == enough:
                    return found
    found.is_exhausted = next(source, None) is None
    return found


def bound(block: Block) -> int | None:
    """Limit the candidates that are looked at; None: all there are."""
    match block:
        case Draw(sampler=Sampler.LATIN_HYPERCUBE, cap=cap):
            return cap
        case Draw(cap=cap):
            return min(max(LEAST_CANDIDATES, CANDIDATES_EACH * cap), MOST_CANDIDATES)
        case Grid(cap=int(cap), seed=int()):
            return min(max(LEAST_CANDIDATES, CANDIDATES_EACH * cap, MOST_COMBINATIONS), MOST_CANDIDATES)
        case Grid() | Listing():
            return None
        case _:
            assert_never(block)


def _wanted(block: Block) -> int | None:
    """Say how many assignments will do."""
    match block:
        case Draw(cap=cap) | Grid(cap=cap, seed=int()):
            return cap
        case _:
            return None


def _candidates(block: Block) -> Iterator[Candidate]:
    match block:
        case Grid(space, _, seed):
            return grid(space) if seed is None else shuffled(space, seed)
        case Draw():
            return candidates(block)
        case Listing():
            return listed(block)
        case _:
            assert_never(block)
