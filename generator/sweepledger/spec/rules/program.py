"""What a trial runs: its image, interpreter, code, data and command, with no template syntax anywhere."""

import re
from collections.abc import Collection, Iterator
from itertools import takewhile
from posixpath import join, normpath

from sweepledger.controllers import GITOPS
from sweepledger.formats.environment_lock import FORMATS, is_lock_name
from sweepledger.model.forms import DNS_LABEL, IMAGE, INNER_PATH, LONGEST_IMAGE
from sweepledger.problems import Problem
from sweepledger.reader import DocumentPath, safe_repr
from sweepledger.spec.draft import Draft
from sweepledger.spec.rules.names import entry_name
from sweepledger.spec.sections import search_section
from sweepledger.spec.suggestions import did_you_mean, quoted_names
from sweepledger.structs import names
from sweepledger.structs.kubernetes import CODE_PATH
from sweepledger.structs.names import environment_name
from sweepledger.structs.program import (
    LIST_MACROS,
    LOCAL_IMAGE,
    MACROS,
    REPOSITORY,
    SWEEP_NAMES,
    Macro,
    MacroError,
    PathPattern,
    parse_element,
)
from sweepledger.structs.run_config import INTERPRETER_FORM, CodeMode, RunConfig
from sweepledger.structs.settings import Controller

ENVIRONMENT_LOCK = "environment-lock"
WORKDIR, DATA_PLACE, CONFIG_BASE = "workdir", "data-place", "config-base"
"""Codes of problems that are also found in the code that is locked."""

GENERATED_FOLDERS = frozenset({".git", "overlays", "results"})
"""Folders that change with every batch: as code, they would make every trial new."""


def interpreter(draft: Draft) -> Iterator[Problem]:
    """In a cluster, the interpreter is where no trial can write."""
    place = ("run", "interpreter")
    text = draft.get(*place, kind=str)
    if text is None or not INTERPRETER_FORM.fullmatch(text):
        return
    if draft.settings.platform.controller is not Controller.NONE:
        clones = draft.get("run", "code", "mode", kind=str) == CodeMode.CLONE
        if not names.is_interpreter(text, (f"{CODE_PATH}/",) if clones else ()):
            message = (
                "must be a name or an absolute path inside the image, where no trial can write,"
                f" got {safe_repr(text)}"
            )
            hint = "for example python3 or /opt/conda/bin/python"
            yield draft.problem(place, message, code="interpreter", hint=hint)


def code_path(draft: Draft) -> Iterator[Problem]:
    """The code is a folder inside the repository, or the repository."""
    text = draft.get("run", "code", "path", kind=str)
    if text is None or text.removesuffix("/") == REPOSITORY:
        return
    path = text.removesuffix("/")
    if not is_inside(path):
        message = f"must be a folder inside the repository, relative to it, got {safe_repr(text)}"
        hint = (
            "for example trainer, or . for the repository; without .. and with letters, digits and _ . - only"
        )
        yield draft.problem(("run", "code", "path"), message, code="code-path", hint=hint)
    elif path.split("/")[0] in GENERATED_FOLDERS:
        message = (
            f"must not be in {path.split('/')[0]}, which changes with every batch, got {safe_repr(text)}"
        )
        yield draft.problem(("run", "code", "path"), message, code="code-path")
    elif path.split("/")[0] in SWEEP_NAMES and _is_selection(draft):
        yield _sweep_folder(draft, ("run", "code", "path"), text)


def code_selection(draft: Draft) -> Iterator[Problem]:
    """Selected code has paths in the repository, and patterns that mean the same everywhere."""
    place: DocumentPath = ("run", "code")
    for path, written in draft.items(*place, "path"):
        yield from _selected_path(draft, path, written)
    for key in ("include", "exclude"):
        for path, pattern in draft.items(*place, key):
            try:
                PathPattern.parse(pattern)
            except ValueError as error:
                hint = "as in .gitignore, for example data/, *.csv, /docs or src/**/tests/"
                yield draft.problem(
                    path, f"{error}, got {safe_repr(pattern)}", code="code-pattern", hint=hint
                )


def _is_selection(draft: Draft) -> bool:
    """Return whether the code is anything but a whole folder."""
    is_chosen = not {"include", "exclude"}.isdisjoint(draft.names("run", "code"))
    return is_chosen or _code_folder(draft) == REPOSITORY


