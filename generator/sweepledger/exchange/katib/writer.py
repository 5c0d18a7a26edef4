"""A sweep as an Experiment of v1beta1, by the rules that Katib's own webhook checks."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sweepledger.exchange import conversion
from sweepledger.exchange.conversion import Exported, Loss
from sweepledger.exchange.katib import parameters, trial_writer
from sweepledger.exchange.katib.parameters import FeasibleSpace
from sweepledger.formats import yaml
from sweepledger.structs import search_block
from sweepledger.structs.metric import MetricSource, Reduce
from sweepledger.structs.search_block import GridSearch, RandomSearch, Sampler
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import Value

KATIB = "Katib"
ALGORITHMS = {
    search_block.Method.TPE: "multivariate-tpe",
    search_block.Method.BAYES: "bayesianoptimization",
    search_block.Method.CMA_ES: "cmaes",
}
USUAL_ROUNDS = 10
"""Rounds to export for a search without a limit of rounds."""
STRATEGIES = {Reduce.LAST: "latest", Reduce.MAX: "max", Reduce.MIN: "min"}
LARGEST_COUNT = 2**31 - 1
"""Largest number of trials: Katib counts in 32 bits."""
LARGEST_STATE = 2**32 - 1
"""Largest seed of NumPy's generator, which Katib's random search uses."""


@dataclass(frozen=True, slots=True)
class KatibSearch:
    """The search of an Experiment, and its losses."""

    algorithm: dict[str, Any]
    dimensions: Mapping[str, FeasibleSpace]
    constants: Mapping[str, Value]
    trials: int
    losses: tuple[Loss, ...]


def write(sweep: Sweep, assignments: Sequence[Mapping[str, Value]]) -> Exported:
    """Return the sweep as an Experiment."""
    search = _search(sweep, assignments)
    template, losses = trial_writer.write_trial_template(
        sweep, _references(search.dimensions), search.constants
    )
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
            # Without a limit, a failed trial does not stop others.
            "maxFailedTrialCount": count
            if sweep.run.max_failed is None
            else min(sweep.run.max_failed, count),
            "metricsCollectorSpec": {"collector": {"kind": "StdOut"}},
            "parameters": [
                {"name": name, "parameterType": space.kind, "feasibleSpace": space.feasible}
                for name, space in search.dimensions.items()
            ],
            "trialTemplate": template,
        },
    }
    moved = [
        Loss(f"parameters.{name}", "has one value, so the command has it instead")
        for name in search.constants
    ]
    return Exported(yaml.dump(experiment), (*search.losses, *moved, *_sweep_losses(sweep), *losses))


def _objective(sweep: Sweep) -> dict[str, Any]:
    name = sweep.metric.name
    goal = {} if sweep.metric.target is None else {"goal": sweep.metric.target}
    return {
        "type": str(sweep.metric.goal),
        **goal,
        "objectiveMetricName": name,
        "metricStrategies": [{"name": name, "value": STRATEGIES[sweep.metric.reduce]}],
    }


def _search(sweep: Sweep, assignments: Sequence[Mapping[str, Value]]) -> KatibSearch:
    if sweep.search is not None:
        return _adaptive(sweep.search)
    match sweep.blocks:
        case (GridSearch() | RandomSearch() as block,):
            return _block(block, assignments)
        case _:
            return _product(sweep, assignments)


def _block(block: GridSearch | RandomSearch, assignments: Sequence[Mapping[str, Value]]) -> KatibSearch:
    dimensions, constants = _split(
        {
            parameter.name: parameters.feasible_space(
                parameter.name, parameter.domain, grid=isinstance(block, GridSearch)
            )
            for parameter in block.space.parameters
        }
    )
    losses = [*_spaces(dimensions), *conversion.block_losses(block, KATIB)]
    if isinstance(block, RandomSearch):
        algorithm, more = _algorithm(block)
        return KatibSearch(algorithm, dimensions, constants, len(assignments), (*losses, *more))
    size = math.prod(space.count or 1 for space in dimensions.values())
    if block.cap is not None and block.cap < size:
        why = f"Katib draws other {block.cap} combinations"
        losses.append(Loss("grid_order: shuffled", why))
        size = block.cap
    elif size != len(assignments):
        losses.append(Loss(f"{len(assignments)} assignments", f"Katib runs all {size} combinations"))
    return KatibSearch({"algorithmName": "grid"}, dimensions, constants, size, tuple(losses))


def _adaptive(search: search_block.AdaptiveSearch) -> KatibSearch:
    """Return an adaptive search with the nearest algorithm of Katib."""
    dimensions, constants = _split(
        {
            parameter.name: parameters.feasible_space(parameter.name, parameter.domain, grid=False)
            for parameter in search.space.parameters
        }
    )
    losses = [*_spaces(dimensions), *conversion.block_losses(search, KATIB)]
    losses.append(
        Loss("rounds", "Katib requests one trial whenever one ends, from the trials that have ended")
    )
    name = ALGORITHMS.get(search.method)
    if name is None:
        losses.append(Loss(f"method: {search.method}", "written as multivariate-tpe, the nearest algorithm"))
    if search.resource is not None:
        losses.append(Loss("resource", "every trial runs with the program's default"))
    losses += [Loss(f"start: {other}", "an Experiment uses only its own trials") for other in search.start]
    count = conversion.most_trials(search)
    if count is None:
        count = search.rounds.size * USUAL_ROUNDS
        losses.append(
            Loss(f"maxTrialCount: {count}", f"the search has no limit; written for {USUAL_ROUNDS} rounds")
        )
    algorithm: dict[str, Any] = {"algorithmName": name or "multivariate-tpe"}
    if search.seed <= LARGEST_STATE:
        algorithm["algorithmSettings"] = [{"name": "random_state", "value": str(search.seed)}]
    losses.append(Loss("seed", "Katib proposes other values for the same seed"))
    return KatibSearch(algorithm, dimensions, constants, count, tuple(losses))


def _algorithm(block: RandomSearch) -> tuple[dict[str, Any], list[Loss]]:
    if block.sampler is Sampler.SOBOL:
        return {"algorithmName": "sobol"}, [
            Loss("seed", "Katib's sobol takes none, so it draws other values")
        ]
    losses = [Loss("seed", "Katib draws other values for the same seed")]
    if block.sampler is not Sampler.RANDOM:
        losses.append(Loss(f"method: {block.method}", "Katib does not have this method; written as random"))
    if block.seed > LARGEST_STATE:
        return {"algorithmName": "random"}, [*losses, Loss(f"seed: {block.seed}", "Katib's are below 2^32")]
    settings = [{"name": "random_state", "value": str(block.seed)}]
    return {"algorithmName": "random", "algorithmSettings": settings}, losses


def _product(sweep: Sweep, assignments: Sequence[Mapping[str, Value]]) -> KatibSearch:
    """Return a grid of all values in a list or in several blocks, which Katib does not have."""
    spaces = {name: parameters.observed_space(name, assignments) for name in _columns(sweep, assignments)}
    dimensions, constants = _split(spaces)
    size = math.prod(space.count or 1 for space in dimensions.values())
    what = "blocks" if len(sweep.blocks) > 1 else "method: list"
    why = f"Katib has none: it runs all {size} combinations of the values, not {len(assignments)} configurations"
    losses = [Loss(what, why), *_spaces(dimensions)]
    for block in sweep.blocks:
        losses += conversion.block_losses(block, KATIB)
    return KatibSearch({"algorithmName": "grid"}, dimensions, constants, size, tuple(losses))


def _columns(sweep: Sweep, assignments: Sequence[Mapping[str, Value]]) -> Iterator[str]:
    derived = {value.name for block in sweep.blocks for value in block.space.derived}
    used = {name for assignment in assignments for name in assignment} - derived
    return (name for name in sweep.columns if name in used)


def _split(
    spaces: Mapping[str, FeasibleSpace | Value],
) -> tuple[dict[str, FeasibleSpace], dict[str, Value]]:
    """Return the varying parameters, and the constants, which become part of the command.

    Katib has no parameters with one value, but an Experiment needs at least one parameter: if nothing varies, all
    parameters are lists with one value.
    """
    varying = {name: space for name, space in spaces.items() if isinstance(space, FeasibleSpace)}
    constant = {name: space for name, space in spaces.items() if not isinstance(space, FeasibleSpace)}
    if varying:
        return varying, constant
    return {name: parameters.listed_space(name, [value]) for name, value in constant.items()}, {}


def _spaces(dimensions: Mapping[str, FeasibleSpace]) -> Iterator[Loss]:
    for space in dimensions.values():
        yield from space.losses


def _references(dimensions: Mapping[str, FeasibleSpace]) -> dict[str, str]:
    """Return placeholder names: the parameters' names without dots and dashes, numbered if they collide."""
    names: dict[str, str] = {}
    for name in dimensions:
        alias = plain = re.sub(r"[^A-Za-z0-9]", "_", name)
        number = 2
        while alias in names.values():
            alias, number = f"{plain}_{number}", number + 1
        names[name] = alias
    return names


def _sweep_losses(sweep: Sweep) -> Iterator[Loss]:
    if sweep.description:
        yield Loss("description", "an Experiment has no description")
    if sweep.metric.source is MetricSource.RESULT:
        why = "Katib reads lines `name=value` from standard output: print the metric as well"
        yield Loss("metric.source: result", why)
    if sweep.metric.patterns:
        yield Loss("metric.patterns", "Katib reads lines `name=value`: print the metric in this form")
    for other in sweep.other_metrics:
        yield Loss(f"metrics: {other.name}", "Katib has one objective")
    if sweep.early_stop is not None:
        yield Loss("early_terminate", "not written: Katib's median rule compares while all trials run")
    if sweep.replicates > 1:
        yield Loss(f"replicates: {sweep.replicates}", "every configuration runs once, with the first seed")
    yield from conversion.rounds_losses(sweep)
    if sweep.budget.max_trials is not None or sweep.budget.max_gpu_hours is not None:
        yield Loss("budget", "Katib has none; here it is checked before a batch is generated")
