"""A sweep job of Azure Machine Learning."""

import re
import shlex
from collections.abc import Mapping
from decimal import Decimal
from math import log
from pathlib import PurePosixPath
from typing import Any

from sweepledger.exchange.conversion import Imported, Loss
from sweepledger.exchange.fields import Fields, exact_number, json_text, no_values, show_value, spec_number
from sweepledger.exchange.search_frame import ForeignSearch, parameter_names, run_keys, search_spec
from sweepledger.exchange.shell_command import split_command
from sweepledger.exchange.spec_parts import CODE_DIR, PROGRAM, WHOLE_REPOSITORY, find_script
from sweepledger.formats import foreign_yaml
from sweepledger.formats.foreign_yaml import ForeignError
from sweepledger.structs.names import suggest_sweep_name
from sweepledger.structs.program import PROGRAM_MACRO, REPOSITORY
from sweepledger.structs.values import canonical_json

TOOL = "Azure ML"
METHODS = {"grid": "grid", "random": "random", "bayesian": "bayes"}
PLACEHOLDER = re.compile(r"\$\{\{\s*search_space\.(?P<parameter>[A-Za-z_][A-Za-z0-9_.-]*)\s*\}\}")
INPUT = re.compile(r"\$\{\{\s*inputs\.(?P<input>[A-Za-z_][A-Za-z0-9_.-]*)\s*\}\}")
OUTPUT = re.compile(r"\$\{\{\s*outputs\.(?P<output>[A-Za-z_][A-Za-z0-9_-]*)\s*\}\}")
OLDER_PLACEHOLDER = re.compile(r"(?<!\{)\{(inputs|outputs|search_space)\.([^}]*)\}(?!\})")
"""`{search_space.lr}`, which Azure ML still fills in."""
MARKS = {"SWEEP_DATA_FOLDER": "${envvar:SWEEP_DATA}", "SWEEP_OUTPUT_FOLDER": "${envvar:SWEEP_ARTIFACTS}"}
"""What stands for the folders of a trial while a command is split."""
DATA_MARK, OUTPUT_MARK = MARKS
UNIFORM = {
    "uniform": "uniform",
    "quniform": "q_uniform",
    "loguniform": "log_uniform",
    "qloguniform": "q_log_uniform",
}
"""Azure ML's bounds of `loguniform` are exponents of e, as W&B's of `log_uniform`."""
NORMAL = {"normal": "normal", "qnormal": "q_normal", "lognormal": "log_normal", "qlognormal": "q_log_normal"}
KINDS = frozenset({"choice", "randint", *UNIFORM, *NORMAL})
NATURAL_BASE = "e"
SHORTEST_TIMEOUT = 60
"""Seconds to which Azure ML raises the timeout of a trial."""


def read(content: bytes, *, name: str) -> Imported:
    """Return a spec for a sweep job. Raises ForeignError."""
    root = Fields.of(foreign_yaml.load(content), "")
    _require_sweep(root)
    losses: list[Loss] = []
    space, trial = root.inner("search_space"), _trial(root, losses)
    names = parameter_names(map(str, space.data), losses)
    sampling = _sampling(root)
    base = _log_base(sampling, losses)
    parameters = {names[key]: _domain(space.inner(key), base, losses) for key in space.data}
    search = _search(root, sampling, parameters, losses)
    spec, more = search_spec(
        search, suggest_sweep_name(root.text("experiment_name") or root.text("name") or "") or name
    )
    description = root.text("description") or root.text("display_name")
    if description:
        spec["description"] = description
    limits = root.inner("limits")
    timeout = _timeout(limits, losses)
    limits.taken |= {"max_total_trials", "max_concurrent_trials"}
    written = {**trial.inner("inputs").data, **root.inner("inputs").data}
    inputs = Fields({key: _literal(value) for key, value in written.items()}, "inputs")
    keys = _program(trial, inputs, names, losses)
    spec |= keys | run_keys(search, keys["run"] | ({} if timeout is None else {"timeout": f"{timeout}s"}))
    losses += trial.lost("environment_variables", "write them as run.environment")
    root.take("$schema")
    return Imported(spec, (*losses, *more, *limits.rest(), *inputs.rest(), *trial.rest(), *root.rest()))


def _require_sweep(root: Fields) -> None:
    """Refuse other jobs. Raises ForeignError."""
    kind = root.text("type")
    if kind == "sweep" and root.inner("search_space").data:
        return
    hints = {
        "pipeline": "copy the step of type sweep to a file of its own",
        "automl": "its models and programs belong to Azure; write a spec of your own program (docs/spec.md)",
        "sweep": "a sweep job has a search_space",
    }
    raise ForeignError(
        f"must be a sweep job of Azure ML: type: sweep, with search_space, got {kind!r}",
        hint=hints.get(str(kind), "write `type: sweep`, and each parameter as a mapping with its type"),
    )


