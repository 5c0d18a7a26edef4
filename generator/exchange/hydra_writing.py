"""A sweep as a Hydra config with `hydra.sweeper.params`, as near as Hydra's sweepers can come."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from generator.exchange.hydra_functions import Glob, Interval, Range, value
from generator.exchange.hydra_grammar import Choices
from generator.exchange.hydra_overrides import in_hydra
from generator.exchange.loss import Exported, ForeignError, Loss
from generator.exchange.unsaid import of_block, of_run
from generator.formats.yaml import dump
from generator.structs.domain import Choice, Constant, IntUniform, LogUniform, Uniform
from generator.structs.space import Parameter
from generator.structs.sweep import Block, Draw, Grid, Sampler, Sweep
from generator.structs.values import Value, canonical_json

Assignments = Sequence[Mapping[str, Value]]


def write(sweep: Sweep, assignments: Assignments) -> Exported:
    """Write ranges where Hydra has them, and for all else the values that the trials have."""
    losses: list[Loss] = []
    block = sweep.blocks[0]
    if len(sweep.blocks) > 1 or not isinstance(block, Grid | Draw):
        params = {name: _choice(values) for name, values in _columns(assignments).items()}
    else:
        params = dict(_parameters(block, assignments, losses))
        losses += of_block(block, "Hydra")
    sweeper: dict[str, Any] = {"params": params}
    document: dict[str, Any] = {"hydra": {"mode": "MULTIRUN", "sweeper": sweeper}}
    if len(sweep.blocks) == 1 and isinstance(block, Draw):
        document = _drawn(sweep, block, document, losses)
    else:
        losses += _combined(assignments)
    losses += _of_sweep(sweep)
    told = [f"- {loss.what}: {loss.why}" for loss in losses]
    banner = "\n".join([f"Exported from the sweep {sweep.name}. What Hydra does otherwise:", *told])
    return Exported(dump(document, banner=banner), tuple(losses))


def _of_sweep(sweep: Sweep) -> Iterator[Loss]:
    yield Loss(
        f"metric: {sweep.metric.name}", "Hydra takes what the function returns; let it return that number"
    )
    yield Loss("command", "Hydra starts the app itself: python APP.py --multirun")
    yield from of_run(sweep, "Hydra")


def _drawn(sweep: Sweep, block: Draw, document: Mapping[str, Any], losses: list[Loss]) -> dict[str, Any]:
    """Let Optuna's sweeper draw, the one that knows intervals."""
    losses.append(Loss("seed", "Optuna draws other values than these, the same for the same seed"))
    losses.append(
        Loss(f"method: {block.method}", "needs the Optuna sweeper: pip install hydra-optuna-sweeper")
    )
    if block.sampler is not Sampler.RANDOM:
        losses.append(Loss(f"method: {block.method}", "written as random: the sweeper has no such sampler"))
    hydra = document["hydra"]
    sweeper = {
        "direction": str(sweep.metric.goal),
        "n_trials": block.cap,
        "sampler": {"seed": block.seed},
        **hydra["sweeper"],
    }
    defaults = ["_self_", {"override hydra/sweeper": "optuna"}, {"override hydra/sweeper/sampler": "random"}]
    return {"defaults": defaults, "hydra": {**hydra, "sweeper": sweeper}}


def _parameters(block: Block, assignments: Assignments, losses: list[Loss]) -> Iterator[tuple[str, str]]:
    columns = _columns(assignments)
    for parameter in block.space.parameters:
        text = _domain(parameter, losses)
        if text is None:
            text = _choice(columns.get(parameter.name, ()))
            if isinstance(block, Draw):
                why = "the sweeper has no such distribution; written as the values that were drawn here"
                losses.append(Loss(f"parameters.{parameter.name}", why))
        yield parameter.name, text


def _domain(parameter: Parameter, losses: list[Loss]) -> str | None:
    """Write a domain that Hydra has; None for the others."""
    match parameter.domain:
        case Constant(only):
            return _argument(only)
        case Choice(values, probabilities):
            if probabilities is not None:
                losses.append(Loss(f"parameters.{parameter.name}", "all values are equally likely to Hydra"))
            return _choice(values)
        case IntUniform(low, high):
            return f"range({low},{high + 1})"
        case Uniform(low, high):
            return f"interval({low!r},{high!r})"
        case LogUniform(low, high):
            return f"tag(log,interval({low!r},{high!r}))"
        case _:
            return None


def _columns(assignments: Assignments) -> dict[str, list[Value]]:
    """List each parameter's values, each once, in the order in which they first appear."""
    found: dict[str, dict[str, Value]] = {}
    for assignment in assignments:
        for name, each in assignment.items():
            found.setdefault(name, {}).setdefault(canonical_json(each), each)
    return {name: list(values.values()) for name, values in found.items()}


def _combined(assignments: Assignments) -> Iterator[Loss]:
    size = math.prod(map(len, _columns(assignments).values()))
    if size > len(assignments):
        yield Loss("trials", f"Hydra takes all {size} combinations, not these {len(assignments)}")


def _choice(values: Iterable[Value]) -> str:
    """Separate values by commas; `choice(…)` would take their quotes off and refuse null."""
    return ",".join(map(_argument, values))


def _argument(given: Value) -> str:
    """Write a value as a trial's command line has it, if Hydra takes that for one value."""
    if isinstance(given, str):
        try:
            if not isinstance(value(given), Choices | Range | Interval | Glob) and given:
                return given
        except ForeignError:
            pass
    return in_hydra(list(given) if isinstance(given, tuple) else given)
