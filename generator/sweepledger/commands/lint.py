"""`sweep lint`: the policy over anybody's rendered manifests, in a repository of ours or nowhere near one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from generator import policy
from generator.commands.workspace import Workspace
from generator.errors import RepositoryError, StorageError, UsageError
from generator.problems import Problem
from generator.reader import manifests
from generator.reader.document import Document
from generator.repo.files import storage
from generator.structs.settings import Settings
from generator.untrusted import read_regular

STDIN = "-"
SHOWN = "<stdin>"
"""How it stands in problems."""
SUFFIXES = (".json", ".yaml", ".yml")
FILES = 10_000
"""More than a folder of manifests holds; one named by mistake may hold any number."""


@dataclass(frozen=True)
class Linted:
    """What was found in the objects, and in the files that hold them."""

    found: policy.Manifests
    problems: tuple[Problem, ...]
    is_read: bool
    """Whether every file could be read to its end, and means the same to every reader."""


def lint(names: Sequence[str], stdin: bytes, start: Path) -> Linted:
    """Judge files, folders and (as `-`) the standard input as one rendered set. Raises UsageError."""
    documents: list[Document] = []
    problems: list[Problem] = []
    for name in dict.fromkeys(names):
        for file, content in _contents(name, stdin):
            read = manifests.read(content, file)
            documents += read.documents
            problems += read.problems
    found = policy.lint(documents, _settings(start))
    if not problems and len(found.others) == len(documents):
        message = "must hold an object: what is not there was not checked"
        place = ", ".join(SHOWN if name == STDIN else name for name in names)
        problems.append(Problem(place, 0, 0, "", message, "empty-file"))
    return Linted(found, tuple(sorted([*problems, *found.problems])), not problems)


def _settings(start: Path) -> Settings | None:
    """Find the settings of the repository that a person stands in, if it is one of ours."""
    try:
        return Workspace.find(start).settings
    except RepositoryError:
        return None


def _contents(name: str, stdin: bytes) -> Iterator[tuple[str, bytes]]:
    if name == STDIN:
        yield SHOWN, stdin
        return
    path = Path(name)
    if not path.exists():
        raise UsageError(
            f"no file {name!r}", hint="name rendered manifests, a folder of them, or - for stdin"
        )
    for file in _files(path):
        with storage(file):
            content = read_regular(file, manifests.BYTES)
        if content is None:
            raise StorageError(f"{file}: must be a regular file", hint="pipes and links: `… | sweep lint -`")
        yield file.as_posix(), content


def _files(path: Path) -> tuple[Path, ...]:
    if not path.is_dir():
        return (path,)
    found = tuple(sorted(file for file in path.rglob("*") if file.suffix in SUFFIXES and file.is_file()))
    if not found:
        raise UsageError(
            f"no *.yaml, *.yml or *.json in {path}", hint="render first: `kustomize build … | sweep lint -`"
        )
    if len(found) > FILES:
        raise UsageError(f"more than {FILES} files in {path}", hint="name a folder of rendered manifests")
    return found
