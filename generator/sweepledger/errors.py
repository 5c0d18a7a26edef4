"""Exceptions of expected failures, by who is at fault. Standard library only.

GeneratorError
├── SpecError            the author's YAML is wrong; carries every Problem         exit 1
├── UsageError           the command line is wrong                                exit 2
├── RepositoryError      no repository, no remote, push refused by policy         exit 3
│   ├── SeveralError     several independent failures; everything else was done   their lowest
│   ├── UnreadableError  a generated file cannot be read; carries its Problem      exit 3
│   └── ContentionError  other writers won the push until the time budget ended   exit 4
├── StorageError         disk full, read-only, I/O error; names the file          exit 3
├── PausedError          all trials of a batch failed at first, so no other starts  exit 5
├── ToolError            git or kustomize is missing or failed; shows its output  exit 3
└── IdleError            nothing is wrong, and there is nothing to do             exit 0
Any other exception is an internal error: exit 70.
"""

from collections.abc import Iterable, Sequence

from sweepledger.problems import Problem

MAX_TOOL_OUTPUT_LINES = 40
"""Tools can print megabytes; the cause is at the end."""


class GeneratorError(Exception):
    """An expected failure, whose message is enough for the user: no traceback is printed."""

    exit_code = 3

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint
        if hint is not None:  # a notebook shows the traceback with its notes, and no hint
            self.add_note(f"hint: {hint}")


class PausedError(GeneratorError):
    """The first trials of a batch failed, so no other trial starts until a person intervenes."""

    exit_code = 5


class SpecError(GeneratorError):
    """The author's files are wrong. Carries all problems of all files, sorted by location."""

    exit_code = 1

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems))
        super().__init__(f"{len(self.problems)} problem(s) found")
        for problem in self.problems:
            self.add_note(str(problem))


class UsageError(GeneratorError):
    """An argument names something that does not exist, or options contradict each other."""

    exit_code = 2


class RepositoryError(GeneratorError):
    """The repository is not in a state in which the command can run."""

    output = ""
    """Standard output of git, if git failed."""


class UnreadableError(RepositoryError):
    """A generated file cannot be read. Steps that depend on the file are skipped, and everything else is done."""

    def __init__(self, problem: Problem) -> None:
        self.problems = (problem,)
        location = f"{problem.file}:{problem.line}" if problem.line else problem.file
        super().__init__(f"{location}: {problem.message}", hint=problem.hint)


class SeveralError(RepositoryError):
    """Several independent failures; everything else was done."""

    def __init__(self, failures: Iterable[RepositoryError]) -> None:
        self.failures = tuple(failures)
        """At least one."""
        hints = dict.fromkeys(failure.hint for failure in self.failures if failure.hint)
        super().__init__("\n".join(map(str, self.failures)), hint="; ".join(hints) or None)
        self.exit_code = min(failure.exit_code for failure in self.failures)


class ContentionError(RepositoryError):
    """Other writers won every push to the branch until the time budget ended."""

    exit_code = 4


class StorageError(GeneratorError):
    """The file system refused an operation; the message names the file."""


class IdleError(GeneratorError):
    """Everything is already as requested, or there is nothing to do. Scripts may continue."""

    exit_code = 0


class ToolError(GeneratorError):
    """A tool is missing, too old, or failed."""

    @classmethod
    def missing_library(cls, need: str, *, extra: str, alternative: str = "") -> "ToolError":
        """Return the error of a library that is not installed; `need` is a text that ends with the library's name."""
        return cls(
            f"{need}, which is not installed", hint=f"`pip install 'sweepledger[{extra}]'`{alternative}"
        )

    @classmethod
    def failed(cls, command: Sequence[str], *, code: int, stdout: str, stderr: str) -> "ToolError":
        """Return the error of a tool that ran and failed, with the end of its output."""
        output = "\n".join(part.strip() for part in (stdout, stderr) if part.strip()) or "(no output)"
        lines = output.splitlines()
        if len(lines) > MAX_TOOL_OUTPUT_LINES:
            lines = [f"… {len(lines) - MAX_TOOL_OUTPUT_LINES} lines cut", *lines[-MAX_TOOL_OUTPUT_LINES:]]
        body = "\n".join(f"    {line}" for line in lines)
        return cls(f"`{' '.join(command)}` ended with exit code {code}:\n{body}")
