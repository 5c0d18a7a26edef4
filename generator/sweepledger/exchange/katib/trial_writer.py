"""A sweep's trial as Katib's trial template: the command with placeholders, image, resources."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sweepledger.exchange.conversion import Loss
from sweepledger.exchange.katib.parameters import argument_text
from sweepledger.exchange.katib.trial_template import CONDITIONS
from sweepledger.structs.names import environment_name
from sweepledger.structs.node_pool import GPU_RESOURCE
from sweepledger.structs.program import LIST_MACROS, LOCAL_IMAGE, Macro, parse_element
from sweepledger.structs.run_config import RunConfig
from sweepledger.structs.sweep import Sweep
from sweepledger.structs.values import Value, canonical

CONTAINER = "trial"
NO_IMAGE = "registry.example/replace-me"


@dataclass(slots=True)
class MacroFiller:
    """Replaces macros, and collects a loss for each macro without a replacement."""

    run: RunConfig
    placeholders: Mapping[str, str]
    """Placeholders `${trialParameters.name}` by parameter."""
    constants: Mapping[str, Value]
    order: Sequence[str]
    """Names of the parameters in the order of the arguments."""
    losses: list[Loss] = field(default_factory=list)

    @property
    def single(self) -> dict[str, str]:
        """Return the replacements of the macros that yield a single text."""
        return {
            "env": "/usr/bin/env",
            "interpreter": self.run.interpreter,
            "seed": str(self.run.seed_base),
        }

    def texts(self) -> dict[str, str]:
        """Return every parameter's text, including constants."""
        texts = {
            **{name: argument_text(value) for name, value in self.constants.items()},
            **self.placeholders,
        }
        return {name: texts[name] for name in self.order if name in texts}

    def arguments(self, command: Sequence[str]) -> list[str]:
        """Return a command for Katib, with the macros replaced."""
        translated: list[str] = []
        for element in command:
            parts = parse_element(element)
            match parts:
                case (Macro(name),) if name in LIST_MACROS:
                    translated += self._spread(name)
                case _:
                    translated.append("".join(map(self._part, parts)))
        return translated

    def _spread(self, macro: str) -> list[str]:
        texts = self.texts()
        if macro == "args_no_hyphens":
            return [f"{name}={value}" for name, value in texts.items()]
        flags = {
            name: value
            for name, value in self.constants.items()
            if isinstance(value, bool) and macro == "args_no_boolean_flags"
        }
        if macro == "args_no_boolean_flags":
            self.losses.append(
                Loss("${args_no_boolean_flags}", "booleans with several values are passed as --name=True")
            )
        given = [f"--{name}={value}" for name, value in texts.items() if name not in flags]
        return given + [f"--{name}" for name, value in flags.items() if value]

    def _part(self, part: str | Macro) -> str:
        match part:
            case str():
                return part
            case Macro("env" | "interpreter" | "seed"):
                return self.single[part.name]
            case Macro("envvar", argument):
                named = {environment_name(name): value for name, value in self.texts().items()}
                return named.get(str(argument), f"$({argument})")
            case Macro("args_json"):
                return self._json()
            case _:
                self.losses.append(Loss(str(part), "Katib gives trials no file of values; left out"))
                return ""

    def _json(self) -> str:
        self.losses.append(
            Loss("${args_json}", "values that vary are written as text, because Katib's values are text")
        )
        values = {**{name: canonical(value) for name, value in self.constants.items()}, **self.placeholders}
        return json.dumps(values)


def write_trial_template(
    sweep: Sweep, references: Mapping[str, str], constants: Mapping[str, Value]
) -> tuple[dict[str, Any], list[Loss]]:
    """Return `trialTemplate` and its losses; `references` are the names of the parameters in `trialParameters`."""
    placeholders = {name: f"${{trialParameters.{alias}}}" for name, alias in references.items()}
    filling = MacroFiller(sweep.run, placeholders, constants, sweep.columns)
    arguments = filling.arguments(sweep.command)
    return {
        "primaryContainerName": CONTAINER,
        **CONDITIONS,
        "trialParameters": [
            {"name": alias, "description": f"{name} of the sweep", "reference": name}
            for name, alias in references.items()
        ],
        "trialSpec": _write_job(sweep.run, arguments, filling),
    }, [*filling.losses, *_run_losses(sweep.run)]


def _write_job(run: RunConfig, arguments: list[str], filling: MacroFiller) -> dict[str, Any]:
    amounts = {"cpu": run.resources.cpu, "memory": run.resources.memory}
    if run.resources.gpu:
        amounts[GPU_RESOURCE] = str(run.resources.gpu)
    container = {
        "name": CONTAINER,
        "image": run.image if _has_image(run) else NO_IMAGE,
        "command": arguments,
        "env": [{"name": environment_name(name), "value": value} for name, value in filling.texts().items()]
        + [{"name": "SWEEP_SEED", "value": str(run.seed_base)}],
        "resources": {"limits": amounts, "requests": dict(amounts)},
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "spec": {
            "backoffLimit": run.retries,
            "activeDeadlineSeconds": run.timeout_seconds,
            "template": {"spec": {"restartPolicy": "Never", "containers": [container]}},
        },
    }


def _has_image(run: RunConfig) -> bool:
    return run.image is not None and run.image != LOCAL_IMAGE


def _run_losses(run: RunConfig) -> list[Loss]:
    losses = [
        Loss(
            f"run.code.path: {run.code_path}",
            "Katib does not mount code: the image must contain it",
        ),
        Loss("$SWEEP_TRIAL, $SWEEP_RESULT and the other files of a trial", "Katib does not have them"),
    ]
    if not _has_image(run):
        losses.append(Loss("run.image", f"the sweep has none; written as {NO_IMAGE}: set yours"))
    if run.data is not None:
        losses.append(Loss(f"run.data: {run.data}", "add the volume to the trialSpec"))
    if run.workdir is not None:
        losses.append(Loss(f"run.workdir: {run.workdir}", "set workingDir of the container"))
    if run.keep:
        losses.append(Loss(f"run.keep: {', '.join(run.keep)}", "Katib keeps no files of a trial"))
    if run.shape is not None:
        losses.append(Loss(f"run.shape: {run.shape}", "every trial is a separate Job in Katib"))
    return losses
