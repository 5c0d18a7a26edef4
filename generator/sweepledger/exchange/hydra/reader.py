"""A Hydra multirun as a spec: from a config with `hydra.sweeper.params`, or from Hydra's multirun.yaml."""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sweepledger.exchange.conversion import Imported, Loss, LossList
from sweepledger.exchange.fields import Fields, exact_number, is_count, no_values, show_value, spec_number
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
    ForeignSearch,
    metric_name,
    range_keys,
    separate_names,
    size_keys,
    space_size,
)
from sweepledger.formats.foreign_yaml import ForeignError, load

OPTION = "is an option of the sweeper; left out"
METRIC_KEYS = ("optimized_metric",)
"""Keys of the app's config that name the returned metric, as in lightning-hydra-template."""
OPTUNAS_TRIALS = 20
"""The default number of trials of Optuna's sweeper."""
SWEEPER_KEY = re.compile(r"(?:override\s+)?/?hydra/sweeper(?P<sampler>/sampler)?")
"""A key of the defaults list that chooses sweeper or sampler."""


@dataclass(frozen=True, slots=True)
class _Config:
    """The parts of a config that say which trials run; what is not read of a sweeper is a loss."""

    app: Fields
    hydra: Fields
    sweeper: Fields
    sampler: Fields
    ax: Fields
    client: Fields
    experiment: Fields
    optim: Fields

    @classmethod
    def of(cls, data: object) -> "_Config":
        hydra = data.get("hydra") if isinstance(data, dict) else None
        if not isinstance(hydra, dict):
            raise ForeignError(
                "must be a Hydra config with hydra.sweeper.params",
                hint="sweeps of the command line are in multirun.yaml",
            )
        app = Fields.of(data, "")
        top = app.inner("hydra")
        sweeper = top.section("sweeper")
        ax = sweeper.section("ax_config")
        return cls(
            app,
            top,
            sweeper,
            sweeper.section("sampler"),
            ax,
            ax.section("client"),
            ax.section("experiment"),
            sweeper.section("optim"),
        )

    def rest(self) -> Iterator[Loss]:
        """Yield what was not read."""
        yield from self.experiment.rest(
            "is not converted; write it as constraints, or check it in the program"
        )
        yield from self.sweeper.rest(OPTION)
        rest = [key for key in self.hydra.data if key not in {"sweeper", "mode", "overrides"}]
        if rest:
            yield Loss(f"hydra: {', '.join(rest)}", "not part of a sweep: the app still reads its own config")
        own = [key for key in self.app.data if key not in {"hydra", "defaults", *METRIC_KEYS}]
        if own:
            yield Loss(
                ", ".join(own), "the app's own config, which it still reads; only the sweep is converted"
            )


@dataclass(frozen=True, slots=True)
class Sweeper:
    """The sweeper of a multirun, which creates its trials."""

    name: str
    """Class in the config, or option of `hydra/sweeper`."""
    sampler: str
    """Class or option of the sampler; empty if there is none."""
    trials: int | None
    seed: int | None
    unclear: str = ""
    """A number of trials that is not a number, such as an interpolation."""
    jobs: int | None = None
    """Number of trials at a time; None if it is not given."""
    unclear_seed: str = ""
    """A seed that is not a number, such as an interpolation."""

    @property
    def is_optuna(self) -> bool:
        """Return whether it is Optuna's sweeper."""
        return "optuna" in self.name.lower()

    @property
    def is_grid(self) -> bool:
        """Return whether it runs each combination once."""
        return self.is_basic or "grid" in self.sampler.lower()

    @property
    def is_basic(self) -> bool:
        """Return whether it is Hydra's default sweeper."""
        return "basic" in self.name.lower()

    @property
    def has_ends(self) -> bool:
        """Return whether ranges include their end: in Optuna's sweeper, except with its grid sampler."""
        return self.is_optuna and not self.is_grid


