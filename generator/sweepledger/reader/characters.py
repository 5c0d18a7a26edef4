"""From bytes to text: UTF-8 alone, and nothing in it that a reviewer could not see."""

import re
from collections.abc import Iterator

from generator.problems import Problem
from generator.reader.nodes import Mark

BYTE_ORDER_MARK = "\ufeff"

INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but tab and line feed; a lone carriage return too
    "\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # zero-width, bidi
    "\ud800-\udfff\ufffe\uffff\U000e0000-\U000e0fff]"  # surrogates, no characters at all, tags
)

STAND_IN = "_"
"""Takes the place of what was refused, so that the rest of the file is still read and keeps its places."""


def decode(content: bytes) -> str:
    """Decode UTF-8, without byte order mark and with LF line ends. Raises UnicodeDecodeError."""
    return content.decode("utf-8").removeprefix(BYTE_ORDER_MARK).replace("\r\n", "\n")


def invisible(text: str) -> Iterator[tuple[Mark, str]]:
    """Find every character that must not stand in a file, with its place."""
    for number, line in enumerate(text.split("\n"), start=1):
        for found in INVISIBLE.finditer(line):
            yield Mark(number, found.start() + 1), found[0]


def refused(text: str, file: str) -> Iterator[Problem]:
    """Say of every such character what it is."""
    for mark, character in invisible(text):
        message = f"must not hold an invisible character, got {described(character)}"
        yield Problem(file, *mark, "", message, code="invisible-character", hint="delete it")


def directives(text: str) -> tuple[str, tuple[Mark, ...]]:
    """Turn the directives before a document into comments, and say where they are."""
    lines = text.split("\n")
    marks: list[Mark] = []
    for index, line in enumerate(lines):
        if line.startswith("%"):
            lines[index] = "#"
            marks.append(Mark(index + 1, 1))
        elif line.strip() and not line.lstrip().startswith("#"):
            break
    return "\n".join(lines), tuple(marks)


def place(text: str, offset: int) -> Mark:
    """Turn an offset into line and column."""
    return Mark(text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset))


def described(character: str) -> str:
    """Name a character that cannot be shown."""
    import unicodedata  # noqa: PLC0415 - a table of a megabyte that most runs never need

    return f"U+{ord(character):04X} {unicodedata.name(character, 'control character').lower()}"