def _selected_path(draft: Draft, place: DocumentPath, text: str) -> Iterator[Problem]:
    path = text.removesuffix("/")
    if path == REPOSITORY or not is_inside(path):
        message = f"must be a file or folder inside the repository, relative to it, got {safe_repr(text)}"
        hint = "the whole repository is `path: .`" if path == REPOSITORY else "for example src or train.py"
        yield draft.problem(place, message, code="code-path", hint=hint)
    elif path.split("/")[0] in SWEEP_NAMES:
        yield _sweep_folder(draft, place, text)


def _sweep_folder(draft: Draft, place: DocumentPath, text: str) -> Problem:
    name = text.partition("/")[0]
    message = f"must not be in {name}, which belongs to sweeps and is never selected, got {safe_repr(text)}"
    return draft.problem(place, message, code="code-path")


def environment_lock(draft: Draft) -> Iterator[Problem]:
    """The lock file of the environment is a file of the code, where trials can read it."""
    place: DocumentPath = ("run", "environment_lock")
    path = draft.get(*place, kind=str)
    if path is None:
        return
    if not is_inside(path) or not is_lock_name(path):
        message = f"must be the path of a lock file in the repository, got {safe_repr(path)}"
        yield draft.problem(place, message, code=ENVIRONMENT_LOCK, hint=f"known are {FORMATS}")
    elif not _is_selection(draft):
        folder = _code_folder(draft)
        if not path.startswith(f"{folder}/"):
            message = (
                f"must be a file of the code, {folder}/, so that trials can read it, got {safe_repr(path)}"
            )
            hint = f"add it to the code: `run: {{code: {{path: [{folder}, {path}]}}}}`"
            yield draft.problem(place, message, code=ENVIRONMENT_LOCK, hint=hint)


def config_base(draft: Draft) -> Iterator[Problem]:
    """The base of the configuration file is a file of the code, in a format that the launcher writes."""
    place: DocumentPath = ("run", "config", "base")
    path = draft.get(*place, kind=str)
    if path is None:
        return
    folder = REPOSITORY if _is_selection(draft) else _code_folder(draft)
    if not is_inside(path) or not (folder == REPOSITORY or path.startswith(f"{folder}/")):
        message = f"must be a file of the code, relative to the repository, got {safe_repr(path)}"
        hint = f"for example {'' if folder == REPOSITORY else f'{folder}/'}config/train.yaml"
        yield draft.problem(place, message, code=CONFIG_BASE, hint=hint)
    elif "format" not in draft.names("run", "config") and not path.endswith(
        (".yaml", ".yml", ".toml", ".json")
    ):
        message = f"must end with .yaml, .yml, .toml or .json without format, got {safe_repr(path)}"
        yield draft.problem(place, message, code=CONFIG_BASE, hint="add format: yaml, toml or json")


def _code_folder(draft: Draft) -> str:
    """Return the folder of the code; that of selected paths is the repository."""
    default = RunConfig().code_path if draft.get("run", "code", "path", kind=list) is None else REPOSITORY
    return (draft.get("run", "code", "path", kind=str) or default).removesuffix("/")


def workdir(draft: Draft) -> Iterator[Problem]:
    """A trial starts in a folder of the code."""
    place: DocumentPath = ("run", "workdir")
    text = draft.get(*place, kind=str)
    if text is None:
        return
    path, folder = text.removesuffix("/"), _code_folder(draft)
    if not is_inside(path):
        message = f"must be a folder of the code, relative to the repository, got {safe_repr(text)}"
        hint = "for example mnist; without .. and with letters, digits and _ . - only. Without the key, a trial starts"
        yield draft.problem(place, message, code=WORKDIR, hint=f"{hint} where the repository begins")
    elif folder != REPOSITORY and not f"{path}/".startswith(f"{folder}/"):
        message = f"must be in the folder of the code, {folder}/, got {safe_repr(text)}"
        yield draft.problem(place, message, code=WORKDIR, hint=f"for example {folder}/{path}")


def kept_files(draft: Draft) -> Iterator[Problem]:
    """What a trial has written is kept by patterns of paths below the folder that it starts in."""
    for place, pattern in draft.items("run", "keep"):
        parts = pattern.removesuffix("/").split("/")
        is_plain = all(part not in {"", ".", ".."} and ("**" not in part or part == "**") for part in parts)
        if not (is_plain and "\\" not in pattern and pattern.isprintable()):
            message = (
                "must be a pattern of files below the folder that trials start in, with names between slashes,"
                f" without '.', '..' and '\\', and '**' alone, got {safe_repr(pattern)}"
            )
            is_outside = pattern.startswith("/") or ".." in parts
            hint = (
                "let the program write it to $SWEEP_ARTIFACTS" if is_outside else "for example *.pt or out/**"
            )
            yield draft.problem(place, message, code="keep-path", hint=hint)


