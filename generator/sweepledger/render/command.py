"""A trial's values where a reviewer looks for them; the launcher works out the same from the table."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from generator.formats.table import Column, environment_text
from generator.render.pod import Manifest
from generator.structs.batch import Batch
from generator.structs.command import Macro, parse_element
from generator.structs.names import environment_name
from generator.structs.trial import Trial
from generator.structs.values import Value, canonical

SPREADING: Mapping[str, Callable[[str, Any], list[str]]] = {
    "args": lambda name, value: [f"--{name}={value}"],
    "args_no_hyphens": lambda name, value: [f"{name}={value}"],
    "args_no_boolean_flags": lambda name, value: (
        [f"--{name}={value}"] if not isinstance(value, bool) else [f"--{name}"] if value else []
    ),
}
"""Python's `str()` of a value, as Weights & Biases does it. The launcher has the same three lines."""


FILLED_IN = re.compile(r"\$(?=[$(])")


def escaped(text: str) -> str:
    """Keep Kubernetes from filling in what looks like a reference to a variable, or from unescaping it."""
    return FILLED_IN.sub("$$", text)


def environment(trial: Trial, columns: Sequence[Column]) -> list[Manifest]:
    """List the trial's values as variables of a container, in the order of the table."""
    return [
        {
            "name": environment_name(column.name),
            "value": escaped(environment_text(trial.assignment[column.name], column.type)),
        }
        for column in columns
        if column.name in trial.assignment
    ]


def arguments(batch: Batch, trial: Trial) -> list[str]:
    """Give the command with the trial's values, as a container's arguments hold it."""
    seed = batch.run.seed_base + trial.replicate
    found = words(batch.program.command, trial.assignment, batch.columns, (batch.run.interpreter, seed))
    return [escaped(argument) for argument in found]


def words(
    command: Sequence[str], assignment: Mapping[str, Value], order: Iterable[str], known: tuple[str, int]
) -> list[str]:
    """Give a command with a trial's values, its interpreter and its seed, word by word.

    What only its pod can know is shown in angle brackets.
    """
    # As the launcher reads them back from the table: in its order, whole numbers without a fraction.
    values: dict[str, Any] = {name: canonical(assignment[name]) for name in order if name in assignment}
    interpreter, seed = known
    told = {
        "args_json": json.dumps(values),
        "args_json_file": "<args_json_file>",
        "env": "/usr/bin/env",
        "interpreter": interpreter,
        "seed": str(seed),
    }
    shown: list[str] = []
    for element in command:
        parts = parse_element(element)
        match parts:
            case (Macro(name=name),) if name in SPREADING:
                for parameter, value in values.items():
                    shown += SPREADING[name](parameter, value)
            case _:
                shown.append("".join(_text(part, told) for part in parts))
    return shown


def _text(part: str | Macro, known: Mapping[str, str]) -> str:
    match part:
        case str():
            return part
        case Macro(name="envvar", argument=variable):
            return f"<envvar:{variable}>"
        case Macro(name=name):
            return known[name]
