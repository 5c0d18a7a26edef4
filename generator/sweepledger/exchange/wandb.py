"""W&B's sweep configuration, all of its distributions."""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, assert_never

from sweepledger.exchange import conversion, spec_parts
from sweepledger.exchange.conversion import Assignments, Exported, ForeignFormat, Imported, Loss, LossList
from sweepledger.exchange.fields import Fields, is_count
from sweepledger.formats.foreign_yaml import ForeignError, coerce_number, load
from sweepledger.reader.scalars import describe_split, rejoin_split
from sweepledger.structs import search_block
from sweepledger.structs.domain import Bell
from sweepledger.structs.methods import PLAIN
from sweepledger.structs.names import environment_name, suggest_sweep_name
from sweepledger.structs.program import DEFAULT_COMMAND, PROGRAM_MACRO
from sweepledger.structs.space import Parameter
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import canonical_json, written

METHODS = frozenset({"grid", "random", "bayes"})
TOOL = "W&B"
LOST_KEYS = {
    "project": "a project at W&B; here results are committed to this repository",
    "entity": "an account at W&B; here results are committed to this repository",
    "early_terminate": "is not W&B's hyperband with min_iter, or max_iter and s; trials run to their end",
    "apiVersion": "the version of W&B's own format",
    "kind": "always a sweep",
    "controller": "trials are run by a cluster or by `sweep cluster local`",
    "scheduler": "starts runs at W&B",
    "job": "belongs to W&B Launch; `program` and `run` define what is run",
    "image_uri": "name the image by its digest in run.image",
}


def read(content: bytes, *, name: str) -> Imported:
    """Return a spec for a W&B sweep, with its name if it has one. Raises ForeignError."""
    data = load(content)
    if not isinstance(data, dict):
        raise ForeignError("must be a W&B sweep: a mapping with method and parameters")
    if "parameters" not in data:
        raise ForeignError(
            "must be a W&B sweep, but has no parameters",
            hint="is it a file of another tool? See `sweep import --help`",
        )
    losses, root = LossList(), Fields.of(data, "")
    own = root.text("name") or ""
    called = suggest_sweep_name(own) or name
    # The description begins with W&B's name if that cannot be the sweep's.
    description = ": ".join(
        filter(None, [own if own != called else "", (root.text("description") or "").strip()])
    )
    spec: dict[str, Any] = {"name": called} | ({"description": description} if description else {})
    method = str(root.take("method"))
    if method not in METHODS:
        losses.add(f"method: {method}", "is not grid, random or bayes; written as random")
        method = "random"
    translator = ParameterTranslator(is_grid=method == "grid", losses=losses)
    translated = translator.translate(root.take("parameters"))
    names = spec_parts.separate_names(translated)
    parameters = {names[key]: keys for key, keys in translated.items()}
    losses += [
        Loss(f"parameters.{key}", f"a value beside {key}.…; is named {name} here, and passed as {key}")
        for key, name in names.items()
        if key != name
    ]
    metric = _read_metric(root, losses, method)
    stop = read_early_terminate(data.get("early_terminate"), losses)
    cap = root.take("run_cap")
    count = cap if isinstance(cap, int) and not isinstance(cap, bool) else None
    uses_results = stop is not None or "target" in metric
    search = spec_parts.ForeignSearch(TOOL, method, parameters, cap=count, uses_results=uses_results)
    spec |= {"method": method} | spec_parts.size_keys(search, losses)
    if method == "bayes":
        why = "its rounds are proposed with egobox: `pip install 'sweepledger[bayes]'`, or write method: tpe"
        losses.add("method: bayes", why)
    if cap is not None and count is None:
        spec["run_cap"] = cap
    spec |= {"metric": metric, "parameters": parameters}
    if stop is not None:
        root.take("early_terminate")
        spec["early_terminate"] = stop
    spec |= _run_keys(root, names, losses)
    scheduler = root.section("scheduler")
    if is_count(scheduler.data.get("num_workers")):
        spec["run"]["parallelism"] = scheduler.take("num_workers")
    for key, why in LOST_KEYS.items():
        losses += root.lost(key, f"{why}; left out") if key not in root.taken else ()
    losses += scheduler.rest("starts runs at W&B; left out")
    losses += root.rest("is not a key of W&B's sweeps; left out")
    return Imported(spec, tuple(losses))


