"""The command and the environment of a trial's container, with the trial's values filled in.

The launcher derives the same values from the table.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sweepledger.formats.hyperparams_csv import Column, ColumnType, json_cell
from sweepledger.reader.launcher_parts import SPREAD, spread
from sweepledger.render.manifest import Manifest
from sweepledger.structs.batch import Batch
from sweepledger.structs.names import environment_name
from sweepledger.structs.program import Macro, parse_element, spread_names
from sweepledger.structs.trial import Trial
from sweepledger.structs.values import Value, written

VARIABLE_REFERENCE = re.compile(r"\$(?=[$(])")


def escape_variables(text: str) -> str:
    """Return text escaped so that Kubernetes does not expand it as a reference to a variable."""
    return VARIABLE_REFERENCE.sub("$$", text)


def trial_environment(trial: Trial, columns: Sequence[Column]) -> list[Manifest]:
    """List the trial's values as variables of a container, in the order of the table."""
    return [
        {
            "name": environment_name(column.name),
            "value": escape_variables(
                json_cell(value) if column.type is ColumnType.JSON else str(written(value))
            ),
        }
        for column in columns
        if column.name in trial.assignment
        for value in [trial.assignment[column.name]]
    ]


def trial_arguments(batch: Batch, trial: Trial) -> list[str]:
    """Return the command with the trial's values, as arguments of a container."""
    seed = batch.run.seed_base + trial.replicate
    words = expand_command(
        batch.program.command, trial.assignment, batch.sweep.columns, (batch.run.interpreter, seed)
    )
    return [escape_variables(argument) for argument in words]


def expand_command(
    command: Sequence[str], assignment: Mapping[str, Value], order: Iterable[str], known: tuple[str, int]
) -> list[str]:
    """Return the words of a command with a trial's values, interpreter and seed.

    Values that only the pod knows are in angle brackets.
    """
    # Like the launcher reads the table: in the order of its columns.
    values: dict[str, Any] = {name: written(assignment[name]) for name in order if name in assignment}
    interpreter, seed = known
    macro_values = {
        "args_json": json.dumps(values),
        "args_json_file": "<args_json_file>",
        "config": "<config>",
        "env": "/usr/bin/env",
        "interpreter": interpreter,
        "seed": str(seed),
    }
    shown: list[str] = []
    for element in command:
        parts = parse_element(element)
        match parts:
            case (Macro(name, names),) if name in SPREAD:
                shown += spread(name, names, values, spread_names(command))
            case _:
                shown.append("".join(_text(part, macro_values) for part in parts))
    return shown


def _text(part: str | Macro, known: Mapping[str, str]) -> str:
    match part:
        case str():
            return part
        case Macro(name="envvar", argument=variable):
            return f"<envvar:{variable}>"
        case Macro(name=name):
            return known[name]