def program_path(draft: Draft) -> Iterator[Problem]:
    """The program is a file of the code."""
    text = draft.get("program", kind=str)
    if text is None or is_inside(text):
        return
    message = f"must be a file inside the code's folder, relative to it, got {safe_repr(text)}"
    mended = text.removeprefix("./").lstrip("/")
    hint = f"for example {mended if is_inside(mended) else 'train.py'}"
    hint += "; arguments belong in command" if " " in text else ""
    yield draft.problem(("program",), message, code="program-path", hint=hint)


def is_inside(path: str) -> bool:
    """Return whether a relative path stays inside its folder and has only plain characters."""
    return re.fullmatch(INNER_PATH, path, re.ASCII) is not None


def dataset(draft: Draft) -> Iterator[Problem]:
    """`run.data` names datasets of the settings, all on claims or all in the bucket."""
    known = draft.settings.trials.datasets
    has_places = bool(draft.names("run", "data"))
    named = (
        [(("run", "data", name), name) for name in draft.names("run", "data")]
        if has_places
        else [*draft.texts("run", "data")]
    )
    for place, _ in named:
        yield from entry_name(draft, place, "datasets", at_key=has_places)
    copied = [name for _, name in named if name in known and known[name].bucket]
    mounted = [name for _, name in named if name in known and not known[name].bucket]
    if copied and mounted:
        message = f"must be all on claims or all in the bucket, got {copied[0]!r} there and {mounted[0]!r} on a claim"
        hint = "the digest of all is verified where all are copied"
        yield draft.problem(("run", "data"), message, code="data-source", hint=hint)


def data_places(draft: Draft) -> Iterator[Problem]:
    """Datasets are linked where a trial has a private folder: in its code, and one level above it."""
    start = draft.get("run", "workdir", kind=str) or REPOSITORY
    links: dict[str, str] = {}
    for name in draft.names("run", "data"):
        place: DocumentPath = ("run", "data", name)
        text = draft.get(*place, kind=str)
        if text is None:
            continue
        path = normpath(join(start, text))
        names_above = [*takewhile(lambda part: part == "..", path.split("/"))]
        rest = path.split("/")[len(names_above) :]
        if text.startswith("/") or len(names_above) > 1 or not rest or not is_inside("/".join(rest)):
            message = f"must be a path in the code or one level above it, got {safe_repr(text)}"
            hint = (
                "for example ../data; a program that takes its folder as an argument needs no place:"
                ' "--data=${envvar:SWEEP_DATA}" in command'
            )
            yield draft.problem(place, message, code=DATA_PLACE, hint=hint)
            continue
        for other, taken in links.items():
            if f"{path}/".startswith(f"{taken}/") or f"{taken}/".startswith(f"{path}/"):
                message = f"must not be in the place of {other}, nor contain it, got {safe_repr(text)}"
                yield draft.problem(
                    place, message, code=DATA_PLACE, hint="give each dataset a folder of its own"
                )
        links[name] = path


def code_mode(draft: Draft) -> Iterator[Problem]:
    """Cloning needs `code` in the settings, and an image."""
    place = ("run", "code", "mode")
    if draft.get(*place, kind=str) != CodeMode.CLONE:
        return
    if draft.settings.git.code is None:
        message = "must be 'image' if the settings have no code to clone, got 'clone'"
        hint = "add code, with url and image, to sweepledger.yaml"
        yield draft.problem(place, message, code="code-mode", hint=hint)
    if effective_image(draft) == LOCAL_IMAGE:
        message = "must be left out if image is 'local', which runs the locked code directly, got 'clone'"
        yield draft.problem(place, message, code="code-mode", hint="name an image by run.image")
    if _is_selection(draft):
        message = (
            "must be 'image' unless the code is a whole folder, because a pod clones one folder, got 'clone'"
        )
        hint = (
            "name one folder by run.code.path without include and exclude, or build the code into the image"
        )
        yield draft.problem(place, message, code="code-mode", hint=hint)


def effective_image(draft: Draft) -> str | None:
    """Return the image of the spec, else of the settings; None if it is unknown."""
    if "image" in draft.names("run"):
        return draft.get("run", "image", kind=str)
    return draft.settings.trials.defaults.image


