"""Search spaces that sweepers write as mappings: Optuna's old `search_space`, Ax's `ax_config`, Nevergrad's scalars."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sweepledger.exchange.conversion import Loss
from sweepledger.exchange.fields import exact_number, show_value, spec_number
from sweepledger.exchange.hydra.overrides import hydra_text
from sweepledger.exchange.spec_parts import last_step
from sweepledger.formats.foreign_yaml import ForeignError

AX_KEYS = frozenset({"max_trials", "params", "client", "experiment"})
NEVERGRAD_KEYS = frozenset({"optimizer", "budget", "num_workers", "maximize", "seed"})


@dataclass(frozen=True, slots=True)
class MappedSpace:
    """Parameters that are written as mappings."""

    parameters: Mapping[str, dict[str, Any]]
    """Ranges by Hydra's keys."""
    overrides: tuple[str, ...]
    """Choices and constants as overrides of Hydra."""
    losses: tuple[Loss, ...]


def read_search_space(config: Mapping[str, Any]) -> MappedSpace:
    """Return the parameters of a sweeper's config. Raises ForeignError for malformed ones."""
    parameters: dict[str, dict[str, Any]] = {}
    overrides: list[str] = []
    losses = [*_options(config)]
    for place, key, written in _entries(config):
        domain = _domain(place, written, losses)
        if isinstance(domain, str):
            overrides.append(f"{key}={domain}")
        else:
            parameters[key] = domain
    return MappedSpace(parameters, tuple(overrides), tuple(losses))


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


def _domain(place: str, written: Mapping[str, Any], losses: list[Loss]) -> dict[str, Any] | str:
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
    if low == high:
        return {"value": low}
    if written.get("log") is True or written.get("log_scale") is True:
        keys = {"distribution": "log_uniform_values", "min": low, "max": high}
        return keys | ({"distribution": "q_log_uniform_values", "q": 1} if whole else {})
    if step is not None and step != (1 if whole else 0):
        # Optuna, too, ends at the last step that does not exceed the range.
        return {"min": low, "max": last_step(low, high, step), "step": step}
    return {"distribution": "int_uniform" if whole else "uniform", "min": low, "max": high}


def _ax_range(place: str, written: Mapping[str, Any]) -> dict[str, Any]:
    """Return a range of Ax, whose values are integers if both bounds are."""
    bounds = written.get("bounds")
    if not isinstance(bounds, list) or len(bounds) != 2:  # noqa: PLR2004 - both ends
        raise ForeignError(f"{place}.bounds must be [low, high], got {show_value(bounds)}")
    ends = {"low": bounds[0], "high": bounds[1], "log_scale": written.get("log_scale")}
    integers = all(isinstance(bound, int) and not isinstance(bound, bool) for bound in bounds)
    whole = written.get("value_type", "int" if integers else "float") == "int"
    return _range(place, ends, ("low", "high"), whole=whole)


def _scalar(place: str, written: Mapping[str, Any], losses: list[Loss]) -> dict[str, Any]:
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
    why = "has no bounds in Nevergrad; written as the distribution of its first steps from init"
    losses.append(Loss(place, why))
    if is_log:
        mu, sigma = (float(f"{math.log(number):.12g}") for number in (start, width))
        return {"distribution": "log_normal", "mu": mu, "sigma": sigma}
    return {"distribution": "normal", "mu": start, "sigma": width}
