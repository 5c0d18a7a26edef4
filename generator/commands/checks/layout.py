"""What may lie in git at all: plain files under plain names, and none that a controller would obey."""

import re
from collections.abc import Iterator

from generator.commands.checks.scene import Scene
from generator.problems import Problem
from generator.repo.git import Entry

OURS = ("overlays/", "base/", "sweeps/", "results/", "clusters/")
PLAIN = "100644"
KINDS = {"120000": "a symbolic link", "160000": "a submodule", "100755": "an executable file"}

SIDE_FILE = re.compile(
    r"(?:.*/)?(?:\.sourceignore|\.argocd-source[^/]*|\.gitmodules|\.krmignore)|.+/\.gitattributes"
)
"""Flux leaves out what `.sourceignore` says, Argo CD takes `.argocd-source*` for parameters of an
application and fetches submodules, and git gives other bytes where `.gitattributes` says so."""

REWRITES = re.compile(
    rb"(?m)^[^#\n]*\s(?:filter=|ident\b|export-subst|export-ignore|working-tree-encoding=|\[attr\])|^\[attr\]"
)
"""Attributes that make a checkout or an archive differ from what was reviewed."""


def check(scene: Scene) -> Iterator[Problem]:
    """Look at every entry that the next commit has and the commit that stands has not."""
    for path, entry in scene.index.items():
        if scene.entries.get(path) == entry:
            continue
        if path == "sweepledger.yaml" or path.startswith(OURS):
            yield from _entry(path, entry)
        if SIDE_FILE.fullmatch(path):
            message = "must not be there: git or a controller would obey it"
            yield Problem(path, 0, 0, "", message, "side-file", "remove it, and commit the removal")
        if path == ".gitattributes" and entry.mode == PLAIN:
            content = scene.workspace.repository.blobs([entry.id])[entry.id]
            if REWRITES.search(content):
                message = "must not change the content of files: filter, ident, export-… and the like"
                yield Problem(path, 0, 0, "", message, "side-file", "remove these attributes")


def _entry(path: str, entry: Entry) -> Iterator[Problem]:
    if entry.mode != PLAIN:
        message = f"must be a plain file of mode {PLAIN}, got {KINDS.get(entry.mode, entry.mode)}"
        yield Problem(path, 0, 0, "", message, "file-mode", f"`git rm --cached` it, or `chmod 644` ({PLAIN})")
    if not path.isprintable() or any(part.startswith("-") for part in path.split("/")):
        message = f"must have a name that no command can mistake, got {path!r}"
        yield Problem(path, 0, 0, "", message, "file-name", "rename it")
