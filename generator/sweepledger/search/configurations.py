"""Configurations from candidates: drop parameters whose conditions fail, compute derived values, check constraints."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from sweepledger.distributions.rounding import round_to_ten_digits
from sweepledger.expressions.evaluation import ComputeError, KindError, compile_expression
from sweepledger.structs.expression import Arithmetic, Call, Literal, children, names_in
from sweepledger.structs.space import (
    Constraint,
    DerivedValue,
    Parameter,
    SearchSpace,
    parent_conditions,
    parents_first,
)
from sweepledger.structs.values import LARGEST_EXACT_INTEGER, Value, canonical_json, identity

FIFTEEN_DIGITS = "%.15g"
"""As many digits as every float keeps: 0.1 * 3 is 0.3."""

PLATFORM_DEPENDENT = frozenset({"exp", "log", "log2", "log10"})
"""Functions of the C library, as is `**`: their last digits differ between platforms. IEEE 754 defines the digits
of all other operations, including sqrt."""

Configuration = Mapping[str, Value]
Candidate = Mapping[str, Value]
"""A value for every parameter, including those that conditions may drop."""


class TriedConfigurations:
    """Configurations that must not be tried again."""

    def __init__(self, configurations: Iterable[Configuration] = ()) -> None:
        self.keys = set(map(canonical_json, configurations))

    def add(self, configuration: Configuration) -> bool:
        """Add a configuration; return whether it is new."""
        count = len(self.keys)
        self.keys.add(canonical_json(configuration))
        return len(self.keys) > count


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


Unbuilt = Rejected | ExpressionFailure
"""Why a candidate is no configuration."""
ConfigurationBuilder = Callable[[Candidate], Configuration | Unbuilt]


def configuration_builder(
    space: SearchSpace, listed: Collection[str] = (), unevaluated: list[int] | None = None
) -> ConfigurationBuilder:
    """Compile a space to the function that builds configurations; it also keeps the names in `listed`.

    `unevaluated` counts, by index, how often a constraint lacks a value that it needs.
    """
    exists = _condition_filter(space.parameters)
    derive = [_Computed.of(derived) for derived in space.derived]
    tests = [_Computed.of(constraint) for constraint in space.constraints]
    unevaluated = [0] * len(tests) if unevaluated is None else unevaluated
    names = tuple(dict.fromkeys([*(parameter.name for parameter in space.parameters), *listed]))

    def build(candidate: Candidate) -> Configuration | Unbuilt:
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
        nodes = [source.expression]
        for node in nodes:  # grows meanwhile
            nodes += children(node)
        literals = tuple(node.value for node in nodes if isinstance(node, Literal))
        is_dependent = any(
            (isinstance(node, Arithmetic) and node.operator == "**")
            or (isinstance(node, Call) and node.function in PLATFORM_DEPENDENT)
            for node in nodes
        )
        return cls(source, needs, compile_expression(source.expression), literals, is_dependent)

    def add_to(self, configuration: dict[str, Value]) -> ExpressionFailure | None:
        """Add the derived value, unless a value that it needs is absent."""
        assert isinstance(self.source, DerivedValue)
        if self.needs <= configuration.keys():
            try:
                value = self.compute(configuration)
                if isinstance(value, list | tuple):
                    value = tuple(self._rounded(item, configuration) for item in value)
                configuration[self.source.name] = self._rounded(value, configuration)
            except ComputeError as error:
                return ExpressionFailure(self.source, str(error), configuration, isinstance(error, KindError))
        return None

    def _rounded(self, value: Any, configuration: Configuration) -> Any:
        """Round a computed number, so that it has the same digits on all platforms; copied values are kept."""
        if not isinstance(value, float):
            return value
        if value.is_integer() and abs(value) <= LARGEST_EXACT_INTEGER:
            return value + 0.0  # -0.0 becomes 0.0: one number, one name
        result = round_to_ten_digits(value) if self.is_platform_dependent else float(FIFTEEN_DIGITS % value)
        copied: list[Any] = [*self.literals, *map(configuration.__getitem__, self.needs)]
        for item in copied:  # grows meanwhile
            copied += item if isinstance(item, list | tuple) else ()
        is_copied = any(isinstance(item, float) and item == value for item in copied)
        return value if result == value or is_copied else result


def _check_constraints(
    configuration: Configuration, tests: Iterable[_Computed], unevaluated: list[int]
) -> Unbuilt | None:
    """Check all constraints; after a constraint rejects the configuration, failures of later ones do not count."""
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
            return ExpressionFailure(test.source, str(error), configuration, isinstance(error, KindError))
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
