"""A Hydra multirun as a spec: from a config with `hydra.sweeper.params`, or from Hydra's multirun.yaml."""

import math
import re
from collections.abc import Iterator
from typing import Any

from sweepledger.exchange.conversion import Imported, Loss, LossList
from sweepledger.exchange.fields import Fields, exact_number, is_count, no_values, show_value
from sweepledger.exchange.hydra.values import (
    as_texts,
    hydra_text,
    override_parameter,
    split_override,
)
from sweepledger.exchange.hydra.writer import ALL, OUTPUTS, RUN_ALONE
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
from sweepledger.structs.names import environment_name

OPTION = "is an option of the sweeper; left out"
METRIC_KEYS = ("optimized_metric",)
"""Keys of the app's config that name the returned metric, as in lightning-hydra-template."""
OPTUNAS_TRIALS = 20
"""The default number of trials of Optuna's sweeper."""
SWEEPER_KEY = re.compile(r"(?:override\s+)?/?hydra/sweeper(?P<sampler>/sampler)?")
"""A key of the defaults list that chooses sweeper or sampler."""


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
FEWEST_NUMBERS = 2
"""Numeric parameters that CMA-ES needs."""


def read(content: bytes, *, name: str) -> Imported:
    """Return a spec of that name for a Hydra config. Raises ForeignError if it has no sweep."""
    multirun = _Multirun(load(content))
    search = multirun.search()
    spec = {"name": name} | search | multirun.metrics(search["method"])
    spec |= {"parameters": multirun.parameters} | multirun.program()
    return Imported(spec, (*multirun.losses, *multirun.rest()))


