"""Sweeps of Weights & Biases: the YAML that `wandb sweep` takes."""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from generator.exchange.loss import ForeignError, Imported, Loss
from generator.exchange.names import PLACEHOLDER_METRIC, metric_name, sweep_name
from generator.exchange.programs import located, script_in
from generator.exchange.sizes import space_size
from generator.exchange.wandb.parameters import Parameters
from generator.exchange.wandb.stopping import stopping
from generator.formats.foreign_yaml import load
from generator.structs.command import DEFAULT_COMMAND, PROGRAM

RUN_CAP = 50
"""W&B draws until somebody stops it; a number has to stand here, and this one is cheap to change."""

METHODS = frozenset({"grid", "random", "bayes"})
ROUND = 4
"""W&B proposes a run whenever one ends; a few at a time learn nearly as often."""
UNSAID = {
    "project": "names a place at W&B; here results are committed to this repository",
    "entity": "names an account at W&B; here results are committed to this repository",
    "early_terminate": "is not W&B's hyperband with min_iter, or max_iter and s; trials run to their end",
    "apiVersion": "the version of W&B's own format",
    "kind": "always a sweep",
    "controller": "trials are run by a cluster or by `sweep local`",
    "scheduler": "is W&B's own search program",
    "job": "is W&B Launch's; `program` and `run` say what is run",
    "image_uri": "name the image by its digest in run.image",
}
KEPT = frozenset({"target", "impute"})
TRANSLATED = frozenset(
    {"program", "method", "metric", "metrics", "parameters", "command", "run_cap", "name", "description"}
)


def read(content: bytes, *, name: str) -> Imported:
    """Make a spec of a W&B sweep, named after it if it has a name. Raises ForeignError."""
    data = load(content)
    if not isinstance(data, dict):
        raise ForeignError("must be a W&B sweep: a mapping with method and parameters")
    if "parameters" not in data:
        raise ForeignError(
            "must be a W&B sweep, but has no parameters", hint="is it of another tool? `sweep import --help`"
        )
    losses: list[Loss] = []
    own = str(data["name"]) if data.get("name") is not None else ""
    called = sweep_name(own) or name
    spec: dict[str, Any] = {"name": called}
    description = _description(data, own if own != called else "")
    if description:
        spec["description"] = description
    method = _method(data.get("method"), losses)
    parameters = Parameters(is_grid=method == "grid", losses=losses).translate(data["parameters"])
    spec |= {"method": method} | _size(data, method, parameters, losses)
    spec |= {"metric": _metric(data, losses, method), "parameters": parameters}
    stop = stopping(data.get("early_terminate"), losses)
    spec |= {} if stop is None else {"early_terminate": stop}
    spec |= _program(data, losses)
    losses += _unsaid(data, known=TRANSLATED if stop is None else TRANSLATED | {"early_terminate"})
    return Imported(spec, tuple(losses))


def _description(data: Mapping[str, Any], own: str) -> str:
    """Keep the name that W&B showed where it cannot be the name here."""
    said = str(data["description"]).strip() if data.get("description") is not None else ""
    return ": ".join(part for part in (own, said) if part)


def _method(method: object, losses: list[Loss]) -> str:
    if isinstance(method, str) and method in METHODS:
        return method
    losses.append(Loss(f"method: {method}", "is none of grid, random and bayes; written as random"))
    return "random"


def _size(
    data: Mapping[str, Any], method: str, parameters: Mapping[str, Any], losses: list[Loss]
) -> dict[str, Any]:
    """Say how many trials there are, and by which seed they are drawn."""
    cap, size = data.get("run_cap"), space_size(parameters)
    if method == "bayes":
        losses.append(Loss("seed", "W&B has none and proposes anew each time; written as seed: 0"))
        why = (
            f"W&B proposes a run whenever one ends; here {ROUND} at a time, from the records of those before"
        )
        losses.append(Loss("rounds", why))
        return {"seed": 0, "rounds": {"size": ROUND}, "run_cap": _cap(cap, size, losses)}
    if method == "random":
        losses.append(Loss("seed", "W&B has none and draws anew each time; written as seed: 0"))
        return {"seed": 0, "run_cap": _cap(cap, size, losses)}
    if not isinstance(cap, int) or size is None or size <= cap:
        return {} if cap is None else {"run_cap": cap}
    why = "the grid is larger, and W&B would take the first; here a seeded choice of it is taken"
    losses.append(Loss(f"run_cap: {cap}", why))
    return {"grid_order": "shuffled", "seed": 0, "run_cap": cap}