def _read_metric(root: Fields, losses: LossList, method: str) -> dict[str, Any]:
    several = root.take("metrics")
    metric = root.section("metric")
    root.taken.add("metric")
    if not metric.data and isinstance(several, list) and several:
        metric = root.child(several[0], "metrics[0]") if isinstance(several[0], dict) else metric
        losses.add(
            "metrics", "a sweep has one objective; the first metric is written, the others are recorded too"
        )
    given = metric.take("name")
    if not isinstance(given, str):
        why = f"no metric is named; write the name that the program reports instead of {spec_parts.PLACEHOLDER_METRIC}"
        losses.add("metric", why)
        given = spec_parts.PLACEHOLDER_METRIC
    name = spec_parts.metric_name(given, losses)
    used = ("impute", "target") if method == "bayes" else ("target",)
    kept = {str(key): metric.take(key) for key in used if key in metric.data}
    goal = metric.take("goal") or "minimize"  # W&B's default
    losses += metric.rest("not used: all trials run, and the value of each is recorded")
    why = (
        f"wandb.log calls are ignored: print a line `{name}=NUMBER`; or, for a Python program, write "
        "`format: jsonl, capture: true` instead of `source: stdout`, and they are recorded"
    )
    losses.add("metric.source", why)
    return {"name": name, "goal": goal, "source": "stdout", **kept}


def _run_keys(root: Fields, renamed: Mapping[str, str], losses: LossList) -> dict[str, Any]:
    """Return `program`, `command` and `run`, for parameters whose names differ from W&B's."""
    given = root.take("command") or []
    if not isinstance(given, list) or any(isinstance(part, dict | list) for part in given):
        raise ForeignError(f"command must be a list of texts, got {given!r}")
    command = [str(part) for part in given]
    keys = _located(root.text("program"), command, losses)
    command = _spread_renamed(command or list(DEFAULT_COMMAND), renamed, losses)
    if keys.get("program") is None or tuple(command) != DEFAULT_COMMAND:
        keys["command"] = command
    return {key: keys[key] for key in ("program", "command", "run") if keys.get(key) is not None}


def _located(program: str | None, command: list[str], losses: LossList) -> dict[str, Any]:
    """Return `program` and `run` for the program that the command runs; this edits the command."""
    if command and PROGRAM_MACRO not in command and program is not None:
        losses.add(f"program: {program}", "the command does not use it; left out")
        program = None
    module = command.index("-m") + 1 if "-m" in command[:-1] else None
    name = None if module is None else program if command[module] == PROGRAM_MACRO else command[module]
    if module is not None and name is not None:
        folder, command[module] = spec_parts.locate_module(name, losses)
        return {"run": {"code": {"path": folder}}}
    place = spec_parts.find_script(command)
    if program is None and place is not None:
        program, command[place] = command[place], PROGRAM_MACRO
    if program is None and command and PROGRAM_MACRO not in command:
        losses.add("program", "no program is named; set run.code.path to the folder that the command needs")
        return {"run": {"code": {"path": spec_parts.CODE_DIR}}}
    if program is None:
        losses.add("program", f"no program is named; written as {spec_parts.PROGRAM}")
        program = f"{spec_parts.CODE_DIR}/{spec_parts.PROGRAM}"
    folder, program = spec_parts.locate_script(program, losses)
    return {"program": program, "run": {"code": {"path": folder}}}


FOREIGN_MACRO = re.compile(r"\$\{(?:args_(?:single_hyphen|spaced|switches)|args\w*:|config|param:)")
"""Macros that W&B does not have."""
SPREAD_OPTIONS = {"${args}": "--{key}=", "${args_no_hyphens}": "{key}="}


def _spread_renamed(command: list[str], renamed: Mapping[str, str], losses: LossList) -> list[str]:
    """Return the command with an argument for each parameter under W&B's name if some are renamed."""
    changed = {key: name for key, name in renamed.items() if key != name}
    if not changed:
        return command
    spread: list[str] = []
    for part in command:
        option = SPREAD_OPTIONS.get(part)
        if option is None:
            spread.append(part)
            if part.startswith("${args"):
                names = ", ".join(changed)
                losses.add(f"command: {part}", f"passes {names} under the name in the spec")
        else:
            spread += [
                option.format(key=key) + f"${{envvar:{environment_name(name)}}}"
                for key, name in renamed.items()
            ]
    return spread


NUMBERS = ("min", "max", "mu", "sigma", "q", "a", "b")
PARAMETER_KEYS = ("distribution", "value", "values", "probabilities", *NUMBERS, "parameters")
"""In the order to be written."""

QUANTIZED = ("q_uniform", "q_log_uniform", "q_log_uniform_values")
"""A tuple, because the untrusted value may be an unhashable list."""


