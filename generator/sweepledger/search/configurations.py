"""Configurations from candidates: drop parameters whose conditions fail, compute derived values, check constraints."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from sweepledger.distributions.rounding import round_to_ten_digits
from sweepledger.expressions.evaluation import ComputeError, KindError, compile_expression
from sweepledger.structs.expression import Arithmetic, Call, Expression, Literal, children, names_in
from sweepledger.structs.space import (
    Constraint,
    DerivedValue,
    Parameter,
    SearchSpace,
    parent_conditions,
    parents_first,
)
from sweepledger.structs.values import LARGEST_EXACT_INTEGER, Value, identity

FIFTEEN_DIGITS = "%.15g"
"""As many digits as every float keeps: 0.1 * 3 is 0.3."""

PLATFORM_DEPENDENT = frozenset({"exp", "log", "log2", "log10"})
"""Functions of the C library, as is `**`: their last digits differ between platforms. IEEE 754 defines the digits
of all other operations, including sqrt."""

Configuration = Mapping[str, Value]
Candidate = Mapping[str, Value]
"""A value for every parameter, including those that conditions may drop."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A candidate that does not satisfy all constraints."""

    constraints: tuple[int, ...]
    """Indexes of the constraints that reject it."""


@dataclass(frozen=True, slots=True)
class ExpressionFailure:
    """An expression has no result."""

    expression: Constraint | DerivedValue
    reason: str
    configuration: Configuration
    """The values known so far."""
    is_type_error: bool = False
    """The reason is a value of the wrong type, not a case without a result."""


ConfigurationBuilder = Callable[[Candidate], Configuration | Rejected | ExpressionFailure]


def configuration_builder(
    space: SearchSpace, listed: Collection[str] = (), unevaluated: Counter[int] | None = None
) -> ConfigurationBuilder:
    """Compile a space to the function that builds configurations; `listed` are further names that are kept.

    `unevaluated` counts, by index, how often a constraint lacks a value that it needs.
    """
    exists = _condition_filter(space.parameters)
    derive = [_Computed.of(derived) for derived in space.derived]
    tests = [_Computed.of(constraint) for constraint in space.constraints]
    unevaluated = Counter[int]() if unevaluated is None else unevaluated
    names = tuple(dict.fromkeys([*(parameter.name for parameter in space.parameters), *listed]))

    def build(candidate: Candidate) -> Configuration | Rejected | ExpressionFailure:
        kept = exists(candidate) if exists else candidate
        configuration = {name: kept[name] for name in names if name in kept}
        for derived in derive:
            failure = derived.add_to(configuration)
            if failure is not None:
                return failure
        return (tests and _check_constraints(configuration, tests, unevaluated)) or MappingProxyType(
            configuration
        )

    return build


@dataclass(frozen=True, slots=True)
class _Computed:
    source: Constraint | DerivedValue
    needs: frozenset[str]
    compute: Callable[[Configuration], Value]
    literals: tuple[Value, ...]
    """The values in the expression itself."""
    is_platform_dependent: bool
    """Its last digits differ between platforms."""

    @classmethod
    def of(cls, source: Constraint | DerivedValue) -> "_Computed":
        needs = frozenset(name.name for name in names_in(source.expression))
        nodes = tuple(_nodes(source.expression))
        literals = tuple(node.value for node in nodes if isinstance(node, Literal))
        return cls(
            source,
            needs,
            compile_expression(source.expression),
            literals,
            any(map(_is_platform_dependent, nodes)),
        )

    def add_to(self, configuration: dict[str, Value]) -> ExpressionFailure | None:
        """Add the derived value, unless a value that it needs is absent."""
        assert isinstance(self.source, DerivedValue)
        if self.needs <= configuration.keys():
            try:
                configuration[self.source.name] = self._rounded(self.compute(configuration), configuration)
            except ComputeError as error:
                return ExpressionFailure(
                    self.source, str(error), configuration, is_type_error=isinstance(error, KindError)
                )
        return None

    def _rounded(self, value: Value, configuration: Configuration) -> Value:
        match value:
            case float():
                return self._rounded_number(value, configuration)
            case list() | tuple():
                return tuple(
                    self._rounded_number(item, configuration) if isinstance(item, float) else item
                    for item in value
                )
            case _:
                return value

    def _rounded_number(self, value: float, configuration: Configuration) -> float:
        """Round a computed number, so that it has the same digits on all platforms; copied values are kept."""
        if value.is_integer() and abs(value) <= LARGEST_EXACT_INTEGER:
            return value + 0.0  # -0.0 becomes 0.0: one number, one name
        result = round_to_ten_digits(value) if self.is_platform_dependent else float(FIFTEEN_DIGITS % value)
        if result == value or value in _numbers(
            (*self.literals, *map(configuration.__getitem__, self.needs))
        ):
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


def _is_platform_dependent(node: Expression) -> bool:
    match node:
        case Arithmetic("**", _, _):
            return True
        case Call(function, _):
            return function in PLATFORM_DEPENDENT
        case _:
            return False


def _check_constraints(
    configuration: Configuration, tests: Iterable[_Computed], unevaluated: Counter[int]
) -> Rejected | ExpressionFailure | None:
    """Check all constraints; after one rejects the configuration, failures of later ones do not count."""
    rejecting: list[int] = []
    for number, test in enumerate(tests):
        if not test.needs <= configuration.keys():
            unevaluated[number] += 1
            continue
        try:
            holds = test.compute(configuration)
        except ComputeError as error:
            if rejecting:
                continue
            return ExpressionFailure(
                test.source, str(error), configuration, is_type_error=isinstance(error, KindError)
            )
        if holds is False:
            rejecting.append(number)
        elif holds is not True and not rejecting:
            reason = f"must be true or false, got {holds!r}"
            return ExpressionFailure(test.source, reason, configuration, is_type_error=True)
    return Rejected(tuple(rejecting)) if rejecting else None


def _condition_filter(parameters: Collection[Parameter]) -> Callable[[Candidate], Candidate] | None:
    """Compile the conditions to a function that drops absent parameters; None if there are no conditions."""
    conditional = [parameter for parameter in parameters if parameter.when]
    if not conditional:
        return None
    ordered = parents_first(conditional, lambda parameter: (parameter,))
    conditions = [(parameter.name, parent_conditions(parameter)) for parameter in ordered]

    def existing(candidate: Candidate) -> Candidate:
        kept = dict(candidate)
        for name, parents in conditions:
            for parent, values in parents:
                if parent not in kept or identity(kept[parent]) not in values:
                    kept.pop(name, None)
                    break
        return kept

    return existing
