"""Hydra's overrides in a command: written by imports, read by exports."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sweepledger.exchange.hydra.overrides import split_override
from sweepledger.exchange.spec_parts import find_script
from sweepledger.formats.foreign_yaml import ForeignError
from sweepledger.structs.names import environment_name

RUN_ALONE = "hydra.mode=RUN"
OUTPUTS = "hydra.run.dir=${envvar:SWEEP_ARTIFACTS}"
ALL = "${args_no_hyphens}"
HANDED = re.compile(r"([^-=$][^=$]*)=\$\{envvar:(\w+)\}", re.ASCII)
"""An argument that passes one parameter under Hydra's key."""


@dataclass(frozen=True, slots=True)
class CommandOverrides:
    """Hydra's overrides in a command."""

    is_hydra: bool
    """Whether the program is a Hydra app, which parses texts of the spec."""
    keys: Mapping[str, str]
    """Hydra's key of each environment variable, with its `+` and `@`."""
    fixed: Mapping[str, str]
    """Overrides that are the same in every trial: key and value."""
    deleted: tuple[str, ...]
    """`~key` without a value, which a sweeper's params cannot contain."""

    def key(self, parameter: str) -> str:
        """Return Hydra's key of a parameter."""
        return self.keys.get(environment_name(parameter), parameter)


def are_renamed(keys: Mapping[str, str]) -> bool:
    """Return whether Hydra's keys differ from the parameters' names."""
    return any(key != name for name, key in keys.items())


def app_command(keys: Mapping[str, str], literal: Sequence[str], *, is_multirun: bool) -> list[str]:
    """Return a command that starts the app once, with each parameter under Hydra's key."""
    arguments = [ALL]
    if are_renamed(keys):
        arguments = [f"{key}=${{envvar:{environment_name(name)}}}" for name, key in keys.items()]
    alone = [RUN_ALONE] if is_multirun else []
    return ["${env}", "${interpreter}", "${program}", *alone, OUTPUTS, *literal, *arguments]


def command_overrides(command: Sequence[str]) -> CommandOverrides:
    """Return the overrides of a command."""
    handed = [match for part in command if (match := HANDED.fullmatch(part))]
    keys = {match[2]: match[1] for match in handed if match[2].startswith("SWEEP_PARAM_")}
    is_hydra = bool(keys) or ALL in command or any(part.startswith("hydra.") for part in command)
    pairs = tuple(_literal(command)) if is_hydra else ()
    fixed = {key: text for key, text in pairs if text is not None}
    return CommandOverrides(is_hydra, keys, fixed, tuple(key for key, text in pairs if text is None))


def _literal(command: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Yield the app's constant overrides as key and value; None for a key that is deleted with any value."""
    program = find_script(command)
    for part in command if program is None else command[program + 1 :]:
        if "${" in part or part.startswith(("-", "~/", "hydra.", "hydra/")):
            continue
        try:
            override = split_override(part)
        except ForeignError:
            continue  # the interpreter or the program
        yield override.key, override.text if "=" in part else None
