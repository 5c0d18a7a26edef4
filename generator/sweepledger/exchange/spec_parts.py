"""Parts of an imported spec that several formats need: names, the program, values and ranges, size and metric.

A `ForeignSearch` holds keys under the names of the format, such as `n_trials` or `parallelTrialCount`.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import PurePosixPath
from typing import Any

from sweepledger.exchange.conversion import Loss, LossList
from sweepledger.exchange.fields import json_text, no_values, show_value
from sweepledger.formats.foreign_yaml import ForeignError
from sweepledger.structs.methods import METHODS
from sweepledger.structs.metric import MAX_METRIC_NAME_LENGTH, METRIC_NAME
from sweepledger.structs.names import environment_name
from sweepledger.structs.program import REPOSITORY
from sweepledger.structs.values import canonical_json

PLACEHOLDER_METRIC = "objective"
"""Metric of an imported spec whose file names no metric."""


def metric_name(text: str, losses: LossList) -> str:
    """Return a valid metric name for any text; invalid characters become `_`."""
    name = re.sub(r"[^A-Za-z0-9_./@-]", "_", text)[:MAX_METRIC_NAME_LENGTH]
    name = name if METRIC_NAME.fullmatch(name) else PLACEHOLDER_METRIC
    if name != text:
        losses.add(f"metric: {text}", f"is named {name} here")
    return name


DEFAULT_RUN_CAP = 50
"""Trials of an imported random search whose file sets no limit."""

PROGRAM = "train.py"
CODE_DIR = "code"
"""Suggested folder for a script that is not in the repository."""
WHOLE_FOLDER = "is locked and run; trials cannot read files outside it"
WHOLE_REPOSITORY = (
    "is in the repository's root folder, so every committed file is locked and run; "
    "run.code.exclude leaves out what is no code"
)


def locate_script(program: str, losses: LossList) -> tuple[str, str]:
    """Return the code folder and the program of a script's path in the repository."""
    path, place = PurePosixPath(program), f"program: {program}"
    parts = [part for part in path.parts if part != "."]
    if path.is_absolute() or ".." in parts or not parts:
        name = parts[-1] if parts and parts[-1] not in {"..", "/"} else "train.py"
        why = f"is outside the repository, and only committed code runs; written as {CODE_DIR}/{name}: copy it there"
        losses.add(place, why)
        return CODE_DIR, name
    if len(parts) > 1:
        losses.add(place, f"the folder {parts[0]} {WHOLE_FOLDER}")
        return parts[0], "/".join(parts[1:])
    losses.add(place, WHOLE_REPOSITORY)
    return REPOSITORY, parts[0]


def locate_module(module: str, losses: LossList) -> tuple[str, str]:
    """Return the code folder of a module that `python -m` starts, and the module as the trial starts it."""
    parts = module.split(".")
    if len(parts) > 1 and all(map(str.isidentifier, parts)):
        losses.add(f"program: {module}", f"the folder {parts[0]} {WHOLE_FOLDER}")
        return parts[0], module
    losses.add(f"program: {module}", WHOLE_REPOSITORY)
    return REPOSITORY, parts[0] if parts[0].isidentifier() else PurePosixPath(PROGRAM).stem


LONGEST_NAME = 63
"""Characters of a parameter's name."""


def separate_names(names: Iterable[str]) -> dict[str, str]:
    """Return a parameter for each name: `a` becomes `a_choice` beside `a.b`, as `a` cannot be value and mapping."""
    given = list(dict.fromkeys(names))
    holders = {
        ".".join(parts[:end]) for parts in (name.split(".") for name in given) for end in range(1, len(parts))
    }
    taken = set(given)
    separated: dict[str, str] = {}
    for name in given:
        parameter = f"{name}_choice" if name in holders else name
        while parameter != name and parameter in taken:
            parameter += "_"
        taken.add(parameter)
        separated[name] = parameter
    return separated


def find_script(command: Sequence[str]) -> int | None:
    """Return the index of the Python script in a command; None if there is none."""
    return next((place for place, part in enumerate(command) if part.endswith(".py")), None)


