"""A sweep job of Azure Machine Learning."""

import re
import shlex
from collections.abc import Mapping
from typing import Any

from sweepledger.exchange.conversion import Imported, Loss
from sweepledger.exchange.fields import Fields, exact_number, show_value, spec_number
from sweepledger.exchange.search_frame import ForeignSearch, parameter_names, run_keys, search_spec
from sweepledger.exchange.shell_command import split_command
from sweepledger.exchange.spec_parts import CODE_DIR, PROGRAM, find_script
from sweepledger.formats import foreign_yaml
from sweepledger.formats.foreign_yaml import ForeignError
from sweepledger.structs.names import suggest_sweep_name
from sweepledger.structs.program import PROGRAM_MACRO
from sweepledger.structs.values import canonical_json

TOOL = "Azure ML"
METHODS = {"grid": "grid", "random": "random", "bayesian": "bayes"}
PLACEHOLDER = re.compile(r"\$\{\{\s*search_space\.(?P<parameter>[A-Za-z_][A-Za-z0-9_.-]*)\s*\}\}")
INPUT = re.compile(r"\$\{\{\s*inputs\.(?P<input>[A-Za-z_][A-Za-z0-9_.-]*)\s*\}\}")
DATA_MARK = "SWEEP_DATA_FOLDER"
"""Stands for `$SWEEP_DATA` while a command is split."""
UNIFORM = {
    "uniform": "uniform",
    "quniform": "q_uniform",
    "loguniform": "log_uniform",
    "qloguniform": "q_log_uniform",
}
"""Azure ML's bounds of `loguniform` are exponents of e, as W&B's of `log_uniform`."""
NORMAL = {"normal": "normal", "qnormal": "q_normal", "lognormal": "log_normal", "qlognormal": "q_log_normal"}


def read(content: bytes, *, name: str) -> Imported:
    """Return a spec for a sweep job. Raises ForeignError."""
    root = Fields.of(foreign_yaml.load(content), "")
    if root.text("type") != "sweep" or not root.inner("search_space").data:
        raise ForeignError("must be a sweep job of Azure ML: type: sweep, with search_space")
    losses: list[Loss] = []
    space, trial = root.inner("search_space"), root.inner("trial")
    names = parameter_names(map(str, space.data), losses)
    parameters = {names[key]: _domain(space.inner(key), losses) for key in space.data}
    search = _search(root, parameters, losses)
    spec, more = search_spec(
        search, suggest_sweep_name(root.text("experiment_name") or root.text("name") or "") or name
    )
    description = root.text("description") or root.text("display_name")
    if description:
        spec["description"] = description
    limits = root.inner("limits")
    timeout = limits.whole("trial_timeout")
    limits.taken |= {"max_total_trials", "max_concurrent_trials"}
    inputs = root.inner("inputs")
    keys = _program(trial, inputs, names, losses)
    spec |= keys | run_keys(search, keys["run"] | ({} if timeout is None else {"timeout": f"{timeout}s"}))
    root.take("$schema")
    return Imported(spec, (*losses, *more, *limits.rest(), *inputs.rest(), *trial.rest(), *root.rest()))


def _search(root: Fields, parameters: Mapping[str, dict[str, Any]], losses: list[Loss]) -> ForeignSearch:
    written = root.data.get("sampling_algorithm", "random")
    sampling = Fields.of(written if isinstance(written, dict) else {"type": written}, "sampling_algorithm")
    root.taken.add("sampling_algorithm")
    kind, rule = sampling.text("type") or "random", sampling.text("rule")
    method = METHODS.get(kind.lower(), "random")
    if kind.lower() not in METHODS:
        losses.append(Loss(f"sampling_algorithm: {kind}", "is not one of Azure ML; written as random"))
    if rule == "sobol" and method == "random":
        method = "sobol"
    objective, limits = root.inner("objective"), root.inner("limits")
    stopping = root.lost("early_termination", "trials run to their end; early_terminate has rules of its own")
    search = ForeignSearch(
        TOOL,
        method,
        parameters,
        objective.text("primary_metric"),
        objective.text("goal"),
        limits.whole("max_total_trials"),
        sampling.whole("seed"),
        limits.whole("max_concurrent_trials"),
    )
    losses += [*objective.rest(), *sampling.rest(), *stopping]
    return search


