"""What a trial runs: its image, interpreter, code, data and command, with no template syntax anywhere."""

import re
from collections.abc import Collection, Iterator
from contextlib import suppress
from itertools import takewhile
from posixpath import join, normpath

from sweepledger.controllers import GITOPS
from sweepledger.formats.environment_lock import FORMATS, is_lock_name
from sweepledger.model.text_forms import DNS_LABEL, IMAGE, INNER_PATH, LONGEST_IMAGE
from sweepledger.problems import Problem, TextError
from sweepledger.reader import DocumentPath, safe_repr
from sweepledger.spec.draft import Draft
from sweepledger.spec.rules.names import entry_name
from sweepledger.spec.suggestions import did_you_mean, quoted_names
from sweepledger.spec.sweep_builder import CONFIG_FORMATS
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
    parse_element,
)
from sweepledger.structs.run_config import INTERPRETER_FORM, CodeMode, RunConfig
from sweepledger.structs.settings import Controller

ENVIRONMENT_LOCK = "environment-lock"
WORKDIR, DATA_PLACE, CONFIG_BASE = "workdir", "data-place", "config-base"
"""Codes of problems that are also found in the code that is locked."""

GENERATED_FOLDERS = frozenset({".git", "overlays", "results"})
"""Folders that change with every batch: as code, they would make every trial new."""
CODE: DocumentPath = ("run", "code")


def interpreter(draft: Draft) -> Iterator[Problem]:
    """In a cluster, the interpreter is in a place where no trial can write."""
    folders = (f"{CODE_PATH}/",) if draft.text(*CODE, "mode") == CodeMode.CLONE else ()
    is_in_cluster = draft.settings.platform.controller is not Controller.NONE
    for place, text in draft.texts("run", "interpreter") if is_in_cluster else ():
        if re.fullmatch(INTERPRETER_FORM.pattern, text, re.ASCII) and not names.is_interpreter(text, folders):
            message = "must be a name or an absolute path inside the image, where no trial can write"
            yield draft.wrong(place, message, "interpreter", "for example python3 or /opt/conda/bin/python")


def code_path(draft: Draft) -> Iterator[Problem]:
    """The code is the repository, a folder in it, or selected paths in it, without files of sweeps."""
    is_list = draft.get(*CODE, "path", kind=list) is not None
    thing, hint = "folder", "for example trainer, or . for the repository; "
    hint += "without .. and with letters, digits and _ . - only"
    if is_list:
        thing, hint = "file or folder", "for example src or train.py"
    for place, written in draft.texts(*CODE, "path"):
        path = written.removesuffix("/")
        top = path.partition("/")[0]
        if path == REPOSITORY and not is_list:
            continue
        if path == REPOSITORY or not is_inside(path):
            message = f"must be a {thing} inside the repository, relative to it"
            why = "the whole repository is `path: .`" if path == REPOSITORY else hint
            yield draft.wrong(place, message, "code-path", why)
        elif top in GENERATED_FOLDERS and not is_list:
            yield draft.wrong(place, f"must not be in {top}, which changes with every batch", "code-path")
        elif top in SWEEP_NAMES and (is_list or _is_selection(draft)):
            message = f"must not be in {top}, which belongs to sweeps and is never selected"
            yield draft.wrong(place, message, "code-path")


def _is_selection(draft: Draft) -> bool:
    """Return whether the code is anything but a whole folder."""
    is_chosen = not {"include", "exclude"}.isdisjoint(draft.names(*CODE))
    return is_chosen or _code_folder(draft) == REPOSITORY


def _code_folder(draft: Draft) -> str:
    """Return the folder of the code; for selected paths, the repository."""
    default = RunConfig().code_path if draft.get(*CODE, "path", kind=list) is None else REPOSITORY
    return (draft.text(*CODE, "path") or default).removesuffix("/")


def environment_lock(draft: Draft) -> Iterator[Problem]:
    """The lock file of the environment is a file of the code, where trials can read it."""
    folder = _code_folder(draft)
    for place, path in draft.texts("run", "environment_lock"):
        if not is_inside(path) or not is_lock_name(path):
            message = "must be the path of a lock file in the repository"
            yield draft.wrong(place, message, ENVIRONMENT_LOCK, f"known are {FORMATS}")
        elif not _is_selection(draft) and not path.startswith(f"{folder}/"):
            message = f"must be a file of the code, {folder}/, so that trials can read it"
            hint = f"add it to the code: `run: {{code: {{path: [{folder}, {path}]}}}}`"
            yield draft.wrong(place, message, ENVIRONMENT_LOCK, hint)