def _trial(root: Fields, losses: list[Loss]) -> Fields:
    """Return the job of a trial; a component in a file of its own has no keys here."""
    if isinstance(root.data.get("trial"), str):
        losses += root.lost("trial", "is another file; write its command")
        return Fields({}, "trial")
    return root.inner("trial")


def _timeout(limits: Fields, losses: list[Loss]) -> int | None:
    """Return the seconds of a trial, which Azure ML raises to a minute."""
    timeout = limits.whole("trial_timeout")
    if timeout is None or timeout >= SHORTEST_TIMEOUT:
        return timeout
    why = f"Azure ML gives a trial at least {SHORTEST_TIMEOUT} seconds, which are written"
    losses.append(Loss(f"{limits.at('trial_timeout')}: {timeout}", why))
    return SHORTEST_TIMEOUT


def _sampling(root: Fields) -> Fields:
    """Return the algorithm, which a file writes as a name or with its options."""
    written = root.take("sampling_algorithm")
    data = written if isinstance(written, dict) else {"type": "random" if written is None else written}
    return Fields.of(data, "sampling_algorithm")


def _log_base(sampling: Fields, losses: list[Loss]) -> Decimal | None:
    """Return the base of the exponents of `loguniform`; None for e."""
    written = sampling.text("logbase")
    if written in {None, NATURAL_BASE}:
        return None
    base = exact_number(written, sampling.at("logbase"))
    if base <= 0 or base == 1:
        raise ForeignError(
            f"{sampling.at('logbase')} must be e or a number above 0 other than 1, got {written}"
        )
    why = "is the base of exponents: loguniform is written with its values, lognormal with exponents of e"
    losses.append(Loss(f"{sampling.at('logbase')}: {written}", why))
    return base


def _search(
    root: Fields, sampling: Fields, parameters: Mapping[str, dict[str, Any]], losses: list[Loss]
) -> ForeignSearch:
    kind, rule = sampling.text("type") or "random", sampling.text("rule")
    method = METHODS.get(kind.lower(), "random")
    if kind.lower() not in METHODS:
        losses.append(Loss(f"sampling_algorithm: {kind}", "is not one of Azure ML; written as random"))
    if str(rule).lower() == "sobol" and method == "random":
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


def _domain(space: Fields, base: Decimal | None, losses: list[Loss]) -> dict[str, Any]:
    written = space.text("type")
    kind = str(written).lower()
    if kind == "choice":
        domain = _choice(space, losses)
    elif kind == "randint":
        upper = exact_number(space.text("upper"), space.at("upper"))
        last = spec_number(upper - 1)
        domain = {"distribution": "int_uniform", "min": 0, "max": last} if last != 0 else {"value": 0}
    elif kind in KINDS:
        domain = _distribution(space, kind, base)
    else:
        raise ForeignError(f"{space.at('type')} must be one of {', '.join(sorted(KINDS))}, got {written!r}")
    losses += space.rest()
    return domain


def _distribution(space: Fields, kind: str, base: Decimal | None) -> dict[str, Any]:
    ends = ("min", "max") if kind in UNIFORM else ("mu", "sigma")
    keys = ("min_value", "max_value") if kind in UNIFORM else ends
    numbers = [exact_number(space.text(key), space.at(key)) for key in keys]
    name = (UNIFORM | NORMAL)[kind]
    if base is not None and "log" in kind:
        if kind in UNIFORM:
            name += "_values"
            numbers = sorted(_power(base, number, space.path) for number in numbers)
        else:
            numbers = [number * Decimal(log(base)) for number in numbers]
            numbers[1] = abs(numbers[1])
    domain = {"distribution": name, **dict(zip(ends, map(spec_number, numbers), strict=True))}
    if kind.startswith("q"):
        domain["q"] = spec_number(exact_number(space.text("q"), space.at("q")))
    return domain


def _power(base: Decimal, exponent: Decimal, where: str) -> Decimal:
    try:
        value = base**exponent
    except ArithmeticError:
        value = Decimal("Infinity")
    return exact_number(value, where)


def _choice(space: Fields, losses: list[Loss]) -> dict[str, Any]:
    values = []
    for item in space.items("values"):
        if _has_search_space(item):
            raise ForeignError(
                f"{space.at('values')} must be values, got search spaces: {show_value(item)}",
                hint="write a spec with each of them as a parameter, and `when` it is used (docs/spec.md)",
            )
        if isinstance(item, dict | list):
            losses.append(Loss(f"{space.at('values')}: {show_value(item)}", "written as JSON text"))
            values.append(json_text(item))
        else:
            values.append(item)
        if isinstance(item, bool):
            why = "is a boolean, also if it is written yes, no, on or off; write quotes for a text"
            losses.append(Loss(f"{space.at('values')}: {show_value(item)}", why))
    distinct = list({canonical_json(value): value for value in values}.values())
    if not distinct:
        raise no_values(space.at("values"))
    if len(distinct) < len(values):
        losses.append(Loss(space.at("values"), "repeats a value; written once"))
    return {"values": distinct} if len(distinct) > 1 else {"value": distinct[0]}