def _domain(space: Fields, losses: list[Loss]) -> dict[str, Any]:
    kind = space.text("type")
    if kind == "choice":
        domain = _choice(space, losses)
    elif kind == "randint":
        upper = exact_number(space.text("upper"), space.at("upper"))
        last = spec_number(upper - 1)
        domain = {"distribution": "int_uniform", "min": 0, "max": last} if last != 0 else {"value": 0}
    elif kind in UNIFORM or kind in NORMAL:
        keys = ("min_value", "max_value") if kind in UNIFORM else ("mu", "sigma")
        first, second = (spec_number(exact_number(space.text(key), space.at(key))) for key in keys)
        ends = {"min": first, "max": second} if kind in UNIFORM else {"mu": first, "sigma": second}
        domain = {"distribution": (UNIFORM | NORMAL)[kind], **ends}
        if kind.startswith("q"):
            domain["q"] = spec_number(exact_number(space.text("q"), space.at("q")))
    else:
        kinds = ", ".join(sorted({"choice", "randint", *UNIFORM, *NORMAL}))
        raise ForeignError(f"{space.at('type')} must be one of {kinds}, got {kind!r}")
    losses += space.rest()
    return domain


def _choice(space: Fields, losses: list[Loss]) -> dict[str, Any]:
    values = []
    for item in space.items("values"):
        if isinstance(item, dict | list):
            losses.append(Loss(f"{space.at('values')}: {show_value(item)}", "written as JSON text"))
            values.append(canonical_json(item))
        else:
            values.append(item)
    distinct = list({canonical_json(value): value for value in values}.values())
    if not distinct:
        raise ForeignError(f"{space.at('values')} must have at least one value, got none")
    if len(distinct) < len(values):
        losses.append(Loss(space.at("values"), "repeats a value; written once"))
    return {"values": distinct} if len(distinct) > 1 else {"value": distinct[0]}


def _program(trial: Fields, inputs: Fields, names: Mapping[str, str], losses: list[Loss]) -> dict[str, Any]:
    """Return program, command and run; the folder of the code is that of the job."""
    text, folder = trial.text("command"), trial.text("code")
    path = CODE_DIR
    parts = (
        []
        if folder is None or ":" in folder
        else [part for part in folder.split("/") if part not in {"", "."}]
    )
    if parts and ".." not in parts:
        path = "/".join(parts)
    else:
        losses.append(
            Loss(f"trial.code: {folder}", f"is not a folder of the repository; written as {CODE_DIR}")
        )
    run = {"code": {"path": path}}
    text = None if text is None else INPUT.sub(lambda match: _input(match, inputs, losses), text)
    command = None if text is None else split_command(text, PLACEHOLDER, names, losses)
    command = command and [part.replace(DATA_MARK, "${envvar:SWEEP_DATA}") for part in command]
    place = find_script(command) if command else None
    if command is None:
        losses.append(Loss("program", f"written as {PROGRAM}: write your program or command"))
        return {"program": PROGRAM, "run": run}
    losses += [
        Loss(f"command: {part}", "is filled in by Azure ML; write the value")
        for part in command
        if "${{" in part
    ]
    if place is None:
        return {"command": command, "run": run}
    program, command[place] = command[place].removeprefix("./"), PROGRAM_MACRO
    return {"program": program, "command": command, "run": run}


def _input(match: re.Match[str], inputs: Fields, losses: list[Loss]) -> str:
    """Return the text of an input of the job; a dataset is `$SWEEP_DATA`."""
    value = inputs.take(match["input"])
    if isinstance(value, dict | list) or value is None:
        losses.append(Loss(f"inputs.{match['input']}", "is data; name a dataset of the settings in run.data"))
        return DATA_MARK
    return shlex.quote(str(value))
