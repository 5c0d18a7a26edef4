"""A sweep as a Hydra config with `hydra.sweeper.params`, as close as Hydra's sweepers allow; the app's command."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sweepledger.exchange import conversion
from sweepledger.exchange.conversion import Assignments, Exported, LossList
from sweepledger.exchange.hydra.values import SWEEPS, hydra_text, parse_value, range_values, split_override
from sweepledger.exchange.spec_parts import find_script
from sweepledger.formats.foreign_yaml import ForeignError
from sweepledger.formats.yaml import dump
from sweepledger.structs.domain import NumberRange
from sweepledger.structs.methods import PLAIN
from sweepledger.structs.names import environment_name
from sweepledger.structs.search_block import Design, GridSearch, RandomSearch
from sweepledger.structs.space import Parameter
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import Value, canonical_json, written

RUN_ALONE = "hydra.mode=RUN"
OUTPUTS = "hydra.run.dir=${envvar:SWEEP_ARTIFACTS}"
ALL = "${args_no_hyphens}"
HANDED = re.compile(r"([^-=$][^=$]*)=\$\{envvar:(\w+)\}", re.ASCII)
"""An argument that passes one parameter under Hydra's key."""


@dataclass(frozen=True, slots=True)
class CommandOverrides:
    """Hydra's overrides in a command."""

    is_hydra: bool
    """Whether the program is a Hydra app, which parses texts of the spec."""
    keys: Mapping[str, str]
    """Hydra's key of each environment variable, with its `+` and `@`."""
    fixed: Mapping[str, str]
    """Overrides that are the same in every trial: key and value."""
    deleted: tuple[str, ...]
    """`~key` without a value, which a sweeper's params cannot contain."""

    def key(self, parameter: str) -> str:
        """Return Hydra's key of a parameter."""
        return self.keys.get(environment_name(parameter), parameter)


def are_renamed(keys: Mapping[str, str]) -> bool:
    """Return whether Hydra's keys differ from the parameters' names."""
    return any(key != name for name, key in keys.items())


def command_overrides(command: Sequence[str]) -> CommandOverrides:
    """Return the overrides of a command."""
    handed = [match for part in command if (match := HANDED.fullmatch(part))]
    keys = {match[2]: match[1] for match in handed if match[2].startswith("SWEEP_PARAM_")}
    is_hydra = bool(keys) or ALL in command or any(part.startswith("hydra.") for part in command)
    fixed: dict[str, str] = {}
    deleted: list[str] = []
    program = find_script(command)
    for part in command if program is None else command[program + 1 :]:
        if not is_hydra or "${" in part or part.startswith(("-", "~/", "hydra.", "hydra/")):
            continue
        try:
            override = split_override(part)
        except ForeignError:
            continue  # the interpreter or the program
        if "=" in part:
            fixed[override.key] = override.text
        else:
            deleted.append(override.key)
    return CommandOverrides(is_hydra, keys, fixed, tuple(deleted))


def write(sweep: Sweep, assignments: Assignments) -> Exported:
    """Return a config with Hydra's ranges where they exist, and otherwise with the values of the trials."""
    losses = LossList()
    overrides = command_overrides(sweep.command)
    design = sweep.design
    if not isinstance(design, GridSearch | RandomSearch):
        texts = dict(_listed(sweep, assignments, overrides, losses))
    else:
        texts = dict(_parameters(design, assignments, overrides, losses))
        losses += conversion.design_losses(design, "Hydra")
    if not isinstance(design, RandomSearch):
        size = math.prod(map(_count, texts.values()))
        if size != len(assignments):
            combinations = f"all {size} combinations" if size > 1 else "the only combination"
            losses.add("trials", f"Hydra runs {combinations}, not these {len(assignments)}")
    params = {**overrides.fixed, **{overrides.key(name): text for name, text in texts.items()}}
    sweeper: dict[str, Any] = {"params": params}
    document: dict[str, Any] = {}
    if isinstance(design, RandomSearch):
        losses += conversion.drawn_losses(design, "Optuna", None if design.method is PLAIN else "random")
        losses.add(f"method: {design.method}", "needs the Optuna sweeper: pip install hydra-optuna-sweeper")
        options = [{"override hydra/sweeper": "optuna"}, {"override hydra/sweeper/sampler": "random"}]
        document["defaults"] = ["_self_", *options]
        drawn = {"n_trials": design.cap, "sampler": {"seed": design.seed}}
        sweeper = {"direction": str(sweep.metric.goal), **drawn, **sweeper}
    document["hydra"] = {"mode": "MULTIRUN", "sweeper": sweeper}
    why = "Hydra uses the function's return value; return this metric"
    losses.add(f"metric: {sweep.metric.name}", why)
    losses.add("command", "Hydra starts the app itself: python APP.py --multirun")
    for key in overrides.deleted:
        losses.add(f"command: {key}", f"params cannot delete a key: python APP.py --multirun '{key}'")
    losses += conversion.run_losses(sweep, "Hydra")
    banner = conversion.export_banner(sweep, "Hydra", losses)
    return Exported(dump(document, banner=banner), tuple(losses))


