"""The Job of a trial, with Katib's placeholders where our launcher would put values."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from generator.exchange.katib.feasible import text
from generator.exchange.katib.template import CONDITIONS, GPU
from generator.exchange.loss import Loss
from generator.structs.command import SPREADING, Macro, parse_element
from generator.structs.names import environment_name
from generator.structs.program import LOCAL_IMAGE
from generator.structs.sweep import Run, Sweep
from generator.structs.values import Value, canonical

CONTAINER = "trial"
NO_IMAGE = "registry.example/replace-me"


@dataclass(slots=True)
class Filling:
    """What takes the place of macros, and what cannot be."""

    run: Run
    placeholders: Mapping[str, str]
    """Our parameter to `${trialParameters.name}`."""
    constants: Mapping[str, Value]
    order: Sequence[str]
    """Of the arguments."""
    losses: list[Loss] = field(default_factory=list)

    @property
    def single(self) -> dict[str, str]:
        """Give what stands for macros of one text."""
        return {
            "env": "/usr/bin/env",
            "interpreter": self.run.interpreter,
            "seed": str(self.run.seed_base),
        }

    def texts(self) -> dict[str, str]:
        """Give every parameter's text, constants written out."""
        told = {**{name: text(value) for name, value in self.constants.items()}, **self.placeholders}
        return {name: told[name] for name in self.order if name in told}

    def arguments(self, command: Sequence[str]) -> list[str]:
        """Translate a command."""
        made: list[str] = []
        for element in command:
            parts = parse_element(element)
            match parts:
                case (Macro(name),) if name in SPREADING:
                    made += self._spread(name)
                case _:
                    made.append("".join(map(self._part, parts)))
        return made

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
                Loss("${args_no_boolean_flags}", "booleans that vary are passed as --name=True")
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
                self.losses.append(Loss(str(part), "Katib gives a trial no file of its values; left out"))
                return ""

    def _json(self) -> str:
        self.losses.append(Loss("${args_json}", "values that vary stand there as text: Katib's are text"))
        values = {**{name: canonical(value) for name, value in self.constants.items()}, **self.placeholders}
        return json.dumps(values)


def template(
    sweep: Sweep, references: Mapping[str, str], constants: Mapping[str, Value]
) -> tuple[dict[str, Any], list[Loss]]:
    """Write `trialTemplate`; references give each of our parameters its name among the trialParameters."""
    placeholders = {name: f"${{trialParameters.{alias}}}" for name, alias in references.items()}
    filling = Filling(sweep.run, placeholders, constants, sweep.columns)
    arguments = filling.arguments(sweep.command)
    return {
        "primaryContainerName": CONTAINER,
        **CONDITIONS,
        "trialParameters": [
            {"name": alias, "description": f"{name} of the sweep", "reference": name}
            for name, alias in references.items()
        ],
        "trialSpec": _job(sweep.run, arguments, filling),
    }, [*filling.losses, *_lost(sweep.run)]


def _job(run: Run, arguments: list[str], filling: Filling) -> dict[str, Any]:
    amounts = {"cpu": run.resources.cpu, "memory": run.resources.memory}
    if run.resources.gpu:
        amounts[GPU] = str(run.resources.gpu)
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


def _has_image(run: Run) -> bool:
    return run.image is not None and run.image != LOCAL_IMAGE


def _lost(run: Run) -> list[Loss]:
    losses = [
        Loss(
            f"run.code.path: {run.code_path}",
            "Katib mounts no code: the image must hold it, where the command looks",
        ),
        Loss("$SWEEP_TRIAL, $SWEEP_RESULT and the other files of a trial", "Katib has none of them"),
    ]
    if not _has_image(run):
        losses.append(Loss("run.image", f"the sweep names none; {NO_IMAGE} stands there: put yours"))
    if run.data is not None:
        losses.append(Loss(f"run.data: {run.data}", "add the volume to the trialSpec"))
    if run.shape is not None:
        losses.append(Loss(f"run.shape: {run.shape}", "every trial is a Job of its own in Katib"))
    return losses
