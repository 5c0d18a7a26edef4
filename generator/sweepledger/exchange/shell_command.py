"""One command line of a shell as the command of a spec, for formats that write text instead of a list."""

import re
import shlex
from collections.abc import Mapping

from sweepledger.exchange.conversion import Loss
from sweepledger.exchange.fields import show_value
from sweepledger.structs.names import environment_name

SHELL_SYNTAX = re.compile(r"[;&|<>`$\n*?~#]|\\$")
"""Characters that only a shell interprets; a trial starts without one."""
CONTINUED_LINE = re.compile(r"\\\r?\n")
"""A backslash at the end of a line, which continues on the next one."""


def split_command(
    text: str, placeholder: re.Pattern[str], names: Mapping[str, str], losses: list[Loss]
) -> list[str] | None:
    """Return a command with macros for placeholders; None if only a shell can run it, which is a loss.

    The pattern has a group `parameter`, whose names are those of the file.
    """
    line = CONTINUED_LINE.sub("", text).strip()
    marked = placeholder.sub(lambda match: f"\0{match['parameter']}\0", line)
    try:
        elements = shlex.split(marked)
    except ValueError:
        elements = []
    if not elements or SHELL_SYNTAX.search(marked):
        losses.append(
            Loss(f"command: {show_value(text)}", "needs a shell; move it to a script and write your command")
        )
        return None
    return [_with_macros(element, names, losses) for element in elements]


def _with_macros(element: str, names: Mapping[str, str], losses: list[Loss]) -> str:
    parts = element.split("\0")
    for place in range(1, len(parts), 2):
        foreign = parts[place]
        if foreign in names:
            parts[place] = f"${{envvar:{environment_name(names[foreign])}}}"
        else:
            losses.append(Loss(f"command: {foreign}", "is not a parameter of the sweep; left out"))
            parts[place] = ""
    return "".join(parts)
