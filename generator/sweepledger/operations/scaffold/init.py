"""`sweep cluster init`: a complete new repository of sweeps; `sweep new`: a commented spec."""

import json
import os
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from sweepledger import __version__, storage
from sweepledger.controllers import GITOPS
from sweepledger.engine.local import machine
from sweepledger.errors import RepositoryError, SpecError, UsageError
from sweepledger.formats import config_file
from sweepledger.operations.repository.program_options import UNKNOWN, read_help, read_options
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.operations.scaffold import command_line
from sweepledger.operations.scaffold.starter import (
    MNIST,
    PARALLELISM,
    PLAIN,
    SCHEMA_FILE,
    SCHEMA_LINE,
    Starter,
    starter_spec,
)
from sweepledger.problems import Problem, Severity
from sweepledger.repo import base_files, files
from sweepledger.repo.files import WORKFLOWS, base_folder
from sweepledger.repo.git import Repository, create_repository
from sweepledger.search.adaptive.model_based import is_installed
from sweepledger.spec.parser import parse
from sweepledger.spec.rules.program import is_inside
from sweepledger.spec.schema_keys import schema_text
from sweepledger.spec.suggestions import did_you_mean
from sweepledger.spec.sweep_builder import CONFIG_FORMATS
from sweepledger.structs import names
from sweepledger.structs.file_tree import FileTree
from sweepledger.structs.methods import LARGER_SEARCH
from sweepledger.structs.platform import DEFAULT_HOST, WITH_WORKFLOWS
from sweepledger.structs.settings import Controller, GenerateMode, NextRoundMode

EXAMPLE = "peak"
"""The name of the first sweep of a new repository."""
MAX_REPOSITORY_PART = 40
"""Characters of a repository's name in its namespace: names of other objects begin with the namespace."""


TEMPLATES = Path(__file__).with_name("repository")
WRITTEN = {
    path: f"{path.rpartition('/')[2]}.j2" for path in ("README.md", names.SETTINGS_FILE, "code/train.py")
}
"""Files of a new repository that depend on its options, each with its template."""

ATTRIBUTES = """\
# Digests are taken over bytes: the same on every system.
* text=auto eol=lf
overlays/** linguist-generated
results/** linguist-generated
"""

IGNORED = """\
.sweepledger/
.venv/
/site/
__pycache__/
"""


BRANCH = "main"
REPOSITORY_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
"""Pattern of a repository's name, which is quoted in prose."""

COPIED_BASES = re.compile(r"(?:trial|jobs|launcher|components/[a-z0-9-]+)/v[1-9][0-9]*/", re.ASCII)
"""Bases of any batch. Those of distributed shapes come with their first batch, and those of the platform with
`sweep cluster bootstrap`.
"""


RUNNER_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)


@dataclass(frozen=True)
class NewRepository:
    """A new repository."""

    folder: Path
    commit: str
    files: tuple[str, ...]


def init(
    folder: Path,
    *,
    name: str | None = None,
    controller: str = "none",
    generate: str = GenerateMode.IN_PULL_REQUEST,
    next_: str = NextRoundMode.REVIEW,
    pages: bool = False,
    host: str = DEFAULT_HOST.name,
    runner: str | None = None,
    checks_app: int | None = None,
) -> NewRepository:
    """Create a repository in a new or empty folder, with its first commit on `main`; `pages` publishes its site.

    `runner` is the label of the machines that run the workflows, `checks_app` the id of the server's Actions app.
    `sweep cluster bootstrap`, which knows its URL, adds `clusters/`. Raises UsageError for a folder that is not empty,
    RepositoryError inside another repository, StorageError; nothing is left then.
    """
    called, server = name or folder.resolve().name, WITH_WORKFLOWS[host]
    _refuse_names(called, runner)
    _refuse_place(folder)
    # Optional: what writes to the branch, and what publishes the site or that of a change, because pages are public.
    optional = {"generate": generate == GenerateMode.ON_MERGE, "next": next_ == NextRoundMode.WORKFLOW}
    optional |= {"site": pages, "preview": pages}
    values = {
        "name": called,
        "namespace": repository_namespace(called),
        "controller": controller,
        "gitops": GITOPS[Controller(controller)].title if controller in GITOPS else "",
        "host": host,
        "generate": generate,
        "next": next_,
        "example": EXAMPLE,
        "version": __version__,
    }
    # Imported late: `sweep new` needs no templates.
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415

    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - Markdown and YAML, with names that are checked
    )
    tree = FileTree(
        {
            **{
                path: made.get_template(template).render(values).encode()
                for path, template in WRITTEN.items()
            },
            base_files.ATTRIBUTES_FILE: base_files.with_attribute_lines(ATTRIBUTES.encode()) or b"",
            ".gitignore": IGNORED.encode(),
            server.pin_file: f"sweepledger[sampling]=={__version__}\n".encode(),
            **{
                path: server.adapt(content, runner, checks_app)
                for path, content in files.read_sources(WORKFLOWS)
                if path.startswith(server.workflows) and optional.get(PurePath(path).stem, True)
            },
            f"{names.SPECS}/{SCHEMA_FILE}": schema_text("sweep").encode(),
            f"{names.SPECS}/{EXAMPLE}.yaml": starter_spec(EXAMPLE).encode(),
            **dict.fromkeys(base_files.KEEP_FILES, b""),
            **{
                f"base/{path}": content
                for path, content in files.read_sources(base_folder())
                if COPIED_BASES.match(path)
            },
        }
    )
    commit = ""

    def finish(place: Path) -> None:
        nonlocal commit
        commit = create_repository(place, BRANCH, "Start a repository of sweeps\n")

    files.make_folder(folder.resolve(), tree, finish)
    return NewRepository(folder, commit, tuple(path for path, _ in tree))


