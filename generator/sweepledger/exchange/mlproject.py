"""MLflow's MLproject file: the parameters of an entry point, each with its default as its only value."""

import re
from typing import Any

from sweepledger.exchange.conversion import Imported, Loss
from sweepledger.exchange.fields import Fields, show_value
from sweepledger.exchange.search_frame import ForeignSearch, parameter_names, search_spec
from sweepledger.exchange.shell_command import split_command
from sweepledger.exchange.spec_parts import CODE_DIR, PROGRAM, find_script, locate_module, locate_script
from sweepledger.formats import foreign_yaml
from sweepledger.formats.foreign_yaml import ForeignError, coerce_number
from sweepledger.structs.names import suggest_sweep_name
from sweepledger.structs.program import PROGRAM_MACRO

PLACEHOLDER = re.compile(r"\{(?P<parameter>[A-Za-z_][A-Za-z0-9_.-]*)\}")
MAIN = "main"
MODULE = "-m"
"""The option of Python before a module."""
TYPES = frozenset({"float", "int", "string", "path", "uri"})


def read(content: bytes, *, name: str) -> Imported:
    """Return a spec with the defaults of the entry point `main`, or of the only one. Raises ForeignError."""
    root = Fields.of(foreign_yaml.load(content), "")
    points = root.inner("entry_points")
    if not points.data:
        raise ForeignError("must be an MLproject file with entry_points, got none")
    chosen = _chosen(points)
    point, losses = points.inner(chosen), []
    losses = [
        Loss(f"{points.at(other)}", f"a spec has one command; {chosen} is written")
        for other in points.data
        if other != chosen
    ]
    written = point.inner("parameters")
    names = parameter_names(map(str, written.data), losses)
    parameters = {names[key]: _constant(written, key, losses) for key in written.data}
    kept = {name: keys for name, keys in parameters.items() if keys is not None}
    if not kept:
        raise ForeignError(
            f"{written.path} must have at least one parameter with a default, got none",
            hint="an MLproject has no search space; write the values to try in a spec",
        )
    search = ForeignSearch("MLflow", "grid", kept, None, None)
    spec, more = search_spec(search, suggest_sweep_name(root.text("name") or "") or name)
    losses.append(
        Loss("parameters", "an MLproject has one value of each; replace `value` by the values to try")
    )
    spec |= _program(point, names, losses)
    for key in ("conda_env", "python_env", "docker_env"):
        losses += root.lost(key, "name an image in run.image, or install what the program needs")
    return Imported(spec, (*losses, *more, *point.rest(), *root.rest()))


def _chosen(points: Fields) -> str:
    """Return `main`, or the first entry point that has a parameter with a default."""
    order = sorted(points.data, key=lambda key: key != MAIN)
    return next((key for key in order if _has_default(points.data[key])), order[0])


def _has_default(point: Any) -> bool:
    parameters = point.get("parameters") if isinstance(point, dict) else None
    written = parameters.values() if isinstance(parameters, dict) else ()
    return any(isinstance(keys, dict) and keys.get("default") is not None for keys in written)


def _constant(parameters: Fields, key: str, losses: list[Loss]) -> dict[str, Any] | None:
    """Return the default of a parameter as its value; None if it has none."""
    data = parameters.data[key]
    fields = (
        Fields({"type": data}, parameters.at(key)) if not isinstance(data, dict) else parameters.inner(key)
    )
    kind, value = fields.text("type") or "string", fields.take("default")
    if kind not in TYPES:
        losses.append(Loss(f"{fields.at('type')}: {kind}", "is not a type of MLflow"))
    losses += fields.rest()
    if value is None:
        losses.append(Loss(fields.path, "has no default; write its values"))
        return None
    if isinstance(value, dict | list):
        raise ForeignError(f"{fields.at('default')} must be a single value, got {show_value(value)}")
    number = coerce_number(value)
    return {"value": value if number is None else number}


def _program(point: Fields, names: dict[str, str], losses: list[Loss]) -> dict[str, Any]:
    text = point.text("command")
    command = None if text is None else split_command(text, PLACEHOLDER, names, losses)
    if command is not None and MODULE in command[1:-1]:
        after = command.index(MODULE) + 1
        module = locate_module(command[after])
        losses += module.losses
        command[after] = module.program
        return {"command": command, "run": {"code": {"path": module.folder}}}
    place = find_script(command) if command else None
    if command is None or place is None:
        losses.append(Loss("program", f"written as {CODE_DIR}/{PROGRAM}: write your program or command"))
        return {"program": PROGRAM, "run": {"code": {"path": CODE_DIR}}}
    location = locate_script(command[place])
    losses += location.losses
    command[place] = PROGRAM_MACRO
    keys = location.as_spec()
    return {"program": keys["program"], "command": command, "run": keys["run"]}
