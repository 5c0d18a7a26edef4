"""Parts of an imported spec that several formats need: names, the program, the size of the space."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import PurePosixPath
from typing import Any

from sweepledger.exchange.conversion import LossList
from sweepledger.structs.metric import MAX_METRIC_NAME_LENGTH, METRIC_NAME
from sweepledger.structs.names import environment_name
from sweepledger.structs.program import REPOSITORY

PLACEHOLDER_METRIC = "objective"
"""Metric of an imported spec whose file names no metric."""


def metric_name(text: str) -> str:
    """Return a metric's name for any text: other characters become `_`."""
    name = re.sub(r"[^A-Za-z0-9_./@-]", "_", text)[:MAX_METRIC_NAME_LENGTH]
    return name if METRIC_NAME.fullmatch(name) else PLACEHOLDER_METRIC


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


def valid_name(foreign: str, taken: set[str]) -> str:
    """Return a name without the dashes of an option, whose environment variable is not taken; take the variable."""
    plain = re.sub(r"[^A-Za-z0-9_.-]", "_", foreign.lstrip("-"))[:LONGEST_NAME]
    if not plain[:1].isalpha():
        plain = f"p{plain}"[:LONGEST_NAME]
    name, number = plain, 2
    while environment_name(name) in taken:
        name, number = f"{plain[: LONGEST_NAME - 4]}_{number}", number + 1
    taken.add(environment_name(name))
    return name


def separate_names(names: Iterable[str]) -> dict[str, str]:
    """Return a parameter for each name: `a` becomes `a_choice` beside `a.b`, as it cannot be value and mapping."""
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


def range_keys(low: float, high: float, *, is_log: bool, is_whole: bool) -> dict[str, Any]:
    """Return the keys of a parameter between two bounds, of whole numbers or of all."""
    if not is_log:
        return {"distribution": "int_uniform" if is_whole else "uniform", "min": low, "max": high}
    keys = {"distribution": "log_uniform_values", "min": low, "max": high}
    return keys | ({"distribution": "q_log_uniform_values", "q": 1} if is_whole else {})


def space_size(parameters: Mapping[str, Any]) -> int | None:
    """Return the number of combinations of a space; None if a parameter has infinitely many values."""
    sizes = [_value_count(keys) for keys in parameters.values()]
    return None if None in sizes else math.prod(size for size in sizes if size is not None)


def step_count(low: float, high: float, step: float) -> int:
    """Return the number of values from low to high by a step above 0; exactly, since steps of 0.1 are no floats."""
    start, end, stride = (Fraction(str(number)) for number in (low, high, step))
    return int(max(Fraction(0), end - start) // stride) + 1


def last_step(low: float, high: float, step: float) -> float:
    """Return the last value from low by a step that does not exceed high: high itself, if the steps reach it."""
    if step <= 0 or high < low:
        return high
    last = Fraction(str(low)) + (step_count(low, high, step) - 1) * Fraction(str(step))
    if last == Fraction(str(high)):
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
            return step_count(low, high, step)
        case {"min": int(low), "max": int(high)} if keys.get("distribution", "int_uniform") == "int_uniform":
            return max(0, high - low) + 1
        case _:
            return None