def _refuse_names(name: str, runner: str | None) -> None:
    if not REPOSITORY_NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is not a valid name for a repository",
            hint="letters, digits, hyphens, underscores and dots: --name",
        )
    if runner is not None and not RUNNER_LABEL.fullmatch(runner):
        raise UsageError(f"{runner!r} is not a valid label of a runner", hint="one label: --runner gpu-less")


def _refuse_place(folder: Path) -> None:
    if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
        raise UsageError(f"{folder} is not an empty folder", hint="choose another, or empty it")
    storage.output_path(folder)
    above = next(place for place in (folder.resolve(), *folder.resolve().parents) if place.is_dir())
    around = None
    with suppress(RepositoryError):
        around = Repository.find(above).folder
    if around is not None:
        raise RepositoryError(
            f"{folder} would be inside the repository {around}", hint="choose a folder outside of it"
        )


FIRST_SETTINGS = b"""\
# Settings of this repository, for every sweep in it: `sweep schema --settings` prints every key.
version: 1
manifests: false   # laptops run the batches; for a cluster, delete this line and see `sweep cluster bootstrap --help`
"""


MAKES = frozenset({"make", "gmake"})
"""Programs that read variables as `NAME=value`."""


def refuse_name(name: str) -> None:
    """Raise UsageError for a name that no sweep can have."""
    if name in names.RESERVED_SWEEP_NAMES:
        raise UsageError(f"{name!r} is reserved", hint="choose another name")
    if not names.is_sweep_name(name):
        raise UsageError(
            f"{name!r} is not a valid sweep name",
            hint=f"lower-case letters, digits and dashes, a letter first, at most {names.MAX_SWEEP_NAME_LENGTH}",
        )


def new_spec(
    workspace: Workspace, name: str, starter: Starter | None = None
) -> tuple[tuple[Path, ...], tuple[Problem, ...]]:
    """Write `sweeps/<name>.yaml` and the schema by which editors explain its keys; return these files, and warnings.

    With a `starter` the spec runs its command, and the repository gets settings if it has none. Raises UsageError
    if the name is invalid or taken, StorageError if `sweeps/` is a link, SpecError for a spec that cannot run.
    """
    refuse_name(name)
    path = workspace.root / names.SPECS / f"{name}.yaml"
    files.refuse_links(workspace.root, names.SPECS)
    if os.path.lexists(path):
        raise UsageError(f"{names.SPECS}/{name}.yaml exists", hint="choose another name, or edit it")
    settings = workspace.settings
    has_mnist = "mnist" in settings.trials.datasets and (workspace.root / "trainer").is_dir()
    warnings: tuple[Problem, ...] = ()
    if starter is None:
        text = starter_spec(name, example=MNIST if has_mnist else PLAIN, clones=settings.git.code is not None)
    else:
        text, warnings = _spec_of_command(workspace, name, starter)
    schema = path.with_name(SCHEMA_FILE)
    if starter is None or os.path.lexists(schema):
        # Committed beside the specs, so that every clone has the right version offline.
        storage.write_file(schema, schema_text("sweep").encode())
    else:
        text = text.removeprefix(SCHEMA_LINE)
    storage.write_file(path, text.encode())
    written = [path]
    settings_path = workspace.root / names.SETTINGS_FILE
    if starter is not None and not os.path.lexists(settings_path):
        storage.write_file(settings_path, FIRST_SETTINGS)
        written.append(settings_path)
    if base_files.write_attribute_lines(workspace.root):
        written.append(workspace.root / base_files.ATTRIBUTES_FILE)
    return tuple(written), warnings


