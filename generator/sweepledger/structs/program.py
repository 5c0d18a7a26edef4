"""The program of a trial: image, command with its macros, code and data, each identified by content."""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cache
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from sweepledger.model.keys import EMPTY, UNWRITTEN
from sweepledger.problems import TextError
from sweepledger.structs.names import PARAMETER_NAME, environment_name
from sweepledger.structs.values import as_data, digest

LOCAL_IMAGE = "local"
"""Image of a program that runs as processes from the locked code."""

NO_IMAGE = "sweepledger.invalid/local"
"""Image in the frozen bases, which a program without an image keeps."""

SWEEP_NAMES = frozenset(
    {".gitattributes", ".github", ".sweepledger", "sweepledger.yaml"}
    | {"base", "clusters", "overlays", "results", "sweeps"}
)
"""Names at the root of a repository that a selection never contains: what sweeps are made of, and what they change."""

REPOSITORY = "."
"""The path of the whole repository."""
MAX_PATTERN = 200
_PATTERN = re.compile(r"(?:[^\[\]\\!#\x00-\x1f\x7f]|\[!?[A-Za-z0-9_.-]+\])+")
_SEVERAL_FOLDERS = "**"


class PathPattern(Struct, frozen=True):
    """A pattern for paths of the repository, with the meaning that git gives it in a .gitignore at the root.

    Unlike there, no pattern starts with `!` or `#`, and no character is escaped: what git reads differently from
    what it looks like is an error.
    """

    parts: tuple[str, ...]
    """Patterns of names; `**` stands for any number of folders."""
    only_folders: bool

    @classmethod
    def parse(cls, text: str) -> "PathPattern":
        """Return the pattern of a text. Raises ValueError with the rule that the text breaks."""
        if len(text) > MAX_PATTERN:
            raise ValueError(f"must have at most {MAX_PATTERN} characters")
        if not _PATTERN.fullmatch(text) or text != text.strip():
            raise ValueError(
                "must have no '!', '#', '\\' or space around it, and '[…]' of plain characters only"
            )
        inner = text.removeprefix("/").removesuffix("/")
        parts = tuple(inner.split("/"))
        if any(part in {"", ".", ".."} or (_SEVERAL_FOLDERS in part and part != "**") for part in parts):
            raise ValueError("must have names between slashes, without '.' and '..', and '**' alone")
        is_anchored = "/" in text.removesuffix("/")
        return cls(parts if is_anchored else (_SEVERAL_FOLDERS, *parts), text.endswith("/"))

    def matches(self, path: str, *, is_folder: bool) -> bool:
        """Return whether the pattern matches this path itself, not only a folder above it."""
        if self.only_folders and not is_folder:
            return False
        names = path.split("/")
        # Positions that the parts so far can reach: linear, unlike a regular expression with several `**`.
        reached = {0}
        for number, part in enumerate(self.parts, start=1):
            if part == _SEVERAL_FOLDERS:
                # At the end it stands for everything inside a folder, not for the folder itself.
                least = min(reached, default=len(names)) + (number == len(self.parts))
                reached = set(range(least, len(names) + 1))
            else:
                reached = {at + 1 for at in reached if at < len(names) and fnmatchcase(names[at], part)}
        return len(names) in reached


class CodeSelection(Struct, frozen=True):
    """Files below some paths that match a pattern of `include`, if there is one, and none of `exclude`."""

    paths: tuple[str, ...]
    """Files and folders; `.` is the repository."""
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "the repository" if REPOSITORY in self.paths else ", ".join(self.paths)

    @property
    def roots(self) -> tuple[str, ...]:
        """The paths to list files below; none if the whole repository must be listed."""
        return () if REPOSITORY in self.paths else self.paths

    def selector(self) -> Callable[..., bool]:
        """Return a function that tells whether the file of a path is selected.

        With `is_folder`, it tells whether the folder may contain a selected file. A folder that matches a pattern
        decides for everything in it; what is known of folders is kept.
        """
        include, exclude = (tuple(map(PathPattern.parse, each)) for each in (self.include, self.exclude))

        @cache
        def of_folder(path: str) -> tuple[bool, bool]:
            return state(path, is_folder=True) if path else (not include, False)

        def state(path: str, *, is_folder: bool) -> tuple[bool, bool]:
            is_included, is_excluded = of_folder(path.rpartition("/")[0])
            return (
                is_included or any(pattern.matches(path, is_folder=is_folder) for pattern in include),
                is_excluded or any(pattern.matches(path, is_folder=is_folder) for pattern in exclude),
            )

        def is_selected(path: str, *, is_folder: bool = False) -> bool:
            is_inside = not self.roots or any(
                path == root or path.startswith(f"{root}/") or (is_folder and root.startswith(f"{path}/"))
                for root in self.roots
            )
            if not is_inside or path.partition("/")[0] in SWEEP_NAMES:
                return False
            is_included, is_excluded = of_folder(path) if is_folder else state(path, is_folder=False)
            return (is_included or is_folder) and not is_excluded

        return is_selected


