"""What can go wrong, split by whose fault it is. Standard library only.

GeneratorError
├── SpecError            the author's YAML is wrong; carries every Problem         exit 1
├── UsageError           the command line is wrong                                exit 2
├── RepositoryError      no repository, no remote, push refused by policy         exit 3
│   ├── SeveralError     each for itself, while all else was done                 exit as theirs
│   ├── UnreadableError  a file that a program wrote makes no sense: its Problem   exit 3
│   └── ContentionError  others kept winning the push until the budget ended      exit 4
├── StorageError         disk full, read-only, I/O error: the file is named       exit 3
├── ToolError            git or kustomize missing or failed, with its own words   exit 3
└── IdleError            nothing is wrong, and nothing is to be done              exit 0
Anything else is our bug: exit 70.
"""

from collections.abc import Iterable, Sequence

from generator.problems import Problem

TOOL_OUTPUT_LINES = 40
"""Tools can print megabytes; the cause stands at the end."""


class GeneratorError(Exception):
    """An expected failure: its text is all that a person needs."""

    exit_code = 3

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class SpecError(GeneratorError):
    """The author's files are wrong; all problems of all files, sorted by place."""

    exit_code = 1

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(problems))
        super().__init__(f"{len(self.problems)} problem(s) found")


class UsageError(GeneratorError):
    """The command was asked for something that does not exist or does not fit together."""

    exit_code = 2


class RepositoryError(GeneratorError):
    """The repository is not in a state in which this can be done."""

    output = ""
    """What git printed on its standard output, where git failed."""


class UnreadableError(RepositoryError):
    """A file that only programs write cannot be read any more: what hangs on it waits, all else goes on."""

    def __init__(self, problem: Problem) -> None:
        self.problems = (problem,)
        place = f"{problem.file}:{problem.line}" if problem.line else problem.file
        super().__init__(f"{place}: {problem.message}", hint=problem.hint)


class SeveralError(RepositoryError):
    """Some things failed, each for itself; all else was done."""

    def __init__(self, failures: Iterable[RepositoryError]) -> None:
        self.failures = tuple(failures)
        """At least one."""
        hints = dict.fromkeys(failure.hint for failure in self.failures if failure.hint)
        super().__init__("\n".join(map(str, self.failures)), hint="; ".join(hints) or None)
        self.exit_code = min(failure.exit_code for failure in self.failures)


class ContentionError(RepositoryError):
    """Other writers kept winning the branch until the time budget ended."""

    exit_code = 4


class StorageError(GeneratorError):
    """The file system refused; the file is named."""


class IdleError(GeneratorError):
    """All that was asked for is so already, or nothing is there to do it to: scripts may go on."""

    exit_code = 0


class ToolError(GeneratorError):
    """A tool is missing, too old, or failed."""

    @classmethod
    def failed(cls, command: Sequence[str], *, code: int, stdout: str, stderr: str) -> "ToolError":
        """Tell of a tool that ran and failed: command, exit code and the end of what it said."""
        said = "\n".join(part.strip() for part in (stdout, stderr) if part.strip()) or "(no output)"
        lines = said.splitlines()
        if len(lines) > TOOL_OUTPUT_LINES:
            lines = [f"… {len(lines) - TOOL_OUTPUT_LINES} lines cut", *lines[-TOOL_OUTPUT_LINES:]]
        body = "\n".join(f"    {line}" for line in lines)
        return cls(f"`{' '.join(command)}` ended with exit code {code}:\n{body}")
