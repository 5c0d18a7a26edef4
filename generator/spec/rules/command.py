"""The command and its macros."""

from collections.abc import Iterator

from generator.problems import Problem
from generator.reader import shown
from generator.spec.draft import Draft
from generator.structs.command import SPREADING, Macro, MacroError, parse_element


def starts_a_program(draft: Draft) -> Iterator[Problem]:
    """The first element is what is started."""
    first = draft.get("command", 0, kind=str)
    if first is not None and (not first or first in {str(Macro(name)) for name in SPREADING}):
        message = f"must begin with the program to start, got {shown(first)}"
        yield draft.problem(("command", 0), message, code="command-program", hint="for example python")


def macros(draft: Draft) -> Iterator[Problem]:
    """Every macro must be one that the launcher can fill in."""
    for place, text in draft.texts("command"):
        if "${{" in text:
            continue  # no macro but a template, which has a rule of its own
        try:
            parse_element(text)
        except MacroError as error:
            yield draft.problem(place, str(error), code="command-macro", hint=error.hint)