def find_sweeper(config: _Config) -> Sweeper:
    """Return the sweeper that the target, the defaults list, or keys of Optuna's sweeper name."""
    chosen = dict(_default_options(config.app.take("defaults")))
    sweeper, ax, optim = config.sweeper, config.ax, config.optim
    is_optunas = not {"n_trials", "sampler", "search_space"}.isdisjoint(sweeper.data)
    guessed = "ax" if ax.data else "nevergrad" if optim.data else "optuna" if is_optunas else "basic"
    target = str(sweeper.take("_target_") or "")
    name = target.rpartition(".")[2] or chosen.get("sweeper") or guessed
    if name.startswith("Hyper") or "hypersweeper" in target.lower() or "sweeper_kwargs" in sweeper.data:
        raise _other_space(name)
    trials = _first((sweeper, "n_trials"), (ax, "max_trials"), (optim, "budget"))
    seed = _first((config.sampler, "seed"), (config.client, "random_seed"), (optim, "seed"))
    jobs = _first((sweeper, "n_jobs"), (optim, "num_workers"))
    is_number, is_seed = is_count(trials), is_count(seed) or seed == 0
    usual = str(optim.take("optimizer") or "")
    usual = "TPESampler" if "optuna" in name.lower() else usual
    return Sweeper(
        name,
        str(config.sampler.take("_target_") or "").rpartition(".")[2] or chosen.get("sampler") or usual,
        trials if is_number else None,
        seed if is_seed else None,
        "" if trials is None or is_number else str(trials),
        jobs if is_count(jobs) else None,
        "" if seed is None or is_seed else str(seed),
    )


def _first(*places: tuple[Fields, str]) -> Any:
    """Return the first value that is given of some keys."""
    return next((value for value in [fields.take(key) for fields, key in places] if value is not None), None)


def _other_space(name: str) -> ForeignError:
    return ForeignError(
        f"the search space of {name} is in another file, which it reads with ConfigSpace",
        hint="write its hyperparameters as parameters of a spec (`sweep new NAME` writes one to start from)",
    )


def _default_options(defaults: object) -> Iterator[tuple[str, str]]:
    """Yield the options of `hydra/sweeper` and `hydra/sweeper/sampler` in the defaults list."""
    for entry in defaults if isinstance(defaults, list) else ():
        for key, option in entry.items() if isinstance(entry, dict) else ():
            if match := SWEEPER_KEY.fullmatch(str(key)):
                yield "sampler" if match["sampler"] else "sweeper", str(option)


METHOD_OF_SAMPLER = {
    "tpe": "tpe",
    "motpe": "tpe",
    "nsgaii": "nsga2",
    "nsgaiii": "nsga2",
    "cmaes": "cma-es",
    "gp": "bayes",
    "qmc": "sobol",
    "random": "random",
    "ax": "bayes",
}
"""Methods of Optuna's samplers, by names without `Sampler`, and of Ax."""
MULTI_OBJECTIVE_METHODS = frozenset({"tpe", "nsga2"})


def method_keys(sweeper: Sweeper, parameters: Mapping[str, Any], losses: LossList) -> dict[str, Any]:
    """Return a grid if every combination runs, else the method of the sampler."""
    trials, size = _trials(sweeper, losses), space_size(parameters)
    if size is not None and (trials is None or size <= trials):
        losses += _grid_losses(sweeper, size)
        return {"method": "grid"}
    method = "grid" if sweeper.is_grid and size is not None else _method(sweeper, parameters, losses)
    if sweeper.unclear_seed:
        losses.add(f"seed: {sweeper.unclear_seed}", "depends on the app's config")
    search = ForeignSearch("Hydra", method, parameters, cap=trials, seed=sweeper.seed, at_once=sweeper.jobs)
    return {"method": method} | size_keys(search, losses)


def _method(sweeper: Sweeper, parameters: Mapping[str, Any], losses: LossList) -> str:
    """Return the method of the sampler: of the same name, or else the nearest."""
    sampler = sweeper.sampler or sweeper.name
    name = sampler.lower().removesuffix("sampler").removesuffix("sweeper").replace("-", "")
    if sweeper.is_basic:
        return "random"
    method = METHOD_OF_SAMPLER.get(name)
    numbers = sum("min" in keys or "mu" in keys for keys in parameters.values())
    if method is None or (method == "cma-es" and numbers < FEWEST_NUMBERS):
        what = "needs two numeric parameters" if method else "is not a method here"
        losses.add(f"hydra.sweeper: {sampler}", f"{what}; written as tpe")
        return "tpe"
    if name not in {"tpe", "cmaes", "random"}:
        losses.add(f"hydra.sweeper: {sampler}", f"written as {method}, the nearest method")
    return method


FEWEST_NUMBERS = 2
"""Numeric parameters that CMA-ES needs."""


