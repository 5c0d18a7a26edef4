"""DVC: a matrix of `dvc.yaml`, the `dvc exp run -S` lines of a script, or the values of `params.yaml`."""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

from sweepledger.exchange import configuration_list
from sweepledger.exchange.conversion import Imported, Loss
from sweepledger.exchange.fields import Fields, json_text, no_values, show_value
from sweepledger.exchange.hydra.overrides import override_parameter, split_override
from sweepledger.exchange.search_frame import ForeignSearch, parameter_names, search_spec
from sweepledger.exchange.shell_command import split_command
from sweepledger.exchange.spec_parts import CODE_DIR, PROGRAM, find_script, locate_script
from sweepledger.formats import foreign_yaml
from sweepledger.formats.foreign_yaml import ForeignError, coerce_number
from sweepledger.structs.program import PROGRAM_MACRO
from sweepledger.structs.values import canonical_json

TOOL = "DVC"
EXPERIMENT = re.compile(rb"^[^#\n]*\bdvc\s+exp\s+run\b", re.MULTILINE)
RUN = re.compile(r"\bdvc\s+exp\s+run\b")
QUOTED = re.compile(r"`(dvc\s+exp\s+run\b[^`\n]*)`")
"""A command in the text of a document."""
SETTING = re.compile(r"\s(-S|--set-param\b)[\s=]*\S")
EXPANDED = ("$", "`")
"""Characters by which a shell replaces a text."""
ITEM = re.compile(r"\$\{item\.(?P<parameter>[A-Za-z_][A-Za-z0-9_.-]*)\}")
WHOLE_ITEM = re.compile(r"\$\{item\}")
SET_OPTIONS = frozenset({"-S", "--set-param"})
ITEM_NAME = "item"
MOST_ROWS = 10_000
"""More than a spec can list."""
PIPELINE = "DVC runs the stages that changed; here a trial runs one command: do the rest in the program"


def read(content: bytes, *, name: str) -> Imported:
    """Return a spec for a file of DVC. Raises ForeignError."""
    if EXPERIMENT.search(content):
        return _queue(content, name)
    data = foreign_yaml.load(content, version="1.2")
    if not isinstance(data, dict) or not data:
        raise ForeignError("must be a dvc.yaml, a params.yaml, or lines `dvc exp run -S key=values`")
    if "stages" in data:
        return _pipeline(Fields.of(data, ""), name)
    losses = [Loss("params.yaml", "has one value of each; replace `value` by the values to try")]
    constants = {key: {"value": value} for key, value in _leaves(data, "", losses)}
    return _grid(name, constants, None, losses)


Rows = Sequence[Mapping[str, Any]]
"""Configurations, all with the same parameters, by their names in the file."""


def _grid(
    name: str, domains: Mapping[str, dict[str, Any]], program: Mapping[str, Any] | None, losses: list[Loss]
) -> Imported:
    """Return a grid of parameters by their names in the file."""
    names = parameter_names(domains, losses)
    if not names:
        raise ForeignError("must have at least one parameter, got none")
    search = ForeignSearch(TOOL, "grid", {names[key]: domain for key, domain in domains.items()}, None, None)
    spec, more = search_spec(search, name)
    return _with_program(spec, program, (*losses, *more))


def _list(name: str, rows: Rows, program: Mapping[str, Any] | None, losses: list[Loss]) -> Imported:
    """Return a list of configurations. Raises ForeignError."""
    names = parameter_names(rows[0], losses)
    kept, repeated = configuration_list.distinct_configurations(
        [
            configuration_list.checked_configuration(
                {names[key]: value for key, value in row.items()}, f"configuration {at}"
            )
            for at, row in enumerate(rows, start=1)
        ]
    )
    spec, more = search_spec(ForeignSearch(TOOL, "list", {}, None, None, 1, 0), name)
    own = {key: spec[key] for key in ("name", "method", "metric")}
    own["assignments"] = configuration_list.inline_configurations(kept)
    metric = [loss for loss in more if loss.what.startswith("metric")]
    return _with_program(own, program, (*losses, *repeated, *metric))


def _with_program(
    spec: Mapping[str, Any], program: Mapping[str, Any] | None, losses: tuple[Loss, ...]
) -> Imported:
    if program is None:
        why = f"is a stage of dvc.yaml, which reads params.yaml; written as {CODE_DIR}/{PROGRAM}: read arguments"
        losses = (*losses, Loss("program", why))
        program = {"program": PROGRAM, "run": {"code": {"path": CODE_DIR}}}
    return Imported({**spec, **program}, losses)


def _leaves(data: Mapping[str, Any], prefix: str, losses: list[Loss]) -> Iterator[tuple[str, Any]]:
    """Yield each value with its dotted name."""
    for key, value in data.items():
        here = f"{prefix}{key}"
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{here}.", losses)
        else:
            yield here, _value(here, value, losses)


