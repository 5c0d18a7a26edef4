"""The command of a trial: its program, its macros, and no template syntax anywhere."""

import re
from collections.abc import Iterator

from sweepledger.problems import Problem
from sweepledger.reader import DocumentPath, safe_repr
from sweepledger.spec.draft import Draft
from sweepledger.spec.rules.program import effective_image
from sweepledger.spec.sections import search_section
from sweepledger.spec.suggestions import quoted_names
from sweepledger.structs.names import environment_name
from sweepledger.structs.program import LIST_MACROS, LOCAL_IMAGE, MACROS, Macro, MacroError, parse_element

SEED_MACROS = {Macro("seed"), Macro("envvar", "SWEEP_SEED")}


def command_given(draft: Draft) -> Iterator[Problem]:
    """A spec has a command, or a program for the default command."""
    if draft.names() and not {"command", "program"} & {*draft.names()}:
        message = "must be given unless program is"
        hint = 'for example program: train.py, or command: [python, train.py, "${args}"]'
        yield draft.problem(("command",), message, code="missing-key", hint=hint, at_key=True)


def first_element(draft: Draft) -> Iterator[Problem]:
    """The first element of a command is the program to start."""
    first = draft.get("command", 0, kind=str)
    if first is not None and (not first or first in {str(Macro(name)) for name in LIST_MACROS}):
        message = f"must begin with the program to start, got {safe_repr(first)}"
        yield draft.problem(("command", 0), message, code="command-program", hint="for example python")


def started_program(draft: Draft) -> Iterator[Problem]:
    """An interpreter, and `env`, are given a program before the arguments of the trial."""
    command = [text for _, text in draft.texts("command")]
    starters = 0
    while starters < len(command) and (
        command[starters] in STARTERS or (starters and ASSIGNMENT.match(command[starters]))
    ):
        starters += 1
    rest = command[starters:]
    options = 0
    while options < len(rest) and rest[options].startswith("-") and rest[options] not in PROGRAM_OPTIONS:
        options += 1
    if not starters or any(place[:1] == ("command",) for place in draft.broken):
        return
    if options == len(rest) or rest[options] in ARGUMENTS:
        place = min(starters + options, len(command) - 1)
        message = f"must name a program before the arguments, got {safe_repr(command[place])}"
        hint = 'write "${program}" there' if "program" in draft.names() else "for example the script's path"
        yield draft.problem(("command", place), message, code="command-program", hint=hint)


STARTERS = frozenset(map(str, (Macro("env"), Macro("interpreter"))))
ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
"""A variable that `env` sets before it starts the program."""
PROGRAM_OPTIONS = frozenset({"-m", "-c", "-"})
"""Options after which an interpreter needs no path."""
ARGUMENTS = frozenset(str(Macro(name)) for name in (*LIST_MACROS, "args_json", "args_json_file", "seed"))


def unused_program(draft: Draft) -> Iterator[Problem]:
    """Warn of a program that the command does not start."""
    program, command = draft.get("program", kind=str), draft.get("command", kind=list)
    written = SCRIPT.fullmatch(program or "")
    if written is None or command is None or any(place[:1] == ("command",) for place in draft.broken):
        return
    stem = written["package"] or written["stem"]
    texts = [text for _, text in draft.texts("command")]
    if not any(stem in text or Macro("program") in _parts(text) for text in texts):
        message = f"is not in the command, got {safe_repr(program)}"
        hint = 'put "${program}" where the command starts it, or delete the key'
        yield draft.warning(("program",), message, code="program-unused", hint=hint)


def outside_paths(draft: Draft) -> Iterator[Problem]:
    """Warn of absolute paths, whose content no digest covers; that of an image covers those inside."""
    if effective_image(draft) not in {LOCAL_IMAGE, None}:
        return
    for place, text in draft.texts("command"):
        paths = (match[0] for match in ABSOLUTE_PATH.finditer(text))
        path = next((path for path in paths if not PROGRAM_PATH.fullmatch(path)), None)
        if path is not None:
            message = f"has a path outside of the code, which no digest covers: {safe_repr(path)}"
            hint = "put the file into the code, or name it under datasets and run.data, for $SWEEP_DATA"
            yield draft.warning(place, message, code="path-outside", hint=hint)


def shared_paths(draft: Draft) -> Iterator[Problem]:
    """In a pack, no command and no variable has a path in a folder that the trials of the pod share."""
    if "pack" not in draft.names("run"):
        return
    for place, text in (*draft.texts("command"), *draft.texts("run", "environment")):
        path = SHARED_PATH.search(text)
        if path is not None:
            message = f"must not be in a folder that all trials of a pod share, got {safe_repr(path[0])}"
            hint = (
                "write a relative path or ${envvar:SWEEP_CHECKPOINTS}, which are private, or delete run.pack"
            )
            yield draft.problem(place, message, code="path-shared", hint=hint)


SCRIPT = re.compile(r"(?:[\w.@-]+/)*?(?:(?P<package>[\w-]+)/__main__|(?P<stem>[\w-]+))(?:\.\w+)?")
ABSOLUTE_PATH = re.compile(r"""(?<![^\s=,:;'"(\[<>|&])/(?!/)[^\s,:;'"()\[\]<>|&]+""")
"""A path at the start of a word, or after `=` as in `--data=/mnt/data`; not what follows a macro or a name."""
SHARED_PATH = re.compile(r"/sweep/(?:artifacts|checkpoints|results|scratch)(?![\w-])[^\s,:;'\"()]*")
PROGRAM_PATH = re.compile(
    r"/(?:usr/|usr/local/)?s?bin/.*|/dev/.*|/sweep/.*"
    r"|/.*/(?:python|pypy|bash|sh|zsh|node|ruby|perl|Rscript|julia|java)[0-9.]*"
)
"""Interpreters, tools of the system and devices."""


