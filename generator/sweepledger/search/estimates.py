"""Estimates made before any candidate exists: bytes of the table, and steps of work to examine candidates.

A step takes about a fifth of a microsecond: evaluating a name or an operator, or adding a value to a configuration.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import assert_never

from sweepledger.structs import search_block
from sweepledger.structs.expression import Call, Comparison, Expression, ListLiteral, Literal, Name, children
from sweepledger.structs.space import count_combinations
from sweepledger.structs.values import Value, canonical_json

MAX_CELLS = 2_000_000
"""Trials times columns: a hundred thousand trials of twenty values."""

MAX_BYTES = 64 * 2**20
"""Size of the table: more than MAX_CELLS numbers take, and less than Git hosts accept as one file."""

NUMBER_BYTES = 24
"""Size of the longest number."""
ITEM_BYTES = 16
"""Smallest size of a list item in memory, however short its text is."""


def value_bytes(value: Value) -> int:
    """Return a value's size in the table, or in memory if that is larger."""
    match value:
        case str():
            return len(canonical_json(value)) if not value.isascii() else len(value) + 2
        case list() | tuple():
            return max(len(canonical_json(value)), ITEM_BYTES * len(value))
        case _:
            return NUMBER_BYTES


def min_row_bytes(design: search_block.Design) -> int:
    """Bound the size of a design's configurations from below by the values that all of them have."""
    space = design.space
    if isinstance(design, search_block.ConfigurationList) and design.names:
        return 0
    always = [parameter.domain.listed for parameter in space.parameters if not parameter.when]
    return sum(min(map(value_bytes, values)) for values in always if values)


def max_row_bytes(design: search_block.Design) -> int:
    """Bound the size of a design's configurations from above by the longest values."""
    longest = _largest(
        design, lambda values: max(map(value_bytes, values), default=NUMBER_BYTES), _max_expression_bytes
    )
    return sum(longest.values())


def _largest(
    design: search_block.Design,
    of_values: Callable[[Iterable[Value]], int],
    of_expression: Callable[[Expression, Mapping[str, int]], int],
) -> dict[str, int]:
    """Return the largest size of each parameter, column of a list, and derived value."""
    sizes = {parameter.name: of_values(parameter.domain.listed) for parameter in design.space.parameters}
    rows = design.assignments if isinstance(design, search_block.ConfigurationList) else ()
    for name, value in chain.from_iterable(row.items() for row in rows):
        sizes[name] = max(sizes.get(name, 0), of_values((value,)))
    for derived in design.space.derived:
        sizes[derived.name] = of_expression(derived.expression, sizes)
    return sizes


def _max_expression_bytes(expression: Expression, longest: Mapping[str, int]) -> int:
    """Bound the size of an expression's value: no expression makes a text or a list longer than its parts."""
    match expression:
        case Literal(value):
            return value_bytes(value)
        case Name(name):
            return longest[name]
        case ListLiteral(items):
            return sum(ITEM_BYTES + _max_expression_bytes(item, longest) for item in items)
        case _:
            return max(
                NUMBER_BYTES, *(_max_expression_bytes(child, longest) for child in children(expression))
            )


MAX_WORK = 40_000_000
"""Steps of a sweep: about eight seconds. It allows a million combinations of six parameters with a
constraint of twenty names and operators, or ten thousand draws with four pages of constraints."""

MIN_CANDIDATES = 10_000
CANDIDATES_EACH = 1_000
MAX_CANDIDATES = 2_000_000
"""With these limits, a design may keep as few as one configuration in a thousand candidates."""

CANDIDATE_STEPS = 8
"""Steps of any candidate."""
CONDITION_STEPS = 3
FUNCTION_STEPS = 4
CHARACTERS_A_STEP = 1024
"""Characters of a text that are compared in one step; for a list it is one item."""


@dataclass(frozen=True, slots=True)
class WorkEstimate:
    """The least work of a design, and the work of each further candidate."""

    candidates: int
    """Candidates that are examined in any case."""
    steps: int
    """Steps per candidate."""

    @property
    def work(self) -> int:
        """Steps of all candidates that are examined in any case."""
        return self.candidates * self.steps


def estimate_work(design: search_block.Design) -> WorkEstimate:
    """Estimate the work of a design without examining candidates."""
    domains = [parameter.domain for parameter in design.space.parameters]
    match design:
        case search_block.RandomSearch(cap=cap):
            candidates, steps = cap, sum(domain.draw_steps for domain in domains)
        case search_block.GridSearch(space):
            candidates, steps = count_combinations(space), 0
        case search_block.ConfigurationList(_, assignments):
            candidates, steps = len(assignments), len(domains)
        case search_block.AdaptiveSearch():
            candidates, steps = 0, sum(domain.draw_steps for domain in domains)
        case _:
            assert_never(design)
    return WorkEstimate(candidates, CANDIDATE_STEPS + steps + _configuration_steps(design))


def max_candidates(design: search_block.Design) -> int | None:
    """Return the largest number of candidates to examine, even if they give few configurations; None: all."""
    if not isinstance(design, search_block.RandomSearch):
        return None
    most = min(max(MIN_CANDIDATES, CANDIDATES_EACH * design.cap), MAX_CANDIDATES)
    return design.cap if design.method.has_fixed_count else most


def _configuration_steps(design: search_block.Design) -> int:
    space, lengths = design.space, _largest(design, max_value_steps, expression_steps)
    derived = {each.name for each in space.derived}
    names = {parameter.name for parameter in space.parameters}
    if isinstance(design, search_block.ConfigurationList):
        names |= {*design.names}
    conditions = sum(len(parameter.when) for parameter in space.parameters)
    steps = len(names) + CONDITION_STEPS * conditions
    steps += sum(length for name, length in lengths.items() if name not in derived)
    expressions = [computed.expression for computed in space.derived]
    expressions += [constraint.expression for constraint in space.constraints]
    return steps + sum(2 + expression_steps(expression, lengths) for expression in expressions)


def max_value_steps(values: Iterable[Value]) -> int:
    """Count the steps of the longest text or list among values."""
    most = 0
    for value in values:
        texts = [value] if isinstance(value, str) else value if isinstance(value, list | tuple) else []
        characters = sum(len(text) // CHARACTERS_A_STEP for text in texts if isinstance(text, str))
        most = max(most, characters + (0 if isinstance(value, str) else len(texts)))
    return most


def expression_steps(expression: Expression, lengths: Mapping[str, int]) -> int:
    """Count the steps of an expression: one per node, and more for functions and lists."""
    match expression:
        case Name(name):
            return 1 + lengths.get(name, 0)
        case Comparison(first, ((_, ListLiteral(items)),)) if all(
            isinstance(item, Literal) for item in items
        ):
            return 2 + expression_steps(first, lengths)  # looked up in a set
        case Call(_, arguments):
            return FUNCTION_STEPS + sum(expression_steps(argument, lengths) for argument in arguments)
        case _:
            return 1 + sum(expression_steps(child, lengths) for child in children(expression))