class Code(Struct, frozen=True):
    """The code of a program and its git tree at the time of locking."""

    path: str
    """Where the tree belongs in the repository: the folder of the code, or `.` for selected files."""
    tree: str
    """Git's id of the tree at `path`, which a squash, a rebase or a docs commit does not change."""
    selection: CodeSelection | None = None
    """None: everything in the folder."""
    disk: Annotated[int, Meta(ge=0)] = 0
    """Bytes of disk that a copy of it may take; 0: unknown."""

    def __str__(self) -> str:
        return f"{self.path}/" if self.selection is None else str(self.selection)

    @property
    def roots(self) -> tuple[str, ...]:
        """The paths to list its files below; none if the whole repository must be listed."""
        return (self.path,) if self.selection is None else self.selection.roots

    def __post_init__(self) -> None:
        if self.selection is not None:
            if self.path != REPOSITORY:
                raise ValueError(f"selected files belong in {REPOSITORY!r}, but got {self.path!r}")
            self.selection.selector()  # refuses patterns that are none


AND = "+"
"""Joins the names of several datasets, none of which contains it."""


def data_name(names: Iterable[str]) -> str:
    """Return how a program calls its data: by the name of a dataset, or by the sorted names of several."""
    return AND.join(sorted(set(names)))


DataPlaces = Mapping[str, str]
"""Sorted names of datasets, with the paths at which trials find them, relative to the folder that they start in."""


class Data(Struct, frozen=True):
    """A dataset of the settings, or several, identified by content."""

    name: str
    """See `data_name`."""
    digest: str
    at: DataPlaces = EMPTY
    """Of the datasets that have a place beside `$SWEEP_DATA`."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its datasets, sorted."""
        return tuple(self.name.split(AND))

    @property
    def place_texts(self) -> tuple[str, ...]:
        """Where trials find its datasets beside `$SWEEP_DATA`, each as a text."""
        return tuple(
            f"at {path}" if name == self.name else f"{name} at {path}" for name, path in self.at.items()
        )

    def as_written(self) -> str | list[str] | dict[str, str | None]:
        """Return what a spec says of it."""
        if self.at:
            return {name: self.at.get(name) for name in self.names}
        return self.name if len(self.names) == 1 else [*self.names]


class EnvironmentLock(Struct, frozen=True):
    """The file that pins what a trial's environment contains, identified by content."""

    path: str
    """Relative to the repository; a file of the code."""
    digest: str


class ConfigFormat(StrEnum):
    """How a program's configuration file is written."""

    JSON = "json"
    TOML = "toml"
    YAML = "yaml"


class ConfigFile(Struct, frozen=True):
    """Configuration file that the command gets by ${config}, with the trial's values at their dotted names."""

    base: Annotated[str, Meta(max_length=200, examples=["config/train.yaml"])]
    """File of the code, relative to the repository."""
    format: Annotated[ConfigFormat, Meta(examples=["yaml"])] | None = None
    """How it is written. Default: by the end of its name."""
    add: Annotated[bool, Meta(examples=[True])] = False
    """Whether parameters may have names that the file lacks."""
    text: Annotated[str, UNWRITTEN] = ""
    """Its content as JSON, in the order of the file."""


class Program(Struct, frozen=True):
    """Image, command, code and data of a trial. Equal programs with equal configurations make equal trials."""

    image: str
    """A reference with digest, or the literal `local`."""
    command: tuple[str, ...]
    """As in the spec, macros included."""
    code: Code
    data: Data | None
    environment: EnvironmentLock | None = None
    """None if the spec does not lock it; then it is not part of the program's identity."""
    workdir: str | None = None
    """The folder of the code that it starts in; None, which changes no digest: beside the code."""
    config: ConfigFile | None = None
    """The configuration file that `${config}` stands for; None changes no digest."""

    @property
    def digest(self) -> str:
        """SHA-256 over the program's canonical form, 64 hex digits."""
        # How the code was selected is not part of it: equal files make equal trials.
        return digest(as_data(self) | {"code": {"path": self.code.path, "tree": self.code.tree}})

    @property
    def container_image(self) -> str:
        """The image of the container."""
        return NO_IMAGE if self.image == LOCAL_IMAGE else self.image

    def answers(self, wanted: "Program", *, image_named: bool = True) -> bool:
        """Return whether this locked program still matches a spec's, ignoring changes of code and data.

        If the spec names no image, a new default image in the settings does not matter.
        """
        return (
            (self.image == wanted.image or not image_named)
            and self.command == wanted.command
            and (self.code.path, self.code.selection) == (wanted.code.path, wanted.code.selection)
            and self.workdir == wanted.workdir
            and (self.config and replace(self.config, text="")) == wanted.config
            and (self.data and (self.data.name, self.data.at))
            == (wanted.data and (wanted.data.name, wanted.data.at))
            and (self.environment and self.environment.path)
            == (wanted.environment and wanted.environment.path)
        )


