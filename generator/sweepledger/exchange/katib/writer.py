"""A sweep as an Experiment of v1beta1, by the rules that Katib's own webhook checks."""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from sweepledger.exchange import conversion
from sweepledger.exchange.conversion import Assignments, Exported, Loss, LossList
from sweepledger.exchange.katib import parameters
from sweepledger.exchange.katib.parameters import FeasibleSpace
from sweepledger.exchange.katib.reader import CONDITIONS
from sweepledger.exchange.kubernetes import filled_command, trial_values, variables
from sweepledger.formats import yaml
from sweepledger.structs.methods import PLAIN
from sweepledger.structs.metric import MetricSource, Reduce
from sweepledger.structs.node_pool import GPU_RESOURCE
from sweepledger.structs.program import LOCAL_IMAGE
from sweepledger.structs.search_block import AdaptiveSearch, ConfigurationList, GridSearch, RandomSearch
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import Value

CONTAINER = "trial"
NO_IMAGE = "registry.example/replace-me"


def _trial_template(
    sweep: Sweep, references: Mapping[str, str], constants: Mapping[str, Value], losses: LossList
) -> dict[str, Any]:
    """Return `trialTemplate`; `references` are the names of the parameters in `trialParameters`."""
    placeholders = {name: f"${{trialParameters.{alias}}}" for name, alias in references.items()}
    values, run = trial_values(sweep, constants, placeholders), sweep.run
    arguments = filled_command(sweep.command, values, sweep, KATIB, losses)
    amounts = {"cpu": run.resources.cpu, "memory": run.resources.memory}
    if run.resources.gpu:
        amounts[GPU_RESOURCE] = str(run.resources.gpu)
    container = {
        "name": CONTAINER,
        "image": NO_IMAGE if run.image in {None, LOCAL_IMAGE} else run.image,
        "command": arguments,
        "env": [
            {"name": name, "value": value}
            for name, value in (*variables(values).items(), ("SWEEP_SEED", str(run.seed_base)))
        ],
        "resources": {"limits": amounts, "requests": dict(amounts)},
    }
    return {
        "primaryContainerName": CONTAINER,
        **CONDITIONS,
        "trialParameters": [
            {"name": alias, "description": f"{name} of the sweep", "reference": name}
            for name, alias in references.items()
        ],
        "trialSpec": {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "spec": {
                "backoffLimit": run.retries,
                "activeDeadlineSeconds": run.timeout_seconds,
                "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
            },
        },
    }


def _losses(sweep: Sweep) -> Iterator[Loss]:
    run, metric, has_image = sweep.run, sweep.metric, sweep.run.image not in {None, LOCAL_IMAGE}
    config = "" if run.config is None else run.config.base
    for part, value, why in (
        ("description", sweep.description, "an Experiment has no description"),
        (
            "metric.source: result",
            metric.source is MetricSource.RESULT,
            "Katib reads lines `name=value` from standard output: print the metric as well",
        ),
        ("metric.patterns", metric.patterns, "Katib reads lines `name=value`: print the metric in this form"),
        *((f"metrics: {other.name}", True, "Katib has one objective") for other in sweep.other_metrics),
        (
            "early_terminate",
            sweep.early_stop,
            "not written: Katib's median rule compares while all trials run",
        ),
        (f"run.code.path: {run.code_path}", True, "Katib does not mount code: the image must contain it"),
        ("$SWEEP_TRIAL, $SWEEP_RESULT and the other files of a trial", True, "Katib does not have them"),
        ("run.image", not has_image, f"the sweep has none; written as {NO_IMAGE}: set yours"),
        (f"run.data: {run.data}", run.data, "add the volume to the trialSpec"),
        (f"run.workdir: {run.workdir}", run.workdir, "set workingDir of the container"),
        (f"run.config: {config}", config, "Katib writes no configuration file; give trials arguments"),
        (f"run.keep: {', '.join(run.keep)}", run.keep, "Katib keeps no files of a trial"),
        (f"run.shape: {run.shape}", run.shape, "every trial is a separate Job in Katib"),
    ):
        if value:
            yield Loss(part, why)
    yield from conversion.sweep_losses(sweep, KATIB)


KATIB = "Katib"
NEAREST = "multivariate-tpe"
"""For an adaptive method that Katib does not have."""
USUAL_ROUNDS = 10
"""Rounds to export for a search without a limit of rounds."""
STRATEGIES = {Reduce.LAST: "latest", Reduce.MAX: "max", Reduce.MIN: "min"}
LARGEST_COUNT = 2**31 - 1
"""Largest number of trials: Katib counts in 32 bits."""
LARGEST_STATE = 2**32 - 1
"""Largest seed of NumPy's generator, which Katib's random search uses."""