def _cap(cap: Any, size: int | None, losses: list[Loss]) -> Any:
    """Say how many trials are drawn; of a finite space never more than it has."""
    found = RUN_CAP if cap is None else cap
    if size is not None and isinstance(found, int) and 0 < size < found:
        why = f"W&B would repeat itself; written as run_cap: {size}, all that there are, each once"
        losses.append(Loss("run_cap", why))
        return size
    if cap is None:
        losses.append(Loss("run_cap", f"W&B draws until it is stopped; written as run_cap: {RUN_CAP}"))
    return found


def _metric(data: Mapping[str, Any], losses: list[Loss], method: str) -> dict[str, Any]:
    metric = data.get("metric")
    if metric is None and isinstance(data.get("metrics"), list) and data["metrics"]:
        metric = data["metrics"][0]
        losses.append(Loss("metrics", "one metric decides; the first is written, others are recorded too"))
    if not isinstance(metric, dict) or not isinstance(metric.get("name"), str):
        why = f"none is named; write the name that the program reports instead of {PLACEHOLDER_METRIC}"
        losses.append(Loss("metric", why))
        metric = {"name": PLACEHOLDER_METRIC}
    own, called = metric["name"], metric_name(metric["name"])
    if own != called:
        losses.append(
            Loss(f"metric.name: {own}", f"written as {called}: no spaces and signs, a letter first")
        )
    kept = {key: metric[key] for key in KEPT & metric.keys() if method == "bayes"}
    losses += [
        Loss(f"metric.{key}", "every trial runs, and each one's own value is recorded")
        for key in sorted(metric.keys() - {"name", "goal"} - kept.keys())
    ]
    why = (
        f"wandb.log is not listened to: print a line `{called}=NUMBER`; or write JSON to the file "
        "$SWEEP_RESULT and take `source: stdout` out"
    )
    losses.append(Loss("metric.source", why))
    goal = {"goal": metric["goal"]} if "goal" in metric else {}
    return {"name": called, **goal, "source": "stdout", **dict(sorted(kept.items()))}


def _program(data: Mapping[str, Any], losses: list[Loss]) -> dict[str, Any]:
    """Give `program`, `command` and `run`; a script in the command is the program where no other is named."""
    command = _command(data.get("command"))
    program = data.get("program")
    place = script_in(command)
    if program is None and place is not None:
        program, command[place] = command[place], PROGRAM
    if program is None and command and PROGRAM not in command:
        why = "none is named; say in run.code.path which folder the command needs"
        losses.append(Loss("program", why))
        return {"command": command, "run": {"code": {"path": "code"}}}
    if program is None:
        losses.append(Loss("program", "none is named; written as train.py"))
        program = "code/train.py"
    script = located(str(program))
    losses += script.losses
    said = {} if not command or tuple(command) == DEFAULT_COMMAND else {"command": command}
    keys = script.as_spec()
    return {"program": keys["program"], **said, "run": keys["run"]}


def _command(command: object) -> list[str]:
    if command is None:
        return []
    if not isinstance(command, list) or any(isinstance(part, dict | list) for part in command):
        raise ForeignError(f"command must be a list of texts, got {command!r}")
    return [str(part) for part in command]


def _unsaid(data: Mapping[str, Any], *, known: AbstractSet[str]) -> Iterator[Loss]:
    for key in data:
        if key not in known:
            why = UNSAID.get(key, "is no key of W&B's sweeps")
            yield Loss(str(key), f"{why}; left out")
