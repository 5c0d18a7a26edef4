"""What may lie in git at all: plain files under plain names, and none that a controller would obey."""

import re
from collections.abc import Iterator, Mapping

from generator.commands.checks.scene import Scene
from generator.problems import Problem
from generator.repo.files import CACHE
from generator.repo.git import Entry

OURS = ("overlays/", "base/", "sweeps/", "results/", "clusters/")
PLAIN = "100644"
FILES = frozenset({PLAIN, "100755"})
KINDS = {"120000": "a symbolic link", "160000": "a submodule", "100755": "an executable file"}

LARGEST_CHANGE = 96 * 2**20
"""Bytes that a change may bring where all of it is read: more than the largest batch has."""
READ = (".gitattributes", "sweepledger.yaml", "overlays/", "base/", "sweeps/", "clusters/")

SIDE_FILE = re.compile(
    r"(?:.*/)?(?:\.sourceignore|\.argocd-source[^/]*|\.gitmodules|\.krmignore)|.+/\.gitattributes",
    re.IGNORECASE,
)
"""Flux leaves out what `.sourceignore` says, Argo CD takes `.argocd-source*` for parameters of an
application and fetches submodules, and git gives other bytes where `.gitattributes` says so."""

ATTRIBUTES = ".gitattributes"
REWRITES = frozenset({b"filter", b"ident", b"export-subst", b"export-ignore", b"working-tree-encoding"})
"""Attributes that make a checkout or an archive differ from what was reviewed."""
MACRO = b"[attr]"


def check(scene: Scene) -> Iterator[Problem]:
    """Look at every entry that the next commit has and the commit that stands has not."""
    changed = {path: entry for path, entry in scene.index.items() if scene.entries.get(path) != entry}
    yield from _size(scene, changed)
    for path, entry in changed.items():
        if path == "sweepledger.yaml" or path.startswith(OURS):
            yield from _entry(path, entry)
        if SIDE_FILE.fullmatch(path):
            message = "must not be there: git or a controller would obey it"
            yield Problem(path, 0, 0, "", message, "side-file", "remove it, and commit the removal")
        if path.lower() == ATTRIBUTES:
            if entry.mode != PLAIN:
                yield from _entry(path, entry)
            if entry.mode in FILES and _rewrites(scene.workspace.repository.blobs([entry.id])[entry.id]):
                message = "must not change the content of files: filter, ident, export-… and the like"
                yield Problem(path, 0, 0, "", message, "side-file", "remove these attributes")


def _size(scene: Scene, changed: Mapping[str, Entry]) -> Iterator[Problem]:
    """Ask git, which knows it without a look into the files."""
    read = {path: entry.id for path, entry in changed.items() if path.lower().startswith(READ)}
    sizes = scene.workspace.repository.sizes(read.values())
    total = sum(sizes.get(identity, 0) for identity in read.values())
    if total > LARGEST_CHANGE:
        largest = max(read, key=lambda path: (sizes.get(read[path], 0), path))
        message = f"is the largest in {total >> 20} MiB of changes; at most {LARGEST_CHANGE >> 20} are read"
        yield Problem(
            largest, 0, 0, "", message, "change-too-large", "split the change, or keep data elsewhere"
        )


def _rewrites(content: bytes) -> bool:
    """Look for attributes as git does: `#` is a comment only where a line begins, a name may be quoted."""
    for line in content.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        words = line.split()
        if not words or words[0].startswith(b"#"):
            continue
        if MACRO in words[0] or any(word.partition(b"=")[0] in REWRITES for word in words[1:]):
            return True
    return False


def _entry(path: str, entry: Entry) -> Iterator[Problem]:
    if entry.mode != PLAIN:
        message = f"must be a plain file of mode {PLAIN}, got {KINDS.get(entry.mode, entry.mode)}"
        yield Problem(path, 0, 0, "", message, "file-mode", f"`git rm --cached` it, or `chmod 644` ({PLAIN})")
    if CACHE in path.split("/"):
        message = "must not be there: nobody reads what Python leaves behind"
        yield Problem(
            path, 0, 0, "", message, "side-file", "`git rm` it, and name __pycache__/ in .gitignore"
        )
    if not path.isprintable() or any(part.startswith("-") for part in path.split("/")):
        message = f"must have a name that no command can mistake, got {path!r}"
        yield Problem(path, 0, 0, "", message, "file-name", "rename it")
