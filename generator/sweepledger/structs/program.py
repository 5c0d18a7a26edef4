"""The macros of a command, taken apart once for the spec's checks and for rendering alike."""

import difflib
import re
from dataclasses import dataclass

SPREADING = frozenset({"args", "args_no_boolean_flags", "args_no_hyphens"})
"""Macros that yield several arguments, so they must be a whole element of the command."""

MACROS = SPREADING | {"args_json", "args_json_file", "env", "envvar", "interpreter", "program", "seed"}

PROGRAM = "${program}"
"""Written out when a spec is read, so that no launcher ever sees it."""

DEFAULT_COMMAND = ("${env}", "${interpreter}", PROGRAM, "${args}")
"""What W&B runs where a sweep names a program and no command."""

OPENING = "${"
MACRO = re.compile(r"\$\{([^{}]*)\}")
VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Macro:
    """A place in a command that the launcher fills in."""

    name: str
    argument: str | None = None
    """The variable's name; only `envvar` has one."""

    def __str__(self) -> str:
        return f"${{{self.name}}}" if self.argument is None else f"${{{self.name}:{self.argument}}}"


class MacroError(ValueError):
    """An element of a command that no launcher could fill in, and how to mend it where that is known."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


def parse_element(text: str) -> tuple[str | Macro, ...]:
    """Split one element of a command into plain text and macros. Raises MacroError, a ValueError."""
    parts: list[str | Macro] = []
    for position, piece in enumerate(MACRO.split(text)):
        # re.split with one group alternates: text, macro, text, …
        if position % 2:
            parts.append(_macro(piece))
        elif OPENING in piece:
            raise MacroError(
                f"every '${{' must open a macro that '}}' closes, got {text!r}",
                "macros look like ${args}; an environment variable is ${envvar:NAME}",
            )
        elif piece:
            parts.append(piece)
    spread = [part for part in parts if isinstance(part, Macro) and part.name in SPREADING]
    if spread and len(parts) > 1:
        raise MacroError(
            f"{spread[0]} must stand alone in its element, got {text!r}",
            f'it yields several arguments; make it an element of its own: "{spread[0]}"',
        )
    return tuple(parts)


def _macro(body: str) -> Macro:
    name, colon, argument = body.partition(":")
    if name not in MACROS:
        raise MacroError(f"must be one of the macros {_known()}, got '${{{body}}}'", _nearest(body))
    if name != "envvar":
        if colon:
            raise MacroError(f"the macro ${{{name}}} takes no argument, got '${{{body}}}'")
        return Macro(name)
    if not VARIABLE_NAME.fullmatch(argument):
        raise MacroError(
            f"the macro ${{envvar:NAME}} must name a variable, got '${{{body}}}'",
            "names are letters, digits and underscores, and start with no digit",
        )
    return Macro(name, argument)


def _known() -> str:
    return ", ".join(f"${{{name}:NAME}}" if name == "envvar" else f"${{{name}}}" for name in sorted(MACROS))


def _nearest(body: str) -> str | None:
    if close := difflib.get_close_matches(body.lower(), sorted(MACROS), n=1):
        return f"did you mean ${{{close[0]}}}?"
    if VARIABLE_NAME.fullmatch(body):
        return f"an environment variable is ${{envvar:{body}}}"
    return None
