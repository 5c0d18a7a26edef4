"""A sweep as the YAML that `wandb sweep` reads, as close as W&B allows."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, assert_never

from sweepledger.exchange import conversion
from sweepledger.exchange.conversion import Exported, Loss, LossList
from sweepledger.exchange.spec_parts import find_script
from sweepledger.formats.yaml import dump
from sweepledger.structs.domain import Bell
from sweepledger.structs.methods import PLAIN, Method
from sweepledger.structs.program import DEFAULT_COMMAND, PROGRAM_MACRO
from sweepledger.structs.search_block import (
    AdaptiveSearch,
    ConfigurationList,
    Design,
    GridSearch,
    RandomSearch,
)
from sweepledger.structs.space import Parameter
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import Value, written


def write(sweep: Sweep, assignments: Sequence[Mapping[str, Value]]) -> Exported:
    """Return a W&B sweep; a list becomes the grid of its values."""
    design = sweep.design
    losses = LossList(conversion.design_losses(design, "W&B"))
    document: dict[str, Any] = {"name": sweep.name}
    if sweep.description:
        document["description"] = sweep.description
    document |= _program(sweep, losses)
    document |= _method(design, losses)
    document["metric"] = _metric(sweep, losses)
    if (stop := _early_terminate(sweep, losses)) is not None:
        document["early_terminate"] = stop
    document["parameters"] = (
        _listed(assignments, losses)
        if isinstance(design, ConfigurationList)
        else dict(_parameters(design, losses))
    )
    losses.add("metric.source", f"W&B reads what the program logs: call wandb.log with {sweep.metric.name}")
    losses += conversion.run_losses(sweep, "W&B")
    banner = conversion.export_banner(sweep, "W&B", losses)
    return Exported(dump(document, banner=banner), tuple(losses))


def _program(sweep: Sweep, losses: LossList) -> dict[str, Any]:
    """Return `program` and, unless it is W&B's default, `command`."""
    command = list(sweep.command)
    if any("${seed}" in part for part in command):
        losses.add("command: ${seed}", "W&B has no such macro; return the seed another way")
    place = find_script(command)
    if place is None:
        return {"command": command}
    program, command[place] = command[place], PROGRAM_MACRO
    return {"program": program} | ({} if tuple(command) == DEFAULT_COMMAND else {"command": command})


def _method(design: Design, losses: LossList) -> dict[str, Any]:
    match design:
        case GridSearch(cap=cap):
            return {"method": "grid"} | ({} if cap is None else {"run_cap": cap})
        case RandomSearch(sampler=sampler, cap=cap):
            losses.add("seed", "W&B has none: it draws other values each time")
            if sampler is not PLAIN:
                losses.add(f"method: {sampler}", "written as random: W&B has no other sampler")
            return {"method": "random", "run_cap": cap}
        case ConfigurationList():
            return {"method": "grid"}
        case AdaptiveSearch(method=adaptive):
            return _bayes(adaptive, conversion.most_trials(design), losses)
        case _:
            assert_never(design)


def _metric(sweep: Sweep, losses: LossList) -> dict[str, Any]:
    losses += [Loss(f"metrics: {other.name}", "W&B has one objective") for other in sweep.other_metrics]
    target = {} if sweep.metric.target is None else {"target": sweep.metric.target}
    return {"name": sweep.metric.name, "goal": str(sweep.metric.goal), **target}


def _early_terminate(sweep: Sweep, losses: LossList) -> dict[str, Any] | None:
    policy = sweep.early_stop
    if policy is not None and policy.wandb is None:
        losses.add("early_terminate", "W&B has only hyperband; all trials run to their end")
    return None if policy is None else policy.wandb


def _bayes(method: Method, cap: int | None, losses: LossList) -> dict[str, Any]:
    losses.add("seed", "W&B has none: it proposes other values each time")
    losses.add("rounds", "W&B proposes one trial at a time, from the trials that have ended")
    if "wandb" not in method.elsewhere:
        losses.add(f"method: {method}", "written as bayes: W&B has no other adaptive method")
    return {"method": "bayes"} | ({} if cap is None else {"run_cap": cap})


def _listed(assignments: Sequence[Mapping[str, Value]], losses: LossList) -> dict[str, Any]:
    columns = conversion.distinct_columns(assignments)
    size = math.prod(map(len, columns.values()))
    if size > len(assignments) or any(len(columns) > len(assignment) for assignment in assignments):
        why = f"W&B cannot list configurations: it runs all {size} combinations, not these {len(assignments)}"
        losses.add("method: list", why)
    return {name: {"values": written(values)} for name, values in columns.items()}


def _parameters(design: Design, losses: LossList) -> Iterator[tuple[str, dict[str, Any]]]:
    for parameter in design.space.parameters:
        yield parameter.name, _keys(parameter, losses)


def _keys(parameter: Parameter, losses: LossList) -> dict[str, Any]:
    shape = parameter.domain.shape
    if isinstance(shape, Bell) and shape.ends:
        losses.add(f"parameters.{parameter.name}", "written as normal: W&B does not truncate it")
        return {"distribution": "normal", "mu": shape.mu, "sigma": shape.sigma}
    return {
        key: written(value) if key in {"value", "values"} else value
        for key, value in parameter.domain.keys.items()
    }
