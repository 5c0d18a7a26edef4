"""The command line of `sweep new --command`: its words, its program, and the folder of the program's code."""

import re
import shlex
import tempfile
from collections.abc import Collection, Sequence
from itertools import pairwise, product, takewhile
from pathlib import Path, PurePath
from posixpath import join, normpath

from sweepledger import process
from sweepledger.engine.local.python_environment import inspect, installed_program, program_path
from sweepledger.errors import UsageError
from sweepledger.operations.repository.workspace import Workspace
from sweepledger.process import LimitExceededError, Limits
from sweepledger.spec.rules.program import ASSIGNMENT

SHELLS = frozenset({"sh", "bash", "dash", "zsh"})
PYTHON = re.compile(r"python(?:3(?:\.\d+)?)?")
VARIABLE = re.compile(r"\$(?P<name>[A-Za-z_][A-Za-z0-9_]*)")
SCRIPT = re.compile(r"[^=:,\s]*\.(?:py|ipynb|sh|bash|r|R|jl|rb|pl|lua|js|mjs|ts|jar|m)")
"""Names of files that an interpreter starts."""
FOLDER_OPTION = re.compile(r"(?:-C|--chdir|--directory)(?:=(?P<folder>.+))?")
"""Options of env, make and uv that name the folder to start in."""
PROJECT_FILES = (
    *("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "environment.yml", "uv.lock"),
    *("conf", "config", "configs", "src"),
)
"""What shows that a repository is one program: its scripts need files outside of their own folders."""


def split(line: str) -> tuple[str, ...]:
    """Split a command line into words, like a shell without variables, pipes and redirections.

    The text of `sh -c` gets the arguments of a trial if it names none. Raises UsageError for syntax that needs a shell.
    """
    try:
        words = tuple(shlex.split(line))
    except ValueError as error:
        raise UsageError(f"--command cannot be split into words: {str(error).lower()}") from error
    if not words:
        raise UsageError("--command must name a program, got nothing", hint="--command 'python train.py'")
    if ASSIGNMENT.match(words[0]):
        raise UsageError(
            f"--command must begin with a program, got {words[0]!r}, which only a shell reads as a variable",
            hint=f"--command {shlex.quote(f'env {line.strip()}')}",
        )
    if signs := _shell_signs(line):
        text = f"sh -c {shlex.quote(_with_arguments(line))} sh"
        raise UsageError(
            f"--command must have no {signs[0][0]!r}, which only a shell reads",
            hint=f"--command {shlex.quote(text)}",
        )
    if (variable := VARIABLE.search(line)) and not _is_shell(words):
        raise UsageError(
            f"--command must have no {variable[0]!r}, which only a shell replaces",
            hint=f"write its value, ${{param:{variable['name']}}} for that of a parameter, "
            f"or ${{envvar:{variable['name']}}} for a variable of the trial",
        )
    if not _is_shell(words):
        return words
    at = words.index("-c") + 1
    text, rest = words[at], words[at + 1 :]
    if "$" not in text:
        text = _with_arguments(text)
    # The first word behind the text is the name of the shell, and no argument.
    return (*words[:at], text, *(rest or (PurePath(words[0]).name,)))


def _shell_signs(line: str) -> list[tuple[str, int]]:
    """Return the shell operators outside of quotes, each with its position."""
    signs, quote, position = [], "", 0
    while position < len(line):
        sign = line[position]
        if sign == "\\" and quote != "'":
            position += 1
        elif sign == quote:
            quote = ""
        elif not quote and sign in "'\"":
            quote = sign
        elif not quote and sign in "<>|&;\n`":
            signs.append((sign, position))
        position += 1
    return signs


def _with_arguments(text: str) -> str:
    """Return the text of a shell with "$@" after the last program that the text starts."""
    signs = _shell_signs(text)
    # The & of >& duplicates a stream.
    starts = [at for sign, at in signs if sign in "&;\n" and text[at - 1 : at] != ">"] or [0]
    ends = [at for sign, at in signs if sign in "<>|" and at > starts[-1]]
    # "2>" begins with the number of the stream.
    end = len(text[: ends[0]].rstrip("0123456789")) if ends else len(text)
    return " ".join(part.strip() for part in (text[:end], '"$@"', text[end:]) if part.strip())


def _is_shell(words: Sequence[str]) -> bool:
    return PurePath(words[0]).name in SHELLS and "-c" in words[1:-1]


def find_program(workspace: Workspace, words: Sequence[str]) -> tuple[str, str | None]:
    """Return the first word of a command as trials must write it, and the file of the repository that it starts.

    None for an installed program. Raises UsageError if nothing here can be started.
    """
    options = ((FOLDER_OPTION.fullmatch(word), following) for word, following in pairwise((*words, "")))
    start = next((match["folder"] or following for match, following in options if match), "")
    module = module_name(words)
    path = module.replace(".", "/") if module else ""
    places = (path, f"src/{path}") if path else ()
    candidates = [f"{place}{end}" for place in places for end in (".py", "/__main__.py")]
    scripts = [word for word in words if SCRIPT.fullmatch(word) and not word.startswith("-")]
    candidates += scripts[:1] or (
        word for word in words if not word.startswith("-") and not PYTHON.fullmatch(word)
    )
    for candidate in candidates:
        path = normpath(join(start, candidate))
        if not path.startswith(("/", "..")) and (workspace.root / path).is_file():
            return installed_program(words[0]) or words[0], path
    installed = installed_program(words[0])
    if installed is None:
        raise _missing(workspace, words[0])
    if scripts and not _is_shell(words):
        raise _missing(workspace, scripts[0])
    if module and PYTHON.fullmatch(PurePath(words[0]).name):
        environment = inspect(words[0], [module.partition(".")[0]])
        if environment is not None and not any(environment.modules.values()):
            raise _missing(workspace, module)
    return installed, None


def take_options(words: Sequence[str], names: Collection[str]) -> tuple[tuple[str, ...], dict[str, str], int]:
    """Remove the parameters' options from a command; return it with their macros by spelling, and their position.

    Raises UsageError for a parameter in braces, which nothing replaces.
    """
    for word, name in product(words, names):
        if re.search(rf"(?<!\$)\{{{re.escape(name)}\}}", word):
            text = word.replace(f"{{{name}}}", f"${{param:{name}}}")
            message = (
                f"--command must take the value of {name} by a macro, got {word!r}, which nothing replaces"
            )
            raise UsageError(message, hint=f"write {text!r}")
    begin = 1 + max(
        (at for at, word in enumerate(words) if SCRIPT.fullmatch(word) or words[at - 1 : at] == ("-m",)),
        default=0,
    )
    left, macros, at, place = [*words[:begin]], dict[str, str](), begin, None
    while at < len(words):
        word, sign, _ = words[at].partition("=")
        name = word.lstrip("-")
        is_option = name in names and bool(word != name or sign)
        has_value = not sign and at + 1 < len(words) and not words[at + 1].startswith("-")
        if is_option and has_value:
            macros[name] = "${args_spaced}" if word.startswith("--") else "${args_single_hyphen}"
        if is_option:
            place = len(left) if place is None else place
        else:
            left.append(words[at])
        at += 2 if is_option and has_value else 1
    return tuple(left), macros, len(left) if place is None else place


STARTERS = SHELLS | {
    *("accelerate", "conda", "deepspeed", "env", "horovodrun", "ionice", "jupyter", "mpiexec", "mpirun"),
    *("nice", "nohup", "papermill", "pipenv", "poetry", "srun", "stdbuf", "sudo", "taskset", "time"),
    *("timeout", "torchrun", "uv", "xargs"),
}
"""Programs that start another one, whose options are none of theirs."""
HELP_LIMITS = Limits(seconds=20, output=1 << 20)
WITHOUT_NETWORK = ("unshare", "--user", "--map-root-user", "--net", "--")
"""Linux alone takes the network from a program; elsewhere none is asked."""


def ask_for_help(workspace: Workspace, words: Sequence[str], program: str | None) -> str:
    """Return the answer to `--help` of a program without a source here; an empty text if it is not called.

    That is a console script, a compiled program, or an installed package by `python -m`. It gets no network, no shell,
    20 seconds and a private folder; words before its first option, such as `fit`, select a subcommand.
    """
    module, name = module_name(words), PurePath(words[0]).name
    path = process.find_program(words[0]) if program is None else workspace.root / program
    if module is not None and program is None and PYTHON.fullmatch(name):
        argv = [words[0], "-m", module]
    elif path is None or name in STARTERS or PYTHON.fullmatch(name):
        return ""
    else:
        with Path(path).open("rb") as file:
            head = file.readline(200)
        is_console_script = program is None and head.startswith(b"#!") and b"python" in head
        if not (is_console_script or head.startswith(b"\x7fELF")):
            return ""
        argv = [str(path)]
    subcommands = takewhile(re.compile(r"[a-z][\w-]*").fullmatch, words[len(argv) :])
    with tempfile.TemporaryDirectory(prefix="sweep-help-") as folder:
        environment = {
            "PATH": program_path(),
            "HOME": folder,
            "COLUMNS": "200",
            "NO_COLOR": "1",
            "TERM": "dumb",
        }
        try:
            answer = process.run(
                [*WITHOUT_NETWORK, *argv, *subcommands, "--help"],
                HELP_LIMITS,
                env=environment,
                cwd=Path(folder),
            )
        except (OSError, LimitExceededError):
            return ""
    return (answer.stdout + answer.stderr).decode(errors="replace")


def code_folder(workspace: Workspace, program: str | None, *, is_module: bool) -> str:
    """Return the folder of the code that a program needs; for an installed program, the repository."""
    if program is None:
        return "."
    folder = program.partition("/")[0] if is_module else program.rpartition("/")[0]
    if folder == program or any((workspace.root / name).exists() for name in PROJECT_FILES):
        return "."
    return folder or "."


def module_name(words: Sequence[str]) -> str | None:
    """Return the module that the command starts; None if it starts a script or another program."""
    if any(word.endswith(".py") for word in words):
        return None
    return next((name for option, name in pairwise(words) if option == "-m"), None)


def _missing(workspace: Workspace, program: str) -> UsageError:
    named: list[str] = []
    if not program.startswith(("/", "..")) and program.isprintable():
        named = workspace.repository.run("ls-files", "-z", "--", f":(glob)**/{program}").split("\0")[:-1]
    return UsageError(
        f"--command must name a file of the repository or an installed program, got {program!r}",
        hint=f"a trial starts in {workspace.root}: did you mean {named[0]}?"
        if len(named) == 1
        else f"a trial starts in {workspace.root}: give the path from there, or the module after `python -m`",
    )