def config_base(draft: Draft) -> Iterator[Problem]:
    """The base of the configuration file is a file of the code, in a format that the launcher writes."""
    folder = "" if _is_selection(draft) else f"{_code_folder(draft)}/"
    for place, path in draft.texts("run", "config", "base"):
        if not is_inside(path) or not path.startswith(folder):
            message = "must be a file of the code, relative to the repository"
            yield draft.wrong(place, message, CONFIG_BASE, f"for example {folder}config/train.yaml")
        elif not draft.has("run", "config", "format") and path.rpartition(".")[2] not in CONFIG_FORMATS:
            message = "must end with .yaml, .yml, .toml or .json unless format is given"
            yield draft.wrong(place, message, CONFIG_BASE, "add format: yaml, toml or json")


def workdir(draft: Draft) -> Iterator[Problem]:
    """A trial starts in a folder of the code."""
    folder = _code_folder(draft)
    for place, path in draft.texts("run", "workdir"):
        if not is_inside(path.removesuffix("/")):
            message = "must be a folder of the code, relative to the repository"
            hint = "for example mnist; without .. and with letters, digits and _ . - only. "
            hint += "Without the key, a trial starts where the repository begins"
            yield draft.wrong(place, message, WORKDIR, hint)
        elif folder != REPOSITORY and not f"{path}/".startswith(f"{folder}/"):
            hint = f"for example {folder}/{path}"
            yield draft.wrong(place, f"must be in the folder of the code, {folder}/", WORKDIR, hint)


def program_path(draft: Draft) -> Iterator[Problem]:
    """The program is a file of the code."""
    for place, text in draft.texts("program"):
        mended = text.removeprefix("./").lstrip("/")
        if not is_inside(text):
            hint = f"for example {mended if is_inside(mended) else 'train.py'}"
            hint += "; arguments belong in command" if " " in text else ""
            message = "must be a file inside the code's folder, relative to it"
            yield draft.wrong(place, message, "program-path", hint)


def is_inside(path: str) -> bool:
    """Return whether a relative path stays inside its folder and has only plain characters."""
    return re.fullmatch(INNER_PATH, path, re.ASCII) is not None


def dataset(draft: Draft) -> Iterator[Problem]:
    """`run.data` names datasets of the settings, all on claims or all in the bucket."""
    known = draft.settings.trials.datasets
    places = draft.each("run", "data", "*")
    named = [(place, str(place[-1])) for place in places] or [*draft.texts("run", "data")]
    for place, _ in named:
        yield from entry_name(draft, place, "datasets", at_key=bool(places))
    copied = [name for _, name in named if name in known and known[name].copied_from]
    mounted = [name for _, name in named if name in known and not known[name].copied_from]
    if copied and mounted:
        message = f"must be all on claims or all in the bucket, got {copied[0]!r} there and {mounted[0]!r} on a claim"
        hint = "the digest of all is verified where all are copied"
        yield draft.problem(("run", "data"), message, "data-source", hint)


def data_places(draft: Draft) -> Iterator[Problem]:
    """Datasets are linked where a trial has a private folder: in its code, and one level above it."""
    start = draft.text("run", "workdir") or REPOSITORY
    links: dict[str, str] = {}
    for place, text in draft.texts("run", "data") if draft.names("run", "data") else ():
        path = normpath(join(start, text))
        above = [*takewhile(lambda part: part == "..", path.split("/"))]
        inside = "/".join(path.split("/")[len(above) :])
        if text.startswith("/") or len(above) > 1 or not is_inside(inside):
            hint = "for example ../data; a program that takes its folder as an argument needs no place:"
            hint += ' "--data=${envvar:SWEEP_DATA}" in command'
            yield draft.wrong(place, "must be a path in the code or one level above it", DATA_PLACE, hint)
            continue
        for other, taken in links.items():
            if f"{path}/".startswith(f"{taken}/") or f"{taken}/".startswith(f"{path}/"):
                message = f"must not be in the place of {other}, nor contain it"
                hint = "give each dataset a folder of its own"
                yield draft.wrong(place, message, DATA_PLACE, hint)
        links[str(place[-1])] = path


