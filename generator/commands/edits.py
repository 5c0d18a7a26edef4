"""What to say when a person has changed a generated file."""

import difflib
from collections.abc import Iterator
from typing import Self

from generator.errors import RepositoryError
from generator.repo.batches import StoredBatch
from generator.structs.tree import Drift, FileTree

DIFFERENCE_LINES = 20
"""Of a file that was edited: enough to recognise what was done."""


class EditedError(RepositoryError):
    """A generated folder is not what it was generated as; nothing is overwritten."""

    paths: tuple[str, ...] = ()
    """The files that differ, as a person would type them."""

    @classmethod
    def of(cls, batch: StoredBatch, drift: Drift, wanted: FileTree | None, *, merged: bool = False) -> Self:
        """Show how a batch differs from what it should be, as far as that is known."""
        way_out = "`git checkout -- {0}`" if merged else "`rm -r {0}`, then `sweep generate {1}`"
        shown = "\n".join(_difference(batch.tree, drift, wanted))
        error = cls(
            f"{batch.folder} was edited by hand; it is not overwritten:\n{shown}",
            hint=f"change the spec instead; to drop the edit: {way_out.format(batch.folder, batch.sweep)}",
        )
        paths = sorted((*drift.added, *drift.changed, *drift.stale))
        error.paths = tuple(f"{batch.folder}/{path}" for path in paths)
        return error


def _difference(found: FileTree, drift: Drift, wanted: FileTree | None) -> Iterator[str]:
    yield from (f"  missing  {path}" for path in drift.added)
    yield from (f"  foreign  {path}" for path in drift.stale)
    for path in drift.changed:
        yield f"  changed  {path}"
        if wanted is None:
            continue
        before, after = (tree[path].decode(errors="replace").splitlines() for tree in (wanted, found))
        lines = list(difflib.unified_diff(before, after, n=0, lineterm=""))[2:]
        yield from (f"    {line}" for line in lines[:DIFFERENCE_LINES])
        if len(lines) > DIFFERENCE_LINES:
            yield f"    … {len(lines) - DIFFERENCE_LINES} lines cut"
