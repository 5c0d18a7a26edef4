"""A round of a method that models the metric: proposals, made legal and new."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from generator.search.adaptive import ending
from generator.search.adaptive.chance import feasible, seed_of
from generator.search.adaptive.coding import CodedSpace, Dimension, Place, Places, coded
from generator.search.adaptive.evidence import Evidence, gathered, key_of
from generator.search.adaptive.values import Finished, Observation, Round, Suggestion
from generator.search.settling import Assignment, Failed, Rejected, Settle, settling
from generator.structs.adaptive import Method, Search
from generator.structs.sweep import Sweep

REDRAWS = {Method.TPE: 12, Method.BAYES: 3, Method.CMA_ES: 50, Method.NSGA2: 50}
"""Further proposals for one place of a round: as many as cost about as much as the round itself."""


class Proposer(Protocol):
    """A model that has been told everything, and is asked for one candidate after the other."""

    @property
    def version(self) -> str:
        """Name the library that proposes, and its version."""

    def begin(self) -> None:
        """Begin a new proposal."""

    def place(self, dimension: Dimension) -> Place:
        """Propose where on a dimension the candidate lies."""

    def end(self, *, accepted: bool) -> None:
        """End the proposal; what is accepted is avoided by those that follow."""

    def taken(self, places: Places) -> None:
        """Hear of an assignment that is tried in this round without having been proposed."""


@dataclass(frozen=True, slots=True)
class Told:
    """A piece of evidence in the places of a coded space."""

    places: Places
    evidence: Evidence


@dataclass(slots=True)
class _Draft:
    """A round as it grows."""

    known: set[str]
    suggestions: list[Suggestion] = field(default_factory=list)
    redrawn: int = 0
    replaced: int = 0

    def takes(self, settled: Assignment | Rejected | Failed) -> bool:
        """Take an assignment that is legal and new."""
        if isinstance(settled, Rejected | Failed) or key_of(settled) in self.known:
            return False
        self.known.add(key_of(settled))
        self.suggestions.append(Suggestion(settled))
        return True


def proposed(
    sweep: Sweep, search: Search, observations: Sequence[Observation], number: int
) -> Round | Finished:
    """Ask a model for a round; `observations` are in order."""
    # Late: the library takes longer to load than most commands run.
    from generator.search.adaptive.engines import proposer  # noqa: PLC0415

    own = [one for one in observations if one.round is not None]
    space, settle = coded(search.space), settling(search.space)
    model = proposer(sweep, search, space, tuple(told(sweep, space, observations)), number)
    draft = _Draft({key_of(one.assignment) for one in own})
    spare = feasible(search.space, seed_of(search.seed, number, "replaced"))
    for _ in range(ending.size(sweep, search, own)):
        if not _modelled(model, draft, space, settle, REDRAWS[search.method]):
            chance = next((one for one in spare if draft.takes(one)), None)
            if chance is None:
                break
            draft.replaced += 1
            model.taken(space.encode(chance) or {})
    if not draft.suggestions:
        return Finished("exhausted", "every assignment that could be found is known")
    return Round(number, tuple(draft.suggestions), draft.redrawn, draft.replaced, model.version)


def _modelled(model: Proposer, draft: _Draft, space: CodedSpace, settle: Settle, redraws: int) -> bool:
    """Take a proposal that is legal and new; False where one after the other was not."""
    for _ in range(1 + redraws):
        model.begin()
        accepted = draft.takes(settle(space.decode(model.place)))
        model.end(accepted=accepted)
        if accepted:
            return True
        draft.redrawn += 1
    return False


def told(sweep: Sweep, space: CodedSpace, observations: Sequence[Observation]) -> Iterator[Told]:
    """Give the evidence that lies in the space."""
    for evidence in gathered(observations, sweep.metrics):
        places = space.encode(evidence.assignment)
        if places is not None:
            yield Told(places, evidence)