def code_mode(draft: Draft) -> Iterator[Problem]:
    """Cloning needs `code` in the settings, and an image."""
    place = (*CODE, "mode")
    if draft.text(*place) != CodeMode.CLONE:
        return
    if draft.settings.git.code is None:
        hint = "add code, with url and image, to sweepledger.yaml"
        yield draft.wrong(place, "must be 'image' if the settings have no code to clone", "code-mode", hint)
    if effective_image(draft) == LOCAL_IMAGE:
        message = "must be left out if image is 'local', which runs the locked code directly"
        yield draft.wrong(place, message, "code-mode", "name an image by run.image")
    if _is_selection(draft):
        message = "must be 'image' unless the code is a whole folder, because a pod clones one folder"
        hint = "name one folder by run.code.path without include and exclude, "
        hint += "or build the code into the image"
        yield draft.wrong(place, message, "code-mode", hint)


def effective_image(draft: Draft) -> str | None:
    """Return the image of the spec, else of the settings; None if it is unknown."""
    return draft.text("run", "image") if draft.has("run", "image") else draft.settings.trials.defaults.image


def run_image(draft: Draft) -> Iterator[Problem]:
    """An image has a digest, and its repository is listed if the settings list any; warn if no pod uses it."""
    listed = draft.settings.trials.images
    repositories = sorted({image.repository for image in listed.values()})
    for place, text in draft.texts("run", "image") if effective_image(draft) != LOCAL_IMAGE else ():
        if not draft.settings.git.manifests:
            message = f"is for pods, which batches without manifests never have, got {safe_repr(text)}"
            hint = "delete `manifests: false` from sweepledger.yaml"
            yield draft.warning(place, message, "no-manifests", hint)
        yield from (found := [*_image(draft, place, listed)])
        match = IMAGE.fullmatch(text)
        is_listed = text in listed or (match is not None and match["repository"] in repositories)
        if listed and not found and not is_listed:
            message = "must be of a repository that images in sweepledger.yaml list"
            yield draft.wrong(place, message, "image-not-listed", f"listed: {', '.join(repositories)}")


def settings_images(draft: Draft) -> Iterator[Problem]:
    """The default image has a digest or a name, and no image has the name that stands for no image."""
    yield from _image(draft, ("defaults", "image"), draft.names("images"))
    for place in draft.each("images", LOCAL_IMAGE):
        yield draft.at_key(place, f"must not be {LOCAL_IMAGE!r}, which means no image", "image-reference")


def code_secret(draft: Draft) -> Iterator[Problem]:
    """No secret is sent without TLS to the URL that code is cloned from."""
    if (draft.text("code", "url") or "").startswith("http:") and draft.has("code", "secret"):
        message = "must be an https address where a secret is sent to it"
        yield draft.wrong(("code", "url"), message, "code-url")


def pinned_images(draft: Draft) -> Iterator[Problem]:
    """A named image has a digest; `sweep cluster pin` skips this rule."""
    for place, text in draft.each_text("images", "*"):
        match = IMAGE.fullmatch(text)
        if match is not None and match["digest"] is None:
            tag = "" if match["tag"] else " --tag TAG"
            hint = f"`sweep cluster pin {place[-1]}{tag}` finds the digest of its tag"
            yield draft.wrong(place, "must have a digest", "missing-key", hint)


def _image(draft: Draft, place: DocumentPath, known: Collection[str]) -> Iterator[Problem]:
    for _, text in draft.texts(*place):
        match = IMAGE.fullmatch(text)
        is_pinned = match is not None and match["digest"] is not None and len(text) <= LONGEST_IMAGE
        if text == LOCAL_IMAGE or text in known or is_pinned:
            continue
        hint: str | None = "a tag can be moved: add the image's digest"
        if "@sha256:" in text:
            hint = None
        elif known and DNS_LABEL.fullmatch(text):
            hint = did_you_mean(text, known)
        message = "must be 'local', a name listed in images or name[:tag]@sha256:<64 hex digits>"
        yield draft.wrong(place, message, "image-reference", hint)