def _has_search_space(item: object) -> bool:
    """Return whether a value of a choice's mapping is a distribution, from which Azure ML draws for each trial."""
    parts = item.values() if isinstance(item, dict) else ()
    return any(isinstance(part, dict) and str(part.get("type")).lower() in KINDS for part in parts)


def _program(trial: Fields, inputs: Fields, names: Mapping[str, str], losses: list[Loss]) -> dict[str, Any]:
    """Return program, command and run; the folder of the code is that of the job."""
    # `code: {local_path: …}` is the form of older versions.
    older = isinstance(trial.data.get("code"), dict)
    text, folder = (
        trial.text("command"),
        trial.inner("code").text("local_path") if older else trial.text("code"),
    )
    path = CODE_DIR
    parts = (
        []
        if folder is None or ":" in folder
        else [part for part in folder.split("/") if part not in {"", "."}]
    )
    if folder is not None and ":" not in folder and not parts:
        path = REPOSITORY
        losses.append(Loss(f"trial.code: {folder}", WHOLE_REPOSITORY))
    elif parts and ".." not in parts and not str(folder).startswith("/"):
        path = "/".join(parts)
    elif folder is None:
        losses.append(Loss("trial.code", f"the file has none; written as {CODE_DIR}"))
    else:
        why = f"is not a folder of the repository; written as {CODE_DIR}"
        losses.append(Loss(f"trial.code: {folder}", why))
    run = {"code": {"path": path}}
    command = None if text is None else _command(text, inputs, names, losses)
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
    program, command[place] = _inside(command[place], losses), PROGRAM_MACRO
    return {"program": program, "command": command, "run": run}


def _inside(script: str, losses: list[Loss]) -> str:
    """Return a script's path in the folder of the code."""
    path = PurePosixPath(script)
    if not path.is_absolute() and ".." not in path.parts:
        return str(path)
    why = f"is outside the folder of the code; written as {path.name}: copy it there"
    losses.append(Loss(f"program: {script}", why))
    return path.name


def _command(text: str, inputs: Fields, names: Mapping[str, str], losses: list[Loss]) -> list[str] | None:
    """Return the command with what Azure ML fills in; None if only a shell can run it, which is a loss."""
    current = OLDER_PLACEHOLDER.sub(r"${{\1.\2}}", text)
    filled = INPUT.sub(lambda match: _input(match, inputs, losses), current)
    data = [name for name in dict.fromkeys(INPUT.findall(current)) if not _is_value(inputs.data.get(name))]
    if len(data) > 1:
        why = "are one folder here, $SWEEP_DATA: write the path of each below it"
        losses.append(Loss(f"inputs: {', '.join(data)}", why))
    outputs = list(dict.fromkeys(OUTPUT.findall(current)))
    filled = OUTPUT.sub(lambda match: f"{OUTPUT_MARK}/{match['output']}", filled)
    own: list[Loss] = []
    command = split_command(filled, PLACEHOLDER, names, own)
    # A report shows the command of the file, not what stands for its inputs.
    shell = f"command: {show_value(filled)}"
    losses += [Loss(f"command: {show_value(text)}", loss.why) if loss.what == shell else loss for loss in own]
    if command is None:
        return None
    losses += [Loss(f"outputs.{name}", f"is written to $SWEEP_ARTIFACTS/{name}") for name in outputs]
    for mark, macro in MARKS.items():
        command = [part.replace(mark, macro) for part in command]
    return command


def _is_value(value: object) -> bool:
    """Return whether an input of a job is a value, and not data."""
    return not isinstance(value, dict | list) and value is not None


def _literal(value: object) -> object:
    """Return an input's value that is written as `{value: 42}`; other inputs unchanged."""
    inner = value.get("value") if isinstance(value, dict) else None
    return inner if _is_value(inner) else value


def _input(match: re.Match[str], inputs: Fields, losses: list[Loss]) -> str:
    """Return the text of an input of the job; a dataset is `$SWEEP_DATA`."""
    value = inputs.take(match["input"])
    if not _is_value(value):
        losses.append(Loss(f"inputs.{match['input']}", "is data; name a dataset of the settings in run.data"))
        return DATA_MARK
    return shlex.quote(str(value))
