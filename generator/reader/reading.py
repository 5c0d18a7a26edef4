"""Bytes in; a document, and every problem that its text has before anyone asks what it means."""

from dataclasses import dataclass

from generator.problems import Problem
from generator.reader import characters
from generator.reader.compose import UnreadableError, compose
from generator.reader.document import Document
from generator.reader.nodes import Node, Scalar
from generator.reader.walk import Walk

BYTES = 256 * 1024

PROBLEMS = 50
"""More help nobody, and a hostile file could have 10,000."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What became of a file. Both may be there: a document with places that could not be read."""

    document: Document | None
    problems: tuple[Problem, ...]


def read(content: bytes, file: str) -> Reading:
    """Read one YAML file strictly; `file` is its name for people."""
    if len(content) > BYTES:
        message = f"must be at most {BYTES} bytes, got {len(content)}"
        return Reading(None, (Problem(file, 0, 0, "", message, code="too-large"),))
    try:
        text = characters.decode(content)
    except UnicodeDecodeError as error:
        return Reading(None, (_not_utf8(file, content, error.start),))
    problems = list(characters.refused(text, file))
    return _read_text(text, file, problems)


def _read_text(text: str, file: str, problems: list[Problem]) -> Reading:
    visible, marks = characters.directives(characters.INVISIBLE.sub(characters.STAND_IN, text))
    problems += [
        Problem(file, *mark, "", "must not have directives", code="directive", hint="delete the line")
        for mark in marks
    ]
    try:
        stream = compose(visible)
    except UnreadableError as error:
        problems.append(Problem(file, *error.mark, "", error.message, code=error.code, hint=error.hint))
        return Reading(None, limited(problems))
    if stream.further is not None:
        message = "must hold one document, but another one starts here"
        problems.append(
            Problem(file, *stream.further, "", message, code="several-documents", hint="delete the line ---")
        )
    root = None if stream.root is None or _is_blank(stream.root) else stream.root
    walk = Walk(file, problems)
    data = None if root is None else walk.data(root, ())
    return Reading(Document(file, text, root, data, frozenset(walk.unread)), limited(walk.problems))


def _is_blank(node: Node) -> bool:
    """Tell whether a document is what `---` alone makes."""
    return isinstance(node, Scalar) and node.plain and not node.text and not node.trimmings


def _not_utf8(file: str, content: bytes, offset: int) -> Problem:
    before = content[:offset].decode("utf-8")
    message = f"must be UTF-8, got byte 0x{content[offset]:02x} at offset {offset}"
    mark = characters.place(before, len(before))
    return Problem(file, *mark, "", message, code="not-utf8", hint="save the file as UTF-8")


def limited(problems: list[Problem]) -> tuple[Problem, ...]:
    """Sort problems by place and keep as many as a person may want to see."""
    first = sorted(problems)[:PROBLEMS]
    if len(problems) > PROBLEMS:
        last = first[-1]
        message = f"at least {len(problems) - PROBLEMS} more problems are not shown"
        first.append(Problem(last.file, last.line, last.column, "", message, code="too-many-problems"))
    return tuple(first)
