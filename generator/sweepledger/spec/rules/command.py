"""The command and its macros."""

from collections.abc import Iterator

from generator.problems import Problem
from generator.reader import shown
from generator.spec.draft import Draft
from generator.structs.command import MACROS, SPREADING, Macro, MacroError, parse_element
from generator.structs.names import environment_name

SEEDS = {Macro("seed"), Macro("envvar", "SWEEP_SEED")}


def given(draft: Draft) -> Iterator[Problem]:
    """A trial runs a command, or a program with the usual one."""
    if draft.names() and not {"command", "program"} & {*draft.names()}:
        message = "must be given, or program"
        hint = 'for example program: train.py, or command: [python, train.py, "${args}"]'
        yield draft.problem(("command",), message, code="missing-key", hint=hint, at_key=True)


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
            hint = _one_value(draft, text) or error.hint
            yield draft.problem(place, str(error), code="command-macro", hint=hint)


def _one_value(draft: Draft, text: str) -> str | None:
    """Say how an element gets the value of one parameter, where it names one as if that were a macro."""
    for name in draft.names("parameters"):
        if f"${{{name}}}" in text and name not in MACROS:
            return f'the value of {name} alone is "${{envvar:{environment_name(name)}}}"'
    return None


def has_its_program(draft: Draft) -> Iterator[Problem]:
    """The macro of the program needs one."""
    for place, text in draft.texts("command") if "program" not in draft.names() else ():
        if Macro("program") in _parts(text):
            message = "the macro ${program} needs the key program"
            hint = "for example program: train.py, the script's path in the code's folder"
            yield draft.problem(place, message, code="command-macro", hint=hint)


def shows_no_secret(draft: Draft) -> Iterator[Problem]:
    """A command is shown, recorded and listed by every `ps`: the launcher gives secrets to no argument."""
    known = draft.settings.secrets
    asked = [known[name] for _, name in draft.items("run", "secrets") if name in known]
    held = {Macro("envvar", secret.variable): secret.name for secret in asked}
    for place, text in draft.texts("command"):
        for macro in _parts(text):
            if isinstance(macro, Macro) and macro in held:
                message = f"must not hold the value of secret {held[macro]!r}, got {macro}"
                hint = "the program finds it in its environment"
                yield draft.problem(place, message, code="secret-in-command", hint=hint)


def uses_its_seed(draft: Draft) -> Iterator[Problem]:
    """Replicates differ in their seed alone: a program that does not get it repeats itself."""
    replicates = draft.number("replicates") or 1
    command = draft.get("command", kind=list)
    texts = [text for _, text in draft.texts("command")]
    whole = not any(place[:1] == ("command",) for place in draft.broken)
    if replicates <= 1 or not whole or any(SEEDS & {*_parts(text)} for text in texts):
        return
    message = f"each assignment runs {replicates} times, but the command uses no ${{seed}}"
    hint = (
        'nothing need be done if the program reads SWEEP_SEED; else add an argument such as "--seed=${seed}"'
    )
    place = ("replicates",) if command is None else ("command",)
    yield draft.warning(place, message, code="seed-unused", hint=hint, at_key=True)


def _parts(text: str) -> tuple[str | Macro, ...]:
    try:
        return parse_element(text)
    except MacroError:
        return ()
