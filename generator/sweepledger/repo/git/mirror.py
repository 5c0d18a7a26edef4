"""A private bare clone that follows one branch of a remote, with worktrees of locked code trees."""

import shutil
from pathlib import Path

from sweepledger.errors import RepositoryError
from sweepledger.repo.git.code_tree import store_code
from sweepledger.repo.git.remote import fetch, tracking_ref
from sweepledger.repo.git.repository import Repository
from sweepledger.storage import storage_errors
from sweepledger.structs.names import IDENTITY_EMAIL, IDENTITY_NAME
from sweepledger.structs.program import Code

REMOTE = "origin"
TREE_ENTRY = "040000 tree"

FIXED_IDENTITY = {
    f"GIT_{role}_{key}": value
    for role in ("AUTHOR", "COMMITTER")
    for key, value in (
        ("NAME", IDENTITY_NAME),
        ("EMAIL", IDENTITY_EMAIL),
        ("DATE", "2000-01-01T00:00:00Z"),
    )
}
"""For commits that only bring a tree into a worktree: equal on all machines, and never pushed."""


class Mirror:
    """The repository as a machine sees it that runs trials, separate from the user's clone and work tree."""

    FOLDER = "mirror.git"
    """Relative to the state folder."""

    def __init__(self, state: Path, url: str, branch: str) -> None:
        self.branch = branch
        self._code = state / "code"
        folder = state / self.FOLDER
        with storage_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        self.repository = Repository(folder)
        self.repository.run("init", "--quiet", "--bare")
        known = self.repository.remote_url(REMOTE)
        if known != url:
            verb = "add" if known is None else "set-url"
            self.repository.run("remote", verb, "--end-of-options", REMOTE, url)

    def borrow(self, repository: Repository) -> None:
        """Make all objects of another repository on this machine available without copying them."""
        objects = repository.git_path("objects")
        alternates = self.repository.folder / "objects" / "info" / "alternates"
        with storage_errors(alternates):
            alternates.write_text(f"{objects.resolve()}\n", encoding="utf-8")

    def fetch(self) -> str:
        """Fetch the branch and return its commit. Raises RepositoryError."""
        return fetch(self.repository, REMOTE, self.branch)

    def code(self, code: Code) -> Path:
        """Check out a code tree at its path in a separate folder, and return that folder.

        Raises RepositoryError if the history of the branch does not contain the code.
        """
        if not store_code(self.repository, code, [tracking_ref(REMOTE, self.branch)]):
            raise RepositoryError(
                f"the locked code {code} at {code.tree[:12]} is not in a commit of {self.branch}",
                hint="merge the commit that contains it, or run `sweep update`",
            )
        rooted = self._rooted(code.tree, code.path)
        folder = self._code / rooted
        done = folder.with_suffix(".done")
        if done.exists():
            return folder
        self._remove(folder)
        commit = self.repository.run("commit-tree", rooted, "-m", code.path, env=FIXED_IDENTITY).strip()
        self.repository.run("worktree", "add", "--quiet", "--force", "--detach", str(folder), commit)
        with storage_errors(done):
            done.touch()
        return folder

    def _rooted(self, tree: str, path: str) -> str:
        """Return the id of a root tree that contains only this tree, at its path."""
        for part in reversed([part for part in path.split("/") if part not in {"", "."}]):
            tree = self.repository.run("mktree", content=f"{TREE_ENTRY} {tree}\t{part}\n".encode()).strip()
        return tree

    def _remove(self, folder: Path) -> None:
        """Remove a worktree that was not completed."""
        with storage_errors(folder):
            shutil.rmtree(folder, ignore_errors=True)
        self.repository.run("worktree", "prune")