def write(sweep: Sweep, assignments: Assignments) -> Exported:
    """Return the sweep as an Experiment."""
    losses = LossList()
    algorithm, dimensions, constants, trials = _search(sweep, assignments, losses)
    for name in constants:
        losses.add(f"parameters.{name}", "has one value, so the command has it instead")
    losses += _losses(sweep)
    # Names of placeholders: those of the parameters without dots and dashes, numbered if they collide.
    references: dict[str, str] = {}
    for name in dimensions:
        alias = plain = re.sub(r"[^A-Za-z0-9]", "_", name)
        number = 2
        while alias in references.values():
            alias, number = f"{plain}_{number}", number + 1
        references[name] = alias
    template = _trial_template(sweep, references, constants, losses)
    metric = sweep.metric
    count = min(trials, LARGEST_COUNT)
    experiment = {
        "apiVersion": "kubeflow.org/v1beta1",
        "kind": "Experiment",
        "metadata": {"name": sweep.name},
        "spec": {
            "objective": {
                "type": str(metric.goal),
                **({} if metric.target is None else {"goal": metric.target}),
                "objectiveMetricName": metric.name,
                "metricStrategies": [{"name": metric.name, "value": STRATEGIES[metric.reduce]}],
            },
            "algorithm": algorithm,
            "maxTrialCount": count,
            "parallelTrialCount": min(sweep.run.parallelism, count),
            # Without a limit, a failed trial does not stop others.
            "maxFailedTrialCount": count
            if sweep.run.max_failed is None
            else min(sweep.run.max_failed, count),
            "metricsCollectorSpec": {"collector": {"kind": "StdOut"}},
            "parameters": [
                {"name": name, "parameterType": space.kind, "feasibleSpace": space.feasible}
                for name, space in dimensions.items()
            ],
            "trialTemplate": template,
        },
    }
    return Exported(yaml.dump(experiment), tuple(losses))


def _search(
    sweep: Sweep, assignments: Assignments, losses: LossList
) -> tuple[dict[str, Any], Mapping[str, FeasibleSpace], Mapping[str, Value], int]:
    design, size, space_losses = sweep.design, len(assignments), LossList()
    if isinstance(design, ConfigurationList):
        columns = conversion.distinct_columns(assignments)
        for derived in design.space.derived:
            columns.pop(derived.name, None)
        spaces: dict[str, FeasibleSpace | Value] = {
            name: values[0] if len(values) == 1 else parameters.listed_space(name, values, space_losses)
            for name in sweep.columns
            if (values := columns.get(name))
        }
    else:
        spaces = {
            parameter.name: parameters.feasible_space(
                parameter.name, parameter.domain, space_losses, grid=isinstance(design, GridSearch)
            )
            for parameter in design.space.parameters
        }
    dimensions = {name: space for name, space in spaces.items() if isinstance(space, FeasibleSpace)}
    # Constants become part of the command, as Katib has no parameters with one value.
    constants = {name: space for name, space in spaces.items() if not isinstance(space, FeasibleSpace)}
    if not dimensions:  # but an Experiment needs at least one parameter
        dimensions = {
            name: parameters.listed_space(name, [value], space_losses) for name, value in constants.items()
        }
        constants = {}
    combinations = math.prod(space.count or 1 for space in dimensions.values())
    if isinstance(design, ConfigurationList):
        why = f"it runs all {combinations} combinations of the values, not {size} configurations"
        losses.add("method: list", f"Katib has none: {why}")
    losses += space_losses
    losses += conversion.design_losses(design, KATIB)
    match design:
        case AdaptiveSearch():
            algorithm, size = _adaptive(design, losses)
        case RandomSearch():
            algorithm = _drawn(design, losses)
        case _:
            algorithm = {"algorithmName": "grid"}
            if isinstance(design, GridSearch) and size != combinations:
                losses.add(f"{size} assignments", f"Katib runs all {combinations} combinations")
            size = combinations
    return algorithm, dimensions, constants, size


def _adaptive(search: AdaptiveSearch, losses: LossList) -> tuple[dict[str, Any], int]:
    name = search.method.elsewhere.get("katib")
    losses += conversion.drawn_losses(search, KATIB, None if name else NEAREST)
    if search.resource is not None:
        losses.add("resource", "every trial runs with the program's default")
    losses += [Loss(f"start: {other}", "an Experiment uses only its own trials") for other in search.start]
    count = conversion.most_trials(search)
    if count is None:
        count = search.rounds.size * USUAL_ROUNDS
        losses.add(f"maxTrialCount: {count}", f"the search has no limit; written for {USUAL_ROUNDS} rounds")
    return _seeded(name or NEAREST, search.seed), count


def _drawn(design: RandomSearch, losses: LossList) -> dict[str, Any]:
    algorithm = design.method.elsewhere.get("katib")
    is_other = algorithm is None and design.method is not PLAIN
    losses += conversion.drawn_losses(design, KATIB, "random" if is_other else None)
    if algorithm is not None:  # which takes no seed
        return {"algorithmName": algorithm}
    if design.seed > LARGEST_STATE:
        losses.add(f"seed: {design.seed}", "Katib's are below 2^32")
    return _seeded("random", design.seed)


def _seeded(algorithm: str, seed: int) -> dict[str, Any]:
    settings = [{"name": "random_state", "value": str(seed)}] if seed <= LARGEST_STATE else []
    return {"algorithmName": algorithm} | ({"algorithmSettings": settings} if settings else {})
