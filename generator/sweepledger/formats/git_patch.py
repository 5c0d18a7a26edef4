"""Patches for `git apply` that replace, add and delete whole files."""

import hashlib
from collections.abc import Iterator, Mapping

NO_NEWLINE = b"\\ No newline at end of file\n"
ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def write_patch(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> bytes:
    """Return the patch from some files to others, by path; empty if they are equal."""
    changed = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    return b"".join(part for path in changed for part in _file_patch(path, before.get(path), after.get(path)))


def _file_patch(path: str, before: bytes | None, after: bytes | None) -> Iterator[bytes]:
    old, new = _quoted(f"a/{path}"), _quoted(f"b/{path}")
    yield b"diff --git %s %s\n" % (old, new)
    if before is None:
        yield b"new file mode 100644\n"
    if after is None:
        yield b"deleted file mode 100644\n"
    yield b"index %s..%s%s\n" % (_id(before), _id(after), b"" if None in {before, after} else b" 100644")
    if before or after:
        yield b"--- %s\n" % (b"/dev/null" if before is None else old)
        yield b"+++ %s\n" % (b"/dev/null" if after is None else new)
        yield b"@@ -%s +%s @@\n" % (_range(before), _range(after))
        yield from _lines(b"-", before)
        yield from _lines(b"+", after)


def _range(content: bytes | None) -> bytes:
    count = len(_split(content or b""))
    return b"%d,%d" % (min(count, 1), count)


def _lines(sign: bytes, content: bytes | None) -> Iterator[bytes]:
    for line in _split(content or b""):
        yield sign + line
        if not line.endswith(b"\n"):
            yield b"\n" + NO_NEWLINE


def _split(content: bytes) -> list[bytes]:
    """Return the lines of a file, split at line feeds only, as in git."""
    pieces = content.split(b"\n")
    lines = [piece + b"\n" for piece in pieces[:-1]]
    return [*lines, pieces[-1]] if pieces[-1] else lines


def _id(content: bytes | None) -> bytes:
    """Return git's id of a blob; zeros for a missing file."""
    if content is None:
        return b"0" * 40
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest().encode()


def _quoted(path: str) -> bytes:
    """Return a path, quoted as in git if it is not plain."""
    raw = path.encode("utf-8", "surrogateescape")
    if path.isascii() and path.isprintable() and not {'"', "\\"} & set(path) and " " not in path:
        return raw
    text = "".join(ESCAPES.get(chr(byte)) or _octal(byte) for byte in raw)
    return f'"{text}"'.encode()


def _octal(byte: int) -> str:
    return chr(byte) if chr(byte).isascii() and chr(byte).isprintable() else f"\\{byte:03o}"
