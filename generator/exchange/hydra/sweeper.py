"""Which of Hydra's sweepers a config has, and the method that comes nearest to it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from generator.exchange.loss import Loss

RUN_CAP = 50
"""Where an interval makes a grid impossible and the file does not say how many trials."""

OPTUNAS_TRIALS = 20
"""What Optuna's sweeper runs if nobody says how many."""

CHOSEN = re.compile(r"(?:override\s+)?/?hydra/sweeper(?P<sampler>/sampler)?")
"""A key of the defaults list."""


@dataclass(frozen=True, slots=True)
class Sweeper:
    """Who makes the trials of a multirun."""

    name: str
    """As in the config: a class, or the option of `hydra/sweeper`."""
    sampler: str
    """Likewise; empty where there is none."""
    trials: int | None
    seed: int | None
    unclear: str = ""
    """A number of trials that is none, such as an interpolation."""

    @property
    def is_optuna(self) -> bool:
        """Tell whether it is Optuna's."""
        return "optuna" in self.name.lower()

    @property
    def is_grid(self) -> bool:
        """Tell whether it takes each combination once."""
        return self.is_basic or "grid" in self.sampler.lower()

    @property
    def is_basic(self) -> bool:
        """Tell whether it is Hydra's own, which nobody needs to choose."""
        return "basic" in self.name.lower()

    @property
    def has_ends(self) -> bool:
        """Tell whether it takes a range's end for one of its values: Optuna's does, but for its grids."""
        return self.is_optuna and not self.is_grid


def sweeper(data: Mapping[str, Any], config: Mapping[str, Any]) -> Sweeper:
    """Find it by its target, the defaults list, or keys that only Optuna's sweeper has."""
    chosen = _chosen(data)
    sampler = config.get("sampler")
    sampler = sampler if isinstance(sampler, dict) else {}
    is_optunas = "n_trials" in config or "sampler" in config
    name = _class(config) or chosen.get("sweeper") or ("optuna" if is_optunas else "basic")
    trials, seed = config.get("n_trials"), sampler.get("seed")
    is_number = isinstance(trials, int) and trials > 0
    return Sweeper(
        name,
        _class(sampler) or chosen.get("sampler") or ("TPESampler" if "optuna" in name.lower() else ""),
        trials if is_number else None,
        seed if isinstance(seed, int) else None,
        "" if trials is None or is_number else str(trials),
    )


def _chosen(data: Mapping[str, Any]) -> dict[str, str]:
    """Find the options of `hydra/sweeper` and `hydra/sweeper/sampler` in the defaults list."""
    defaults = data.get("defaults")
    found: dict[str, str] = {}
    for entry in defaults if isinstance(defaults, list) else ():
        for key, option in entry.items() if isinstance(entry, dict) else ():
            if match := CHOSEN.fullmatch(str(key)):
                found["sampler" if match["sampler"] else "sweeper"] = str(option)
    return found


def _class(config: Mapping[str, Any]) -> str:
    return str(config.get("_target_") or "").rpartition(".")[2]


def method(sweeper: Sweeper, size: int | None, losses: list[Loss]) -> dict[str, Any]:
    """A grid if every combination is run; else as many trials as it would make. None: no end of them."""
    trials = _trials(sweeper, losses)
    if size is not None and (trials is None or size <= trials):
        losses += _of_grid(sweeper, size)
        return {"method": "grid"}
    if trials is None:
        why = f"an interval has no end of values and no number of trials is given; written as {RUN_CAP}"
        losses.append(Loss("hydra.sweeper.n_trials", why))
    drawn = {"seed": _seed(sweeper, losses), "run_cap": RUN_CAP if trials is None else trials}
    if sweeper.is_grid and size is not None:
        return {"method": "grid", "grid_order": "shuffled", **drawn}
    if sweeper.sampler not in {"random", "RandomSampler"} and not sweeper.is_basic:
        learns = sweeper.sampler or sweeper.name
        losses.append(
            Loss(f"hydra.sweeper: {learns}", "no method here learns from results; written as random")
        )
    return {"method": "random", **drawn}


def _trials(sweeper: Sweeper, losses: list[Loss]) -> int | None:
    if sweeper.trials is not None or not sweeper.is_optuna:
        return sweeper.trials
    what = f"hydra.sweeper.n_trials: {sweeper.unclear}" if sweeper.unclear else "hydra.sweeper.n_trials"
    losses.append(Loss(what, f"no number is given; taken as {OPTUNAS_TRIALS}, as Optuna's sweeper does"))
    return OPTUNAS_TRIALS


def _seed(sweeper: Sweeper, losses: list[Loss]) -> int:
    if sweeper.seed is None:
        losses.append(Loss("seed", "none is given, so each run draws anew; written as seed: 0"))
        return 0
    return sweeper.seed


def _of_grid(sweeper: Sweeper, size: int) -> list[Loss]:
    """Name what a grid has no use for."""
    losses: list[Loss] = []
    if not sweeper.is_grid:
        why = "written as a grid, which takes each combination once"
        losses.append(Loss(f"hydra.sweeper: {sweeper.sampler or sweeper.name}", why))
        if sweeper.trials is not None:
            why = f"there are no more than {size} combinations; written as a grid, without run_cap"
            losses.append(Loss(f"hydra.sweeper.n_trials: {sweeper.trials}", why))
    if sweeper.seed is not None:
        losses.append(Loss(f"hydra.sweeper.sampler.seed: {sweeper.seed}", "a grid draws nothing; left out"))
    return losses
