"""The patch that fixes a change: what `sweep generate` would write and remove."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping

from sweepledger.commands.checks.context import CheckContext, specs_to_read
from sweepledger.commands.generation import next_batch
from sweepledger.commands.generation.next_batch import EditedError, Generated, added_files
from sweepledger.commands.repository import batch_builder
from sweepledger.commands.repository.stored_batches import StoredBatches
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.errors import RepositoryError
from sweepledger.problems import Problem, Severity
from sweepledger.repo import files
from sweepledger.repo.batches import StoredBatch

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
    raw = path.encode(errors="surrogateescape")
    if path.isascii() and path.isprintable() and not {'"', "\\"} & set(path) and " " not in path:
        return raw
    text = "".join(ESCAPES.get(chr(byte)) or _octal(byte) for byte in raw)
    return f'"{text}"'.encode()


def _octal(byte: int) -> str:
    return chr(byte) if chr(byte).isascii() and chr(byte).isprintable() else f"\\{byte:03o}"


FIXABLE_CODES = frozenset({"drift", "pending", "batch-forged"})
"""Codes of problems that `sweep generate` could fix."""


def build_fix(workspace: Workspace, problems: Iterable[Problem], *, base: str | None = None) -> bytes:
    """Return the patch that fixes missing, stale and edited batches; empty if a patch cannot fix anything.

    Raises as `plan_batches` does for specs, which were read before problems of batches could be found.
    """
    errors = {problem.code for problem in problems if problem.severity is Severity.ERROR}
    if not errors & FIXABLE_CODES:
        return b""
    context = CheckContext(workspace, workspace.base_commit(base))
    merged = {batch.name for batch in context.merged}
    unsound = tuple(batch for batch in context.present if batch.name not in merged and not _is_sound(batch))
    kept = tuple(batch for batch in context.present if batch not in unsound)
    specs = workspace.read(specs_to_read(context, workspace.spec_paths()))
    try:
        planned = next_batch.plan_batches(
            workspace, specs, base=context.base, stored=StoredBatches(context.base, context.merged, kept)
        )
    except EditedError:  # an edited merged batch must be restored from git instead
        return b""
    return write_patch(*_before_and_after(workspace, planned, unsound))


def _is_sound(batch: StoredBatch) -> bool:
    try:
        return not batch.hand_edits()
    except RepositoryError:  # an unreadable lock cannot be compared
        return False


def _before_and_after(
    workspace: Workspace, planned: Iterable[Generated], unsound: tuple[StoredBatch, ...]
) -> tuple[Mapping[str, bytes], Mapping[str, bytes]]:
    before: dict[str, bytes] = {}
    after: dict[str, bytes] = {}
    new = [generated for generated in planned if generated.batch]
    removed = [*unsound, *(stale for generated in planned for stale in generated.stale)]
    for batch in removed:
        before |= {f"{batch.folder}/{path}": content for path, content in batch.tree}
        before |= _existing_files(
            workspace, batch_builder.possible_flux_files(workspace.settings, batch.name)
        )
    for generated in new:
        assert generated.batch is not None
        after |= added_files(workspace, generated)
    return before | _existing_files(workspace, after), after


def _existing_files(workspace: Workspace, paths: Iterable[str]) -> dict[str, bytes]:
    contents = {}
    for path in paths:
        files.refuse_links(workspace.root, path)
        if (workspace.root / path).is_file():
            contents[path] = files.read_file(workspace.root / path)
    return contents