def range_keys(
    low: float, high: float, *, is_log: bool, is_whole: bool, step: float | None = None
) -> dict[str, Any]:
    """Return the keys of a parameter between two bounds, whole numbers or real ones; one value if they are equal.

    With a step, the upper bound becomes the last value that steps reach; otherwise the bounds are unchanged.
    """
    has_steps = bool(step) and not is_log and not (is_whole and step == 1)
    high = last_step(low, high, step) if step and has_steps else high
    if low == high:
        return {"value": low}
    if is_log:
        keys = {"distribution": "log_uniform_values", "min": low, "max": high}
        return keys | ({"distribution": "q_log_uniform_values", "q": 1} if is_whole else {})
    if has_steps:
        return {"min": low, "max": high, "step": step}
    return {"distribution": "int_uniform" if is_whole else "uniform", "min": low, "max": high}


def listed_keys(
    items: Iterable[Any], where: str, losses: LossList, *, line: int | None = None
) -> dict[str, Any]:
    """Return the keys of a parameter with listed values, without duplicates. Raises ForeignError for an empty list."""
    values = [spec_value(item, where, losses) for item in items]
    # JSON tells 1 from true, which Python's equality does not.
    distinct = list({canonical_json(value): value for value in values}.values())
    if not distinct:
        raise no_values(where, line=line)
    if len(distinct) < len(values):
        losses.add(where, "repeats a value; written once, as equal configurations are one trial here")
    return {"values": distinct} if len(distinct) > 1 else {"value": distinct[0]}


def spec_value(value: Any, where: str, losses: LossList) -> Any:
    """Return a value for a spec; as text if it is neither a scalar nor a list of scalars. Raises ForeignError."""
    items = list(value) if isinstance(value, list | tuple) else [value]
    if any(isinstance(item, float) and not math.isfinite(item) for item in items):
        raise ForeignError(f"{where}: a value must be finite, got {show_value(value)}")
    if not any(isinstance(item, dict | list | tuple) for item in items):
        return items if isinstance(value, tuple) else value
    text = json_text(value)
    losses.add(where, f"a value is a scalar or a list of scalars; written as the text {show_value(text)}")
    return text


def space_size(parameters: Mapping[str, Any]) -> int | None:
    """Return the number of combinations of a space; None if a parameter has infinitely many values."""
    sizes = [_value_count(keys) for keys in parameters.values()]
    return None if None in sizes else math.prod(size for size in sizes if size is not None)


def last_step(low: float, high: float, step: float) -> float:
    """Return the last value, counted from low by a step, that does not exceed high.

    The result is exact, since floats cannot represent steps of 0.1.
    """
    if step <= 0 or high < low:
        return high
    start, end, stride = (Fraction(str(number)) for number in (low, high, step))
    last = start + (end - start) // stride * stride
    if last == end:
        return high
    return int(last) if last.denominator == 1 else float(last)


