"""The command of a row: its macros, the comparison with what a reviewer has read, and its secrets."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any, Callable, Iterable, Mapping

from launch_files import LARGEST_FILE, BadCommand, Refused

SPREAD: Mapping[str, Callable[[str, Any], list[str]]] = {
    "args": lambda name, value: [f"--{name}={value}"],
    "args_no_hyphens": lambda name, value: [f"{name}={value}"],
    "args_no_boolean_flags": lambda name, value: switch(name, value, []),
    "args_single_hyphen": lambda name, value: [f"-{name}", *words_of(value)],
    "args_spaced": lambda name, value: [f"--{name}", *words_of(value)],
    "args_switches": lambda name, value: switch(name, value, [f"--no-{name}"]),
}


def spread(macro: str, names: str | None, values: Mapping[str, Any], named: list[str | None]) -> list[str]:
    """Return the arguments of a macro: of the parameters that it names, else of all that no macro names."""
    chosen = names.split(",") if names else values.keys() - set(",".join(filter(None, named)).split(","))
    return [word for name in values if name in chosen for word in SPREAD[macro](name, values[name])]


def switch(name: str, value: Any, off: list[str]) -> list[str]:
    """Return the arguments of a value; those of false are `off`."""
    return [f"--{name}={value}"] if not isinstance(value, bool) else [f"--{name}"] if value else off


def words_of(value: Any) -> list[str]:
    """Return a value as arguments: each entry of a list is one."""
    return list(map(str, value if isinstance(value, list) else [value]))


def parameter_variables(values: Mapping[str, Any], columns: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return the variable of each value; JSON columns stay JSON."""
    kinds = {column["name"]: column["type"] for column in columns}
    return {
        "SWEEP_PARAM_" + re.sub("[^A-Za-z0-9]", "_", name).upper(): (
            json.dumps(value) if kinds[name] == "json" else str(value)
        )
        for name, value in values.items()
    }


def expand(
    command: list[Any], values: Mapping[str, Any], single: Mapping[str, str], variables: Mapping[bytes, bytes]
) -> list[str]:
    """Replace a command's macros; those that give several arguments are alone in their element."""
    arguments: list[str] = []
    lists = [element if isinstance(element, list) else [element] for element in command]
    named = [part.get("argument") for parts in lists for part in parts if macro_of(part) in SPREAD]
    for parts in lists:
        macro = macro_of(parts[0]) if len(parts) == 1 else ""
        if macro in SPREAD:
            arguments += spread(macro, parts[0].get("argument"), values, named)
        else:
            arguments.append("".join(text_of(part, single, variables) for part in parts))
    if not arguments:
        raise BadCommand("the command is empty")
    return arguments


def macro_of(part: Any) -> str:
    """Return the name of the macro that a part of an element is; nothing for text."""
    return str(part.get("macro")) if isinstance(part, dict) else ""


def text_of(part: Any, single: Mapping[str, str], variables: Mapping[bytes, bytes]) -> str:
    """Return the text that a part of an element stands for."""
    if isinstance(part, str):
        return part
    macro = macro_of(part)
    if macro in single:
        return single[macro]
    if macro != "envvar":
        raise Refused(f"launch.json: command: {part!r} is not a part that this launcher knows")
    name = str(part.get("argument"))
    if name.encode() not in variables:
        raise Refused(f"the command needs the environment variable {name}, which is not set")
    return variables[name.encode()].decode("utf-8", "surrogateescape")


def placeholder_of(part: Any) -> str:
    """Return what a reviewer sees instead of a value that only the pod knows; nothing for other parts."""
    macro = macro_of(part)
    if macro == "envvar":
        return f"<envvar:{part.get('argument')}>"
    return f"<{macro}>" if macro in ("args_json_file", "config") else ""


def with_placeholders(command: list[Any]) -> list[Any]:
    """Return the command as a reviewer sees it."""
    lists = (element if isinstance(element, list) else [element] for element in command)
    return [[placeholder_of(part) or part for part in parts] for parts in lists]


def compare(shown: list[str], expanded: list[str]) -> None:
    """Refuse a command that is not the one that was shown."""
    if shown == expanded:
        return
    pairs = list(itertools.zip_longest(shown, expanded))
    place = next(place for place, (left, right) in enumerate(pairs) if left != right)
    left, right = ("nothing" if text is None else repr(text)[:400] for text in pairs[place])
    raise Refused(
        f"the command shown must be what the row gives: argument {place} is shown as {left}, got {right}"
    )


def read_secrets(paths: Mapping[str, str]) -> dict[bytes, bytes]:
    """Read the file of each variable. Its content is only ever in the command's environment."""
    secrets = {}
    for name, path in paths.items():
        try:
            with open(path, "rb") as file:
                content = file.read(LARGEST_FILE + 1)
        except OSError as error:
            raise Refused(f"the secret for {name} cannot be read: {path}: {error.strerror}") from error
        if len(content) > LARGEST_FILE or b"\0" in content:
            raise Refused(f"the secret for {name} must be text of at most 1 MiB: {path}")
        secrets[name.encode()] = content[:-1] if content.endswith(b"\n") else content
    return secrets