def command_program(draft: Draft) -> Iterator[Problem]:
    """A command begins with the program to start; a spec without a command has `program` for the default command."""
    if draft.names() and not draft.has("command") and not draft.has("program"):
        hint = 'for example program: train.py, or command: [python, train.py, "${args}"]'
        yield draft.at_key(("command",), "must be given unless program is", "missing-key", hint)
    first = draft.text("command", 0)
    if first is not None and (not first or first in {str(Macro(name)) for name in LIST_MACROS}):
        message = "must begin with the program to start"
        yield draft.wrong(("command", 0), message, "command-program", "for example python")


def started_program(draft: Draft) -> Iterator[Problem]:
    """An interpreter, and `env`, are given a program before the arguments of the trial."""
    command = [text for _, text in draft.texts("command")]
    numbered = enumerate(command)
    starters = takewhile(lambda at: at[1] in STARTERS or (at[0] and ASSIGNMENT.match(at[1])), numbered)
    start = len([*starters])
    if not start or not draft.is_sound("command"):
        return
    rest = command[start:]
    options = len([*takewhile(lambda text: text.startswith("-") and text not in PROGRAM_OPTIONS, rest)])
    if options == len(rest) or rest[options] in ARGUMENTS:
        place = ("command", min(start + options, len(command) - 1))
        hint = 'write "${program}" there' if draft.has("program") else "for example the script's path"
        yield draft.wrong(place, "must name a program before the arguments", "command-program", hint)


STARTERS = frozenset(map(str, (Macro("env"), Macro("interpreter"))))
ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
"""A variable that `env` sets before it starts the program."""
PROGRAM_OPTIONS = frozenset({"-m", "-c", "-"})
"""Options after which an interpreter needs no path."""
ARGUMENTS = frozenset(str(Macro(name)) for name in (*LIST_MACROS, "args_json", "args_json_file", "seed"))


def unused_program(draft: Draft) -> Iterator[Problem]:
    """Warn of a program that the command does not start."""
    program = draft.text("program")
    written = SCRIPT.fullmatch(program or "")
    if written is None or not draft.has("command") or not draft.is_sound("command"):
        return
    is_started = any(macro == Macro("program") for _, macro in _macros(draft))
    stem = written["package"] or written["stem"]
    if not is_started and not any(stem in text for _, text in draft.texts("command")):
        hint = 'put "${program}" where the command starts it, or delete the key'
        message = f"is not in the command, got {safe_repr(program)}"
        yield draft.warning(("program",), message, "program-unused", hint)


def outside_paths(draft: Draft) -> Iterator[Problem]:
    """Warn of absolute paths, whose content no digest covers, except paths in an image."""
    if effective_image(draft) not in {LOCAL_IMAGE, None}:
        return
    for place, text in draft.texts("command"):
        paths = (match[0] for match in ABSOLUTE_PATH.finditer(text))
        path = next((path for path in paths if not PROGRAM_PATH.fullmatch(path)), None)
        if path is not None:
            message = f"has a path outside of the code, which no digest covers: {safe_repr(path)}"
            hint = "put the file into the code, or name it under datasets and run.data, for $SWEEP_DATA"
            yield draft.warning(place, message, "path-outside", hint)


def shared_paths(draft: Draft) -> Iterator[Problem]:
    """In a pack, no command and no variable has a path in a folder that the trials of the pod share."""
    texts = (*draft.texts("command"), *draft.texts("run", "environment"))
    for place, text in texts if draft.has("run", "pack") else ():
        path = SHARED_PATH.search(text)
        if path is not None:
            message = f"must not be in a folder that all trials of a pod share, got {safe_repr(path[0])}"
            hint = "write a relative path or ${envvar:SWEEP_CHECKPOINTS}, which are private, "
            hint += "or delete run.pack"
            yield draft.problem(place, message, "path-shared", hint)


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
    known = {
        *draft.variables,
        *draft.names("derived"),
        *(name for _, name in draft.texts("resource", "parameter")),
    }
    variables = {environment_name(name) for name in known}
    for place, text in draft.texts("command"):
        try:
            parse_element(text)
        except TextError as error:
            # The value of one parameter, if the element uses its name as a macro.
            own = (
                name for name in draft.names("parameters") if f"${{{name}}}" in text and name not in MACROS
            )
            hint = next((f'the value of {name} alone is "${{param:{name}}}"' for name in own), error.hint)
            if "${{" not in text:  # template syntax, which has its own rule
                yield draft.problem(place, str(error), "command-macro", hint)
    for place, macro in _macros(draft) if draft.is_whole else ():
        is_variable, argument = macro.name == "envvar", macro.argument or ""
        named = {argument} if is_variable else {*filter(None, argument.split(","))}
        is_foreign = is_variable and not argument.startswith(environment_name(""))
        if not is_foreign and not named <= (variables if is_variable else known):
            hint = f"known: {quoted_names(known)}"
            yield draft.wrong(place, "must name a parameter", "command-macro", hint)


