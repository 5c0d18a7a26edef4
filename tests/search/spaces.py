"""Small search spaces of every kind, and what they mean, computed in the most naive way.

The naive way knows nothing of the product's code but its values: the full product, settled, compared.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from sweepledger.distributions.choice import Choice
from sweepledger.distributions.constant import Constant
from sweepledger.distributions.int_uniform import IntUniform
from sweepledger.distributions.quantized import Quantized
from sweepledger.distributions.uniform import Uniform
from sweepledger.structs.domain import Domain
from sweepledger.structs.expression import (
    BooleanOperation,
    Comparison,
    ComparisonOperator,
    Conditional,
    Expression,
    ListLiteral,
    Literal,
    Name,
    names_in,
)
from sweepledger.structs.search_block import ConfigurationList, GridSearch
from sweepledger.structs.space import Condition, Constraint, DerivedValue, Parameter, SearchSpace
from sweepledger.structs.values import Value, canonical_json

NAMES = ("a", "b.c", "d", "e", "f")
POOL: tuple[Value, ...] = (0, 1, 2.0, 0.5, "x", "1", True, None, (1, "x"))
ELSE: tuple[Value, ...] = ("no", 0.25)
VALUES = st.sampled_from(POOL)


# Spaces


@st.composite
def spaces(draw: st.DrawFn) -> SearchSpace:
    names = draw(st.permutations(NAMES[: draw(st.integers(1, len(NAMES)))]))
    zips = draw(zip_groups(names))
    parameters = {name: Parameter(name, draw(domains())) for name in names}
    for group in zips:
        row = st.tuples(*(VALUES for _ in group))
        rows = draw(st.lists(row, min_size=1, max_size=3, unique_by=canonical_json))
        for name, column in zip(group, zip(*rows, strict=True), strict=True):
            parameters[name] = Parameter(name, Choice(column))
    for older, name in enumerate(draw(st.permutations(names))):
        if older and draw(st.booleans()):
            parents = draw(st.permutations(names))
            when = draw(
                conditions([parent for parent in parents if precedes(parent, name, parameters)], parameters)
            )
            parameters[name] = replace(parameters[name], when=when)
    derived = draw(derivations(names))
    known = (*names, *(value.name for value in derived))
    constraints = draw(st.lists(tests(known), max_size=2))
    made = tuple(Constraint(expression, f"constraint {at}") for at, expression in enumerate(constraints))
    return SearchSpace(tuple(parameters.values()), zips, derived, made)


def precedes(parent: str, child: str, parameters: Mapping[str, Parameter]) -> bool:
    above = [condition.parameter for condition in parameters[parent].when]
    return parent != child and all(precedes(item, child, parameters) for item in above)


@st.composite
def zip_groups(draw: st.DrawFn, names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    length = draw(st.sampled_from((0, 0, 2, 3)))
    if not 0 < length <= len(names):
        return ()
    return (tuple(draw(st.permutations(names))[:length]),)


def domains() -> st.SearchStrategy[Domain]:
    choices = st.lists(VALUES, min_size=1, max_size=3, unique_by=canonical_json)
    return st.one_of(
        choices.map(lambda values: Choice(tuple(values))),
        VALUES.map(Constant),
        st.integers(-1, 1).map(lambda low: IntUniform(low, low + 2)),
        st.sampled_from((0.1, 0.2, 0.3)).map(lambda high: Quantized(Uniform(0, high), 0.1)),
    )


@st.composite
def conditions(
    draw: st.DrawFn, parents: Sequence[str], parameters: Mapping[str, Parameter]
) -> tuple[Condition, ...]:
    made = []
    for parent in parents[: draw(st.integers(1, 2))]:
        possible = st.sampled_from([*points(parameters[parent].domain), "never"])
        made.append(Condition(parent, tuple(draw(st.lists(possible, min_size=1, max_size=2)))))
    return tuple(made)


@st.composite
def derivations(draw: st.DrawFn, names: Sequence[str]) -> tuple[DerivedValue, ...]:
    known, made = list(names), list[DerivedValue]()
    for name in ("y", "z")[: draw(st.integers(0, 2))]:
        yes = st.sampled_from(known).map(lambda item: Name(item, 0))
        expression = Conditional(draw(tests(known)), draw(yes), Literal(draw(st.sampled_from(ELSE))))
        made.append(DerivedValue(name, expression, name))
        known.append(name)
    return tuple(made)


def tests(names: Sequence[str]) -> st.SearchStrategy[Expression]:
    name = st.sampled_from(names).map(lambda item: Name(item, 0))
    literals = [Literal(value) for value in POOL[:-1]]
    literal = st.sampled_from(literals)
    signs: st.SearchStrategy[ComparisonOperator] = st.sampled_from(("==", "!="))
    compared = st.tuples(name, signs, name | literal).map(
        lambda results: Comparison(results[0], ((results[1], results[2]),))
    )
    member = st.tuples(name, st.lists(literal, min_size=1, max_size=3)).map(
        lambda actual: Comparison(actual[0], (("in", ListLiteral(tuple(actual[1]))),))
    )
    simple = st.one_of(compared, member)
    both: st.SearchStrategy[Expression] = st.tuples(st.sampled_from(("and", "or")), simple, simple).map(
        lambda collected: BooleanOperation(collected[0], (collected[1], collected[2]))  # type: ignore[arg-type]
    )
    return st.one_of(simple, both)


@st.composite
def lists(draw: st.DrawFn) -> ConfigurationList:
    assignments = st.dictionaries(st.sampled_from(NAMES), VALUES, min_size=1, max_size=3)
    constants = SearchSpace((Parameter("d", Constant(draw(VALUES))),))
    return ConfigurationList(constants, tuple(draw(st.lists(assignments, min_size=1, max_size=4))))


# Their meaning


@dataclass(frozen=True)
class Meaning:
    """What a design comes to."""

    accepted: tuple[dict[str, Value], ...]
    """In the order of the full product, each where it first appears."""
    existing: int
    """Different assignments before constraints and derived values."""


def hides(space: SearchSpace) -> bool:
    """Tell whether a zip has members that may not exist: then different positions can be one assignment."""
    zipped = {name for group in space.zips for name in group}
    return any(parameter.when and parameter.name in zipped for parameter in space.parameters)


def meaning(design: GridSearch | ConfigurationList) -> Meaning:
    space = design.space
    existing: dict[str, dict[str, Value]] = {}
    accepted: dict[str, dict[str, Value]] = {}
    for candidate in product(space) if isinstance(design, GridSearch) else listed(design):
        kept = {name: value for name, value in candidate.items() if exists(name, candidate, space)}
        existing[canonical_json(kept)] = kept
        for derived in space.derived:
            if all(item.name in kept for item in names_in(derived.expression)):
                kept = {**kept, derived.name: evaluated(derived.expression, kept)}
        if all(holds(constraint, kept) for constraint in space.constraints):
            accepted.setdefault(canonical_json(kept), kept)
    return Meaning(tuple(accepted.values()), len(existing))


def product(space: SearchSpace) -> list[dict[str, Value]]:
    assignments: list[dict[str, Value]] = []
    groups = {name: group for group in space.zips for name in group}
    names = [parameter.name for parameter in space.parameters]
    leaders = list(dict.fromkeys(groups.get(name, (name,)) for name in names))
    lengths = [len(points(space[group[0]].domain)) for group in leaders]
    for positions in itertools.product(*map(range, lengths)):
        at = {name: where for group, where in zip(leaders, positions, strict=True) for name in group}
        assignments.append({name: points(space[name].domain)[at[name]] for name in names})
    return assignments


def listed(design: ConfigurationList) -> list[dict[str, Value]]:
    assignments: list[dict[str, Value]] = []
    for assignment in design.assignments:
        constants = {parameter.name: points(parameter.domain)[0] for parameter in design.space.parameters}
        merged = {**constants, **assignment}
        order = [*constants, *design.names]
        assignments.append({name: merged[name] for name in dict.fromkeys(order) if name in merged})
    return assignments


def points(domain: Domain) -> tuple[Value, ...]:
    match domain:
        case Choice(values):
            return values
        case IntUniform(low, high):
            return tuple(range(low, high + 1))
        case Quantized(Uniform(0, high), 0.1):
            return tuple(value for value in (0.0, 0.1, 0.2, 0.3) if value < high)
        case _:
            raise AssertionError(domain)


def exists(name: str, candidate: Mapping[str, Value], space: SearchSpace) -> bool:
    when = next((parameter.when for parameter in space.parameters if parameter.name == name), ())
    return all(
        condition.parameter in candidate
        and exists(condition.parameter, candidate, space)
        and any(same(candidate[condition.parameter], value) for value in condition.values)
        for condition in when
    )


def holds(constraint: Constraint, kept: Mapping[str, Value]) -> bool:
    if any(name.name not in kept for name in names_in(constraint.expression)):
        return True
    return evaluated(constraint.expression, kept) is True


def evaluated(expression: Expression, kept: Mapping[str, Value]) -> Any:  # noqa: PLR0911 - one a kind
    match expression:
        case Literal(value):
            return value
        case Name(name):
            return kept[name]
        case ListLiteral(items):
            return [evaluated(item, kept) for item in items]
        case Conditional(test, yes, no):
            return evaluated(yes if evaluated(test, kept) else no, kept)
        case BooleanOperation("and", terms):
            return all(evaluated(term, kept) for term in terms)
        case BooleanOperation("or", terms):
            return any(evaluated(term, kept) for term in terms)
        case Comparison(first, ((sign, second),)):
            left, right = evaluated(first, kept), evaluated(second, kept)
            if sign == "in":
                return any(same(left, item) for item in right)
            return same(left, right) is (sign == "==")
        case _:
            raise AssertionError(expression)


def same(left: Any, right: Any) -> bool:
    return canonical_json(left) == canonical_json(right)