def _value(name: str, value: Any, losses: list[Loss]) -> Any:
    """Return a value for a spec; as JSON text if it is neither a scalar nor a list of scalars."""
    items = value if isinstance(value, list) else [value]
    if isinstance(value, dict) or any(isinstance(item, dict | list) for item in items):
        losses.append(Loss(name, "a value is a scalar or a list of scalars; written as JSON text"))
        return json_text(value)
    number = coerce_number(value)
    return value if number is None else number


def _queue(content: bytes, name: str) -> Imported:
    """Return the grid of a line with `dvc exp run -S`, or the configurations of several. Raises ForeignError."""
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise ForeignError("must be UTF-8") from error
    text = QUOTED.sub(r"\n\1\n", text.replace("\\\n", " "))
    lines = [line for line in text.splitlines() if EXPERIMENT.match(line.encode())]
    lines = [line for line in lines if SETTING.search(line)]
    if not lines or any(len(RUN.findall(line)) > 1 for line in lines):
        found = f"got {len(lines)}" if not lines else "got several in a line"
        raise ForeignError(
            f"must have lines with one dvc exp run -S each, {found}",
            hint="write the values in one -S key=1,2,3, or each run in a line of its own",
        )
    losses: list[Loss] = []
    runs = [_run(line, losses) for line in lines]
    losses = [*dict.fromkeys(losses), Loss("dvc exp run", PIPELINE)]
    if len(runs) == 1:
        return _grid(name, runs[0], None, losses)
    return _list(name, _rows(runs), None, losses)


def _run(line: str, losses: list[Loss]) -> dict[str, dict[str, Any]]:
    """Return the parameters of a `dvc exp run`. Raises ForeignError."""
    domains: dict[str, dict[str, Any]] = {}
    for written in _settings(line, losses):
        if any(character in written for character in EXPANDED):
            raise ForeignError(
                f"-S {show_value(written)} is completed by the shell", hint="write its values in place"
            )
        file, colon, rest = written.partition(":")
        override = split_override(
            rest if colon and file.endswith((".yaml", ".json", ".toml", ".py")) else written
        )
        if override.name is None:
            losses.append(Loss(written, "deletes a key; delete it in the program"))
            continue
        if override.name in domains:
            raise ForeignError(f"-S {override.name} must be set once", hint="write its values as key=1,2,3")
        parameter = override_parameter(override)
        losses += parameter.losses
        if parameter.keys is not None:
            domains[override.name] = parameter.keys
    return domains


def _rows(runs: Sequence[Mapping[str, dict[str, Any]]]) -> Rows:
    """Return the configurations of several runs. Raises ForeignError unless all set the same parameters to values."""
    rows: list[Mapping[str, Any]] = []
    for run in runs:
        if not run:
            raise ForeignError(
                "each dvc exp run must set a parameter with -S", hint="import the others alone"
            )
        if run.keys() != runs[0].keys():
            raise ForeignError(
                f"each dvc exp run must set the same parameters, got {', '.join(runs[0])} and {', '.join(run)}",
                hint="repeat in each line what the others set, or import the runs of one question alone",
            )
        choices = [_values(keys) for keys in run.values()]
        if len(rows) + prod(map(len, choices)) > MOST_ROWS:
            raise ForeignError(f"must have at most {MOST_ROWS} configurations", hint="import them as CSV")
        rows += [dict(zip(run, values, strict=True)) for values in product(*choices)]
    return rows


def _values(keys: Mapping[str, Any]) -> list[Any]:
    if "value" not in keys and "values" not in keys:
        raise ForeignError(
            "several dvc exp run must set values, not ranges", hint="import a run with ranges alone"
        )
    return [keys["value"]] if "value" in keys else list(keys["values"])


def _settings(line: str, losses: list[Loss]) -> Iterator[str]:
    """Yield the values of the option -S."""
    try:
        elements = shlex.split(line, comments=True)
    except ValueError as error:
        raise ForeignError(f"must be a command line: {error}") from error
    start = next((place for place, part in enumerate(elements) if part == "run"), 0) + 1
    rest = iter(elements[start:])
    for part in rest:
        option, equals, value = part.partition("=")
        if part in SET_OPTIONS:
            yield next(rest, "")
        elif equals and option == "--set-param":
            yield value
        elif part.startswith("-S"):
            yield part[2:]
        elif part != "--queue":
            losses.append(Loss(f"dvc exp run: {shlex.quote(part)}", "an option of DVC; left out"))


