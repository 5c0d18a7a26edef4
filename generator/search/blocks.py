"""One block: where its candidates come from, how many are looked at, and what became of them."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import assert_never

from generator.search.axes import UndrawableError
from generator.search.drawing import candidates
from generator.search.grid import grid
from generator.search.limits.weights import weight
from generator.search.listing import listed
from generator.search.settling import Assignment, Candidate, Failed, Rejected, settling
from generator.search.shuffled import shuffled
from generator.structs.adaptive import Search
from generator.structs.sweep import Block, Draw, Grid, Listing

GLANCE = 100_000
"""After so many candidates, or a tenth of all where those are more, it shows whether there can be enough."""

Key = Callable[[Assignment], Hashable]


@dataclass(frozen=True, slots=True)
class Limits:
    """Where looking at a block ends, if not before."""

    assignments: int
    """One more is looked for, to know that there are more."""
    candidates: int | None = None
    """None: all there are."""
    bytes: int | None = None
    """None: so many assignments cannot be too heavy."""


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
    unasked: Counter[int] = field(default_factory=Counter)
    """How often a value was absent that each constraint needs."""
    unseen: set[str] = field(default_factory=set)
    """Values that may be absent, and were in all assignments."""
    bytes: int = 0
    """Of the assignments as text, where that is counted."""
    failed: Failed | None = None
    """The block was left where an expression had no result."""
    undrawable: str | None = None
    """The block was left where a parameter gave no number."""
    is_too_large: bool = False
    """The block was left where no sweep may have more."""
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


def explored(block: Block, key: Key, limits: Limits) -> Explored:
    """Look at a block's candidates until there are enough, or too many, or no more to look at."""
    found = Explored(block, unseen=_uncertain(block))
    wanted = _wanted(block)
    enough = limits.assignments + 1 if wanted is None else min(limits.assignments + 1, wanted)
    settle = settling(block.space, block.names if isinstance(block, Listing) else (), found.unasked)
    source = _candidates(block)
    glance = max(GLANCE, (limits.candidates or 0) // 10)
    try:
        for candidate in islice(source, limits.candidates):
            found.candidates += 1
            _take(found, settle(candidate), key, limits)
            found.is_too_large = len(found.distinct) > limits.assignments or found.bytes > (limits.bytes or 0)
            if len(found.distinct) == enough or found.failed or found.is_too_large:
                return found
            if found.candidates == glance and wanted and _is_hopeless(found, wanted, limits):
                return found
        found.is_exhausted = next(source, None) is None
    except UndrawableError as error:
        found.undrawable = str(error)
    return found


def _take(found: Explored, settled: Assignment | Rejected | Failed, key: Key, limits: Limits) -> None:
    match settled:
        case Rejected(constraints):
            found.rejected += 1
            found.rejections.update(constraints)
        case Failed():
            found.failed = settled
        case _:
            before = len(found.distinct)
            found.distinct.setdefault(key(settled), settled)
            if limits.bytes is not None and len(found.distinct) > before:
                found.bytes += sum(map(weight, settled.values()))
            if found.unseen:
                found.unseen -= settled.keys()


def _is_hopeless(found: Explored, wanted: int, limits: Limits) -> bool:
    """Tell whether going on so would not give half of what is wanted: chance is not as unkind as that."""
    return limits.candidates is not None and (
        2 * len(found.distinct) * limits.candidates < wanted * found.candidates
    )


def _uncertain(block: Block) -> set[str]:
    """Name the values of a block that an assignment may lack."""
    space = block.space
    conditional = {parameter.name for parameter in space.parameters if parameter.when}
    return conditional | {derived.name for derived in space.derived}


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
        case Search():
            return iter(())
        case _:
            assert_never(block)