@dataclass(slots=True)
class ParameterTranslator:
    """Translates parameters, and lists what a spec cannot express."""

    is_grid: bool
    losses: LossList = field(default_factory=LossList)

    def translate(self, data: object, place: str = "parameters") -> dict[str, Any]:
        """Return the value of the key `parameters`. Raises ForeignError for malformed parameters."""
        if not isinstance(data, dict) or not data:
            raise ForeignError(f"{place} must be a mapping of at least one parameter")
        return {name: self._parameter(keys, f"{place}.{name}") for name, keys in data.items()}

    def _parameter(self, data: object, place: str) -> dict[str, Any]:
        if not isinstance(data, dict):
            hint = "W&B expects {value: …}, {values: […]} or {min: …, max: …}"
            raise ForeignError(f"{place} must be a mapping, got {data!r}", hint=hint)
        for key in sorted(data.keys() - set(PARAMETER_KEYS)):
            self.losses.add(f"{place}.{key}", "is not a key of W&B's parameters; left out")
        keys = dict(self._keys(data, place))
        if "parameters" in keys:
            why = "W&B passes a mapping; a trial receives each value under its full name, as in --a.b=1"
            self.losses.add(place, why)
        bounds = [keys.get("min"), keys.get("max")]
        is_integral = all(
            isinstance(bound, int) or (isinstance(bound, float) and bound.is_integer()) for bound in bounds
        )
        if "distribution" not in keys and is_integral and any(isinstance(bound, float) for bound in bounds):
            # As W&B reads integral bounds with a decimal point, which specs normalize.
            keys["distribution"] = "uniform"
        if not self.is_grid and keys.get("distribution") in QUANTIZED:
            self.losses.add(place, "rounding to q can leave [min, max] in W&B; here the value stays inside")
        return keys

    def _keys(self, data: Mapping[str, Any], place: str) -> Iterator[tuple[str, Any]]:
        for key in PARAMETER_KEYS:
            if key not in data or (key == "probabilities" and "values" in data):
                continue
            here, value = f"{place}.{key}", data[key]
            if key == "parameters":
                yield key, self.translate(value, here)
            elif key == "values" and isinstance(value, list):
                yield from self._values(value, data.get("probabilities"), place)
            elif key == "value":
                yield key, spec_parts.spec_value(self._numeric(value, here), here, self.losses)
            elif key in NUMBERS:
                yield key, self._numeric(value, here)
            else:
                yield key, value

    def _values(self, values: list[Any], weights: object, place: str) -> Iterator[tuple[str, Any]]:
        """Yield the values, each once, and their probabilities: in W&B a repeated value is twice as likely."""
        here = f"{place}.values"
        numeric = all(coerce_number(value) is not None for value in values)
        plain = [
            spec_parts.spec_value(self._numeric(value, here) if numeric else value, here, self.losses)
            for value in values
        ]
        divided = rejoin_split(plain)
        if divided is not None:
            self.losses.add(here, f"texts that commas divided, as W&B reads them: {describe_split(divided)}")
        names = [canonical_json(value) for value in plain]
        distinct: dict[str, Any] = {}
        for name, value in zip(names, plain, strict=True):
            distinct.setdefault(name, value)
        yield "values", list(distinct.values())
        is_repeated = len(distinct) < len(names)
        given = [1 / max(1, len(names))] * len(names) if weights is None else weights
        shares = [coerce_number(share) for share in given] if isinstance(given, list) else []
        if len(shares) != len(names) or None in shares:
            yield "probabilities", weights
            return
        if is_repeated:
            why = "repeats a value, which makes it more likely; written once"
            self.losses.add(here, why if self.is_grid else f"{why}, with its share as probability")
        if weights is not None or (is_repeated and not self.is_grid):
            shares_of: dict[str, list[float]] = {name: [] for name in distinct}
            for name, share in zip(names, shares, strict=True):
                shares_of[name].append(share or 0.0)
            # Without the noise of sums of decimals.
            sums = [float(f"{math.fsum(parts):.15g}") for parts in shares_of.values()]
            yield "probabilities", [int(share) if share.is_integer() else share for share in sums]

    def _numeric(self, value: Any, place: str) -> Any:
        """Return the number for texts such as `1e-3`, and other values unchanged."""
        number = coerce_number(value) if isinstance(value, str) else None
        if number is None:
            return value
        self.losses.add(
            f"{place}: {value}", f"is text to W&B, whose YAML needs a decimal point; written as {number!r}"
        )
        return number


HYPERBAND_KEYS = frozenset({"type", "min_iter", "max_iter", "s", "eta", "strict"})


