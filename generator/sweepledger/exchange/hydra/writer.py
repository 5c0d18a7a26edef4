"""A sweep as a Hydra config with `hydra.sweeper.params`, as close as Hydra's sweepers allow; the app's command."""

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from sweepledger.exchange import conversion
from sweepledger.exchange.conversion import Assignments, Exported, LossList
from sweepledger.exchange.hydra.values import SWEEPS, hydra_text, parse_value, range_values, split_override
from sweepledger.exchange.spec_parts import find_script
from sweepledger.formats.foreign_yaml import ForeignError
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


def _keys(command: Sequence[str]) -> tuple[dict[str, str], bool]:
    """Return Hydra's key of each environment variable, with its `+` and `@`; and whether the program is a Hydra app.

    A Hydra app parses texts of the spec.
    """
    handed = [match for part in command if (match := HANDED.fullmatch(part))]
    keys = {match[2]: match[1] for match in handed if match[2].startswith("SWEEP_PARAM_")}
    return keys, bool(keys) or ALL in command or any(part.startswith("hydra.") for part in command)


def _overrides(command: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Yield key and value of overrides that are the same in every trial; the value of a bare `~key` is None."""
    program = find_script(command)
    for part in command if program is None else command[program + 1 :]:
        if "${" not in part and not part.startswith(("-", "~/", "hydra.", "hydra/")):
            with suppress(ForeignError):  # the interpreter or the program
                override = split_override(part)
                yield override.key, override.text if "=" in part else None


def write(sweep: Sweep, assignments: Assignments) -> Exported:
    """Return a config with Hydra's ranges where they exist, and otherwise with the values of the trials."""
    losses = LossList()
    keys, is_hydra = _keys(sweep.command)
    overrides = dict(_overrides(sweep.command)) if is_hydra else {}
    design = sweep.design
    if not isinstance(design, GridSearch | RandomSearch):
        columns = dict(_listed(sweep, assignments, losses))
    else:
        columns = dict(_parameters(design, assignments, losses))
    texts = {
        name: values if isinstance(values, str) else choice_text(name, values, losses, is_hydra=is_hydra)
        for name, values in columns.items()
        if values
    }
    for name in columns.keys() - texts.keys():
        losses.add(f"parameters.{name}", "no trial has this parameter; left out")
    if isinstance(design, GridSearch | RandomSearch):
        losses += conversion.design_losses(design, "Hydra")
    if not isinstance(design, RandomSearch):
        size = math.prod(map(_count, texts.values()))
        if size != len(assignments):
            combinations = f"all {size} combinations" if size > 1 else "the only combination"
            losses.add("trials", f"Hydra runs {combinations}, not these {len(assignments)}")
    params: dict[str, Any] = {key: text for key, text in overrides.items() if text is not None}
    params |= {keys.get(environment_name(name), name): text for name, text in texts.items()}
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
    for key in (key for key, text in overrides.items() if text is None):  # which params cannot contain
        losses.add(f"command: {key}", f"params cannot delete a key: python APP.py --multirun '{key}'")
    losses += conversion.run_losses(sweep, "Hydra")
    return conversion.exported_yaml(document, sweep, "Hydra", losses)


def _parameters(
    design: GridSearch | RandomSearch, assignments: Assignments, losses: LossList
) -> Iterator[tuple[str, str | Sequence[Value]]]:
    """Yield each parameter with Hydra's function for its distribution, or else with its values."""
    columns = conversion.distinct_columns(assignments)
    for parameter in design.space.parameters:
        name, domain = parameter.name, parameter.domain
        function = _distribution(parameter, design)
        if function is None and domain.chances is not None:
            losses.add(f"parameters.{name}", "in Hydra, all values are equally likely")
        if function is None and not domain.listed and isinstance(design, RandomSearch):
            why = "the sweeper does not have this distribution; written as the values that were drawn here"
            losses.add(f"parameters.{name}", why)
        yield name, function or domain.listed or columns.get(name, [])


def _listed(
    sweep: Sweep, assignments: Assignments, losses: LossList
) -> Iterator[tuple[str, Sequence[Value]]]:
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
        yield name, values


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


def choice_text(name: str, values: Sequence[Value], losses: LossList, *, is_hydra: bool) -> str:
    """Return distinct values separated by commas; `choice(…)` would remove their quotes and refuse null."""
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
