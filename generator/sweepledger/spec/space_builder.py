"""The search space of a section: domains, conditions, constraints and derived values."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sweepledger.expressions.parser import parse_expression
from sweepledger.reader import DocumentPath
from sweepledger.spec.draft import Draft, RawMapping
from sweepledger.spec.ranges import Number, Spacing, exponential, exponentially_spaced, spaced, stepped
from sweepledger.spec.sections import Leaf, Section
from sweepledger.structs import domain as domains
from sweepledger.structs.expression import names_in
from sweepledger.structs.space import Condition, Constraint, DerivedValue, Parameter, SearchSpace
from sweepledger.structs.values import Value

QUANTIZED = "q_"


def build_domain(written: RawMapping) -> domains.Domain:  # noqa: PLR0911 - one case a form
    """Return the domain of a parameter without problems."""
    for spacing in Spacing:
        if spacing in written:
            start, stop, count = written[spacing]
            return domains.Choice(spaced(spacing, start, stop, int(count)))
    kind = distribution_name(written)
    if "step" in written:
        return domains.Choice(stepped(written["min"], written["max"], written["step"]))
    if "count" in written:
        return domains.Choice(_points(kind, written["min"], written["max"], int(written["count"])))
    match kind:
        case "constant":
            return domains.Constant(frozen_value(written["value"]))
        case "categorical" | "categorical_w_probabilities":
            probabilities = written.get("probabilities")
            return domains.Choice(
                tuple(frozen_value(item) for item in written["values"]),
                None if probabilities is None else tuple(float(share) for share in probabilities),
            )
        case "int_uniform":
            return domains.IntUniform(int(written["min"]), int(written["max"]))
        case _ if kind.startswith(QUANTIZED):
            return domains.Quantized(
                _continuous(kind.removeprefix(QUANTIZED), written), float(written.get("q", 1))
            )
        case _:
            return _continuous(kind, written)


def distribution_name(written: RawMapping) -> str:
    """Return the distribution of a parameter, written or implied by its other keys."""
    if "distribution" in written:
        return str(written["distribution"])
    if "value" in written:
        return "constant"
    if "values" in written:
        return "categorical"
    return bounds_distribution(written["min"], written["max"])


def bounds_distribution(low: object, high: object) -> str:
    """Return the distribution of two bounds alone: integers for two integers, as in W&B.

    0.0 is not an integer here: an author who writes it means real numbers.
    """
    return "int_uniform" if isinstance(low, int) and isinstance(high, int) else "uniform"


def frozen_value(data: Any) -> Value:
    """Return an immutable value."""
    given: Value = tuple(data) if isinstance(data, list) else data
    return given


def _points(kind: str, low: Number, high: Number, count: int) -> tuple[Value, ...]:
    match kind:
        case "log_uniform_values" | "inv_log_uniform_values":
            return spaced(Spacing.GEOMETRIC, low, high, count)
        case "log_uniform":
            return exponentially_spaced(low, high, count)
        case "inv_log_uniform":
            return exponentially_spaced(-high, -low, count)
        case _:
            return spaced(Spacing.LINEAR, low, high, count)


def _continuous(kind: str, written: RawMapping) -> domains.Continuous:  # noqa: PLR0911 - one case a kind
    mu, sigma = float(written.get("mu", 0)), float(written.get("sigma", 1))
    match kind, written:
        case "normal", _:
            return domains.Normal(mu, sigma)
        case "truncated_normal", _:
            return domains.Normal(mu, sigma, _bound(written, "min"), _bound(written, "max"))
        case "log_normal", _:
            return domains.LogNormal(mu, sigma)
        case "beta", _:
            return domains.Beta(float(written.get("a", 1)), float(written.get("b", 1)))
        case "uniform", {"min": low, "max": high}:
            return domains.Uniform(float(low), float(high))
        case "log_uniform_values" | "inv_log_uniform_values", {"min": low, "max": high}:
            return domains.LogUniform(float(low), float(high))
        case "log_uniform", {"min": low, "max": high}:
            return domains.LogUniform(exponential(low), exponential(high))
        case "inv_log_uniform", {"min": low, "max": high}:
            return domains.LogUniform(exponential(-high), exponential(-low))
        case _:
            raise AssertionError(f"the rules let through {kind} with the keys {sorted(written)}")


def _bound(written: RawMapping, key: str) -> float | None:
    return float(written[key]) if key in written else None


def build_space(draft: Draft, section: Section) -> SearchSpace:
    """Build the space that a sweep searches."""
    return SearchSpace(
        parameters=tuple(_parameter(draft, leaf) for leaf in section.leaves.values()),
        zips=tuple(tuple(group) for group in draft.get("zip", kind=list) or ()),
        derived=_ordered(tuple(_derived(draft, ("derived",)))),
        constraints=tuple(_constraints(draft, ("constraints",))),
    )


def _parameter(draft: Draft, leaf: Leaf) -> Parameter:
    conditions = (
        Condition(
            name, tuple(frozen_value(item) for item in (wanted if isinstance(wanted, list) else [wanted]))
        )
        for path in leaf.conditions
        for name, wanted in _mapping(draft, path).items()
    )
    return Parameter(leaf.name, build_domain(_mapping(draft, leaf.path)), tuple(conditions))


def _constraints(draft: Draft, path: DocumentPath) -> Iterator[Constraint]:
    for _, text in draft.items(*path):
        yield Constraint(parse_expression(text), text)


def _derived(draft: Draft, path: DocumentPath) -> Iterator[DerivedValue]:
    for name, text in _mapping(draft, path).items():
        yield DerivedValue(name, parse_expression(text), text)


def _ordered(derived: tuple[DerivedValue, ...]) -> tuple[DerivedValue, ...]:
    by_name = {value.name: value for value in derived}
    names = {value.name: [name.name for name in names_in(value.expression)] for value in derived}
    return tuple(by_name[name] for name in dependency_order(names))


def dependency_order(dependencies: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """List names so that each comes after those it depends on, otherwise in the given order.

    Ignores dependencies that are not among the names; in a cycle, the first name of the cycle comes last.
    """
    entered: set[str] = set()
    for start in dependencies:
        stack = [(name, iter(dependencies[name])) for name in (start,) if name not in entered]
        entered.add(start)
        while stack:
            name, others = stack[-1]
            other = next((each for each in others if each in dependencies and each not in entered), None)
            if other is None:
                yield name
                stack.pop()
            else:
                entered.add(other)
                stack.append((other, iter(dependencies[other])))


def _mapping(draft: Draft, path: DocumentPath) -> Mapping[str, Any]:
    return draft.get(*path, kind=dict) or {}
