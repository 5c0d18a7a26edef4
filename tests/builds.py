"""Builds of overlays, remembered by the files that kustomize reads: it starts in a tenth of a second, a thousand times.

Only the real kustomize's own output is remembered, and only a success. Whatever could depend on more than the files
of an overlay and of `base/` is built again: links, paths elsewhere, remote files, and another program.
"""

import hashlib
import os
import stat
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

from sweepledger.errors import ToolError
from sweepledger.process import ProcessResult
from sweepledger.repo import kustomize

FOLDER = "SWEEPLEDGER_TEST_BUILDS"
"""Variable with the folder of what is remembered: the server of `sweep` has it, too."""
MOST_BYTES = 2**20
BASES = b"../../../base/"


def remember(folder: Path) -> None:
    """Let this process, and the server that it starts, build equal overlays once."""
    os.environ[FOLDER] = str(folder)
    run = kustomize._run  # noqa: SLF001 - nothing else sees every call
    try:
        program = kustomize.command()
    except ToolError:
        return

    def run_once(argv: Sequence[str]) -> ProcessResult:
        key = _key(Path(argv[-1])) if tuple(argv[:-1]) == program else None
        if key is None:
            return run(argv)
        known = folder / key
        if known.exists():
            return ProcessResult(0, known.read_bytes(), b"")
        result = run(argv)
        if result.code == 0 and not result.stderr:
            part = known.with_name(uuid.uuid4().hex)
            part.write_bytes(result.stdout)
            part.replace(known)
        return result

    kustomize._run = run_once  # noqa: SLF001


def _key(overlay: Path) -> str | None:
    """Return the digest of an overlay and the bases beside it; None if more than these may count."""
    root = overlay.parent.parent.parent
    if overlay.parent.parent.name != "overlays" or overlay != overlay.resolve():
        return None
    digest = hashlib.sha256()
    for folder in (overlay, root / "base"):
        for path in _files(folder):
            if not stat.S_ISREG(path.lstat().st_mode) or path.lstat().st_size > MOST_BYTES:
                return None
            content = path.read_bytes()
            is_elsewhere = b".." in content.replace(BASES, b"") or b"://" in content
            if folder == overlay and path.name.startswith("kustomization") and is_elsewhere:
                return None
            digest.update(f"{path.relative_to(root)}\0{len(content)}\0".encode("utf-8", "surrogateescape"))
            digest.update(content)
    return digest.hexdigest()


def _files(folder: Path) -> Iterator[Path]:
    """Yield what is below a folder, but folders themselves only if they are links."""
    for parent, folders, names in os.walk(folder):
        folders.sort()
        yield from (Path(parent, name) for name in folders if Path(parent, name).is_symlink())
        yield from (Path(parent, name) for name in sorted(names))
