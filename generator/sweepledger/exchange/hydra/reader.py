"""Multirun sweeps of Hydra: a config with `hydra.sweeper.params`, or the multirun.yaml that Hydra leaves."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from generator.exchange.hydra import command as hydra_command
from generator.exchange.hydra.overrides import as_texts, parameter, split_override
from generator.exchange.hydra.sweeper import method, sweeper
from generator.exchange.loss import ForeignError, Imported, Loss
from generator.exchange.names import PLACEHOLDER_METRIC
from generator.exchange.programs import FOLDER
from generator.exchange.sizes import space_size
from generator.formats.foreign_yaml import load

TRANSLATED = frozenset({"_target_", "params", "n_trials", "direction", "sampler", "n_jobs"})


@dataclass(slots=True)
class _Found:
    """What the overrides come to."""

    parameters: dict[str, Any] = field(default_factory=dict)
    keys: dict[str, str] = field(default_factory=dict)
    """Hydra's key of each parameter, with its `+` and `@`."""
    literal: list[str] = field(default_factory=list)
    """Overrides that no parameter can carry and that are the same in every trial: part of the command."""
    losses: list[Loss] = field(default_factory=list)


def read(content: bytes, *, name: str) -> Imported:
    """Make a spec of that name from a Hydra config. Raises ForeignError if it sweeps over nothing."""
    data = load(content)
    hydra = data.get("hydra") if isinstance(data, dict) else None
    if not isinstance(hydra, dict):
        raise ForeignError(
            "must be a Hydra config with hydra.sweeper.params",
            hint="sweeps of the command line are in multirun.yaml",
        )
    config: dict[str, Any] = hydra["sweeper"] if isinstance(hydra.get("sweeper"), dict) else {}
    who = sweeper(data, config)
    found = _Found()
    for written in _overrides(hydra, config):
        _take(written, found, has_ends=who.has_ends)
    if not found.parameters:
        raise ForeignError("must sweep over something in hydra.sweeper.params, got nothing")
    if hydra_command.are_renamed(found.keys):
        found.parameters = {key: as_texts(keys) for key, keys in found.parameters.items()}
    searched = method(who, space_size(found.parameters), found.losses)
    spec = {"name": name} | searched | {"metric": _metric(config, found.losses)}
    spec |= {"parameters": found.parameters} | _program(hydra, found)
    found.losses += _unsaid(data, hydra, config)
    return Imported(spec, tuple(found.losses))


def _overrides(hydra: Mapping[str, Any], sweeper: Mapping[str, Any]) -> Iterator[str]:
    """Find the sweeper's overrides, then those of the command line, which Hydra notes in multirun.yaml."""
    params = sweeper.get("params") or {}
    if not isinstance(params, dict):
        raise ForeignError("hydra.sweeper.params must be a mapping")
    for key, value in params.items():
        if isinstance(value, dict | list):
            hint = "Hydra wants text there: choice(1, 2)"
            raise ForeignError(f"hydra.sweeper.params.{key} must be text", hint=hint)
        # As Hydra does: a null of YAML becomes the text None there, too. Only `~key:` has nothing to say.
        yield str(key) if value is None and str(key).startswith("~") else f"{key}={value}"
    overrides = hydra.get("overrides")
    task = overrides.get("task") if isinstance(overrides, dict) else None
    yield from map(str, task if isinstance(task, list) else ())


def _take(written: str, found: _Found, *, has_ends: bool) -> None:
    """Make a parameter of an override, or a part of the command."""
    override = split_override(written)
    if override.name is None:
        found.literal.append(written)
        return
    made = parameter(override, has_ends=has_ends)
    found.losses += made.losses
    if made.keys is None:
        return
    if override.key != override.name and "value" in made.keys:
        found.literal.append(written)
        found.parameters.pop(override.name, None)
        found.keys.pop(override.name, None)
        return
    found.parameters[override.name] = made.keys
    found.keys[override.name] = override.key


def _metric(sweeper: Mapping[str, Any], losses: list[Loss]) -> dict[str, Any]:
    why = (
        f"Hydra takes what the function returns: print a line `{PLACEHOLDER_METRIC}=NUMBER`, "
        "or another name and write it into metric.name"
    )
    losses.append(Loss("metric", why))
    direction = sweeper.get("direction")
    if isinstance(direction, list):
        losses.append(Loss("hydra.sweeper.direction", "one metric decides; the first direction is written"))
        direction = next(iter(direction), None)
    goal = {"goal": direction} if direction in {"minimize", "maximize"} else {}
    return {"name": PLACEHOLDER_METRIC, **goal, "source": "stdout"}


def _program(hydra: Mapping[str, Any], found: _Found) -> dict[str, Any]:
    job, sweeper = hydra.get("job"), hydra.get("sweeper")
    named = job.get("name") if isinstance(job, dict) else None
    is_named = isinstance(named, str) and bool(named)
    program = f"{named}.py" if is_named else "main.py"
    why = (
        f"Hydra does not say where the app is; written as {FOLDER}/{program}: this folder is locked, "
        "so name yours in run.code.path, or move the app"
    )
    found.losses.append(Loss(f"program: {program}" if is_named else "program", why))
    is_multirun = str(hydra.get("mode", "")).upper() == "MULTIRUN"
    command = hydra_command.written(found.keys, found.literal, is_multirun=is_multirun)
    why = "Hydra names folders by the second, and two trials may share one; written as the trial's artifacts"
    found.losses.append(Loss("hydra.run.dir", why))
    jobs = sweeper.get("n_jobs") if isinstance(sweeper, dict) else None
    at_once = {"parallelism": jobs} if isinstance(jobs, int) and jobs > 0 else {}
    return {"program": program, "command": command, "run": {"code": {"path": FOLDER}, **at_once}}


def _unsaid(data: Mapping[str, Any], hydra: Mapping[str, Any], sweeper: Mapping[str, Any]) -> Iterator[Loss]:
    for key in sweeper:
        if key not in TRANSLATED:
            yield Loss(f"hydra.sweeper.{key}", "is the sweeper's own; left out")
    rest = [key for key in hydra if key not in {"sweeper", "mode", "overrides"}]
    if rest:
        yield Loss(f"hydra: {', '.join(rest)}", "not part of a sweep: the app reads its own config as before")
    own = [key for key in data if key not in {"hydra", "defaults"}]
    if own:
        yield Loss(", ".join(own), "the app's own config, which it goes on reading; only the sweep is here")
