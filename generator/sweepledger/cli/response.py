"""The response of a command: text for users, a JSON envelope for programs, an exit code for scripts."""

import json
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import typer

from sweepledger.errors import GeneratorError, IdleError, SeveralError, SpecError, UnreadableError, UsageError
from sweepledger.problems import Problem, Severity, escape_line

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

ENVELOPE_VERSION = 1

PIPE_WIDTH = 160
"""Columns of output that is not a terminal: wide enough for most lines to stay unfolded."""

SHORT_COMMIT = 8
"""Characters of a commit id in output for users."""

EXIT_PROBLEMS = 1
EXIT_USAGE = 2
EXIT_STORAGE = 3
EXIT_DRIFT = 5
EXIT_SEARCH_ENDED = 6
"""All searches that `sweep cluster next` was called for have ended."""
EXIT_INTERNAL_ERROR = 70
EXIT_INTERRUPTED = 130


class Format(StrEnum):
    """Output formats of a command."""

    TEXT = "text"
    JSON = "json"


@dataclass(frozen=True)
class Response:
    """What a command returns: data for programs, renderables for users."""

    data: Any
    """A dataclass or a mapping, whose names are the keys."""
    renderables: "tuple[RenderableType, ...]" = ()
    problems: tuple[Problem, ...] = ()
    exit_code: int = 0
    failures: tuple[GeneratorError, ...] = ()
    """Why a part of the work failed; if `exit_code` is 0, the lowest exit code among these is used."""


def has_errors(problems: Iterable[Problem]) -> bool:
    """Return whether any problem is an error; warnings alone do not fail a command."""
    return any(problem.severity is Severity.ERROR for problem in problems)


def respond(command: str, form: Format, work: Callable[[], Response]) -> None:
    """Run a command and print its response; turn every failure into a message and an exit code.

    Raises typer.Exit unless the exit code is 0.
    """
    try:
        code = _run_command(command, form, work)
    except KeyboardInterrupt:
        hint = "run the command again to continue: recorded results are kept"
        failure = GeneratorError("interrupted", hint=hint)
        _print_response(command, form, Response(None, failures=(failure,)))
        code = EXIT_INTERRUPTED
    except BrokenPipeError:  # during the work, so the exit code is unknown
        _discard_output()
        code = EXIT_PROBLEMS
    except Exception:  # noqa: BLE001 - the outermost handler, which reports internal errors
        traceback.print_exc()
        _print_message("internal error in sweepledger: please report it with the lines above")
        code = EXIT_INTERNAL_ERROR
    if code:
        raise typer.Exit(code)


def _run_command(command: str, form: Format, work: Callable[[], Response]) -> int:
    try:
        response = work()
    except GeneratorError as error:
        response = error_response(error)
    _print_response(command, form, response)
    return response.exit_code or min((failure.exit_code for failure in response.failures), default=0)


def error_response(error: GeneratorError, data: Mapping[str, Any] = MappingProxyType({})) -> Response:
    """Return the response of a command that an error ended; a command with nothing to do has not failed."""
    match error:
        case SpecError() | UnreadableError():
            return Response(data, problems=error.problems, exit_code=error.exit_code)
        case SeveralError():
            return Response(data, failures=error.failures)
        case IdleError():
            return Response(data, (str(error), *([f"next: {error.hint}"] if error.hint else [])))
        case _:
            return Response(None, failures=(error,))


def all_problems(response: Response) -> tuple[Problem, ...]:
    """Return the problems of a response for the envelope, including its failures."""
    problems = [*response.problems]
    for failure in response.failures:
        code = re.sub("(?<!^)(?=[A-Z])", "-", type(failure).__name__).lower()
        problem = Problem("", 0, 0, "", str(failure), code, failure.hint)
        problems += failure.problems if isinstance(failure, SpecError | UnreadableError) else (problem,)
    return tuple(problems)


@contextmanager
def ignore_broken_pipe() -> Iterator[None]:
    """Let a block print; a pipe that is closed early (`| head`) does not change the exit code."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()


def _discard_output() -> None:
    """Redirect closed streams to the null device: Python would raise again when it flushes them at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def report_usage_error(arguments: list[str], path: str, message: str) -> int:
    """Print that the command line is wrong, in the requested format, and return the exit code.

    The path is that of the command with its program: `sweep cluster next`.
    """
    if message.startswith("Usage: "):  # Typer's message about a missing command is the help
        with ignore_broken_pipe():
            print(message)
        return EXIT_USAGE
    message = message.rstrip(".")
    with ignore_broken_pipe():
        if "--format=json" in arguments or ("--format", "json") in pairwise(arguments):
            command = path.removeprefix("sweep").lstrip()
            print(format_envelope(command, error_response(UsageError(message))))
        else:
            _print_message(f"{path}: {message}\n  hint: {path} --help")
    return EXIT_USAGE


def _print_response(command: str, form: Format, response: Response) -> None:
    if form is Format.JSON:
        with ignore_broken_pipe():
            print(format_envelope(command, response))
        return
    with ignore_broken_pipe():
        console = None
        for renderable in response.renderables:
            if isinstance(renderable, str):  # Rich, whose import takes time, prints all else
                print(escape_control_characters(renderable))
            else:
                console = console or open_console()
                console.print(renderable)
    with ignore_broken_pipe():
        for problem in response.problems:
            _print_message(str(problem))
        for failure in response.failures:
            if isinstance(failure, UnreadableError):
                _print_message("\n".join(map(str, failure.problems)))
                continue
            hint = f"\n  hint: {failure.hint}" if failure.hint else ""
            _print_message(f"sweep {command}: {failure}{hint}")


def format_envelope(command: str, response: Response) -> str:
    """Return the JSON object for programs. Characters that UTF-8 cannot encode are escaped."""
    document = {
        "version": ENVELOPE_VERSION,
        "command": command,
        "status": "error" if response.failures else "problems" if has_errors(response.problems) else "ok",
        "data": response.data,
        "problems": all_problems(response),
    }
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False, default=as_data)
    return text.encode("utf-8", "backslashreplace").decode()


def as_data(value: Any) -> Any:
    """Return a value as JSON data: a result by its own method, else its fields by name; a path as text."""
    if hasattr(value, "as_data"):
        return value.as_data()
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if names := getattr(value, "__struct_fields__", ()):
        return {name: getattr(value, name) for name in names}
    return dict(value) if isinstance(value, Mapping) else str(value)


def open_console(*, stderr: bool = False) -> "Console":
    """Return a console of Rich, which is imported only for text output."""
    from rich.console import Console

    class Terminal(Console):
        def on_broken_pipe(self) -> None:
            """Raise BrokenPipeError: Rich would exit at once with its own exit code."""
            raise BrokenPipeError

    console = Terminal(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=True)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PIPE_WIDTH
    return console


def _print_message(text: str) -> None:
    print(escape_control_characters(text), file=sys.stderr, flush=True)


def escape_control_characters(text: str) -> str:
    """Return untrusted text with its control characters escaped, so that a terminal does not interpret them."""
    return "\n".join(map(escape_line, text.expandtabs(4).split("\n")))


def current_folder() -> Path:
    """Return the current folder. Raises GeneratorError if it was deleted."""
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise GeneratorError("the current folder does not exist any more") from error
