"""From a raw candidate to an assignment: drop what does not exist, compute what follows, test the rest."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from generator.search.distributions.quantiles import rounded
from generator.search.expressions.computing import ComputeError, KindError, compile_expression
from generator.structs.conditions import allowed
from generator.structs.expression import Arithmetic, Call, Expression, Literal, children, mentions
from generator.structs.space import Constraint, Derived, Parameter, SearchSpace
from generator.structs.values import LARGEST_EXACT_INTEGER, Value, identity

FIFTEEN_DIGITS = "%.15g"
"""As many as every float keeps: 0.1 * 3 is 0.3."""

MACHINES_OWN = frozenset({"exp", "log", "log2", "log10"})
"""Functions that are the C library's, as is `**`: their last digits differ between machines. Those of all
other operations, sqrt among them, are laid down by IEEE 754."""

Assignment = Mapping[str, Value]
Candidate = Mapping[str, Value]
"""A value for every parameter, also for those that will turn out not to exist."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """At least one constraint does not hold."""

    constraints: tuple[int, ...]
    """All that do not, by their place in the space."""


@dataclass(frozen=True, slots=True)
class Failed:
    """An expression has no result."""

    expression: Constraint | Derived
    reason: str
    assignment: Assignment
    """As far as it was known."""
    is_kind: bool = False
    """A value of another kind is the reason, not a case without a result."""


Settle = Callable[[Candidate], Assignment | Rejected | Failed]


def settling(space: SearchSpace, listed: Collection[str] = (), unasked: Counter[int] | None = None) -> Settle:
    """Compile what a space makes of a candidate; `listed` are names that a person may give beside its own.

    In `unasked` is counted how often a constraint, by its place, could not be asked.
    """
    exists = _existence(space.parameters)
    derive = [_Computed.of(derived) for derived in space.derived]
    tests = [_Computed.of(constraint) for constraint in space.constraints]
    uncertain = Counter[int]() if unasked is None else unasked
    names = tuple(dict.fromkeys([*(parameter.name for parameter in space.parameters), *listed]))

    def settle(candidate: Candidate) -> Assignment | Rejected | Failed:
        kept = exists(candidate) if exists else candidate
        assignment = {name: kept[name] for name in names if name in kept}
        for derived in derive:
            failed = derived.add_to(assignment)
            if failed is not None:
                return failed
        return (tests and _tested(assignment, tests, uncertain)) or MappingProxyType(assignment)

    return settle


@dataclass(frozen=True, slots=True)
class _Computed:
    source: Constraint | Derived
    needs: frozenset[str]
    compute: Callable[[Assignment], Value]
    written: tuple[Value, ...]
    """The values in the expression itself."""
    is_rough: bool
    """It computes something whose last digits are the machine's own."""

    @classmethod
    def of(cls, source: Constraint | Derived) -> "_Computed":
        needs = frozenset(name.name for name in mentions(source.expression))
        nodes = tuple(_nodes(source.expression))
        written = tuple(node.value for node in nodes if isinstance(node, Literal))
        return cls(source, needs, compile_expression(source.expression), written, any(map(_is_rough, nodes)))

    def add_to(self, assignment: dict[str, Value]) -> Failed | None:
        """Add the derived value, unless something that it needs is absent."""
        assert isinstance(self.source, Derived)
        if self.needs <= assignment.keys():
            try:
                assignment[self.source.name] = self._kept(self.compute(assignment), assignment)
            except ComputeError as error:
                return Failed(self.source, str(error), assignment, is_kind=isinstance(error, KindError))
        return None

    def _kept(self, value: Value, assignment: Assignment) -> Value:
        match value:
            case float():
                return self._settled(value, assignment)
            case list() | tuple():
                return tuple(
                    self._settled(item, assignment) if isinstance(item, float) else item for item in value
                )
            case _:
                return value

    def _settled(self, value: float, assignment: Assignment) -> float:
        """Round what was computed, so that no machine's last digit shows; what was only taken stays."""
        if value.is_integer() and abs(value) <= LARGEST_EXACT_INTEGER:
            return value + 0.0  # makes -0.0 0.0: two names for one number
        result = rounded(value) if self.is_rough else float(FIFTEEN_DIGITS % value)
        if result == value or value in _numbers((*self.written, *map(assignment.__getitem__, self.needs))):
            return value
        return result


def _numbers(values: Iterable[Value]) -> Iterator[float]:
    for value in values:
        if isinstance(value, list | tuple):
            yield from _numbers(value)
        elif isinstance(value, float):
            yield value


def _nodes(expression: Expression) -> Iterator[Expression]:
    yield expression
    for child in children(expression):
        yield from _nodes(child)


def _is_rough(node: Expression) -> bool:
    match node:
        case Arithmetic("**", _, _):
            return True
        case Call(function, _):
            return function in MACHINES_OWN
        case _:
            return False


def _tested(
    assignment: Assignment, tests: Iterable[_Computed], unasked: Counter[int]
) -> Rejected | Failed | None:
    """Hold all constraints against an assignment; what an earlier one rejected cannot fail in a later one."""
    rejecting: list[int] = []
    for number, test in enumerate(tests):
        if not test.needs <= assignment.keys():
            unasked[number] += 1
            continue
        try:
            holds = test.compute(assignment)
        except ComputeError as error:
            if rejecting:
                continue
            return Failed(test.source, str(error), assignment, is_kind=isinstance(error, KindError))
        if holds is False:
            rejecting.append(number)
        elif holds is not True and not rejecting:
            reason = f"must be true or false, got {holds!r}"
            return Failed(test.source, reason, assignment, is_kind=True)
    return Rejected(tuple(rejecting)) if rejecting else None


def _existence(parameters: Collection[Parameter]) -> Callable[[Candidate], Candidate] | None:
    """Compile the conditions; None where there are none."""
    conditional = [(parameter.name, allowed(parameter)) for parameter in _parents_first(parameters)]
    if not conditional:
        return None

    def existing(candidate: Candidate) -> Candidate:
        kept = dict(candidate)
        for name, parents in conditional:
            for parent, values in parents:
                if parent not in kept or identity(kept[parent]) not in values:
                    kept.pop(name, None)
                    break
        return kept

    return existing


def _parents_first(parameters: Collection[Parameter]) -> list[Parameter]:
    """Choose the conditional parameters, each after those that it depends on."""
    left = [parameter for parameter in parameters if parameter.when]
    ordered: list[Parameter] = []
    while left:
        waiting = {parameter.name for parameter in left}
        ready = [one for one in left if not waiting & {condition.parameter for condition in one.when}]
        assert ready, f"conditions go in a circle: {waiting!r}"
        ordered += ready
        left = [one for one in left if one not in ready]
    return ordered
