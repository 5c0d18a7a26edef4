"""Rounds of methods with a model: the model's proposals, restricted to legal and new configurations."""

import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import import_module
from itertools import islice

from sweepledger.errors import GeneratorError, ToolError
from sweepledger.search.adaptive import termination
from sweepledger.search.adaptive.observations import KnownTrials, Round, SearchEnd, Suggestion
from sweepledger.search.adaptive.proposer import (
    ModelError,
    Proposer,
    ProposerFactory,
    encode_evidence,
)
from sweepledger.search.candidates import feasible_configurations
from sweepledger.search.configurations import (
    Configuration,
    ConfigurationBuilder,
    TriedConfigurations,
    Unbuilt,
    configuration_builder,
)
from sweepledger.search.encoding import EncodedSpace, encode_space
from sweepledger.search.rng import derive_seed
from sweepledger.structs.methods import Method
from sweepledger.structs.search_block import AdaptiveSearch
from sweepledger.structs.sweep import Sweep

PLAIN_ENGINE = "sweepledger"
"""Of static methods, and of rounds that no model can propose; without a version, as the same spec permanently gives the
same configurations.
"""

SEED_LIMIT = 2**32
"""Of NumPy's random numbers, which all libraries use."""


@dataclass(slots=True)
class _Draft:
    known: TriedConfigurations
    suggestions: list[Suggestion] = field(default_factory=list)
    redrawn: int = 0
    replaced: int = 0

    def add(self, built: Configuration | Unbuilt) -> bool:
        """Add a configuration if it is legal and new; return whether it was added."""
        if isinstance(built, Unbuilt) or not self.known.add(built):
            return False
        self.suggestions.append(Suggestion(built))
        return True


def is_installed(method: Method) -> bool:
    """Return whether the library of a method is installed, without importing it."""
    return not method.library or importlib.util.find_spec(method.library) is not None


def missing_library(search: AdaptiveSearch) -> ToolError | None:
    """Return an error if the library of a method is not installed, without importing it."""
    method = search.method
    if is_installed(method):
        return None
    return ToolError.missing_library(f"method: {method} requires {method.library}", extra=method.extra)


def find_excess(search: AdaptiveSearch) -> str | None:
    """Return why a space is too large for the method's model; None if it is not."""
    method = search.method
    if method.most_columns is None or (columns := encode_space(search.space).columns) <= method.most_columns:
        return None
    what = "one for each number and for each value without an order"
    return f"{method.library} models at most {method.most_columns} columns, {what}; here are {columns}"


def model_round(sweep: Sweep, search: AdaptiveSearch, trials: KnownTrials, number: int) -> Round | SearchEnd:
    """Compute a round with the method's model, or at random if that fails. Raises ToolError without its library."""
    requested = trials.requested
    known = [trial.configuration for trial in requested]
    size = min(search.rounds.size, termination.remaining_configurations(sweep, search, requested))
    draft = _Draft(TriedConfigurations(known))
    unfitted = None
    try:
        engine = _propose(sweep, search, trials, number, draft, size)
    except (GeneratorError, KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:  # noqa: BLE001 - libraries fail in their own ways; a panic of egobox is no Exception
        draft, engine = _Draft(TriedConfigurations(known)), PLAIN_ENGINE
        is_expected = isinstance(error, ModelError)
        unfitted = str(error) if is_expected else f"{search.method} failed with {type(error).__name__}"
        tuple(islice(filter(draft.add, _spare(search, number)), size))
    if not draft.suggestions:
        return SearchEnd("exhausted", "no new configuration was found")
    return Round(number, tuple(draft.suggestions), draft.redrawn, draft.replaced, engine, unfitted)


def _propose(
    sweep: Sweep, search: AdaptiveSearch, trials: KnownTrials, number: int, draft: _Draft, size: int
) -> str:
    """Fill a draft with the model's proposals; return the name and the version of the model's library.

    Raises ModelError, ToolError, or an exception of the library.
    """
    if excess := find_excess(search):
        raise ModelError(excess)
    space, build = encode_space(search.space), configuration_builder(search.space)
    evidence = tuple(encode_evidence(sweep, space, trials.recorded))
    seed = derive_seed(search.seed, number, "engine") % SEED_LIMIT
    # Each method imports only its own library, which takes longer to load than most commands run.
    create: ProposerFactory = import_module(search.method.module).create_proposer
    proposer = create(sweep, search, space, evidence, seed)
    # Each pending configuration once; some replicates may be recorded already.
    known = TriedConfigurations(one.configuration for one in evidence if one.round is not None)
    for trial in trials.pending:
        coordinates = space.encode(trial.configuration)
        if coordinates is not None and known.add(trial.configuration):
            proposer.add_pending(coordinates)
    spare = _spare(search, number)
    for _ in range(size):
        if not _add_proposal(proposer, draft, space, build, redraws=search.method.redraws):
            drawn = next(filter(draft.add, spare), None)
            if drawn is None:
                break
            draft.replaced += 1
            proposer.add_pending(space.encode(drawn) or {})
    return proposer.version


def _spare(search: AdaptiveSearch, number: int) -> Iterator[Configuration]:
    return feasible_configurations(search.space, derive_seed(search.seed, number, "replaced"))


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
