"""What may be in git: plain files with plain names, and no file that a controller would interpret."""

import re
from collections.abc import Iterator, Mapping

from sweepledger.commands.checks.context import CheckContext
from sweepledger.problems import Problem
from sweepledger.repo.files import PYTHON_CACHE
from sweepledger.repo.git import Entry

GENERATED_FOLDERS = ("overlays/", "base/", "sweeps/", "results/", "clusters/")
PLAIN = "100644"
FILES = frozenset({PLAIN, "100755"})
KINDS = {"120000": "a symbolic link", "160000": "a submodule", "100755": "an executable file"}

LARGEST_CHANGE = 96 * 2**20
"""Maximum total size in bytes of the changed files that are read; the largest batch is smaller."""
READ = (".gitattributes", "sweepledger.yaml", "overlays/", "base/", "sweeps/", "clusters/")

SIDE_FILE = re.compile(
    r"(?:.*/)?(?:\.sourceignore|\.argocd-source[^/]*|\.gitmodules|\.krmignore)|.+/\.gitattributes",
    re.IGNORECASE,
)
"""Flux ignores the files in `.sourceignore`, Argo CD reads parameters from `.argocd-source*` and fetches
submodules, and git changes file content according to `.gitattributes`.
"""

ATTRIBUTES = ".gitattributes"
REWRITES = frozenset({b"filter", b"ident", b"export-subst", b"export-ignore", b"working-tree-encoding"})
"""Attributes that make a checkout or an archive differ from the reviewed content."""
MACRO = b"[attr]"


def check_layout(context: CheckContext) -> Iterator[Problem]:
    """Check every entry of the next commit that differs from the base commit."""
    changed = {
        path: entry for path, entry in context.index.items() if context.base_entries.get(path) != entry
    }
    yield from _size_problems(context, changed)
    for path, entry in changed.items():
        if path == "sweepledger.yaml" or path.startswith(GENERATED_FOLDERS):
            yield from _entry_problems(path, entry)
        if SIDE_FILE.fullmatch(path):
            message = "must not exist: git or a controller would interpret it"
            yield Problem(path, 0, 0, "", message, "side-file", "remove it, and commit the removal")
        if path.lower() == ATTRIBUTES:
            if entry.mode != PLAIN:
                yield from _entry_problems(path, entry)
            if entry.mode in FILES and _rewrites(context.workspace.repository.blobs([entry.id])[entry.id]):
                message = "must not change the content of files: filter, ident, export-… and the like"
                yield Problem(path, 0, 0, "", message, "side-file", "remove these attributes")


def _size_problems(context: CheckContext, changed: Mapping[str, Entry]) -> Iterator[Problem]:
    """Check the total size of the changed files, as git reports it."""
    read = {path: entry.id for path, entry in changed.items() if path.lower().startswith(READ)}
    sizes = context.workspace.repository.sizes(read.values())
    total = sum(sizes.get(identity, 0) for identity in read.values())
    if total > LARGEST_CHANGE:
        largest = max(read, key=lambda path: (sizes.get(read[path], 0), path))
        message = f"is the largest in {total >> 20} MiB of changes; at most {LARGEST_CHANGE >> 20} are read"
        yield Problem(
            largest, 0, 0, "", message, "change-too-large", "split the change, or keep data elsewhere"
        )


def _rewrites(content: bytes) -> bool:
    """Return whether attributes change file content; `#` starts a comment only at the start of a line, as in git."""
    for line in content.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        words = line.split()
        if not words or words[0].startswith(b"#"):
            continue
        if MACRO in words[0] or any(word.partition(b"=")[0] in REWRITES for word in words[1:]):
            return True
    return False


def _entry_problems(path: str, entry: Entry) -> Iterator[Problem]:
    if entry.mode != PLAIN:
        message = f"must be a plain file of mode {PLAIN}, got {KINDS.get(entry.mode, entry.mode)}"
        yield Problem(path, 0, 0, "", message, "file-mode", f"`git rm --cached` it, or `chmod 644` ({PLAIN})")
    if PYTHON_CACHE in path.split("/"):
        message = "must not exist: it is a cache of Python"
        yield Problem(
            path, 0, 0, "", message, "side-file", "`git rm` it, and name __pycache__/ in .gitignore"
        )
    if not path.isprintable() or any(part.startswith("-") for part in path.split("/")):
        message = f"must have a printable name without a leading dash, got {path!r}"
        yield Problem(path, 0, 0, "", message, "file-name", "rename it")