def _parameters(
    design: GridSearch | RandomSearch, assignments: Assignments, overrides: CommandOverrides, losses: LossList
) -> Iterator[tuple[str, str]]:
    columns = conversion.distinct_columns(assignments)
    for parameter in design.space.parameters:
        name = parameter.name
        text = _distribution(parameter, design)
        if text is None:
            if parameter.domain.chances is not None:
                losses.add(f"parameters.{parameter.name}", "in Hydra, all values are equally likely")
            values: Sequence[Value] = parameter.domain.listed
            if not values:
                values = columns.get(name, [])
                if isinstance(design, RandomSearch):
                    why = "the sweeper does not have this distribution; written as the values that were drawn here"
                    losses.add(f"parameters.{name}", why)
            text = choice_text(name, values, losses, is_hydra=overrides.is_hydra)
        if text is not None:
            yield name, text


def _listed(
    sweep: Sweep, assignments: Assignments, overrides: CommandOverrides, losses: LossList
) -> Iterator[tuple[str, str]]:
    """Yield each parameter with its values in the trials, except derived values."""
    derived = {each.name: each for each in sweep.design.space.derived}
    listed = () if isinstance(sweep.design, GridSearch | RandomSearch) else sweep.design.names
    chosen = {*listed, *(parameter.name for parameter in sweep.design.space.parameters)}
    for name, values in conversion.distinct_columns(assignments).items():
        if name in derived and name not in chosen:
            why = f"Hydra cannot compute it; compute it in the program: {derived[name].text}"
            losses.add(f"derived: {name}", why)
            continue
        if not all(name in assignment for assignment in assignments):
            losses.add(f"parameters.{name}", "absent from some trials; Hydra sets it for every trial")
        text = choice_text(name, values, losses, is_hydra=overrides.is_hydra)
        if text is not None:
            yield name, text


def _distribution(parameter: Parameter, design: Design) -> str | None:
    """Return Hydra's function for a distribution; None if its values must be listed."""
    match parameter.domain.shape:
        case NumberRange(low, high, is_integer=True) if isinstance(design, RandomSearch):
            # `interval` alone has floats, and Optuna includes the end of a range.
            return f"int(interval({low},{high}))"
        case NumberRange(low, high, is_integer=True):
            return f"range({low},{high + 1})"
        case NumberRange(low, high, is_log, step=None):
            return f"tag(log,interval({low!r},{high!r}))" if is_log else f"interval({low!r},{high!r})"
        case _:
            return None


def _count(text: str) -> int:
    swept = parse_value(text)
    match type(swept).__name__:
        case "ChoiceSweep":
            return len(swept.list)
        case "RangeSweep":
            return len(range_values(swept))
        case _:
            return 1


QUOTES = ("'", '"')
NO_SINGLE_VALUE = object()
"""What a text is read as that is no single value for Hydra."""


def choice_text(name: str, values: Sequence[Value], losses: LossList, *, is_hydra: bool) -> str | None:
    """Return distinct values separated by commas; `choice(…)` would remove their quotes and refuse null."""
    if not values:
        losses.add(f"parameters.{name}", "no trial has this parameter; left out")
        return None
    # Texts for Hydra to parse, such as `null` or `'1'`, as imports write.
    read = [(each, _read(each)) for each in values if is_hydra and isinstance(each, str)]
    are_overrides = any(
        value is None or isinstance(value, dict | list) or (text.startswith(QUOTES) and value != text)
        for text, value in read
    )
    texts = [_bare(each) if are_overrides else hydra_text(written(each)) for each in values]
    kept = list(dict.fromkeys(texts))
    if len({canonical_json(each) for each in values}) > len(kept):
        losses.add(f"parameters.{name}", "Hydra reads several of its values as one")
    return ",".join(kept)


def _bare(given: Value) -> str:
    """Return a value unchanged if Hydra reads it as a single value, else quoted."""
    is_plain = isinstance(given, str) and given.strip() == given != "" and _read(given) is not NO_SINGLE_VALUE
    return str(given) if is_plain else hydra_text(written(given))


def _read(text: str) -> Any:
    """Return the single value that Hydra reads from a text, or `NO_SINGLE_VALUE`."""
    try:
        value = parse_value(text)
    except ForeignError:
        return NO_SINGLE_VALUE
    return NO_SINGLE_VALUE if type(value).__name__ in SWEEPS else value
