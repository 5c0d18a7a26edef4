"""A Hydra multirun as a spec: from a config with `hydra.sweeper.params`, or from Hydra's multirun.yaml.

The method is the one nearest to Hydra's sweeper.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sweepledger.exchange.conversion import Imported, Loss
from sweepledger.exchange.hydra import command as hydra_command
from sweepledger.exchange.hydra.overrides import as_texts, override_parameter, split_override
from sweepledger.exchange.spec_parts import CODE_DIR, DEFAULT_RUN_CAP, PLACEHOLDER_METRIC, space_size
from sweepledger.formats.foreign_yaml import ForeignError, load

TRANSLATED = frozenset({"_target_", "params", "n_trials", "direction", "sampler", "n_jobs"})


@dataclass(slots=True)
class _SweptOverrides:
    """The parameters and losses of the overrides."""

    parameters: dict[str, Any] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    """Hydra's key of each parameter, with its `+` and `@`."""
    literal: list[str] = field(default_factory=list)
    """Overrides that are the same in every trial and cannot be parameters: part of the command."""
    losses: list[Loss] = field(default_factory=list)


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
    swept = _SweptOverrides()
    for written in _overrides(hydra, config):
        _add_override(written, swept, has_ends=sweeper.has_ends)
    if not swept.parameters:
        raise ForeignError("must sweep over something in hydra.sweeper.params, got nothing")
    if hydra_command.are_renamed(swept.keys):
        swept.parameters = {key: as_texts(keys) for key, keys in swept.parameters.items()}
    search = method_keys(sweeper, space_size(swept.parameters), swept.losses)
    spec = {"name": name} | search | {"metric": _metric(config, swept.losses)}
    spec |= {"parameters": swept.parameters} | _program(hydra, swept)
    swept.losses += _other_losses(data, hydra, config)
    return Imported(spec, tuple(swept.losses))


def _overrides(hydra: Mapping[str, Any], sweeper: Mapping[str, Any]) -> Iterator[str]:
    """Yield the sweeper's overrides, then those of the command line, which multirun.yaml contains."""
    params = sweeper.get("params") or {}
    if not isinstance(params, dict):
        raise ForeignError("hydra.sweeper.params must be a mapping")
    for key, value in params.items():
        if isinstance(value, dict | list):
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
    parameter = override_parameter(override, has_ends=has_ends)
    swept.losses += parameter.losses
    if parameter.keys is None:
        return
    if override.key != override.name and "value" in parameter.keys:
        swept.literal.append(written)
        swept.parameters.pop(override.name, None)
        swept.keys.pop(override.name, None)
        return
    swept.parameters[override.name] = parameter.keys
    swept.keys[override.name] = override.key


def _metric(sweeper: Mapping[str, Any], losses: list[Loss]) -> dict[str, Any]:
    why = (
        f"Hydra uses the function's return value: print a line `{PLACEHOLDER_METRIC}=NUMBER`, "
        "or use another name and set metric.name"
    )
    losses.append(Loss("metric", why))
    direction = sweeper.get("direction")
    if isinstance(direction, list):
        losses.append(
            Loss("hydra.sweeper.direction", "a sweep has one objective; the first direction is written")
        )
        direction = next(iter(direction), None)
    goal = {"goal": direction} if direction in {"minimize", "maximize"} else {}
    return {"name": PLACEHOLDER_METRIC, **goal, "source": "stdout"}


def _program(hydra: Mapping[str, Any], swept: _SweptOverrides) -> dict[str, Any]:
    job, sweeper = hydra.get("job"), hydra.get("sweeper")
    named = job.get("name") if isinstance(job, dict) else None
    is_named = isinstance(named, str) and bool(named)
    program = f"{named}.py" if is_named else "main.py"
    why = (
        f"the file does not name the path of the app; written as {CODE_DIR}/{program}: this folder is locked, "
        "so set run.code.path to yours, or move the app"
    )
    swept.losses.append(Loss(f"program: {program}" if is_named else "program", why))
    is_multirun = str(hydra.get("mode", "")).upper() == "MULTIRUN"
    command = hydra_command.app_command(swept.keys, swept.literal, is_multirun=is_multirun)
    why = "Hydra names folders by the second, so two trials could share one; written as the trial's artifacts folder"
    swept.losses.append(Loss("hydra.run.dir", why))
    jobs = sweeper.get("n_jobs") if isinstance(sweeper, dict) else None
    at_once = {"parallelism": jobs} if isinstance(jobs, int) and jobs > 0 else {}
    return {"program": program, "command": command, "run": {"code": {"path": CODE_DIR}, **at_once}}