class _Multirun:
    """The parts of a config that define the trials; keys of a sweeper that are not read are losses."""

    def __init__(self, data: object) -> None:
        if not isinstance(data, dict) or not isinstance(data.get("hydra"), dict):
            raise ForeignError(
                "must be a Hydra config with hydra.sweeper.params",
                hint="sweeps of the command line are in multirun.yaml",
            )
        self.losses = LossList()
        self.parameters: dict[str, Any] = {}
        self.keys: dict[str, str] = {}  # Hydra's key of each parameter, with its `+` and `@`
        # Overrides that are alike in every trial and no parameters: in the command.
        self.literal: list[str] = []
        self.app = Fields.of(data, "")
        self.hydra = self.app.inner("hydra")
        self.sweeper = self.hydra.section("sweeper")
        self.ax, self.optim = self.sweeper.section("ax_config"), self.sweeper.section("optim")
        self.experiment = self.ax.section("experiment")
        self._read_sweeper()
        overrides = [*self._search_space(), *self._overrides()]
        ranges, self.parameters = self.parameters, {}
        for written in overrides:
            self._add_override(written)
        for key, keys in ranges.items():
            override = split_override(f"{key}=")
            if override.name is not None:
                self.parameters[override.name], self.keys[override.name] = keys, override.key
        if not self.parameters:
            raise ForeignError(
                "must sweep over something in hydra.sweeper.params, got nothing",
                hint="if the command line sets it, import the multirun.yaml that Hydra wrote",
            )
        self._separate()

    def _read_sweeper(self) -> None:
        chosen: dict[str, str] = {}
        defaults = self.app.take("defaults")
        for entry in defaults if isinstance(defaults, list) else ():
            for key, option in entry.items() if isinstance(entry, dict) else ():
                if match := SWEEPER_KEY.fullmatch(str(key)):
                    chosen["sampler" if match["sampler"] else "sweeper"] = str(option)
        sweeper, sampler, ax, optim = self.sweeper, self.sweeper.section("sampler"), self.ax, self.optim
        is_optunas = not {"n_trials", "sampler", "search_space"}.isdisjoint(sweeper.data)
        guessed = "ax" if ax.data else "nevergrad" if optim.data else "optuna" if is_optunas else "basic"
        target = str(sweeper.take("_target_") or "")
        self.name = target.rpartition(".")[2] or chosen.get("sweeper") or guessed
        if (
            self.name.startswith("Hyper")
            or "hypersweeper" in target.lower()
            or "sweeper_kwargs" in sweeper.data
        ):
            raise _other_space(self.name)
        self.trials = _first((sweeper, "n_trials"), (ax, "max_trials"), (optim, "budget"))
        self.seed = _first((sampler, "seed"), (ax.section("client"), "random_seed"), (optim, "seed"))
        jobs = _first((sweeper, "n_jobs"), (optim, "num_workers"))
        self.jobs = jobs if is_count(jobs) else None
        self.is_optuna, self.is_basic = "optuna" in self.name.lower(), "basic" in self.name.lower()
        optimizer = str(optim.take("optimizer") or "")
        usual = "TPESampler" if self.is_optuna else optimizer
        target = str(sampler.take("_target_") or "")
        # Class or option of the sampler; else that of the sweeper.
        self.sampler = target.rpartition(".")[2] or chosen.get("sampler") or usual
        self.is_grid = self.is_basic or "grid" in self.sampler.lower()
        self.sampler = self.sampler or self.name

    def search(self) -> dict[str, Any]:
        """Return a grid if every combination runs, else the method of the sampler, with size and seed."""
        trials, size = self.trials if is_count(self.trials) else None, space_size(self.parameters)
        if trials is None and self.is_optuna:
            # It may be an interpolation; Optuna's sweeper has a default.
            trials, given = OPTUNAS_TRIALS, "" if self.trials is None else f": {self.trials}"
            why = f"no number is given; used {OPTUNAS_TRIALS}, the default of Optuna's sweeper"
            self.losses.add(f"hydra.sweeper.n_trials{given}", why)
        is_seed = is_count(self.seed) or self.seed == 0
        if size is not None and (trials is None or size <= trials):
            if not self.is_grid:
                why = "written as a grid, which runs each combination once"
                self.losses.add(f"hydra.sweeper: {self.sampler}", why)
            if not self.is_grid and is_count(self.trials):
                why = f"there are only {size} combinations; written as a grid, without run_cap"
                self.losses.add(f"hydra.sweeper.n_trials: {self.trials}", why)
            if is_seed:
                why = "a grid uses no seed; left out"
                self.losses.add(f"hydra.sweeper.sampler.seed: {self.seed}", why)
            return {"method": "grid"}
        method = "grid" if self.is_grid and size is not None else self._method()
        if self.seed is not None and not is_seed:
            self.losses.add(f"seed: {self.seed}", "depends on the app's config")
        seed = self.seed if is_seed else None
        search = ForeignSearch("Hydra", method, self.parameters, cap=trials, seed=seed, at_once=self.jobs)
        return {"method": method} | size_keys(search, self.losses)

    def _method(self) -> str:
        name = self.sampler.lower().removesuffix("sampler").removesuffix("sweeper").replace("-", "")
        if self.is_basic:
            return "random"
        method = METHOD_OF_SAMPLER.get(name)
        numbers = sum("min" in keys or "mu" in keys for keys in self.parameters.values())
        if method is None or (method == "cma-es" and numbers < FEWEST_NUMBERS):
            what = "needs two numeric parameters" if method else "is not a method here"
            self.losses.add(f"hydra.sweeper: {self.sampler}", f"{what}; written as tpe")
            return "tpe"
        if name not in {"tpe", "cmaes", "random"}:
            self.losses.add(f"hydra.sweeper: {self.sampler}", f"written as {method}, the nearest method")
        return method

    def _search_space(self) -> Iterator[str]:
        """Read ranges in the mappings of a sweeper's config, and yield other entries as overrides."""
        why = "adds parameters by code, and no code of a file runs here; write them"
        self.losses += self.sweeper.lost("custom_search_space", why)
        if isinstance(self.sweeper.data.get("search_space"), str):
            raise _other_space("Hypersweeper")
        params = self.sweeper.inner("params")
        for space in (self.sweeper.section("search_space"), self.ax.section("params"), params):
            for key, value in space.data.items():
                if space is params and not isinstance(value, dict):
                    continue  # an override
                domain = _domain(space.inner(str(key)), self.losses)
                if isinstance(domain, str):
                    yield f"{key}={domain}"
                else:
                    self.parameters[str(key)] = domain

    def _overrides(self) -> Iterator[str]:
        """Yield the sweeper's overrides, then the overrides of the command line, which multirun.yaml contains."""
        params = self.sweeper.inner("params")
        params.taken |= params.data.keys()
        for key, value in params.data.items():
            if isinstance(value, list):
                hint = "write it as text: choice(1, 2)"
                raise ForeignError(f"hydra.sweeper.params.{key} must be text", hint=hint)
            if not isinstance(value, dict):  # a scalar of Nevergrad, which `_search_space` reads
                # Hydra also reads a YAML null as the text None, except after `~key:`, which needs no value.
                yield str(key) if value is None and str(key).startswith("~") else f"{key}={value}"
        task = self.hydra.section("overrides").data.get("task")
        yield from map(str, task if isinstance(task, list) else ())

    def _add_override(self, written: str) -> None:
        override = split_override(written)
        if override.name is None:
            self.literal.append(written)
            return
        # In Optuna's sweeper, ranges include their end, except with its grid sampler.
        has_ends = self.is_optuna and not self.is_grid
        keys = override_parameter(override, self.losses, has_ends=has_ends)
        if keys is None:
            return
        if override.key != override.name and "value" in keys:
            self.literal.append(written)
            self.parameters.pop(override.name, None)
            self.keys.pop(override.name, None)
            return
        self.parameters[override.name], self.keys[override.name] = keys, override.key

    def _separate(self) -> None:
        """Rename parameters such as a config group `model` beside `model.width`; the command keeps Hydra's keys."""
        for key, name in separate_names(self.parameters).items():
            keys, foreign = self.parameters.pop(key), self.keys.pop(key)
            self.parameters[name], self.keys[name] = keys, foreign
            if key != name:
                why = f"a value beside {key}.…; is named {name} here, and passed as {foreign}"
                self.losses.add(foreign, why)
        self.is_renamed = any(key != name for name, key in self.keys.items())
        if self.is_renamed:
            self.parameters = {key: as_texts(keys) for key, keys in self.parameters.items()}

    def metrics(self, method: str) -> dict[str, Any]:
        """Return `metric`, and `other_metrics` for several directions if the method can search for several."""
        direction, minimize = self.sweeper.take("direction"), self.experiment.take("minimize")
        maximizes = self.optim.take("maximize") is True or minimize is False
        if direction is None and (maximizes or minimize is True):
            direction = "maximize" if maximizes else "minimize"
        names = (self.experiment.take("objective_name"), *(self.app.take(key) for key in METRIC_KEYS))
        named = next((name for name in names if isinstance(name, str) and name and "${" not in name), None)
        name = metric_name(named, self.losses) if named else PLACEHOLDER_METRIC
        why = f"Hydra uses the function's return value: print a line `{name}=NUMBER`"
        self.losses.add("metric", why if named else f"{why}, or use another name and set metric.name")
        directions = direction if isinstance(direction, list) else [direction]
        goals = [each for each in directions if each in {"minimize", "maximize"}]
        if len(goals) > 1 and method in MULTI_OBJECTIVE_METHODS:
            first, *others = [
                {"name": f"{name}_{place}", "goal": goal} for place, goal in enumerate(goals, start=1)
            ]
            why = f"print a line for each of {name}_1 to {name}_{len(goals)}"
            self.losses.add("hydra.sweeper.direction", why)
            return {"metric": {**first, "source": "stdout"}, "other_metrics": others}
        if len(goals) > 1:
            why = f"method: {method} has one objective; the first direction is written"
            self.losses.add("hydra.sweeper.direction", why)
        return {"metric": {"name": name, **({"goal": goals[0]} if goals else {}), "source": "stdout"}}

    def program(self) -> dict[str, Any]:
        """Return `program`, `command` and `run`."""
        named = self.hydra.section("job").data.get("name")
        is_named = isinstance(named, str) and bool(named)
        program = f"{named}.py" if is_named else "main.py"
        why = (
            f"the file does not name the path of the app; written as {CODE_DIR}/{program}: this folder is locked, "
            "so set run.code.path to yours, or move the app"
        )
        self.losses.add(f"program: {program}" if is_named else "program", why)
        is_multirun = str(self.hydra.data.get("mode", "")).upper() == "MULTIRUN"
        alone = [RUN_ALONE] if is_multirun else []
        arguments = [ALL]  # each parameter under Hydra's key
        if self.is_renamed:
            arguments = [f"{key}=${{envvar:{environment_name(name)}}}" for name, key in self.keys.items()]
        command = ["${env}", "${interpreter}", "${program}", *alone, OUTPUTS, *self.literal, *arguments]
        why = (
            "Hydra names folders by the second, so two trials could share one; written as the trial's artifacts "
            "folder"
        )
        self.losses.add("hydra.run.dir", why)
        at_once = {"parallelism": self.jobs} if self.jobs else {}
        return {"program": program, "command": command, "run": {"code": {"path": CODE_DIR}, **at_once}}

    def rest(self) -> Iterator[Loss]:
        """Yield the keys that were not read as losses."""
        why = "is not converted; write it as constraints, or check it in the program"
        yield from self.experiment.rest(why)
        yield from self.sweeper.rest(OPTION)
        rest = [key for key in self.hydra.data if key not in {"sweeper", "mode", "overrides"}]
        if rest:
            yield Loss(f"hydra: {', '.join(rest)}", "not part of a sweep: the app still reads its own config")
        own = [key for key in self.app.data if key not in {"hydra", "defaults", *METRIC_KEYS}]
        if own:
            why = "the app's own config, which it still reads; only the sweep is converted"
            yield Loss(", ".join(own), why)


def _first(*places: tuple[Fields, str]) -> Any:
    return next((value for value in [fields.take(key) for fields, key in places] if value is not None), None)


def _other_space(name: str) -> ForeignError:
    return ForeignError(
        f"the search space of {name} is in another file, which it reads with ConfigSpace",
        hint="write its hyperparameters as parameters of a spec (`sweep new NAME` writes one to start from)",
    )


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
    number = exact_number(value, written.at(key))
    return value if isinstance(value, int | float) else number


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
