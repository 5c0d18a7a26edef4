"""`sweep lint`: check rendered manifests from any source, inside or outside a sweepledger repository."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sweepledger import policy
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.errors import RepositoryError, StorageError, UsageError
from sweepledger.problems import Problem
from sweepledger.reader import manifests
from sweepledger.reader.document import Document
from sweepledger.safe_open import read_regular
from sweepledger.storage import storage_errors
from sweepledger.structs.settings import Settings

STDIN = "-"
STDIN_NAME = "<stdin>"
"""The name of standard input in problems."""
SUFFIXES = (".json", ".yaml", ".yml")
MOST_FILES = 10_000
"""Maximum number of files: a larger folder was probably named by mistake."""


@dataclass(frozen=True)
class LintedFiles:
    """The policy's report, and the problems of the files."""

    report: policy.LintReport
    problems: tuple[Problem, ...]
    is_read: bool
    """Whether every file could be parsed and is unambiguous."""


def lint(names: Sequence[str], stdin: bytes, start: Path) -> LintedFiles:
    """Check files, folders and (as `-`) the standard input as one rendered set. Raises UsageError."""
    documents: list[Document] = []
    problems: list[Problem] = []
    for name in dict.fromkeys(names):
        for file, content in _contents(name, stdin):
            read = manifests.read(content, file)
            documents += read.documents
            problems += read.problems
    report = policy.lint(documents, _settings(start))
    if not problems and len(report.others) == len(documents):
        message = "must contain an object: nothing was checked"
        listed = ", ".join(STDIN_NAME if name == STDIN else name for name in names)
        problems.append(Problem(listed, 0, 0, "", message, "empty-file"))
    return LintedFiles(report, tuple(sorted([*problems, *report.problems])), not problems)


def _settings(start: Path) -> Settings | None:
    """Return the settings of the repository around the current folder, if there is one."""
    try:
        return Workspace.find(start).settings
    except RepositoryError:
        return None


def _contents(name: str, stdin: bytes) -> Iterator[tuple[str, bytes]]:
    if name == STDIN:
        yield STDIN_NAME, stdin
        return
    path = Path(name)
    if not path.exists():
        raise UsageError(
            f"no file {name!r}", hint="name rendered manifests, a folder of them, or - for stdin"
        )
    for file in _files(path):
        with storage_errors(file):
            content = read_regular(file, manifests.MAX_MANIFEST_BYTES)
        if content is None:
            raise StorageError(f"{file}: must be a regular file", hint="pipes and links: `… | sweep lint -`")
        yield file.as_posix(), content


def _files(path: Path) -> tuple[Path, ...]:
    if not path.is_dir():
        return (path,)
    paths = tuple(sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES and file.is_file()))
    if not paths:
        raise UsageError(
            f"no *.yaml, *.yml or *.json in {path}", hint="render first: `kustomize build … | sweep lint -`"
        )
    if len(paths) > MOST_FILES:
        raise UsageError(
            f"more than {MOST_FILES} files in {path}", hint="name a folder of rendered manifests"
        )
    return paths