def _trials(sweeper: Sweeper, losses: LossList) -> int | None:
    if sweeper.trials is not None or not sweeper.is_optuna:
        return sweeper.trials
    what = f"hydra.sweeper.n_trials: {sweeper.unclear}" if sweeper.unclear else "hydra.sweeper.n_trials"
    losses.add(what, f"no number is given; used {OPTUNAS_TRIALS}, the default of Optuna's sweeper")
    return OPTUNAS_TRIALS


def _grid_losses(sweeper: Sweeper, size: int) -> list[Loss]:
    losses = LossList()
    if not sweeper.is_grid:
        why = "written as a grid, which runs each combination once"
        losses.add(f"hydra.sweeper: {sweeper.sampler or sweeper.name}", why)
        if sweeper.trials is not None:
            why = f"there are only {size} combinations; written as a grid, without run_cap"
            losses.add(f"hydra.sweeper.n_trials: {sweeper.trials}", why)
    if sweeper.seed is not None:
        losses.add(f"hydra.sweeper.sampler.seed: {sweeper.seed}", "a grid uses no seed; left out")
    return losses


def read_search_space(config: _Config, losses: LossList) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Return the mappings of a sweeper's config: ranges by Hydra's keys, and overrides. Raises ForeignError."""
    parameters: dict[str, dict[str, Any]] = {}
    overrides: list[str] = []
    why = "adds parameters by code, and no code of a file runs here; write them"
    losses += config.sweeper.lost("custom_search_space", why)
    if isinstance(config.sweeper.data.get("search_space"), str):
        raise _other_space("Hypersweeper")
    params = config.sweeper.inner("params")
    for space in (config.sweeper.section("search_space"), config.ax.section("params"), params):
        for key, value in space.data.items():
            if space is params and not isinstance(value, dict):
                continue  # an override
            written = space.inner(str(key))
            domain = _domain(written, losses)
            if isinstance(domain, str):
                overrides.append(f"{key}={domain}")
            else:
                parameters[str(key)] = domain
    return parameters, overrides


def _domain(written: Fields, losses: LossList) -> dict[str, Any] | str:
    """Return the keys of a range, or the override of choices and constants."""
    kind = written.take("type")
    match kind:
        case "categorical" | "choice":
            written.taken |= {"value_type", "is_ordered", "sort_values"}
            values = _first((written, "choices"), (written, "values"))
            if not isinstance(values, list) or not values:
                raise no_values(written.path)
            return ",".join(map(hydra_text, values)) if len(values) > 1 else hydra_text(values[0])
        case "fixed":
            written.taken.add("value_type")
            return hydra_text(written.take("value"))
        case "float" | "int":
            return _range(written, ("low", "high"), whole=kind == "int")
        case "range":
            bounds = written.take("bounds")
            if not isinstance(bounds, list) or len(bounds) != 2:  # noqa: PLR2004 - both ends
                raise ForeignError(f"{written.at('bounds')} must be [low, high], got {show_value(bounds)}")
            integers = all(isinstance(bound, int) and not isinstance(bound, bool) for bound in bounds)
            whole = (written.take("value_type") or ("int" if integers else "float")) == "int"
            written.data |= {"low": bounds[0], "high": bounds[1]}
            return _range(written, ("low", "high"), whole=whole)
        case None:
            return _scalar(written, losses)
        case _:
            kinds = "categorical, choice, fixed, float, int or range"
            raise ForeignError(f"{written.at('type')} must be {kinds}, got {show_value(kind)}")


def _number(written: Fields, key: str) -> int | float | None:
    """Return a number, also if it is text such as `1e-3`, which YAML 1.1 does not read as a number."""
    value = written.take(key)
    if value is None:
        return None
    if isinstance(value, bool | dict | list):
        raise ForeignError(f"{written.at(key)} must be a number, got {show_value(value)}")
    number = exact_number(value, written.at(key))
    return value if isinstance(value, int | float) else spec_number(number)


def _range(written: Fields, ends: tuple[str, str], *, whole: bool) -> dict[str, Any]:
    low, high, step = (_number(written, key) for key in (*ends, "step"))
    if low is None or high is None:
        raise ForeignError(f"{written.path} must have {ends[0]} and {ends[1]}")
    is_log = True in (written.take("log"), written.take("log_scale"))
    # Optuna, too, ends at the last step that does not exceed the range.
    return range_keys(low, high, is_log=is_log, is_whole=whole, step=step)


def _scalar(written: Fields, losses: LossList) -> dict[str, Any]:
    """Return a scalar of Nevergrad: a range, or without bounds the normal distribution of its first steps."""
    whole, is_log = written.take("integer") is True, written.take("log") is True
    if written.data.get("lower") is not None and written.data.get("upper") is not None:
        for key in ("init", "step"):
            losses += written.lost(key, "where Nevergrad starts, and how far it steps; left out")
            written.data.pop(key, None)
        return _range(written, ("lower", "upper"), whole=whole)
    start, step = _number(written, "init"), _number(written, "step")
    if start is None or whole or not {"lower", "upper"}.isdisjoint(written.data):
        raise ForeignError(
            f"{written.path} must have lower and upper", hint="for example {lower: 1, upper: 9}"
        )
    width = step if step is not None else (2 if is_log else 1)
    if width <= is_log or (is_log and start <= 0):
        raise ForeignError(f"{written.path} must have a positive init and a step above {int(is_log)}")
    why = "has no bounds in Nevergrad; written as the distribution of its first steps from init"
    losses.add(written.path, why)
    if is_log:
        mu, sigma = (float(f"{math.log(number):.12g}") for number in (start, width))
        return {"distribution": "log_normal", "mu": mu, "sigma": sigma}
    return {"distribution": "normal", "mu": start, "sigma": width}


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
    config = _Config.of(load(content))
    sweeper, swept = find_sweeper(config), _SweptOverrides()
    ranges, overrides = read_search_space(config, swept.losses)
    for written in (*overrides, *_overrides(config)):
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
    spec = {"name": name} | search | _metrics(config, search["method"], swept.losses)
    spec |= {"parameters": swept.parameters} | _program(config.hydra, sweeper, swept)
    return Imported(spec, (*swept.losses, *config.rest()))


def _overrides(config: _Config) -> Iterator[str]:
    """Yield the sweeper's overrides, then those of the command line, which multirun.yaml contains."""
    params = config.sweeper.inner("params")
    params.taken |= params.data.keys()
    for key, value in params.data.items():
        if isinstance(value, list):
            hint = "write it as text: choice(1, 2)"
            raise ForeignError(f"hydra.sweeper.params.{key} must be text", hint=hint)
        if not isinstance(value, dict):  # a scalar of Nevergrad, read by `read_search_space`
            # Hydra also reads a YAML null as the text None, except after `~key:`, which needs no value.
            yield str(key) if value is None and str(key).startswith("~") else f"{key}={value}"
    task = config.hydra.section("overrides").data.get("task")
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


