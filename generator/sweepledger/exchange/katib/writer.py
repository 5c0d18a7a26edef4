"""A sweep as an Experiment of v1beta1, by the rules that Katib's own webhook checks."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from generator.exchange import unsaid
from generator.exchange.katib import feasible, job
from generator.exchange.katib.feasible import Space
from generator.exchange.loss import Exported, Loss
from generator.formats import yaml
from generator.structs import adaptive
from generator.structs.reporting import MetricSource, Reduce
from generator.structs.sweep import Draw, Grid, Sampler, Sweep
from generator.structs.values import Value

KATIB = "Katib"
ALGORITHMS = {
    adaptive.Method.TPE: "multivariate-tpe",
    adaptive.Method.BAYES: "bayesianoptimization",
    adaptive.Method.CMA_ES: "cmaes",
}
USUAL_ROUNDS = 10
"""Of a search that no number of rounds bounds."""
STRATEGIES = {Reduce.LAST: "latest", Reduce.MAX: "max", Reduce.MIN: "min"}
LARGEST_COUNT = 2**31 - 1
"""Katib counts in 32 bits."""
LARGEST_STATE = 2**32 - 1
"""Of NumPy's generator, which Katib's random search seeds."""


@dataclass(frozen=True, slots=True)
class Search:
    """What Katib is to look through, and what that leaves out."""

    algorithm: dict[str, Any]
    dimensions: Mapping[str, Space]
    constants: Mapping[str, Value]
    trials: int
    losses: tuple[Loss, ...]


def write(sweep: Sweep, assignments: Sequence[Mapping[str, Value]]) -> Exported:
    """Write the Experiment."""
    search = _search(sweep, assignments)
    template, losses = job.template(sweep, _references(search.dimensions), search.constants)
    count = min(search.trials, LARGEST_COUNT)
    experiment = {
        "apiVersion": "kubeflow.org/v1beta1",
        "kind": "Experiment",
        "metadata": {"name": sweep.name},
        "spec": {
            "objective": _objective(sweep),
            "algorithm": search.algorithm,
            "maxTrialCount": count,
            "parallelTrialCount": min(sweep.run.parallelism, count),
            # A failed trial stops no other in a sweep.
            "maxFailedTrialCount": count,
            "metricsCollectorSpec": {"collector": {"kind": "StdOut"}},
            "parameters": [
                {"name": name, "parameterType": space.kind, "feasibleSpace": space.feasible}
                for name, space in search.dimensions.items()
            ],
            "trialTemplate": template,
        },
    }
    return Exported(yaml.dump(experiment), (*search.losses, *_lost(sweep), *losses))


def _objective(sweep: Sweep) -> dict[str, Any]:
    name = sweep.metric.name
    goal = {} if sweep.metric.target is None else {"goal": sweep.metric.target}
    return {
        "type": str(sweep.metric.goal),
        **goal,
        "objectiveMetricName": name,
        "metricStrategies": [{"name": name, "value": STRATEGIES[sweep.metric.reduce]}],
    }


def _search(sweep: Sweep, assignments: Sequence[Mapping[str, Value]]) -> Search:
    if sweep.search is not None:
        return _by_rounds(sweep.search)
    match sweep.blocks:
        case (Grid() | Draw() as block,):
            return _block(block, assignments)
        case _:
            return _product(sweep, assignments)


def _block(block: Grid | Draw, assignments: Sequence[Mapping[str, Value]]) -> Search:
    dimensions, constants = _split(
        {
            parameter.name: feasible.space(parameter.name, parameter.domain, grid=isinstance(block, Grid))
            for parameter in block.space.parameters
        }
    )
    losses = [*_spaces(dimensions), *unsaid.of_block(block, KATIB)]
    if isinstance(block, Draw):
        algorithm, more = _algorithm(block)
        return Search(algorithm, dimensions, constants, len(assignments), (*losses, *more))
    size = math.prod(space.count or 1 for space in dimensions.values())
    if block.cap is not None and block.cap < size:
        why = f"Katib takes the first {block.cap} combinations in an order of its own"
        losses.append(Loss("grid_order: shuffled", why))
        size = block.cap
    elif size != len(assignments):
        losses.append(Loss(f"{len(assignments)} assignments", f"Katib runs all {size} combinations"))
    return Search({"algorithmName": "grid"}, dimensions, constants, size, tuple(losses))


def _by_rounds(search: adaptive.Search) -> Search:
    """Give a search by rounds to the algorithm of Katib that is nearest to it."""
    dimensions, constants = _split(
        {one.name: feasible.space(one.name, one.domain, grid=False) for one in search.space.parameters}
    )
    losses = [*_spaces(dimensions), *unsaid.of_block(search, KATIB)]
    losses.append(Loss("rounds", "Katib asks for a trial whenever one ends, from what has ended by then"))
    name = ALGORITHMS.get(search.method)
    if name is None:
        losses.append(Loss(f"method: {search.method}", "written as multivariate-tpe, the nearest there"))
    if search.resource is not None:
        losses.append(Loss("resource", "every trial runs with what the program takes by itself"))
    losses += [Loss(f"start: {other}", "an Experiment knows its own trials only") for other in search.start]
    count = search.cap or search.rounds.size * (search.rounds.max or USUAL_ROUNDS)
    algorithm: dict[str, Any] = {"algorithmName": name or "multivariate-tpe"}
    if search.seed <= LARGEST_STATE:
        algorithm["algorithmSettings"] = [{"name": "random_state", "value": str(search.seed)}]
    losses.append(Loss("seed", "Katib proposes other values from the same one"))
    return Search(algorithm, dimensions, constants, count, tuple(losses))


def _algorithm(block: Draw) -> tuple[dict[str, Any], list[Loss]]:
    if block.sampler is Sampler.SOBOL:
        return {"algorithmName": "sobol"}, [
            Loss("seed", "Katib's sobol takes none, so it draws other values")
        ]
    losses = [Loss("seed", "Katib draws other values from the same one")]
    if block.sampler is not Sampler.RANDOM:
        losses.append(Loss(f"method: {block.method}", "Katib has no such method; random there"))
    if block.seed > LARGEST_STATE:
        return {"algorithmName": "random"}, [*losses, Loss(f"seed: {block.seed}", "Katib's are below 2^32")]
    settings = [{"name": "random_state", "value": str(block.seed)}]
    return {"algorithmName": "random", "algorithmSettings": settings}, losses


def _product(sweep: Sweep, assignments: Sequence[Mapping[str, Value]]) -> Search:
    """Span a grid over all values that a list, or several blocks, have: Katib has neither."""
    spaces = {name: feasible.seen(name, assignments) for name in _columns(sweep, assignments)}
    dimensions, constants = _split(spaces)
    size = math.prod(space.count or 1 for space in dimensions.values())
    what = "blocks" if len(sweep.blocks) > 1 else "method: list"
    why = f"Katib has none: it runs all {size} combinations of the values, not {len(assignments)} assignments"
    losses = [Loss(what, why), *_spaces(dimensions)]
    for block in sweep.blocks:
        losses += unsaid.of_block(block, KATIB)
    return Search({"algorithmName": "grid"}, dimensions, constants, size, tuple(losses))


def _columns(sweep: Sweep, assignments: Sequence[Mapping[str, Value]]) -> Iterator[str]:
    derived = {value.name for block in sweep.blocks for value in block.space.derived}
    used = {name for assignment in assignments for name in assignment} - derived
    return (name for name in sweep.columns if name in used)


def _split(
    spaces: Mapping[str, Space | Value],
) -> tuple[dict[str, Space], dict[str, Value]]:
    """Tell what varies from what does not: Katib has no parameter of one value, so its command holds those.

    An Experiment needs a parameter all the same; where nothing varies, all are lists of one.
    """
    varying = {name: space for name, space in spaces.items() if isinstance(space, Space)}
    constant = {name: space for name, space in spaces.items() if not isinstance(space, Space)}
    if varying:
        return varying, constant
    return {name: feasible.listed(name, [value]) for name, value in constant.items()}, {}


def _spaces(dimensions: Mapping[str, Space]) -> Iterator[Loss]:
    for space in dimensions.values():
        yield from space.losses


def _references(dimensions: Mapping[str, Space]) -> dict[str, str]:
    """Name each placeholder after its parameter, without dots and dashes; two that meet get numbers."""
    names: dict[str, str] = {}
    for name in dimensions:
        alias = plain = re.sub(r"[^A-Za-z0-9]", "_", name)
        number = 2
        while alias in names.values():
            alias, number = f"{plain}_{number}", number + 1
        names[name] = alias
    return names


def _lost(sweep: Sweep) -> Iterator[Loss]:
    if sweep.description:
        yield Loss("description", "an Experiment has none")
    if sweep.metric.source is MetricSource.RESULT:
        why = "Katib reads lines `name=value` from standard output: print the metric as well"
        yield Loss("metric.source: result", why)
    for other in sweep.other_metrics:
        yield Loss(f"metrics: {other.name}", "Katib has one objective")
    if sweep.early_stop is not None:
        yield Loss("early_terminate", "not written: Katib's median rule compares while all trials run")
    if sweep.replicates > 1:
        yield Loss(f"replicates: {sweep.replicates}", "every assignment runs once, with the first seed")
    if sweep.budget.max_trials is not None or sweep.budget.max_gpu_hours is not None:
        yield Loss("budget", "is checked here, before anything is generated; Katib has none")
