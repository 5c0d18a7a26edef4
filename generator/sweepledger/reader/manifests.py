"""Rendered manifests of any tool: large files with many documents, read with positions.

Ambiguous scalars are rejected as in specs; `key:` without a value means null, as to kubectl.
"""

from dataclasses import dataclass

from sweepledger.formats.yaml import parse_events
from sweepledger.problems import Problem, TextError
from sweepledger.reader import characters
from sweepledger.reader.document import Document
from sweepledger.reader.node_builder import TOO_LARGE, NodeBuilder
from sweepledger.reader.strict_yaml import Constructor

MAX_MANIFEST_BYTES = 64 * 1024 * 1024
"""About ten thousand Jobs."""
MAX_NODES = 5_000_000
MAX_DEPTH = 64

UNREADABLE = "yaml-syntax"


@dataclass(frozen=True, slots=True)
class Manifests:
    """The documents of a file, and the problems of its text."""

    documents: tuple[Document, ...]
    problems: tuple[Problem, ...]


def read(content: bytes, file: str) -> Manifests:
    """Return every document of a file; `file` is its path in messages."""
    if len(content) > MAX_MANIFEST_BYTES:
        message = f"must be at most {MAX_MANIFEST_BYTES} bytes, got {len(content)}"
        return Manifests((), (Problem(file, 0, 0, "", message, TOO_LARGE),))
    try:
        text = characters.decode(content)
    except UnicodeDecodeError as error:
        message = f"must be UTF-8, got byte 0x{content[error.start]:02x} at offset {error.start}"
        hint = "save the file as UTF-8"
        return Manifests((), (Problem(file, 0, 0, "", message, "not-utf8", hint),))
    problems = list(characters.invisible_problems(text, file))
    return _documents(characters.INVISIBLE.sub(characters.REPLACEMENT, text), file, problems)


def _documents(text: str, file: str, problems: list[Problem]) -> Manifests:
    builder = NodeBuilder(MAX_DEPTH, MAX_NODES, empty_is_null=True)
    try:
        for event in parse_events(text):
            builder.take(event)
    except TextError as error:
        message = str(error) if error.code else f"must be valid YAML: {error}"
        problems.append(
            Problem(file, error.line or 0, error.column or 0, "", message, error.code or UNREADABLE)
        )
    documents = []
    for root in builder.roots:
        walk = Constructor(file, problems)
        data = walk.data(root, ())
        if data is not None or walk.unread:
            documents.append(Document(file, text, root, data, frozenset(walk.unread)))
    return Manifests(tuple(documents), tuple(problems))
