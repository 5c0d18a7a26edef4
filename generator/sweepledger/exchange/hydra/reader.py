"""A Hydra multirun as a spec: from a config with `hydra.sweeper.params`, or from Hydra's multirun.yaml."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sweepledger.exchange.conversion import Imported, Loss, LossList
from sweepledger.exchange.fields import exact_number, show_value, spec_number
from sweepledger.exchange.hydra.sweeper import (
    MULTI_OBJECTIVE_METHODS,
    Sweeper,
    find_sweeper,
    method_keys,
    refuse_hypersweeper,
    section,
)
from sweepledger.exchange.hydra.values import (
    Override,
    as_texts,
    hydra_text,
    override_parameter,
    split_override,
)
from sweepledger.exchange.hydra.writer import app_command, are_renamed
from sweepledger.exchange.spec_parts import (
    CODE_DIR,
    PLACEHOLDER_METRIC,
    metric_name,
    range_keys,
    separate_names,
)
from sweepledger.formats.foreign_yaml import ForeignError, load

AX_KEYS = frozenset({"max_trials", "params", "client", "experiment"})
NEVERGRAD_KEYS = frozenset({"optimizer", "budget", "num_workers", "maximize", "seed"})


def read_search_space(
    config: Mapping[str, Any], losses: LossList
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Return the mappings of a sweeper's config: ranges by Hydra's keys, and overrides. Raises ForeignError."""
    parameters: dict[str, dict[str, Any]] = {}
    overrides: list[str] = []
    losses += _options(config)
    for place, key, written in _entries(config):
        domain = _domain(place, written, losses)
        if isinstance(domain, str):
            overrides.append(f"{key}={domain}")
        else:
            parameters[key] = domain
    return parameters, overrides


def _options(config: Mapping[str, Any]) -> Iterator[Loss]:
    """Yield the losses of options of Ax and Nevergrad, and of a space that is code."""
    space, code = config.get("search_space"), config.get("custom_search_space")
    if space is not None and not isinstance(space, dict):
        yield Loss("hydra.sweeper.search_space", f"is not a mapping, got {show_value(space)}; left out")
    if code is not None:
        why = f"the function {show_value(code)} adds parameters, and no code of a file runs here; write them"
        yield Loss("hydra.sweeper.custom_search_space", why)
    for name, known in (("ax_config", AX_KEYS), ("optim", NEVERGRAD_KEYS)):
        section = config.get(name)
        for key in section if isinstance(section, dict) else ():
            if key not in known:
                yield Loss(f"hydra.sweeper.{name}.{key}", "is an option of the sweeper; left out")
    ax = config.get("ax_config")
    experiment = ax.get("experiment") if isinstance(ax, dict) else None
    for key, value in experiment.items() if isinstance(experiment, dict) else ():
        if key not in {"minimize", "objective_name"}:
            why = "is not converted; write it as constraints, or check it in the program"
            yield Loss(f"hydra.sweeper.ax_config.experiment.{key}: {show_value(value)}", why)


