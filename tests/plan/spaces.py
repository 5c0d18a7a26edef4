"""Sweeps for reviews, built as values: what a spec may say is tested elsewhere."""

from collections.abc import Sequence

from sweepledger.plan.coverage import Coverage, Histogram, ValueCounts, coverage
from sweepledger.structs.domain import Domain
from sweepledger.structs.search_block import GridSearch
from sweepledger.structs.space import Condition, Parameter, SearchSpace
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import Value
from tests.sweeps import a_sweep


def of_domains(**domains: Domain) -> Sweep:
    return of_space(SearchSpace(tuple(Parameter(name, domain) for name, domain in domains.items())))


def of_space(space: SearchSpace) -> Sweep:
    return a_sweep(design=GridSearch(space))


def when(name: str, domain: Domain, parent: str, *values: Value) -> Parameter:
    return Parameter(name, domain, (Condition(parent, values),))


def column(domain: Domain, values: Sequence[Value]) -> Coverage:
    return coverage(of_domains(x=domain), [{"x": value} for value in values])


def counts(result: Coverage) -> dict[str, dict[Value, int]]:
    return {
        parameter.name: dict(parameter.values.values)
        for parameter in result.parameters
        if isinstance(parameter.values, ValueCounts)
    }


def bins(result: Coverage) -> Histogram:
    (parameter,) = result.parameters
    assert isinstance(parameter.values, Histogram)
    return parameter.values