def _other_losses(
    data: Mapping[str, Any], hydra: Mapping[str, Any], sweeper: Mapping[str, Any]
) -> Iterator[Loss]:
    for key in sweeper:
        if key not in TRANSLATED:
            yield Loss(f"hydra.sweeper.{key}", "is an option of the sweeper; left out")
    rest = [key for key in hydra if key not in {"sweeper", "mode", "overrides"}]
    if rest:
        yield Loss(f"hydra: {', '.join(rest)}", "not part of a sweep: the app still reads its own config")
    own = [key for key in data if key not in {"hydra", "defaults"}]
    if own:
        yield Loss(", ".join(own), "the app's own config, which it still reads; only the sweep is converted")


OPTUNAS_TRIALS = 20
"""The default number of trials of Optuna's sweeper."""

SWEEPER_KEY = re.compile(r"(?:override\s+)?/?hydra/sweeper(?P<sampler>/sampler)?")
"""A key of the defaults list that chooses sweeper or sampler."""


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


def find_sweeper(data: Mapping[str, Any], config: Mapping[str, Any]) -> Sweeper:
    """Return the sweeper that the target, the defaults list, or keys of Optuna's sweeper name."""
    chosen = _default_options(data)
    sampler = config.get("sampler")
    sampler = sampler if isinstance(sampler, dict) else {}
    is_optunas = "n_trials" in config or "sampler" in config
    name = _class_name(config) or chosen.get("sweeper") or ("optuna" if is_optunas else "basic")
    trials, seed = config.get("n_trials"), sampler.get("seed")
    is_number = isinstance(trials, int) and trials > 0
    return Sweeper(
        name,
        _class_name(sampler) or chosen.get("sampler") or ("TPESampler" if "optuna" in name.lower() else ""),
        trials if is_number else None,
        seed if isinstance(seed, int) else None,
        "" if trials is None or is_number else str(trials),
    )


def _default_options(data: Mapping[str, Any]) -> dict[str, str]:
    """Return the options of `hydra/sweeper` and `hydra/sweeper/sampler` in the defaults list."""
    defaults = data.get("defaults")
    options: dict[str, str] = {}
    for entry in defaults if isinstance(defaults, list) else ():
        for key, option in entry.items() if isinstance(entry, dict) else ():
            if match := SWEEPER_KEY.fullmatch(str(key)):
                options["sampler" if match["sampler"] else "sweeper"] = str(option)
    return options


def _class_name(config: Mapping[str, Any]) -> str:
    return str(config.get("_target_") or "").rpartition(".")[2]


def method_keys(sweeper: Sweeper, size: int | None, losses: list[Loss]) -> dict[str, Any]:
    """Return a grid if every combination runs, else a random search. Size None: infinitely many combinations."""
    trials = _trials(sweeper, losses)
    if size is not None and (trials is None or size <= trials):
        losses += _grid_losses(sweeper, size)
        return {"method": "grid"}
    if trials is None:
        why = f"an interval has infinitely many values and no number of trials is given; written as {DEFAULT_RUN_CAP}"
        losses.append(Loss("hydra.sweeper.n_trials", why))
    drawn = {"seed": _seed(sweeper, losses), "run_cap": DEFAULT_RUN_CAP if trials is None else trials}
    if sweeper.is_grid and size is not None:
        return {"method": "grid", "grid_order": "shuffled", **drawn}
    if sweeper.sampler not in {"random", "RandomSampler"} and not sweeper.is_basic:
        sampler = sweeper.sampler or sweeper.name
        losses.append(
            Loss(f"hydra.sweeper: {sampler}", "adaptive samplers are not converted; written as random")
        )
    return {"method": "random", **drawn}


def _trials(sweeper: Sweeper, losses: list[Loss]) -> int | None:
    if sweeper.trials is not None or not sweeper.is_optuna:
        return sweeper.trials
    what = f"hydra.sweeper.n_trials: {sweeper.unclear}" if sweeper.unclear else "hydra.sweeper.n_trials"
    losses.append(Loss(what, f"no number is given; used {OPTUNAS_TRIALS}, the default of Optuna's sweeper"))
    return OPTUNAS_TRIALS


def _seed(sweeper: Sweeper, losses: list[Loss]) -> int:
    if sweeper.seed is None:
        losses.append(
            Loss("seed", "no seed is given, so Hydra draws new values each time; written as seed: 0")
        )
        return 0
    return sweeper.seed


def _grid_losses(sweeper: Sweeper, size: int) -> list[Loss]:
    """Return the losses of a grid: sampler, number of trials and seed."""
    losses: list[Loss] = []
    if not sweeper.is_grid:
        why = "written as a grid, which runs each combination once"
        losses.append(Loss(f"hydra.sweeper: {sweeper.sampler or sweeper.name}", why))
        if sweeper.trials is not None:
            why = f"there are only {size} combinations; written as a grid, without run_cap"
            losses.append(Loss(f"hydra.sweeper.n_trials: {sweeper.trials}", why))
    if sweeper.seed is not None:
        losses.append(Loss(f"hydra.sweeper.sampler.seed: {sweeper.seed}", "a grid uses no seed; left out"))
    return losses