def run_image(draft: Draft) -> Iterator[Problem]:
    """An image has a digest, and its repository is one that the settings list, if they list any."""
    place, listed = ("run", "image"), draft.settings.trials.images
    found = list(_image(draft, place, listed))
    yield from found
    text = draft.get(*place, kind=str)
    if found or not listed or text is None or text == LOCAL_IMAGE or text in listed:
        return
    match = IMAGE.fullmatch(text)
    known = sorted({image.repository for image in listed.values()})
    if match is None or match["repository"] not in known:
        message = f"must be of a repository that images in sweepledger.yaml list, got {safe_repr(text)}"
        yield draft.problem(place, message, code="image-not-listed", hint=f"listed: {', '.join(known)}")


def image_without_manifests(draft: Draft) -> Iterator[Problem]:
    """Warn of an image in a repository whose batches have no manifests: no pod ever has it."""
    text = draft.get("run", "image", kind=str)
    if text not in {None, LOCAL_IMAGE} and not draft.settings.git.manifests:
        message = f"is for pods, which batches without manifests never have, got {safe_repr(text)}"
        hint = "delete `manifests: false` from sweepledger.yaml"
        yield draft.warning(("run", "image"), message, code="no-manifests", hint=hint)


def default_image(draft: Draft) -> Iterator[Problem]:
    """The default image has a digest or a name."""
    yield from _image(draft, ("defaults", "image"), draft.names("images"))


def code_secret(draft: Draft) -> Iterator[Problem]:
    """No secret is sent without TLS to the URL that code is cloned from."""
    text = draft.get("code", "url", kind=str)
    if text is not None and text.startswith("http:") and "secret" in draft.names("code"):
        message = f"must be an https address where a secret is sent to it, got {safe_repr(text)}"
        yield draft.problem(("code", "url"), message, code="code-url")


def named_images(draft: Draft) -> Iterator[Problem]:
    """No image is called as if there were none."""
    if LOCAL_IMAGE in draft.names("images"):
        place, message = ("images", LOCAL_IMAGE), f"must not be {LOCAL_IMAGE!r}, which means no image"
        yield draft.problem(place, message, code="image-reference", at_key=True)


def pinned_images(draft: Draft) -> Iterator[Problem]:
    """A named image has a digest; `sweep cluster pin` skips this rule."""
    for name in draft.names("images"):
        text = draft.get("images", name, kind=str)
        match = None if text is None else IMAGE.fullmatch(text)
        if match is not None and match["digest"] is None:
            hint = f"`sweep cluster pin {name}{'' if match['tag'] else ' --tag TAG'}` finds the digest of its tag"
            message = f"must have a digest, got {safe_repr(text)}"
            yield draft.problem(("images", name), message, code="missing-key", hint=hint)


def _image(draft: Draft, place: DocumentPath, known: Collection[str]) -> Iterator[Problem]:
    text = draft.get(*place, kind=str)
    if text is None or text == LOCAL_IMAGE or text in known:
        return
    match = IMAGE.fullmatch(text)
    if len(text) <= LONGEST_IMAGE and match is not None and match["digest"] is not None:
        return
    message = f"must be 'local', a name among the images or name[:tag]@sha256:<64 hex digits>, got {safe_repr(text)}"
    yield draft.problem(place, message, code="image-reference", hint=_image_hint(text, known))


def _image_hint(text: str, known: Collection[str]) -> str | None:
    if "@sha256:" in text:
        return None
    if known and DNS_LABEL.fullmatch(text):
        return did_you_mean(text, known)
    return "a tag can be moved: add the image's digest"


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
            named = {macro.argument} if is_variable else {*macro.argument.split(",")}
            is_foreign = is_variable and not macro.argument.startswith(environment_name(""))
            if not is_foreign and not named <= (variables if is_variable else {*known}):
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
    places = [place for place, text in draft.texts("command") if Macro("config") in _parts(text)]
    if places and not draft.has("run", "config"):
        message, hint = (
            "the macro ${config} needs the key run.config",
            "for example {base: config/train.yaml}",
        )
        yield draft.problem(places[0], message, code="config-macro", hint=hint)
    elif (
        draft.has("run", "config")
        and not places
        and not any(each[:1] == ("command",) for each in draft.broken)
    ):
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
    **{sign: said for own in GITOPS.values() for sign, said in own.template_signs.items()},
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