def needed_keys(draft: Draft) -> Iterator[Problem]:
    """The macro ${program} needs the key `program`; ${config} and the key run.config need each other."""
    programs, places = (
        [*dict.fromkeys(place for place, macro in _macros(draft) if macro == Macro(name))]
        for name in ("program", "config")
    )
    config = ("run", "config")
    for place in programs if not draft.has("program") else ():
        hint = "for example program: train.py, the script's path in the code's folder"
        yield draft.problem(place, "the macro ${program} needs the key program", "command-macro", hint)
    if places and not draft.has(*config):
        message = "the macro ${config} needs the key run.config"
        hint = "for example {base: config/train.yaml}"
        yield draft.problem(places[0], message, "config-macro", hint)
    elif draft.has(*config) and not places and draft.is_sound("command"):
        message = "must be passed to the program, and the command has no ${config}"
        hint = 'for example "--config=${config}" in command: the path of the file with the trial\'s values'
        yield draft.at_key(config, message, "config-macro", hint)


def secret_macros(draft: Draft) -> Iterator[Problem]:
    """A command contains no secrets, because it is shown, recorded and listed by `ps`."""
    known = draft.settings.trials.secrets
    secrets = [known[name] for _, name in draft.items("run", "secrets") if name in known]
    secret_names = {Macro("envvar", secret.variable): secret.name for secret in secrets}
    for place, macro in _macros(draft):
        if macro in secret_names:
            message = f"must not contain the value of secret {secret_names[macro]!r}, got {macro}"
            yield draft.problem(
                place, message, "secret-in-command", "the program finds it in its environment"
            )


SEED_MACROS = {Macro("seed"), Macro("envvar", "SWEEP_SEED")}


def seed_macro(draft: Draft) -> Iterator[Problem]:
    """Warn of replicates whose command does not use the seed: their results would be equal."""
    replicates = draft.number("replicates") or 1
    uses_seed = any(macro in SEED_MACROS for _, macro in _macros(draft))
    if replicates <= 1 or uses_seed or not draft.is_sound("command"):
        return
    message = f"each configuration runs {replicates} times, but the command uses no ${{seed}}"
    hint = 'no change is needed if the program reads SWEEP_SEED; otherwise add an argument such as "--seed=${seed}"'
    place = ("command",) if draft.has("command") else ("replicates",)
    yield draft.warning(place, message, "seed-unused", hint, at_key=True)


def _macros(draft: Draft) -> Iterator[tuple[DocumentPath, Macro]]:
    """Yield the macros of the command, except those in an element with an unknown macro."""
    for place, text in draft.texts("command"):
        with suppress(TextError):
            yield from ((place, part) for part in parse_element(text) if isinstance(part, Macro))


TEMPLATE_SIGNS = {
    **dict.fromkeys(("{{", "}}"), "Helm, ApplicationSets and workflows fill in {{ … }}"),
    "{%": "template engines run {% … %}",
    "$(": "Kubernetes fills in $(NAME)",
    **{sign: said for own in GITOPS.values() for sign, said in own.template_signs.items()},
}
TEXT_PATHS: tuple[DocumentPath, ...] = (
    *((key,) for key in ("description", "command", "program", "parameters", "assignments", "derived")),
    *(("run", key) for key in ("environment", "keep")),
)


def template_syntax(draft: Draft) -> Iterator[Problem]:
    """Texts contain no template syntax, which other programs would replace in manifests."""
    for place, text in (item for path in TEXT_PATHS for item in draft.texts(*path)):
        # ${…} in a command are macros, which are never written to a manifest.
        signs = [sign for sign in TEMPLATE_SIGNS if sign in text and (sign != "${" or place[0] != "command")]
        if signs:
            hint = f"{TEMPLATE_SIGNS[signs[0]]} in every manifest"
            yield draft.wrong(place, f"must not contain {signs[0]!r}", "template-syntax", hint)