def _value_count(keys: Any) -> int | None:
    match keys:
        case {"parameters": dict() as nested}:
            return space_size(nested)
        case {"value": _}:
            return 1
        case {"values": list() as values}:
            return len(values)
        case {
            "min": int() | float() as low,
            "max": int() | float() as high,
            "step": int() | float() as step,
        } if step > 0:
            return int((Fraction(str(high)) - Fraction(str(low))) // Fraction(str(step))) + 1
        case {"min": int(low), "max": int(high)} if keys.get("distribution", "int_uniform") == "int_uniform":
            return max(0, high - low) + 1
        case _:
            return None


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
    metric: str | None = None
    goal: str | None = None
    """In any case; `min` and `max` are accepted, too."""
    cap: int | None = None
    seed: int | None = None
    at_once: int | None = None
    """Number of trials at the same time."""
    uses_results: bool = False
    """Whether results end trials, or the search, whatever its method."""
    code: Mapping[str, str] = field(default_factory=dict)
    """What the file has as code for the keys `metric` and `metric.goal`."""

    def missing(self, key: str, instead: str) -> Loss:
        """Return the loss of a key that the file lacks or gives as code."""
        why = "is code, which is not executed" if key in self.code else "the file names none"
        return Loss(self.code.get(key, key), f"{why}; {instead}")


def search_spec(search: ForeignSearch, name: str, losses: LossList) -> dict[str, Any]:
    """Return the keys of a spec up to its parameters."""
    spec: dict[str, Any] = {"name": name, "method": search.method}
    spec |= size_keys(search, losses)
    name = PLACEHOLDER_METRIC
    if search.metric is None:
        instead = f"write the name that the program reports instead of {PLACEHOLDER_METRIC}"
        losses.append(search.missing("metric", instead))
    else:
        name = metric_name(search.metric, losses)
        losses.add("metric", f"{search.tool} reads it in its own way: print lines `{name}=NUMBER`")
    goal = GOALS.get(str(search.goal).lower())
    if goal is None:
        losses.append(search.missing("metric.goal", "written as maximize"))
    spec["metric"] = {"name": name, "goal": goal or "maximize", "source": "stdout"}
    spec["parameters"] = dict(search.parameters)
    return spec


def run_keys(search: ForeignSearch, run: Mapping[str, Any]) -> dict[str, Any]:
    """Return the key `run` with the number of trials at the same time."""
    return {"run": ({} if search.at_once is None else {"parallelism": search.at_once}) | dict(run)}


def parameter_names(foreign_names: Iterable[str], losses: LossList) -> dict[str, str]:
    """Return a spec's name for each name of the file, without the dashes of an option. Raises ForeignError.

    Missing and repeated names are refused: the entries of a list would replace each other.
    """
    valid: dict[str, str] = {}
    taken: set[str] = set()  # names of environment variables
    for foreign in foreign_names:
        if not foreign or foreign in valid:
            found = f"{show_value(foreign)} twice" if foreign else "one without"
            raise ForeignError(f"each parameter must have a name of its own, got {found}")
        plain = re.sub(r"[^A-Za-z0-9_.-]", "_", foreign.lstrip("-"))[:LONGEST_NAME]
        if not plain[:1].isalpha():
            plain = f"p{plain}"[:LONGEST_NAME]
        name, number = plain, 2
        while environment_name(name) in taken:
            name, number = f"{plain[: LONGEST_NAME - 4]}_{number}", number + 1
        taken.add(environment_name(name))
        valid[foreign] = name
    separated = separate_names(valid.values())
    names = {foreign: separated[name] for foreign, name in valid.items()}
    for foreign, name in names.items():
        if foreign != name:
            losses.add(f"parameter {foreign}", f"is named {name} here")
    return names


def size_keys(search: ForeignSearch, losses: LossList) -> dict[str, Any]:
    """Return the number of trials, the seed and the rounds; and the method if a grid is not run in full."""
    size, cap, method = space_size(search.parameters), search.cap, search.method
    keys: dict[str, Any] = {}
    if method in METHODS or search.uses_results:
        rounds = search.at_once or USUAL_ROUND
        why = f"{search.tool} uses results as trials end; here a round requests {rounds} from those of earlier rounds"
        losses.add("rounds", why)
        keys["rounds"] = {"size": rounds}
    if method == "grid" and (cap is None or size is None or size <= cap):
        return keys
    if cap is None:
        cap = min(DEFAULT_RUN_CAP, size or DEFAULT_RUN_CAP)
        losses.add("run_cap", f"the file has no number of trials; written as {cap}")
    if size is not None and 0 < size < cap:
        losses.add(f"run_cap: {cap}", f"there are only {size} combinations, each of which is one trial here")
        cap = size
    if search.seed is None:
        losses.add("seed", "the file has none; written as 0, so that the same trials are drawn every time")
    else:
        losses.add("seed", f"{search.tool} draws other values for the same seed")
    if method == "grid":
        why = f"{search.tool} runs as many of {size} combinations in an order of its own; here they are drawn"
        losses.add(f"run_cap: {cap}", why)
        keys["method"] = "random"
    return {"seed": search.seed or 0, **keys, "run_cap": cap}