def _pipeline(root: Fields, name: str) -> Imported:
    """Return the matrix or loop of the only stage that has one. Raises ForeignError."""
    stages = root.inner("stages")
    looped = [
        key
        for key, stage in stages.data.items()
        if isinstance(stage, dict) and {"matrix", "foreach"} & stage.keys()
    ]
    if len(looped) != 1:
        found = ", ".join(looped) or "none"
        raise ForeignError(
            f"stages must have one stage with matrix or foreach, got {found}",
            hint="values of params.yaml are imported from params.yaml",
        )
    losses = [Loss(stages.at(key), PIPELINE) for key in stages.data if key not in looped]
    stage = stages.inner(looped[0])
    rows: Rows = ()
    if "matrix" in stage.data:
        matrix = stage.inner("matrix")
        domains = {key: _choice(matrix, key, losses) for key in matrix.data}
        body, item = stage, ITEM
    else:
        body, item, domains = stage.inner("do"), ITEM, {}
        rows = _items(stage, losses)
        if not rows:
            domains, item = _loop(stage, losses)
    program = _program(body, rows[0] if rows else domains, item, losses)
    for key in ("deps", "outs", "params", "metrics", "plots"):
        losses += body.lost(
            key, "a file of DVC's cache; here a trial writes $SWEEP_RESULT and $SWEEP_ARTIFACTS"
        )
    losses += [*body.rest(), *stage.rest(), *root.rest()]
    return _list(name, rows, program, losses) if rows else _grid(name, domains, program, losses)


def _choice(fields: Fields, key: str, losses: list[Loss]) -> dict[str, Any]:
    if isinstance(fields.data[key], str) and "${" in fields.data[key]:
        raise ForeignError(
            f"{fields.at(key)} refers to a list elsewhere, {show_value(fields.data[key])}",
            hint="write the values of the list in place",
        )
    items = fields.items(key)
    distinct = list({canonical_json(item): item for item in items}.values())
    if not distinct:
        raise no_values(fields.at(key))
    if any(isinstance(item, str) and "${" in item for item in distinct):
        raise ForeignError(f"{fields.at(key)} refers to another file", hint="write its values in the list")
    values = [_value(fields.at(key), item, losses) for item in distinct]
    return {"values": values} if len(values) > 1 else {"value": values[0]}


def _items(stage: Fields, losses: list[Loss]) -> Rows:
    """Return the items of a loop over mappings; empty if they are single values. Raises ForeignError."""
    items = stage.take("foreach")
    values = list(items.values()) if isinstance(items, dict) else items
    if not isinstance(values, list) or not any(isinstance(value, dict) for value in values):
        return ()
    if any(not isinstance(value, dict) or value.keys() != values[0].keys() or not value for value in values):
        raise ForeignError(
            f"{stage.at('foreach')} must have items with the same keys",
            hint="configurations with other keys are other specs",
        )
    if any("${" in text for row in values for text in row.values() if isinstance(text, str)):
        raise ForeignError(f"{stage.at('foreach')} refers to another file", hint="write its values in place")
    return [
        {key: _value(f"{stage.at('foreach')}: {key}", value, losses) for key, value in row.items()}
        for row in values
    ]


def _loop(stage: Fields, losses: list[Loss]) -> tuple[dict[str, dict[str, Any]], re.Pattern[str]]:
    """Return the parameters of a loop over single values, which is one parameter."""
    items = stage.take("foreach")
    values = list(items.values()) if isinstance(items, dict) else items
    if not isinstance(values, list):
        raise ForeignError(
            f"{stage.at('foreach')} must be a list or a mapping, got {show_value(items)}",
            hint="a reference to params.yaml is written in place",
        )
    losses.append(Loss(stage.at("foreach"), f"its items are the parameter {ITEM_NAME}"))
    return {
        ITEM_NAME: _choice(Fields({ITEM_NAME: values}, stage.at("foreach")), ITEM_NAME, losses)
    }, WHOLE_ITEM


def _program(
    body: Fields, domains: Mapping[str, Any], item: re.Pattern[str], losses: list[Loss]
) -> dict[str, Any] | None:
    """Return program, command and run; None if only a shell can run the command."""
    text = body.take("cmd")
    if not isinstance(text, str):
        losses.append(Loss(body.at("cmd"), "a trial runs one command; write it"))
        return None
    if item is WHOLE_ITEM:
        text, item = item.sub("${item." + ITEM_NAME + "}", text), ITEM
    if "${" in item.sub("", text):
        why = "has values that only DVC fills in; write your command"
        losses.append(Loss(f"{body.at('cmd')}: {show_value(text)}", why))
        return None
    names = parameter_names(domains, [])
    command = split_command(text, item, names, losses)
    place = find_script(command) if command else None
    if command is None or place is None:
        return None
    location = locate_script(command[place])
    losses += location.losses
    command[place] = PROGRAM_MACRO
    keys = location.as_spec()
    return {"program": keys["program"], "command": command, "run": keys["run"]}
