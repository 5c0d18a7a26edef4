"""A search of another tool as the keys of a spec: method, size, seed, metric and parameters.

For tools whose files name all of these. A tool with a language of its own builds its spec itself.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sweepledger.exchange.conversion import Loss, LossList
from sweepledger.exchange.fields import show_value
from sweepledger.exchange.spec_parts import (
    DEFAULT_RUN_CAP,
    PLACEHOLDER_METRIC,
    metric_name,
    separate_names,
    space_size,
    valid_name,
)
from sweepledger.formats.foreign_yaml import ForeignError

USUAL_ROUND = 4
"""Trials per round if the file does not say how many run at once."""
GOALS = {"maximize": "maximize", "max": "maximize", "minimize": "minimize", "min": "minimize"}


@dataclass(frozen=True, slots=True)
class ForeignSearch:
    """The search of another tool's file."""

    tool: str
    method: str
    """A method of specs."""
    parameters: Mapping[str, dict[str, Any]]
    """Keys of the spec's parameters, by their names in the spec."""
    metric: str | None
    goal: str | None
    """In any case; `min` and `max` are accepted, too."""
    cap: int | None = None
    seed: int | None = None
    at_once: int | None = None
    """Number of trials at the same time."""


def search_spec(search: ForeignSearch, name: str) -> tuple[dict[str, Any], LossList]:
    """Return the keys of a spec up to its parameters, and the losses."""
    losses = LossList()
    spec: dict[str, Any] = {"name": name, "method": search.method}
    spec |= _size(search, losses)
    spec["metric"] = _metric(search, losses)
    spec["parameters"] = dict(search.parameters)
    return spec, losses


def run_keys(search: ForeignSearch, run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the key `run` with the number of trials at the same time."""
    return {"run": ({} if search.at_once is None else {"parallelism": search.at_once}) | dict(run)}


def parameter_names(foreign_names: Iterable[str], losses: LossList) -> dict[str, str]:
    """Return a name of a spec for each name of the file. Raises ForeignError.

    A name that is missing or written twice is refused: the entries of a list would replace each other.
    """
    valid: dict[str, str] = {}
    taken: set[str] = set()
    for foreign in foreign_names:
        if not foreign or foreign in valid:
            found = f"{show_value(foreign)} twice" if foreign else "one without"
            raise ForeignError(f"each parameter must have a name of its own, got {found}")
        valid[foreign] = valid_name(foreign, taken)
    separated = separate_names(valid.values())
    names = {foreign: separated[name] for foreign, name in valid.items()}
    losses += [
        Loss(f"parameter {foreign}", f"is named {name} here")
        for foreign, name in names.items()
        if foreign != name
    ]
    return names


def _size(search: ForeignSearch, losses: LossList) -> dict[str, Any]:
    size, cap = space_size(search.parameters), search.cap
    if search.method == "grid" and (cap is None or size is None or size <= cap):
        return {}
    if cap is None:
        cap = DEFAULT_RUN_CAP
        losses.add("run_cap", f"the file has no number of trials; written as {cap}")
    if size is not None and 0 < size < cap:
        losses.add(f"run_cap: {cap}", f"there are only {size} combinations, each of which is one trial here")
        cap = size
    if search.seed is None:
        losses.add("seed", "the file has none; written as 0, so that the same trials are drawn every time")
    else:
        losses.add("seed", f"{search.tool} draws other values for the same seed")
    keys: dict[str, Any] = {"seed": search.seed or 0}
    if search.method == "grid":
        why = f"{search.tool} runs as many of {size} combinations in an order of its own; here they are drawn"
        losses.add(f"run_cap: {cap}", why)
        return {"method": "random", **keys, "run_cap": cap}
    if search.method != "random":
        rounds = search.at_once or USUAL_ROUND
        why = f"{search.tool} proposes a trial whenever one ends; here a round proposes {rounds}"
        losses.add("rounds", why)
        keys["rounds"] = {"size": rounds}
    return keys | {"run_cap": cap}


def _metric(search: ForeignSearch, losses: LossList) -> dict[str, Any]:
    if search.metric is None:
        why = f"the file names none; write the name that the program reports instead of {PLACEHOLDER_METRIC}"
        losses.add("metric", why)
    name = PLACEHOLDER_METRIC if search.metric is None else metric_name(search.metric)
    if search.metric is not None:
        losses.add("metric", f"{search.tool} reads it in its own way: print lines `{name}=NUMBER`")
        if name != search.metric:
            losses.add(f"metric: {search.metric}", f"is named {name} here")
    goal = GOALS.get(str(search.goal).lower())
    if goal is None:
        losses.add("metric.goal", "the file names none; written as maximize")
    return {"name": name, "goal": goal or "maximize", "source": "stdout"}
