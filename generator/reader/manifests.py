"""Rendered manifests as anybody's tool writes them: many documents a file, large, and read with places.

As strict as with specs about what readers take differently; `key:` without a value means null, as to kubectl.
"""

from dataclasses import dataclass, field
from typing import Any

from generator.formats.yaml_events import EventsError, events
from generator.problems import Problem
from generator.reader import characters
from generator.reader.document import Document
from generator.reader.nodes import Alias, Mapping, Mark, Node, Scalar, Sequence
from generator.reader.walk import Walk

BYTES = 64 * 1024 * 1024
"""Ten thousand Jobs, written out."""
NODES = 5_000_000
DEPTH = 64

UNREADABLE = "yaml-syntax"
TOO_LARGE = "too-large"


@dataclass(frozen=True, slots=True)
class Manifests:
    """What became of a file: its documents, and what its text has wrong."""

    documents: tuple[Document, ...]
    problems: tuple[Problem, ...]


class _TooLargeError(ValueError):
    """A cap was reached."""

    def __init__(self, message: str, mark: Mark) -> None:
        super().__init__(message)
        self.mark = mark


@dataclass(slots=True)
class _Builder:
    """Makes nodes of events. Its own stack, not Python's, so that depth is a number to compare."""

    roots: list[Node] = field(default_factory=list)
    stack: list[tuple[Any, list[Node]]] = field(default_factory=list)
    nodes: int = 0

    def take(self, event: Any) -> None:
        """Take the next event."""
        match type(event).__name__:
            case "ScalarEvent":
                self._add(_scalar(event))
            case "SequenceStartEvent" | "MappingStartEvent":
                self.stack.append((event, []))
                if len(self.stack) > DEPTH:
                    raise _TooLargeError(f"must nest at most {DEPTH} levels deep", _mark(event))
            case "SequenceEndEvent" | "MappingEndEvent":
                self._add(_closed(*self.stack.pop()))
            case "AliasEvent":
                self._add(Alias(event.anchor, _mark(event)))

    def _add(self, node: Node) -> None:
        self.nodes += 1
        if self.nodes > NODES:
            raise _TooLargeError(f"must hold at most {NODES} keys and values", node.mark)
        if self.stack:
            self.stack[-1][1].append(node)
        else:
            self.roots.append(node)


def read(content: bytes, file: str) -> Manifests:
    """Read every document of a file; `file` is its name for people."""
    if len(content) > BYTES:
        message = f"must be at most {BYTES} bytes, got {len(content)}"
        return Manifests((), (Problem(file, 0, 0, "", message, TOO_LARGE),))
    try:
        text = characters.decode(content)
    except UnicodeDecodeError as error:
        message = f"must be UTF-8, got byte 0x{content[error.start]:02x} at offset {error.start}"
        hint = "save the file as UTF-8"
        return Manifests((), (Problem(file, 0, 0, "", message, "not-utf8", hint),))
    problems = list(characters.refused(text, file))
    return _documents(characters.INVISIBLE.sub(characters.STAND_IN, text), file, problems)


def _documents(text: str, file: str, problems: list[Problem]) -> Manifests:
    builder = _Builder()
    try:
        for event in events(text):
            builder.take(event)
    except EventsError as error:
        message = f"must be valid YAML: {error}"
        problems.append(Problem(file, error.line, error.column, "", message, UNREADABLE))
    except _TooLargeError as error:
        problems.append(Problem(file, *error.mark, "", str(error), TOO_LARGE))
    documents = []
    for root in builder.roots:
        walk = Walk(file, problems)
        data = walk.data(root, ())
        if data is not None or walk.unread:
            documents.append(Document(file, text, root, data, frozenset(walk.unread)))
    return Manifests(tuple(documents), tuple(problems))


def _scalar(event: Any) -> Scalar:
    is_plain = not event.style
    text = "null" if is_plain and event.value in {"", "~"} else event.value
    return Scalar(text, is_plain, _mark(event), _trimmings(event))


def _closed(start: Any, children: list[Node]) -> Node:
    if type(start).__name__ == "SequenceStartEvent":
        return Sequence(tuple(children), _mark(start), _trimmings(start))
    entries = tuple(zip(children[::2], children[1::2], strict=True))
    return Mapping(entries, _mark(start), _trimmings(start))


def _trimmings(event: Any) -> tuple[str, ...]:
    anchor = () if event.anchor is None else (f"&{event.anchor}",)
    return anchor if event.tag is None else (*anchor, str(event.tag).replace("tag:yaml.org,2002:", "!!"))


def _mark(event: Any) -> Mark:
    return Mark(event.start_mark.line + 1, event.start_mark.column + 1)
