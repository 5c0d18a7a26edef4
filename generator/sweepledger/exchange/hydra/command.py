"""Hydra's overrides in a command: written when a sweep comes in, found again when one goes out."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from generator.exchange.hydra.overrides import split_override
from generator.exchange.loss import ForeignError
from generator.exchange.programs import script_in
from generator.structs.names import environment_name

RUN_ALONE = "hydra.mode=RUN"
OUTPUTS = "hydra.run.dir=${envvar:SWEEP_ARTIFACTS}"
ALL = "${args_no_hyphens}"
HANDED = re.compile(r"([^-=$][^=$]*)=\$\{envvar:(\w+)\}", re.ASCII)
"""One parameter under a key of its own."""


@dataclass(frozen=True, slots=True)
class Overrides:
    """What a command says to Hydra."""

    is_hydra: bool
    """Else its program is none of Hydra's, and a text in a spec is just that text."""
    keys: Mapping[str, str]
    """Hydra's key of each environment variable, with its `+` and `@`."""
    fixed: Mapping[str, str]
    """The same in every trial: key and value."""
    deleted: tuple[str, ...]
    """`~key` without a value, for which a sweeper's params have no place."""

    def key(self, parameter: str) -> str:
        """Give Hydra's key of a parameter."""
        return self.keys.get(environment_name(parameter), parameter)


def are_renamed(keys: Mapping[str, str]) -> bool:
    """Tell whether Hydra's keys of the parameters are others than their names."""
    return any(key != name for name, key in keys.items())


def written(keys: Mapping[str, str], literal: Sequence[str], *, is_multirun: bool) -> list[str]:
    """Write a command that starts the app once, each parameter under Hydra's key of it."""
    arguments = [ALL]
    if are_renamed(keys):
        arguments = [f"{key}=${{envvar:{environment_name(name)}}}" for name, key in keys.items()]
    alone = [RUN_ALONE] if is_multirun else []
    return ["${env}", "${interpreter}", "${program}", *alone, OUTPUTS, *literal, *arguments]


def found(command: Sequence[str]) -> Overrides:
    """Find a command's overrides."""
    handed = [match for part in command if (match := HANDED.fullmatch(part))]
    keys = {match[2]: match[1] for match in handed if match[2].startswith("SWEEP_PARAM_")}
    is_hydra = bool(keys) or ALL in command or any(part.startswith("hydra.") for part in command)
    pairs = tuple(_literal(command)) if is_hydra else ()
    fixed = {key: text for key, text in pairs if text is not None}
    return Overrides(is_hydra, keys, fixed, tuple(key for key, text in pairs if text is None))


def _literal(command: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Find what is said to the app itself in every trial; None where a key is deleted whatever its value."""
    program = script_in(command)
    for part in command if program is None else command[program + 1 :]:
        if "${" in part or part.startswith(("-", "~/", "hydra.", "hydra/")):
            continue
        try:
            override = split_override(part)
        except ForeignError:
            continue  # the interpreter, the program: no override
        yield override.key, override.text if "=" in part else None
