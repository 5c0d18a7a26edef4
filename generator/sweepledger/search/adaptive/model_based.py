"""Rounds of tpe, bayes, cma-es and nsga2: a model's proposals, restricted to legal and new configurations."""

import importlib.util
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from sweepledger.errors import ToolError
from sweepledger.search.adaptive import termination
from sweepledger.search.adaptive.observations import (
    KnownTrials,
    Observation,
    Round,
    SearchEnd,
    Suggestion,
    configuration_key,
)
from sweepledger.search.adaptive.proposer import EncodedEvidence, Proposer, encode_evidence
from sweepledger.search.candidates import feasible_configurations
from sweepledger.search.configurations import (
    Configuration,
    ConfigurationBuilder,
    ExpressionFailure,
    Rejected,
    configuration_builder,
)
from sweepledger.search.encoding import Coordinates, EncodedSpace, encode_space
from sweepledger.search.rng import derive_seed
from sweepledger.structs.search_block import AdaptiveSearch, Method
from sweepledger.structs.sweep import Sweep

REDRAWS = {Method.TPE: 12, Method.BAYES: 3, Method.CMA_ES: 50, Method.NSGA2: 50}
"""Further proposals for one configuration of a round; they take about as long as the round itself."""

LIBRARIES = {
    Method.TPE: ("optuna", "adaptive"),
    Method.NSGA2: ("optuna", "adaptive"),
    Method.CMA_ES: ("cmaes", "adaptive"),
    Method.BAYES: ("egobox", "bayes"),
}
"""The package that a method imports, and the extra that installs it."""

SEED_LIMIT = 2**32
"""Of NumPy's random numbers, which all libraries use."""


@dataclass(slots=True)
class _Draft:
    """An unfinished round."""

    known: set[str]
    suggestions: list[Suggestion] = field(default_factory=list)
    redrawn: int = 0
    replaced: int = 0

    def add(self, built: Configuration | Rejected | ExpressionFailure) -> bool:
        """Add a configuration if it is legal and new; return whether it was added."""
        if isinstance(built, Rejected | ExpressionFailure) or configuration_key(built) in self.known:
            return False
        self.known.add(configuration_key(built))
        self.suggestions.append(Suggestion(built))
        return True


def missing_library(search: AdaptiveSearch) -> ToolError | None:
    """Return an error if the library of a method is not installed, without importing it."""
    if search.method not in LIBRARIES:
        return None
    package, extra = LIBRARIES[search.method]
    if importlib.util.find_spec(package) is not None:
        return None
    return ToolError.missing_library(f"method: {search.method} requires {package}", extra=extra)


def model_round(sweep: Sweep, search: AdaptiveSearch, trials: KnownTrials, number: int) -> Round | SearchEnd:
    """Compute a round with the method's model."""
    requested = trials.requested
    space, build = encode_space(search.space), configuration_builder(search.space)
    evidence = tuple(encode_evidence(sweep, space, trials.recorded))
    proposer = _create_proposer(sweep, space, evidence, number)
    for coordinates in _pending_coordinates(space, evidence, trials.pending):
        proposer.add_pending(coordinates)
    draft = _Draft({configuration_key(trial.configuration) for trial in requested})
    spare = feasible_configurations(search.space, derive_seed(search.seed, number, "replaced"))
    for _ in range(termination.round_size(sweep, search, requested)):
        if not _add_proposal(proposer, draft, space, build, redraws=REDRAWS[search.method]):
            replacement = next((configuration for configuration in spare if draft.add(configuration)), None)
            if replacement is None:
                break
            draft.replaced += 1
            proposer.add_pending(space.encode(replacement) or {})
    if not draft.suggestions:
        return SearchEnd("exhausted", "no new configuration was found")
    return Round(number, tuple(draft.suggestions), draft.redrawn, draft.replaced, proposer.version)


def _pending_coordinates(
    space: EncodedSpace, evidence: Iterable[EncodedEvidence], pending: Iterable[Observation]
) -> Iterator[Coordinates]:
    """Yield the coordinates of pending configurations, each once; some replicates may be recorded already."""
    known = {
        configuration_key(one.evidence.configuration) for one in evidence if one.evidence.round is not None
    }
    for trial in pending:
        key, coordinates = configuration_key(trial.configuration), space.encode(trial.configuration)
        if key not in known and coordinates is not None:
            known.add(key)
            yield coordinates


def _create_proposer(
    sweep: Sweep, space: EncodedSpace, evidence: Sequence[EncodedEvidence], number: int
) -> Proposer:
    """Create the model of the method, which knows all evidence. Raises ToolError if its library is missing.

    Each method imports only its own library, which takes longer to load than most commands run.
    """
    search = sweep.search
    assert search is not None
    seed = derive_seed(search.seed, number, "engine") % SEED_LIMIT
    if search.method is Method.CMA_ES:
        from sweepledger.search.adaptive.cma_es import CmaEsProposer  # noqa: PLC0415

        return CmaEsProposer(sweep.metric, search, space, evidence, seed)
    if search.method is Method.BAYES:
        from sweepledger.search.adaptive.gaussian_process import GaussianProcessProposer  # noqa: PLC0415

        return GaussianProcessProposer(sweep.metrics, space, evidence, seed, search.rounds.startup)
    from sweepledger.search.adaptive.optuna_samplers import create_optuna_proposer  # noqa: PLC0415

    return create_optuna_proposer(sweep, search, space, evidence, seed)


def _add_proposal(
    proposer: Proposer, draft: _Draft, space: EncodedSpace, build: ConfigurationBuilder, *, redraws: int
) -> bool:
    """Add the first proposal that is legal and new; return False if all redraws are used."""
    for _ in range(1 + redraws):
        proposer.begin()
        accepted = draft.add(build(space.decode(proposer.propose)))
        proposer.end(accepted=accepted)
        if accepted:
            return True
        draft.redrawn += 1
    return False