def _metrics(config: _Config, method: str, losses: LossList) -> dict[str, Any]:
    """Return `metric`, and `other_metrics` for several directions if the method can search for several."""
    direction, named = _objective(config)
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


def _objective(config: _Config) -> tuple[list[Any], str | None]:
    """Return the directions, and the metric's name if a sweeper or a common template's key gives one."""
    direction, minimize = config.sweeper.take("direction"), config.experiment.take("minimize")
    maximizes = config.optim.take("maximize") is True
    if direction is None and isinstance(minimize, bool):
        direction = "minimize" if minimize else "maximize"
    if direction is None and maximizes:
        direction = "maximize"
    names = (config.experiment.take("objective_name"), *(config.app.take(key) for key in METRIC_KEYS))
    named = next((name for name in names if isinstance(name, str) and name and "${" not in name), None)
    return (direction if isinstance(direction, list) else [direction]), named


def _program(hydra: Fields, sweeper: Sweeper, swept: _SweptOverrides) -> dict[str, Any]:
    named = hydra.section("job").data.get("name")
    is_named = isinstance(named, str) and bool(named)
    program = f"{named}.py" if is_named else "main.py"
    why = (
        f"the file does not name the path of the app; written as {CODE_DIR}/{program}: this folder is locked, "
        "so set run.code.path to yours, or move the app"
    )
    swept.losses.add(f"program: {program}" if is_named else "program", why)
    is_multirun = str(hydra.data.get("mode", "")).upper() == "MULTIRUN"
    command = app_command(swept.keys, swept.literal, is_multirun=is_multirun)
    why = "Hydra names folders by the second, so two trials could share one; written as the trial's artifacts folder"
    swept.losses.add("hydra.run.dir", why)
    at_once = {"parallelism": sweeper.jobs} if sweeper.jobs else {}
    return {"program": program, "command": command, "run": {"code": {"path": CODE_DIR}, **at_once}}