def _entries(config: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield the place, key and mapping of each parameter."""
    ax = config.get("ax_config")
    spaces = {
        "search_space": config.get("search_space"),
        "ax_config.params": ax.get("params") if isinstance(ax, dict) else None,
        "params": config.get("params"),
    }
    for name, space in spaces.items():
        for key, written in space.items() if isinstance(space, dict) else ():
            place = f"hydra.sweeper.{name}.{key}"
            if isinstance(written, dict):
                yield place, str(key), written
            elif name != "params":
                hint = "for example {type: float, low: 0.1, high: 1}"
                raise ForeignError(f"{place} must be a mapping, got {show_value(written)}", hint=hint)


def _domain(place: str, written: Mapping[str, Any], losses: LossList) -> dict[str, Any] | str:
    """Return the keys of a range, or the override of choices and constants."""
    kind = written.get("type")
    match kind:
        case "categorical" | "choice":
            known = {"type", "choices", "values", "value_type", "is_ordered", "sort_values"}
            domain: dict[str, Any] | str = _choice(place, written.get("choices", written.get("values")))
        case "fixed":
            known, domain = {"type", "value", "value_type"}, hydra_text(written.get("value"))
        case "float" | "int":
            known = {"type", "low", "high", "step", "log"}
            domain = _range(place, written, ("low", "high"), whole=kind == "int")
        case "range":
            known, domain = {"type", "bounds", "log_scale", "value_type"}, _ax_range(place, written)
        case None:
            known = {"init", "step", "lower", "upper", "log", "integer"}
            domain = _scalar(place, written, losses)
        case _:
            kinds = "categorical, choice, fixed, float, int or range"
            raise ForeignError(f"{place}.type must be {kinds}, got {show_value(kind)}")
    losses += [
        Loss(f"{place}.{key}", "is an option of the sweeper; left out") for key in written if key not in known
    ]
    return domain


def _choice(place: str, values: object) -> str:
    if not isinstance(values, list) or not values:
        raise ForeignError(f"{place} must have at least one value, got {show_value(values)}")
    return ",".join(map(hydra_text, values)) if len(values) > 1 else hydra_text(values[0])


def _number(place: str, written: Mapping[str, Any], key: str) -> int | float | None:
    """Return a number, also if it is text such as `1e-3`, which YAML 1.1 does not read as a number."""
    value = written.get(key)
    if value is None:
        return None
    if isinstance(value, bool | dict | list):
        raise ForeignError(f"{place}.{key} must be a number, got {show_value(value)}")
    number = exact_number(value, f"{place}.{key}")
    return value if isinstance(value, int | float) else spec_number(number)


def _range(place: str, written: Mapping[str, Any], ends: tuple[str, str], *, whole: bool) -> dict[str, Any]:
    low, high, step = (_number(place, written, key) for key in (*ends, "step"))
    if low is None or high is None:
        raise ForeignError(f"{place} must have {ends[0]} and {ends[1]}")
    is_log = written.get("log") is True or written.get("log_scale") is True
    # Optuna, too, ends at the last step that does not exceed the range.
    return range_keys(low, high, is_log=is_log, is_whole=whole, step=step)


def _ax_range(place: str, written: Mapping[str, Any]) -> dict[str, Any]:
    """Return a range of Ax, whose values are integers if both bounds are."""
    bounds = written.get("bounds")
    if not isinstance(bounds, list) or len(bounds) != 2:  # noqa: PLR2004 - both ends
        raise ForeignError(f"{place}.bounds must be [low, high], got {show_value(bounds)}")
    ends = {"low": bounds[0], "high": bounds[1], "log_scale": written.get("log_scale")}
    integers = all(isinstance(bound, int) and not isinstance(bound, bool) for bound in bounds)
    whole = written.get("value_type", "int" if integers else "float") == "int"
    return _range(place, ends, ("low", "high"), whole=whole)


def _scalar(place: str, written: Mapping[str, Any], losses: LossList) -> dict[str, Any]:
    """Return a scalar of Nevergrad: a range, or without bounds the normal distribution of its first steps."""
    if written.get("lower") is not None and written.get("upper") is not None:
        losses += [
            Loss(f"{place}.{key}", "where Nevergrad starts, and how far it steps; left out")
            for key in ("init", "step")
            if key in written
        ]
        return _range(
            place, {**written, "step": None}, ("lower", "upper"), whole=written.get("integer") is True
        )
    start, step = _number(place, written, "init"), _number(place, written, "step")
    if start is None or written.get("integer") is True or any(key in written for key in ("lower", "upper")):
        raise ForeignError(f"{place} must have lower and upper", hint="for example {lower: 1, upper: 9}")
    is_log = written.get("log") is True
    width = step if step is not None else (2 if is_log else 1)
    if width <= is_log or (is_log and start <= 0):
        raise ForeignError(f"{place} must have a positive init and a step above {int(is_log)}")
    losses.add(place, "has no bounds in Nevergrad; written as the distribution of its first steps from init")
    if is_log:
        mu, sigma = (float(f"{math.log(number):.12g}") for number in (start, width))
        return {"distribution": "log_normal", "mu": mu, "sigma": sigma}
    return {"distribution": "normal", "mu": start, "sigma": width}


TRANSLATED = frozenset(
    {
        "_target_",
        "params",
        "n_trials",
        "direction",
        "sampler",
        "n_jobs",
        "search_space",
        "custom_search_space",
        "ax_config",
        "optim",
    }
)
METRIC_KEYS = ("optimized_metric",)
"""Keys of the app's config that name the returned metric, as in lightning-hydra-template."""


@dataclass(slots=True)
class _SweptOverrides:
    parameters: dict[str, Any] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    """Hydra's key of each parameter, with its `+` and `@`."""
    literal: list[str] = field(default_factory=list)
    """Overrides that are the same in every trial and cannot be parameters: part of the command."""
    losses: LossList = field(default_factory=LossList)


def read(content: bytes, *, name: str) -> Imported:
    """Return a spec of that name for a Hydra config. Raises ForeignError if it has no sweep."""
    data = load(content)
    hydra = data.get("hydra") if isinstance(data, dict) else None
    if not isinstance(hydra, dict):
        raise ForeignError(
            "must be a Hydra config with hydra.sweeper.params",
            hint="sweeps of the command line are in multirun.yaml",
        )
    config: dict[str, Any] = hydra["sweeper"] if isinstance(hydra.get("sweeper"), dict) else {}
    sweeper = find_sweeper(data, config)
    refuse_hypersweeper(sweeper, config)
    swept = _SweptOverrides()
    ranges, overrides = read_search_space(config, swept.losses)
    for written in (*overrides, *_overrides(hydra, config)):
        _add_override(written, swept, has_ends=sweeper.has_ends)
    for key, keys in ranges.items():
        _add_parameter(split_override(f"{key}="), keys, swept)
    if not swept.parameters:
        raise ForeignError(
            "must sweep over something in hydra.sweeper.params, got nothing",
            hint="if the command line sets it, import the multirun.yaml that Hydra wrote",
        )
    _separate(swept)
    if are_renamed(swept.keys):
        swept.parameters = {key: as_texts(keys) for key, keys in swept.parameters.items()}
    search = method_keys(sweeper, swept.parameters, swept.losses)
    spec = {"name": name} | search | _metrics(data, config, search["method"], swept.losses)
    spec |= {"parameters": swept.parameters} | _program(hydra, sweeper, swept)
    swept.losses += _other_losses(data, hydra, config)
    return Imported(spec, tuple(swept.losses))


def _overrides(hydra: Mapping[str, Any], sweeper: Mapping[str, Any]) -> Iterator[str]:
    """Yield the sweeper's overrides, then those of the command line, which multirun.yaml contains."""
    params = sweeper.get("params") or {}
    if not isinstance(params, dict):
        raise ForeignError("hydra.sweeper.params must be a mapping")
    for key, value in params.items():
        if isinstance(value, dict):
            continue  # a scalar of Nevergrad, read by `read_search_space`
        if isinstance(value, list):
            hint = "write it as text: choice(1, 2)"
            raise ForeignError(f"hydra.sweeper.params.{key} must be text", hint=hint)
        # Hydra also reads a YAML null as the text None, except after `~key:`, which needs no value.
        yield str(key) if value is None and str(key).startswith("~") else f"{key}={value}"
    overrides = hydra.get("overrides")
    task = overrides.get("task") if isinstance(overrides, dict) else None
    yield from map(str, task if isinstance(task, list) else ())


def _add_override(written: str, swept: _SweptOverrides, *, has_ends: bool) -> None:
    """Add an override to the parameters, or to the literal parts of the command."""
    override = split_override(written)
    if override.name is None:
        swept.literal.append(written)
        return
    keys = override_parameter(override, swept.losses, has_ends=has_ends)
    if keys is None:
        return
    if override.key != override.name and "value" in keys:
        swept.literal.append(written)
        swept.parameters.pop(override.name, None)
        swept.keys.pop(override.name, None)
        return
    _add_parameter(override, keys, swept)


def _add_parameter(override: Override, keys: dict[str, Any], swept: _SweptOverrides) -> None:
    if override.name is not None:
        swept.parameters[override.name] = keys
        swept.keys[override.name] = override.key


def _separate(swept: _SweptOverrides) -> None:
    """Rename parameters such as a config group `model` beside `model.width`; the command keeps Hydra's keys."""
    names = separate_names(swept.parameters)
    swept.losses += [
        Loss(
            swept.keys[key], f"a value beside {key}.…; is named {name} here, and passed as {swept.keys[key]}"
        )
        for key, name in names.items()
        if key != name
    ]
    swept.parameters = {names[key]: keys for key, keys in swept.parameters.items()}
    swept.keys = {names[name]: key for name, key in swept.keys.items()}


def _metrics(
    data: Mapping[str, Any], sweeper: Mapping[str, Any], method: str, losses: LossList
) -> dict[str, Any]:
    """Return `metric`, and `other_metrics` for several directions if the method can search for several."""
    direction, named = _objective(data, sweeper)
    name = metric_name(named, losses) if named else PLACEHOLDER_METRIC
    why = f"Hydra uses the function's return value: print a line `{name}=NUMBER`"
    losses.add("metric", why if named else f"{why}, or use another name and set metric.name")
    goals = [each for each in direction if each in {"minimize", "maximize"}]
    if len(goals) > 1 and method in MULTI_OBJECTIVE_METHODS:
        first, *others = [
            {"name": f"{name}_{place}", "goal": goal} for place, goal in enumerate(goals, start=1)
        ]
        losses.add("hydra.sweeper.direction", f"print a line for each of {name}_1 to {name}_{len(goals)}")
        return {"metric": {**first, "source": "stdout"}, "other_metrics": others}
    if len(goals) > 1:
        why = f"method: {method} has one objective; the first direction is written"
        losses.add("hydra.sweeper.direction", why)
    return {"metric": {"name": name, **({"goal": goals[0]} if goals else {}), "source": "stdout"}}


def _objective(data: Mapping[str, Any], sweeper: Mapping[str, Any]) -> tuple[list[Any], str | None]:
    """Return the directions, and the metric's name if a sweeper or a common template's key gives one."""
    experiment = section(section(sweeper, "ax_config"), "experiment")
    optim = section(sweeper, "optim")
    direction = sweeper.get("direction")
    if direction is None and isinstance(experiment.get("minimize"), bool):
        direction = "minimize" if experiment["minimize"] else "maximize"
    if direction is None and optim.get("maximize") is True:
        direction = "maximize"
    names = (experiment.get("objective_name"), *(data.get(key) for key in METRIC_KEYS))
    named = next((name for name in names if isinstance(name, str) and name and "${" not in name), None)
    return (direction if isinstance(direction, list) else [direction]), named


def _program(hydra: Mapping[str, Any], sweeper: Sweeper, swept: _SweptOverrides) -> dict[str, Any]:
    job = hydra.get("job")
    named = job.get("name") if isinstance(job, dict) else None
    is_named = isinstance(named, str) and bool(named)
    program = f"{named}.py" if is_named else "main.py"
    why = (
        f"the file does not name the path of the app; written as {CODE_DIR}/{program}: this folder is locked, "
        "so set run.code.path to yours, or move the app"
    )
    swept.losses.add(f"program: {program}" if is_named else "program", why)
    is_multirun = str(hydra.get("mode", "")).upper() == "MULTIRUN"
    command = app_command(swept.keys, swept.literal, is_multirun=is_multirun)
    why = "Hydra names folders by the second, so two trials could share one; written as the trial's artifacts folder"
    swept.losses.add("hydra.run.dir", why)
    at_once = {"parallelism": sweeper.jobs} if sweeper.jobs else {}
    return {"program": program, "command": command, "run": {"code": {"path": CODE_DIR}, **at_once}}


def _other_losses(
    data: Mapping[str, Any], hydra: Mapping[str, Any], sweeper: Mapping[str, Any]
) -> Iterator[Loss]:
    for key in sweeper:
        if key not in TRANSLATED:
            yield Loss(f"hydra.sweeper.{key}", "is an option of the sweeper; left out")
    for key in section(sweeper, "sampler"):
        if key not in {"_target_", "seed"}:
            yield Loss(f"hydra.sweeper.sampler.{key}", "is an option of the sampler; left out")
    rest = [key for key in hydra if key not in {"sweeper", "mode", "overrides"}]
    if rest:
        yield Loss(f"hydra: {', '.join(rest)}", "not part of a sweep: the app still reads its own config")
    own = [key for key in data if key not in {"hydra", "defaults", *METRIC_KEYS}]
    if own:
        yield Loss(", ".join(own), "the app's own config, which it still reads; only the sweep is converted")