def macros(draft: Draft) -> Iterator[Problem]:
    """Every macro of a command is one that the launcher knows."""
    for place, text in draft.texts("command"):
        if "${{" in text:
            continue  # template syntax, which has its own rule
        try:
            parts = parse_element(text)
        except MacroError as error:
            hint = _parameter_hint(draft, text) or error.hint
            yield draft.problem(place, str(error), code="command-macro", hint=hint)
            continue
        section = search_section(draft)
        known = (*section.parameters, *section.derived, *filter(None, [section.resource]))
        variables = {environment_name(name) for name in known}
        for macro in parts if section.is_whole else ():
            if not isinstance(macro, Macro) or macro.argument is None:
                continue
            is_variable = macro.name == "envvar"
            names = {macro.argument} if is_variable else {*macro.argument.split(",")}
            is_foreign = is_variable and not macro.argument.startswith(environment_name(""))
            if not is_foreign and not names <= (variables if is_variable else {*known}):
                message = f"must name a parameter, got {safe_repr(text)}"
                yield draft.problem(
                    place, message, code="command-macro", hint=f"known: {quoted_names(known)}"
                )


def _parameter_hint(draft: Draft, text: str) -> str | None:
    """Return how to pass the value of one parameter, if the element uses its name as a macro."""
    for name in draft.names("parameters"):
        if f"${{{name}}}" in text and name not in MACROS:
            return f'the value of {name} alone is "${{param:{name}}}"'
    return None


def program_macro(draft: Draft) -> Iterator[Problem]:
    """The macro ${program} needs the key `program`."""
    for place, text in draft.texts("command") if "program" not in draft.names() else ():
        if Macro("program") in _parts(text):
            message = "the macro ${program} needs the key program"
            hint = "for example program: train.py, the script's path in the code's folder"
            yield draft.problem(place, message, code="command-macro", hint=hint)


def config_macro(draft: Draft) -> Iterator[Problem]:
    """The macro ${config} and the key run.config need each other."""
    has_key = "config" in draft.names("run")
    places = [place for place, text in draft.texts("command") if Macro("config") in _parts(text)]
    if places and not has_key:
        message, hint = (
            "the macro ${config} needs the key run.config",
            "for example {base: config/train.yaml}",
        )
        yield draft.problem(places[0], message, code="config-macro", hint=hint)
    elif has_key and not places and not any(place[:1] == ("command",) for place in draft.broken):
        message = "must be passed to the program, and the command has no ${config}"
        hint = 'for example "--config=${config}" in command: the path of the file with the trial\'s values'
        yield draft.problem(("run", "config"), message, code="config-macro", hint=hint, at_key=True)


def secret_macros(draft: Draft) -> Iterator[Problem]:
    """A command contains no secrets, because it is shown, recorded and listed by `ps`."""
    known = draft.settings.trials.secrets
    secrets = [known[name] for _, name in draft.items("run", "secrets") if name in known]
    secret_names = {Macro("envvar", secret.variable): secret.name for secret in secrets}
    for place, text in draft.texts("command"):
        for macro in _parts(text):
            if isinstance(macro, Macro) and macro in secret_names:
                message = f"must not contain the value of secret {secret_names[macro]!r}, got {macro}"
                hint = "the program finds it in its environment"
                yield draft.problem(place, message, code="secret-in-command", hint=hint)


def seed_macro(draft: Draft) -> Iterator[Problem]:
    """Warn of replicates whose command does not use the seed: their results would be equal."""
    replicates = draft.number("replicates") or 1
    command = draft.get("command", kind=list)
    texts = [text for _, text in draft.texts("command")]
    whole = not any(place[:1] == ("command",) for place in draft.broken)
    if replicates <= 1 or not whole or any(SEED_MACROS & {*_parts(text)} for text in texts):
        return
    message = f"each assignment runs {replicates} times, but the command uses no ${{seed}}"
    hint = 'no change is needed if the program reads SWEEP_SEED; otherwise add an argument such as "--seed=${seed}"'
    place = ("replicates",) if command is None else ("command",)
    yield draft.warning(place, message, code="seed-unused", hint=hint, at_key=True)


def _parts(text: str) -> tuple[str | Macro, ...]:
    try:
        return parse_element(text)
    except MacroError:
        return ()


TEMPLATE_SIGNS = {
    "{{": "Helm, ApplicationSets and workflows fill in {{ … }}",
    "}}": "Helm, ApplicationSets and workflows fill in {{ … }}",
    "{%": "template engines run {% … %}",
    "$(": "Kubernetes fills in $(NAME)",
    "${": "Flux fills in ${NAME}",
}

TEXT_PATHS: tuple[DocumentPath, ...] = (
    *((key,) for key in ("description", "command", "program", "parameters", "assignments", "derived")),
    ("run", "environment"),
    ("run", "keep"),
)


def template_syntax(draft: Draft) -> Iterator[Problem]:
    """Texts contain no template syntax, which other programs would replace in manifests."""
    for top in TEXT_PATHS:
        for place, text in draft.texts(*top):
            # ${…} in a command are macros, which are never written to a manifest.
            signs = [
                sign for sign in TEMPLATE_SIGNS if sign in text and (sign != "${" or top != ("command",))
            ]
            if signs:
                message = f"must not contain {signs[0]!r}, got {safe_repr(text)}"
                hint = f"{TEMPLATE_SIGNS[signs[0]]} in every manifest"
                yield draft.problem(place, message, code="template-syntax", hint=hint)
