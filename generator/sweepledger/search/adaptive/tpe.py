"""The method tpe: Optuna's tree-structured Parzen estimators."""

from collections.abc import Sequence

from sweepledger.search.adaptive.optuna_proposer import optuna_proposer, without_warnings
from sweepledger.search.adaptive.proposer import Evidence, Proposer
from sweepledger.search.encoding import EncodedSpace
from sweepledger.structs.search_block import AdaptiveSearch
from sweepledger.structs.sweep import Sweep

CANDIDATES = 64
"""Candidates per proposal. Optuna's default of 24 works as well, but another number would change all rounds."""


def create_proposer(
    sweep: Sweep, search: AdaptiveSearch, space: EncodedSpace, evidence: Sequence[Evidence], seed: int
) -> Proposer:
    """Create the model of a round."""
    from optuna.samplers import TPESampler  # noqa: PLC0415  (the module above reports a missing Optuna)

    with without_warnings():
        sampler = TPESampler(
            multivariate=True,
            group=True,
            constant_liar=True,
            n_ei_candidates=CANDIDATES,
            n_startup_trials=search.rounds.startup,
            seed=seed,
        )
    return optuna_proposer(sweep, sampler, space, evidence)
