"""Decoding of files: UTF-8 only, without characters that a reviewer cannot see."""

import re
from collections.abc import Iterator

from sweepledger.problems import Problem

BYTE_ORDER_MARK = "\ufeff"

INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but tab and line feed; a lone carriage return too
    "\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # zero-width, bidi
    "\ud800-\udfff\ufffe\uffff\U000e0000-\U000e0fff]"  # surrogates, no characters at all, tags
)

REPLACEMENT = "_"
"""Replaces a rejected character, so that the rest of the file is read with its positions."""


def decode(content: bytes, file: str) -> str | Problem:
    """Return UTF-8 text without byte order mark and with LF line ends, or the problem of invalid bytes."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        before = content[: error.start].decode("utf-8")
        message = f"must be UTF-8, got byte 0x{content[error.start]:02x} at offset {error.start}"
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        return Problem(file, line, column, "", message, code="not-utf8", hint="save the file as UTF-8")
    return text.removeprefix(BYTE_ORDER_MARK).replace("\r\n", "\n")


def invisible_problems(text: str, file: str) -> Iterator[Problem]:
    """Yield a problem for every invisible character."""
    for number, line in enumerate(text.split("\n"), start=1):
        for match in INVISIBLE.finditer(line):
            message = f"must not hold an invisible character, got {describe_character(match[0])}"
            position = number, match.start() + 1
            yield Problem(file, *position, "", message, code="invisible-character", hint="delete it")


def comment_out_directives(text: str, file: str) -> tuple[str, list[Problem]]:
    """Return the text with the directives before a document as comments, and a problem for each."""
    lines = text.split("\n")
    problems: list[Problem] = []
    for index, line in enumerate(lines):
        if line.startswith("%"):
            lines[index] = "#"
            message, hint = "must not have directives", "delete the line"
            problems.append(Problem(file, index + 1, 1, "", message, code="directive", hint=hint))
        elif line.strip() and not line.lstrip().startswith("#"):
            break
    return "\n".join(lines), problems


def describe_character(character: str) -> str:
    """Return the code point and name of an invisible character."""
    import unicodedata  # noqa: PLC0415 - a table of a megabyte that most commands do not need

    return f"U+{ord(character):04X} {unicodedata.name(character, 'control character').lower()}"