def _spec_of_command(workspace: Workspace, name: str, starter: Starter) -> tuple[str, tuple[Problem, ...]]:
    """Return a spec for a command, and warnings. Raises UsageError, and SpecError for a spec that cannot run."""
    first, program = command_line.find_program(workspace, starter.command)
    starter = replace(starter, command=(first, *starter.command[1:]))
    is_module = command_line.module_name(starter.command) is not None
    code = command_line.code_folder(workspace, program, is_module=is_module)
    if program is not None and program.endswith(".py"):
        options = read_options(files.read_input(workspace.root / program))
    elif PurePath(first).name in MAKES:
        options = replace(UNKNOWN, has_hyphens=False)
    else:
        options = read_help(command_line.ask_for_help(workspace, starter.command, program))
    try:
        words, written, place = command_line.take_options(starter.command, starter.names)
        words, config = _with_config(workspace, words, starter.names)
        # All that run at once leave a quarter of this machine.
        share = machine.memory() * 3 // 4 // PARALLELISM
        text = replace(starter, command=words).spec(
            name,
            code=code if config is None or config.startswith(f"{code}/") else ".",
            config=config,
            place=place,
            search=_search_here(starter),
            options=options,
            memory=f"{share >> 30}Gi" if share >> 30 else f"{share >> 20}Mi",
            # A Python program takes what follows a space behind an equals sign, too.
            written={} if program is not None and program.endswith(".py") else written,
        )
    except ValueError as error:
        raise UsageError(f"--param {error}", hint="--param learning_rate=0.1,0.01") from error
    path = f"{names.SPECS}/{name}.yaml"
    parsed = parse(text.encode(), path, workspace.settings)
    if isinstance(parsed, tuple):
        raise SpecError(parsed)
    return text, tuple(
        replace(
            parsed.source.problem(
                f"must be an option of {program or PurePath(first).name}, got {parameter!r}",
                *("parameters", parameter),
                code="program-option",
                hint=did_you_mean(parameter, options.kinds),
            ),
            severity=Severity.WARNING,
        )
        for parameter in parsed.sweep.design.space.names
        if options.is_complete and options.spelling(parameter) is None
    )


def _with_config(
    workspace: Workspace, words: tuple[str, ...], names: tuple[str, ...]
) -> tuple[tuple[str, ...], str | None]:
    """Return a command with ${config} for the configuration file that has all parameters, and that file."""
    for at, word in enumerate(words):
        option, sign, path = word.rpartition("=")
        form = CONFIG_FORMATS.get(path.rpartition(".")[2])
        if not names or form is None or not is_inside(path) or not (workspace.root / path).is_file():
            continue
        with suppress(ValueError, LookupError, TypeError):
            data = json.loads(config_file.read(files.read_input(workspace.root / path), form))
            for parameter in names:
                config_file.value_at(data, parameter)
            return (*words[:at], f"{option}{sign}${{config}}", *words[at + 1 :]), path
    return words, None


def _search_here(starter: Starter) -> tuple[str, str]:
    """Return a method for a first search whose library is installed here, and the reason for the choice."""
    method, why = starter.method
    if is_installed(method):
        return method.name, why
    if is_installed(LARGER_SEARCH):
        return LARGER_SEARCH.name, f"{method} needs `pip install 'sweepledger[{method.extra}]'`"
    return method.name, f"it needs `pip install 'sweepledger[{method.extra}]'`"


def repository_namespace(name: str) -> str:
    """Return the Kubernetes namespace of a new repository with this name, such as `vision-sweeps`.

    The settings keep it, so a renamed repository keeps its namespace. Names that differ only in
    letter case, in other characters than letters and digits, or in `sweeps` at the end have the same.
    """
    plain = names.shortened(re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-"), MAX_REPOSITORY_PART)
    if plain.endswith("sweeps"):
        return plain
    # Names of the cluster's own namespaces begin with `kube-`.
    return "-".join(filter(None, ("in" if plain.startswith("kube") else "", plain, "sweeps")))
