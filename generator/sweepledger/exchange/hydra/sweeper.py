"""The sweeper of a multirun, as the method, size and seed of a spec."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sweepledger.exchange.conversion import Loss, LossList
from sweepledger.exchange.spec_parts import ForeignSearch, size_keys, space_size
from sweepledger.formats.foreign_yaml import ForeignError

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


def find_sweeper(data: Mapping[str, Any], config: Mapping[str, Any]) -> Sweeper:
    """Return the sweeper that the target, the defaults list, or keys of Optuna's sweeper name."""
    chosen = _default_options(data)
    sampler, ax, optim = (section(config, key) for key in ("sampler", "ax_config", "optim"))
    is_optunas = "n_trials" in config or "sampler" in config or "search_space" in config
    guessed = "ax" if ax else "nevergrad" if optim else "optuna" if is_optunas else "basic"
    name = _class_name(config) or chosen.get("sweeper") or guessed
    trials = config.get("n_trials", ax.get("max_trials", optim.get("budget")))
    seed = sampler.get("seed", section(ax, "client").get("random_seed", optim.get("seed")))
    jobs = config.get("n_jobs", optim.get("num_workers"))
    is_number, is_seed = _is_count(trials), _is_count(seed) or seed == 0
    usual = "TPESampler" if "optuna" in name.lower() else str(optim.get("optimizer", ""))
    return Sweeper(
        name,
        _class_name(sampler) or chosen.get("sampler") or usual,
        trials if is_number else None,
        seed if is_seed else None,
        "" if trials is None or is_number else str(trials),
        jobs if _is_count(jobs) else None,
        "" if seed is None or is_seed else str(seed),
    )


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def refuse_hypersweeper(sweeper: Sweeper, config: Mapping[str, Any]) -> None:
    """Raise ForeignError for Hypersweeper, whose search space is a ConfigSpace file."""
    is_named = sweeper.name.startswith("Hyper") or "hypersweeper" in str(config.get("_target_") or "").lower()
    if is_named or isinstance(config.get("search_space"), str) or "sweeper_kwargs" in config:
        raise ForeignError(
            f"the search space of {sweeper.name} is in another file, which it reads with ConfigSpace",
            hint="write its hyperparameters as parameters of a spec (`sweep new NAME` writes one to start from)",
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


def section(config: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return the mapping of a key; empty if it is absent or something else."""
    section = config.get(key)
    return section if isinstance(section, dict) else {}
