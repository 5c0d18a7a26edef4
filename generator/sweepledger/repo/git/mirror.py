"""A private bare clone that follows one branch of a remote, and worktrees of the code that batches locked."""

import shutil
from pathlib import Path

from generator.errors import RepositoryError
from generator.repo.files import storage
from generator.repo.git.door import Repository
from generator.repo.git.publish import fetch

REMOTE = "origin"
TREE = "040000 tree"

NOBODY = {
    f"GIT_{role}_{key}": value
    for role in ("AUTHOR", "COMMITTER")
    for key, value in (
        ("NAME", "sweepledger"),
        ("EMAIL", "sweepledger@localhost"),
        ("DATE", "2000-01-01T00:00:00Z"),
    )
}
"""Commits that only carry a tree into a worktree: the same for everyone, and never pushed."""


class Mirror:
    """What a machine that runs trials knows of git: never a person's clone, never their work tree."""

    FOLDER = "mirror.git"
    """Below the state folder."""

    def __init__(self, state: Path, url: str, branch: str) -> None:
        self.branch = branch
        self._code = state / "code"
        folder = state / self.FOLDER
        with storage(folder):
            folder.mkdir(parents=True, exist_ok=True)
            # Nobody's `git add` may take the engine's state for part of the repository.
            (state / ".gitignore").write_text("*\n", encoding="utf-8")
        self.repository = Repository(folder)
        self.repository.run("init", "--quiet", "--bare")
        if self.repository.remote_url(REMOTE) is None:
            self.repository.run("remote", "add", "--end-of-options", REMOTE, url)
        self.repository.run("remote", "set-url", "--end-of-options", REMOTE, url)

    def borrow(self, repository: Repository) -> None:
        """Let this mirror see all objects of another repository on this machine, without copying any."""
        objects = repository.folder / repository.run("rev-parse", "--git-path", "objects").removesuffix("\n")
        place = self.repository.folder / "objects" / "info" / "alternates"
        with storage(place):
            place.write_text(f"{objects.resolve()}\n", encoding="utf-8")

    def fetch(self) -> str:
        """Bring the branch here and give its commit. Raises RepositoryError."""
        return fetch(self.repository, REMOTE, self.branch)

    def code(self, tree: str, path: str) -> Path:
        """Check a locked tree out at `path` of a folder of its own, and give that folder.

        Raises RepositoryError if the branch's history does not hold the tree.
        """
        try:
            self.repository.run("cat-file", "-e", tree)
        except RepositoryError as error:
            raise RepositoryError(
                f"the locked code {path}/ at {tree[:12]} is in no commit of {self.branch}",
                hint="merge the commit that holds it, or run `sweep update`",
            ) from error
        rooted = self._rooted(tree, path)
        folder = self._code / rooted
        done = folder.with_suffix(".done")
        if done.exists():
            return folder
        self._remove(folder)
        commit = self.repository.run("commit-tree", rooted, "-m", path, env=NOBODY).strip()
        self.repository.run("worktree", "add", "--quiet", "--force", "--detach", str(folder), commit)
        with storage(done):
            done.touch()
        return folder

    def _rooted(self, tree: str, path: str) -> str:
        """Put a tree where its path says, below an otherwise empty root."""
        for part in reversed([part for part in path.split("/") if part not in {"", "."}]):
            tree = self.repository.run("mktree", content=f"{TREE} {tree}\t{part}\n".encode()).strip()
        return tree

    def _remove(self, folder: Path) -> None:
        """Clear away a worktree that was never finished."""
        with storage(folder):
            shutil.rmtree(folder, ignore_errors=True)
        self.repository.run("worktree", "prune")
