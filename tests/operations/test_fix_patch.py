"""Patches are what `git apply` takes: tried with git itself."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from sweepledger.verbs.check import write_patch

NAMES = (
    "plain", "folder/two words", "tab\there", "line\nend", "return\rhere", 'quote"d', "back\\slash", "näme",
)  # fmt: skip


def put(root: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)


def files_of(root: Path) -> dict[str, bytes]:
    return {
        path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, b"1\n2\n"), (None, b"no line end"), (b"1\n2\n", None), (b"no line end", None),
        (b"1\n2\n3\n", b"1\n3"), (b"1", b"1\n"), (b"", b"1\n"), (b"1\n", b""),
        (b"-1\n+2\n @@ -1 +1 @@\n", b"--- a\n"), (None, b""), (b"", None),
    ],
)  # fmt: skip
def test_git_applies_a_patch_of_files_of_any_name(
    before: bytes | None, after: bytes | None, tmp_path: Path
) -> None:
    old, new = ({"kept": b"as it was\n"} | named(content) for content in (before, after))
    put(tmp_path, old)

    patch = write_patch(old, new)
    subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=patch, check=True)

    assert files_of(tmp_path) == new
    assert write_patch(new, new) == b""


def named(content: bytes | None) -> dict[str, bytes]:
    """Return a file of each name with this content, or none."""
    return {} if content is None else dict.fromkeys(NAMES, content)
