"""The choice of `method: auto`: a function of the search space, the budget and the parallelism in a spec.

Locks keep the choice of their search, so another rule in a later version changes no search that has begun.
`benchmarks/auto.py` compares the choice with each of the methods.
"""

from dataclasses import dataclass

from sweepledger.structs.combinations import count_columns
from sweepledger.structs.domain import Constant
from sweepledger.structs.search_block import Method, Rounds
from sweepledger.structs.space import SearchSpace

MOST_FITTED = 256
"""Configurations for which a Gaussian process proposes within seconds; its time grows with their cube."""
MOST_DIMENSIONS = 12
"""Parameters that it learns from so few configurations."""
MOST_COLUMNS = 24
"""Numbers that describe a configuration: one for each parameter with an order, and for each value without one."""
MOST_PENDING = 16
"""Configurations without results for which it can guess; it proposes one after the other."""


@dataclass(frozen=True, slots=True)
class MethodChoice:
    """A method, and why it was chosen."""

    method: Method
    reason: str
    """Without a full stop, for readers of the plan and of the results."""


def choose_method(
    space: SearchSpace,
    rounds: Rounds,
    most: int | None,
    *,
    has_resource: bool,
    has_several_metrics: bool,
) -> MethodChoice:
    """Return the method for a search of at most so many configurations; None: only results end it."""
    if has_resource:
        return MethodChoice(Method.ASHA, "good trials continue with more of the resource")
    if has_several_metrics:
        return MethodChoice(Method.TPE, "the search has several metrics")
    parameters = sum(
        not all(isinstance(parameter.domain, Constant) for parameter in group) for group in space.groups
    )
    pending = rounds.size * rounds.ahead
    if most is None:
        return MethodChoice(Method.TPE, "only results end the search, and its model takes thousands of them")
    for found, limit, what in (
        (most, MOST_FITTED, "configurations"),
        (parameters, MOST_DIMENSIONS, "parameters"),
        (count_columns(space), MOST_COLUMNS, "numbers and values without an order"),
        (pending, MOST_PENDING, "configurations at once"),
    ):
        if found > limit:
            return MethodChoice(Method.TPE, f"{found} {what} are more than the {limit} that suit bayes")
    return MethodChoice(
        Method.BAYES,
        f"a Gaussian process suits at most {MOST_FITTED} configurations of {MOST_DIMENSIONS} parameters, "
        f"{MOST_PENDING} at once; here are {most}, {parameters} and {pending}",
    )