def read_early_terminate(written: object, losses: LossList) -> dict[str, Any] | None:
    """Return the same stop rule for a spec; None if W&B would ignore the rule."""
    if not isinstance(written, dict) or written.get("type") != "hyperband":
        return None
    rule: dict[str, Any] = {key: written[key] for key in written if key in HYPERBAND_KEYS}
    if {"max_iter", "s"} <= rule.keys():
        if rule.pop("min_iter", None) is not None:
            losses.add("early_terminate.min_iter", "W&B uses max_iter and s if both are given")
    elif "min_iter" in rule:
        rule = {key: rule[key] for key in rule if key not in {"max_iter", "s"}}
    whole = [rule[key] for key in ("min_iter", "max_iter", "s") if key in rule]
    eta, strict = rule.get("eta", 3), rule.get("strict", False)
    has_steps = "min_iter" in rule or {"max_iter", "s"} <= rule.keys()
    is_factor = isinstance(eta, int | float) and not isinstance(eta, bool) and eta > 1
    if not (has_steps and all(map(is_count, whole)) and is_factor and isinstance(strict, bool)):
        return None
    for key in sorted(written.keys() - HYPERBAND_KEYS):
        losses.add(f"early_terminate.{key}", "is not a key of W&B's rule")
    why = "W&B compares with running trials; here trials are compared with learning curves recorded before the batch"
    losses.add("early_terminate", why)
    return rule


def write(sweep: Sweep, assignments: Assignments) -> Exported:
    """Return a W&B sweep; a list becomes the grid of its values."""
    design = sweep.design
    losses = LossList(conversion.design_losses(design, TOOL))
    document: dict[str, Any] = {"name": sweep.name}
    if sweep.description:
        document["description"] = sweep.description
    document |= _program(sweep, losses)
    document |= _method(design, losses)
    losses += [Loss(f"metrics: {other.name}", "W&B has one objective") for other in sweep.other_metrics]
    target = {} if sweep.metric.target is None else {"target": sweep.metric.target}
    document["metric"] = {"name": sweep.metric.name, "goal": str(sweep.metric.goal), **target}
    policy = sweep.early_stop
    if policy is not None and policy.wandb is None:
        losses.add("early_terminate", "W&B has only hyperband; all trials run to their end")
    if (stop := (None if policy is None else policy.wandb)) is not None:
        document["early_terminate"] = stop
    if isinstance(design, search_block.ConfigurationList):
        columns = conversion.distinct_columns(assignments)
        size = math.prod(map(len, columns.values()))
        if size > len(assignments) or any(len(columns) > len(row) for row in assignments):
            why = "W&B cannot list configurations: it runs"
            losses.add("method: list", f"{why} all {size} combinations, not these {len(assignments)}")
        document["parameters"] = {name: {"values": written(values)} for name, values in columns.items()}
    else:
        document["parameters"] = {each.name: _keys(each, losses) for each in design.space.parameters}
    losses.add("metric.source", f"W&B reads what the program logs: call wandb.log with {sweep.metric.name}")
    losses += conversion.run_losses(sweep, TOOL)
    return conversion.exported_yaml(document, sweep, TOOL, losses)


def _program(sweep: Sweep, losses: LossList) -> dict[str, Any]:
    command = list(sweep.command)
    if any("${seed}" in part for part in command):
        losses.add("command: ${seed}", "W&B has no such macro; return the seed another way")
    for part in command:
        if FOREIGN_MACRO.search(part):
            losses.add(f"command: {part}", "W&B has no such macro; pass the values another way")
    place = spec_parts.find_script(command)
    if place is None:
        return {"command": command}
    program, command[place] = command[place], PROGRAM_MACRO
    return {"program": program} | ({} if tuple(command) == DEFAULT_COMMAND else {"command": command})


def _method(design: search_block.Design, losses: LossList) -> dict[str, Any]:
    match design:
        case search_block.ConfigurationList():
            return {"method": "grid"}
        case search_block.GridSearch(cap=cap):
            method = "grid"
        case search_block.RandomSearch(method=sampler, cap=cap):
            method, has_method = "random", sampler is PLAIN
        case search_block.AdaptiveSearch(method=adaptive):
            method, has_method, cap = "bayes", "wandb" in adaptive.elsewhere, conversion.most_trials(design)
        case _:
            assert_never(design)
    if method != "grid":
        losses += conversion.drawn_losses(design, TOOL, None if has_method else method)
    return {"method": method} | ({} if cap is None else {"run_cap": cap})


def _keys(parameter: Parameter, losses: LossList) -> dict[str, Any]:
    shape = parameter.domain.shape
    if isinstance(shape, Bell) and shape.ends:
        losses.add(f"parameters.{parameter.name}", "written as normal: W&B does not truncate it")
        return {"distribution": "normal", "mu": shape.mu, "sigma": shape.sigma}
    return {
        key: written(value) if key in {"value", "values"} else value
        for key, value in parameter.domain.keys.items()
    }


FORMAT = ForeignFormat(
    "wandb", "a sweep file of W&B: `method` and `parameters`", read=read, write=write, is_search=True
)
