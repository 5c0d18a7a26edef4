"""A sweep as a Hydra config with `hydra.sweeper.params`, as near as Hydra's sweepers can come."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from generator.exchange.hydra import command as hydra_command
from generator.exchange.hydra.command import Overrides
from generator.exchange.hydra.functions import Range, value
from generator.exchange.hydra.grammar import Choices
from generator.exchange.hydra.values import choice
from generator.exchange.loss import Exported, Loss
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
    overrides = hydra_command.found(sweep.command)
    block = sweep.blocks[0]
    is_drawn = len(sweep.blocks) == 1 and isinstance(block, Draw)
    if len(sweep.blocks) > 1 or not isinstance(block, Grid | Draw):
        texts = dict(_listed(sweep, assignments, overrides, losses))
    else:
        texts = dict(_parameters(block, assignments, overrides, losses))
        losses += of_block(block, "Hydra")
    if not is_drawn:
        losses += _combined(texts.values(), len(assignments))
    params = {**overrides.fixed, **{overrides.key(name): text for name, text in texts.items()}}
    document: dict[str, Any] = {"hydra": {"mode": "MULTIRUN", "sweeper": {"params": params}}}
    if is_drawn and isinstance(block, Draw):
        document = _drawn(sweep, block, document, losses)
    losses += _of_sweep(sweep, overrides)
    told = [f"- {loss.what}: {loss.why}" for loss in losses]
    banner = "\n".join([f"Exported from the sweep {sweep.name}. What Hydra does otherwise:", *told])
    return Exported(dump(document, banner=banner), tuple(losses))


def _of_sweep(sweep: Sweep, overrides: Overrides) -> Iterator[Loss]:
    yield Loss(
        f"metric: {sweep.metric.name}", "Hydra takes what the function returns; let it return that number"
    )
    yield Loss("command", "Hydra starts the app itself: python APP.py --multirun")
    for key in overrides.deleted:
        yield Loss(f"command: {key}", f"params cannot delete: python APP.py --multirun '{key}'")
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


def _parameters(
    block: Grid | Draw, assignments: Assignments, overrides: Overrides, losses: list[Loss]
) -> Iterator[tuple[str, str]]:
    columns = _columns(assignments)
    for parameter in block.space.parameters:
        name = parameter.name
        text = _distribution(parameter, block)
        if text is None:
            values = _values(parameter, losses)
            if values is None:
                values = columns.get(name, [])
                if isinstance(block, Draw):
                    why = "the sweeper has no such distribution; written as the values that were drawn here"
                    losses.append(Loss(f"parameters.{name}", why))
            text = choice(name, values, losses, is_hydra=overrides.is_hydra)
        if text is not None:
            yield name, text


def _listed(
    sweep: Sweep, assignments: Assignments, overrides: Overrides, losses: list[Loss]
) -> Iterator[tuple[str, str]]:
    """Give each parameter the values that it has in the trials; what is only ever derived, none."""
    derived = {each.name: each for block in sweep.blocks for each in block.space.derived}
    chosen = {name for block in sweep.blocks for name in _chosen(block)}
    for name, values in _columns(assignments).items():
        if name in derived and name not in chosen:
            why = f"Hydra cannot compute; let the program: {derived[name].text}"
            losses.append(Loss(f"derived: {name}", why))
            continue
        if not all(name in assignment for assignment in assignments):
            losses.append(Loss(f"parameters.{name}", "absent from some trials; Hydra gives it to each"))
        text = choice(name, values, losses, is_hydra=overrides.is_hydra)
        if text is not None:
            yield name, text


def _chosen(block: Block) -> set[str]:
    listed = () if isinstance(block, Grid | Draw) else block.names
    return {*listed, *(parameter.name for parameter in block.space.parameters)}


def _distribution(parameter: Parameter, block: Block) -> str | None:
    """Write what Hydra has a function for; None for what is listed."""
    match parameter.domain:
        case IntUniform(low, high) if isinstance(block, Draw):
            # `interval` alone is of floats, and to Optuna a range has its end.
            return f"int(interval({low},{high}))"
        case IntUniform(low, high):
            return f"range({low},{high + 1})"
        case Uniform(low, high):
            return f"interval({low!r},{high!r})"
        case LogUniform(low, high):
            return f"tag(log,interval({low!r},{high!r}))"
        case _:
            return None


def _values(parameter: Parameter, losses: list[Loss]) -> Sequence[Value] | None:
    """Give the values that a parameter may have; None where they have no end."""
    match parameter.domain:
        case Constant(only):
            return [only]
        case Choice(values, probabilities):
            if probabilities is not None:
                losses.append(Loss(f"parameters.{parameter.name}", "all values are equally likely to Hydra"))
            return values
        case _:
            return None


def _columns(assignments: Assignments) -> dict[str, list[Value]]:
    """List each parameter's values, each once, in the order in which they first appear."""
    found: dict[str, dict[str, Value]] = {}
    for assignment in assignments:
        for name, each in assignment.items():
            found.setdefault(name, {}).setdefault(canonical_json(each), each)
    return {name: list(values.values()) for name, values in found.items()}


def _combined(texts: Iterable[str], trials: int) -> Iterator[Loss]:
    """Count what Hydra's own sweeper would run: every combination of what is written."""
    size = math.prod(map(_count, texts))
    if size != trials:
        combinations = f"all {size} combinations" if size > 1 else "the only combination"
        yield Loss("trials", f"Hydra takes {combinations}, not these {trials}")


def _count(text: str) -> int:
    match value(text):
        case Choices(values):
            return len(values)
        case Range() as swept:
            return len(swept.values())
        case _:
            return 1