LIST_MACROS = frozenset(
    {"args", "args_no_boolean_flags", "args_no_hyphens", "args_single_hyphen", "args_spaced", "args_switches"}
)
"""Macros that expand to several arguments, so each must be a whole element of the command."""

MACROS = (
    LIST_MACROS
    | {"args_json", "args_json_file", "config", "env", "envvar"}
    | {"interpreter", "param", "program", "seed"}
)

PROGRAM_MACRO = "${program}"
"""Replaced when a spec is read, so that no launcher sees it."""

DEFAULT_COMMAND = ("${env}", "${interpreter}", PROGRAM_MACRO, "${args}")
"""The command of a spec with a program and no command, as in W&B."""

MACRO_PATTERN = re.compile(r"\$\{([^{}]*)\}")
NAMED_MACROS = frozenset({"envvar", "param"})
VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


class Macro(Struct, frozen=True):
    """A part of a command that the launcher replaces."""

    name: str
    argument: str | None = None
    """The variable of `envvar`; of one that gives several arguments, its parameters, joined by commas; else None."""

    def __str__(self) -> str:
        return f"${{{self.name}}}" if self.argument is None else f"${{{self.name}:{self.argument}}}"


def parse_element(text: str) -> tuple[str | Macro, ...]:
    """Split one element of a command into plain text and macros. Raises TextError."""
    parts: list[str | Macro] = []
    for position, piece in enumerate(MACRO_PATTERN.split(text)):
        # re.split with one group alternates: text, macro, text, …
        if position % 2:
            parts.append(_macro(piece))
        elif "${" in piece:
            raise TextError(
                f"every '${{' must open a macro that '}}' closes, got {text!r}",
                hint="macros look like ${args}; an environment variable is ${envvar:NAME}",
            )
        elif piece:
            parts.append(piece)
    spread = [part for part in parts if isinstance(part, Macro) and part.name in LIST_MACROS]
    if spread and len(parts) > 1:
        raise TextError(
            f"{spread[0]} must stand alone in its element, got {text!r}",
            hint=f'it yields several arguments; make it an element of its own: "{spread[0]}"',
        )
    return tuple(parts)


def spread_names(command: Iterable[str]) -> list[str | None]:
    """Return the parameters that the macros of a command name which give several arguments."""
    parts = (part for text in command for part in parse_element(text))
    return [part.argument for part in parts if isinstance(part, Macro) and part.name in LIST_MACROS]


def _macro(body: str) -> Macro:
    name, colon, argument = body.partition(":")
    if name not in MACROS:
        known = ", ".join(map(_shown, sorted(MACROS)))
        hint = f"an environment variable is ${{envvar:{body}}}" if VARIABLE_NAME.fullmatch(body) else None
        if close := difflib.get_close_matches(body.lower(), sorted(MACROS), n=1):
            hint = f"did you mean ${{{close[0]}}}?"
        raise TextError(f"must be one of the macros {known}, got '${{{body}}}'", hint=hint)
    hint = None
    match name:
        case "param" if PARAMETER_NAME.fullmatch(argument):
            return Macro("envvar", environment_name(argument))  # the trial's variable with its value
        case "param":
            rule = "must name a parameter"
        case "envvar" if VARIABLE_NAME.fullmatch(argument):
            return Macro(name, argument)
        case "envvar":
            rule = "must name a variable"
            hint = "names are letters, digits and underscores, and start with no digit"
        case _ if not colon:
            return Macro(name)
        case _ if name in LIST_MACROS and all(map(PARAMETER_NAME.fullmatch, argument.split(","))):
            return Macro(name, argument)
        case _:
            rule = "takes no argument"
    raise TextError(f"the macro {_shown(name)} {rule}, got '${{{body}}}'", hint=hint)


def _shown(macro: str) -> str:
    return f"${{{macro}{':NAME' * (macro in NAMED_MACROS)}}}"
