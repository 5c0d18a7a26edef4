"""How every command answers: text for people, one JSON envelope for machines, an exit code for scripts."""

import json
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from generator.errors import GeneratorError, IdleError, SeveralError, SpecError, UnreadableError
from generator.problems import Problem, Severity, one_line

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

ENVELOPE_VERSION = 1

PIPE_WIDTH = 160
"""Where no terminal says how wide it is, nothing should be folded for its sake."""

EXIT_PROBLEMS = 1
EXIT_USAGE = 2
EXIT_DRIFT = 5
EXIT_BUG = 70
EXIT_INTERRUPTED = 130


class Format(StrEnum):
    """How to answer."""

    TEXT = "text"
    JSON = "json"


FormatOption = Annotated[Format, typer.Option("--format", help="How to answer: text, or one JSON object.")]
BaseOption = Annotated[
    str | None,
    typer.Option(
        "--base", metavar="REV", help="The commit that stands; default: the remote's branch, else HEAD."
    ),
]
MonthOption = Annotated[
    str | None,
    typer.Option(
        "--month",
        metavar="YYYY-MM",
        help="The month whose budgets count; default: that of the commit that stands.",
    ),
]


@dataclass(frozen=True)
class Answer:
    """What a command found: data for machines, renderables for people."""

    data: Mapping[str, Any]
    shown: "tuple[RenderableType, ...]" = ()
    problems: tuple[Problem, ...] = ()
    exit_code: int = 0
    failures: tuple[GeneratorError, ...] = ()
    """Why some of it could not be done, while the rest was: an exit code of theirs is that of the answer."""


def has_errors(problems: Iterable[Problem]) -> bool:
    """Tell whether anything is wrong: warnings alone stop nothing."""
    return any(problem.severity is Severity.ERROR for problem in problems)


def answer(command: str, form: Format, work: Callable[[], Answer]) -> None:
    """Do the work and answer; every failure becomes a message and an exit code."""
    try:
        code = _answered(command, form, work)
    except KeyboardInterrupt:
        _fail(
            command,
            form,
            GeneratorError("interrupted", hint="run it again to go on: nothing recorded is lost"),
        )
        code = EXIT_INTERRUPTED
    except BrokenPipeError:  # while it still worked: what it would have answered nobody knows
        _let_go()
        code = EXIT_PROBLEMS
    except Exception:  # noqa: BLE001 - the outermost floor: a bug must say that it is one
        traceback.print_exc()
        _say("this is a bug in sweepledger: please report it with the lines above")
        code = EXIT_BUG
    if code:
        raise typer.Exit(code)


def _answered(command: str, form: Format, work: Callable[[], Answer]) -> int:
    try:
        found = work()
    except (SpecError, UnreadableError) as error:
        found = Answer({}, problems=error.problems, exit_code=error.exit_code)
    except SeveralError as error:
        found = Answer({}, failures=error.failures)
    except IdleError as error:
        found = idle(error)
    except GeneratorError as error:
        return _fail(command, form, error)
    _print(command, form, found)
    return found.exit_code or min((failure.exit_code for failure in found.failures), default=0)


def idle(error: IdleError, data: Mapping[str, Any] | None = None) -> Answer:
    """Answer that there is nothing to do: that is no failure, so it is said where answers are said."""
    from rich.text import Text

    lines = (str(error), *([f"next: {error.hint}"] if error.hint else []))
    return Answer(data or {}, tuple(Text(visible(line)) for line in lines))


def _fail(command: str, form: Format, error: GeneratorError) -> int:
    """Tell of an expected failure."""
    with while_read():
        if form is Format.JSON:
            _envelope(command, "error", None, told(error))
        else:
            _tell(command, error)
    return error.exit_code


def told(error: GeneratorError) -> tuple[Problem, ...]:
    """Give a failure as the envelope shows it."""
    if isinstance(error, SpecError | UnreadableError):
        return error.problems
    return (Problem("", 0, 0, "", str(error), _kebab(type(error).__name__), error.hint),)


def _tell(command: str, error: GeneratorError) -> None:
    """Say a failure to a person."""
    if isinstance(error, UnreadableError):
        _say_all(error.problems)
        return
    _say(f"sweep {command}: {error}")
    if error.hint:
        _say(f"  hint: {error.hint}")


def _say_all(problems: Iterable[Problem]) -> None:
    for problem in problems:
        _say(str(problem))


@contextmanager
def while_read() -> Iterator[None]:
    """Print until the reader has all it wants (`| head`): what it leaves unread changes no exit code."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        _let_go()


def _let_go() -> None:
    """Print to nobody where nobody reads: Python would complain once more on the way out."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def fail_usage(arguments: list[str], message: str) -> int:
    """Tell that the command line is wrong, in the form that it asked for."""
    if not message:
        return EXIT_USAGE  # the help has been shown
    command = next((word for word in arguments if not word.startswith("-")), "")
    with while_read():
        if "--format=json" in arguments or ("--format", "json") in pairwise(arguments):
            _envelope(command, "error", None, (Problem("", 0, 0, "", message, "usage-error"),))
        else:
            _say(f"sweep {command}".rstrip() + f": {message}")
            is_command = command and not message.startswith("No such command")
            _say(f"  hint: sweep {command} --help" if is_command else "  hint: sweep --help")
    return EXIT_USAGE


def _print(command: str, form: Format, found: Answer) -> None:
    if form is Format.JSON:
        failed = tuple(problem for failure in found.failures for problem in told(failure))
        status = "error" if failed else "problems" if has_errors(found.problems) else "ok"
        with while_read():
            _envelope(command, status, found.data, (*found.problems, *failed))
        return
    with while_read():
        _show(found.shown)
    with while_read():
        _say_all(found.problems)
        for failure in found.failures:
            _tell(command, failure)


def _show(renderables: "Iterable[RenderableType]") -> None:
    if renderables:
        terminal = console()
        for renderable in renderables:
            terminal.print(renderable)


def _envelope(
    command: str, status: str, data: Mapping[str, Any] | None, problems: tuple[Problem, ...]
) -> None:
    print(envelope(command, status, data, problems))


def envelope(command: str, status: str, data: Mapping[str, Any] | None, problems: tuple[Problem, ...]) -> str:
    """Write the one object that machines read. A name that is no text stands escaped in it."""
    document = {
        "version": ENVELOPE_VERSION,
        "command": command,
        "status": status,
        "data": data,
        "problems": [problem.as_data() for problem in problems],
    }
    text = json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "backslashreplace").decode()


def console(*, stderr: bool = False) -> "Console":
    """Open the terminal; Rich is imported here because most machines never ask for it."""
    from rich.console import Console

    class Terminal(Console):
        def on_broken_pipe(self) -> None:
            """Tell it: Rich by itself would leave at once, with an exit code of its own."""
            raise BrokenPipeError

    opened = Terminal(stderr=stderr, highlight=False, soft_wrap=True)
    if not opened.is_terminal and "COLUMNS" not in os.environ:
        opened.width = PIPE_WIDTH
    return opened


def _say(text: str) -> None:
    print(visible(text), file=sys.stderr, flush=True)


def visible(text: str) -> str:
    """Show control characters instead of obeying them: messages quote what strangers wrote."""
    return "\n".join(map(one_line, text.expandtabs(4).split("\n")))


def _kebab(name: str) -> str:
    return "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("-")


def here() -> Path:
    """Say where the person stands. Raises GeneratorError if the folder is gone."""
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise GeneratorError("the current folder does not exist any more") from error
