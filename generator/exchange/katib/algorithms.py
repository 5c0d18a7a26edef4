"""Katib's algorithms and its early stopping as methods by rounds: what each setting becomes, or why not."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from generator.exchange.katib.fields import Fields
from generator.exchange.katib.spaces import Read
from generator.exchange.loss import ForeignError, Loss

METHODS = {
    "grid": "grid",
    "random": "random",
    "sobol": "sobol",
    "tpe": "tpe",
    "multivariate-tpe": "tpe",
    "bayesianoptimization": "bayes",
    "cmaes": "cma-es",
    "hyperband": "hyperband",
    "pbt": "pbt",
}
ARCHITECTURES = frozenset({"enas", "darts"})
BY_ROUNDS = frozenset({"tpe", "bayes", "cma-es", "hyperband", "pbt"})
USUAL_ROUND = 3
"""Katib's parallelTrialCount where nothing is said."""
FEWEST_NUMBERS = 2
USUAL_POPULATION = 40
USUAL_ETA = 3

STOPPED_WHEN = "medians of a batch's records end trials of the batches after it; Katib compares while all run"


@dataclass(frozen=True, slots=True)
class Algorithm:
    """What an Experiment's algorithm is here."""

    method: str
    seed: int | None
    settings: dict[str, Fields]
    """By name; those that were used are taken out."""
    place: str
    losses: tuple[Loss, ...]


def read(algorithm: Fields) -> Algorithm:
    """Read which method an Experiment means. Raises ForeignError for what is no search of hyperparameters."""
    name = algorithm.text("algorithmName") or ""
    place = f"{algorithm.at('algorithmName')}: {name}"
    if name in ARCHITECTURES:
        raise ForeignError(
            f"{place} searches neural architectures, not hyperparameters",
            hint="a sweep varies values; let the program build the network from them",
        )
    losses = [] if name in METHODS else [Loss(place, "is none of Katib's algorithms; random here")]
    settings: dict[str, Fields] = {}
    for setting in algorithm.each("algorithmSettings"):
        settings[setting.text("name") or ""] = setting
    method, seed = METHODS.get(name, "random"), None
    state = settings.get("random_state")
    value = state.text("value") if state and method != "grid" else None
    if value is not None and value.isdecimal():
        seed = int(value)
        del settings["random_state"]
    return Algorithm(method, seed, settings, place, tuple(losses))


def unused(algorithm: Algorithm) -> list[Loss]:
    """Name the settings that have no counterpart."""
    return [
        Loss(f"{setting.path}: {name}: {setting.text('value')}", "has no counterpart here")
        for name, setting in algorithm.settings.items()
    ]


def searched(
    algorithm: Algorithm, found: Sequence[Read], size: int | None
) -> tuple[dict[str, Any], list[Loss]]:
    """Give the keys of a search by rounds; `size` is how many trials Katib would run at once."""
    size = size or USUAL_ROUND
    losses = [Loss("rounds", f"Katib asks for one trial whenever one ends; here {size} at a time")]
    match algorithm.method:
        case "hyperband":
            return _hyperband(algorithm, found)
        case "pbt":
            return _population(algorithm)
        case "cma-es" if sum(map(_is_number, found)) < FEWEST_NUMBERS:
            losses.append(Loss(algorithm.place, "needs two ranges of numbers; written as tpe"))
            return {"method": "tpe", "rounds": {"size": size}}, losses
        case method:
            return {"method": method, "rounds": {"size": size}}, losses


def _is_number(parameter: Read) -> bool:
    return "min" in parameter.domain or "mu" in parameter.domain


def _hyperband(algorithm: Algorithm, found: Sequence[Read]) -> tuple[dict[str, Any], list[Loss]]:
    most, eta = _whole(algorithm, "r_l"), _whole(algorithm, "eta") or USUAL_ETA
    setting = algorithm.settings.pop("resource_name", None)
    foreign = setting.text("value") if setting else None
    name = next((one.name for one in found if one.foreign == foreign), None)
    if most is None or name is None or most <= eta or eta < 2:  # noqa: PLR2004 - what halves at least
        why = "needs r_l, more than eta, and the resource_name of a parameter; written as tpe"
        return {"method": "tpe", "rounds": {"size": USUAL_ROUND}}, [Loss(algorithm.place, why)]
    steps = int(math.log(most, eta) + 1e-9)
    resource = {"parameter": name, "min": max(1, most // eta**steps), "max": most, "eta": eta}
    why = f"is set by the method here, from {resource['min']} to {most}; its feasible space is left out"
    losses = [Loss(f"parameters: {name}", why)]
    return {"method": "hyperband", "rounds": {"size": eta**steps}, "resource": resource}, losses


def _population(algorithm: Algorithm) -> tuple[dict[str, Any], list[Loss]]:
    size = _whole(algorithm, "n_population") or USUAL_POPULATION
    why = "Katib trains a fixed amount a generation; here `epochs` is how far each goes in all: adapt it"
    losses = [Loss("resource", why)]
    kept = ("truncation_threshold", "resample_probability")
    losses += [
        Loss(f"{setting.path}: {name}", "a fifth is replaced, and a quarter drawn anew, here")
        for name in kept
        if (setting := algorithm.settings.pop(name, None)) is not None
    ]
    resource = {"parameter": "epochs", "min": 1, "max": 10}
    return {"method": "pbt", "rounds": {"size": max(2, size)}, "resource": resource}, losses


def _whole(algorithm: Algorithm, name: str) -> int | None:
    setting = algorithm.settings.get(name)
    value = setting.text("value") if setting else None
    try:
        number = None if value is None else int(float(value))
    except (ValueError, OverflowError):
        return None
    if number is not None:
        del algorithm.settings[name]
    return number


def early_stopping(stopping: Fields) -> tuple[dict[str, Any] | None, list[Loss]]:
    """Read the rule that ends trials; None where there is none that is known here."""
    if not stopping.data:
        return None, []
    name = stopping.text("algorithmName") or ""
    if name != "medianstop":
        why = "is no rule of Katib's; trials run to their end"
        return None, [Loss(f"{stopping.at('algorithmName')}: {name}", why)]
    rule: dict[str, Any] = {"type": "median", "min_trials": 3, "min_iter": 4}
    losses = [Loss(f"{stopping.path}: medianstop", STOPPED_WHEN)]
    for setting in stopping.each("algorithmSettings"):
        key, value = setting.text("name") or "", setting.text("value") or ""
        named = {"min_trials_required": "min_trials", "start_step": "min_iter"}.get(key)
        if named is None or not value.isdecimal() or int(value) < 1:
            losses.append(Loss(f"{setting.path}: {key}: {value}", "has no counterpart here"))
        else:
            rule[named] = int(value)
    return rule, losses
