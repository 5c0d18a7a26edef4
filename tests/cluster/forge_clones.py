"""Work trees of people who push to the git server of the tests, with real git clients."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.children import Children
from tests.cluster.forge import Forge
from tests.cluster.processes import free_ports

REPOSITORY = "team/sweeps"
DEV = "dev"
READER = "reader"
COLLECTOR = "sweep-collector"
PASSWORD = "p@ss/word:1"  # noqa: S105 - of servers that live for a test
IDENTITY = ("-c", "user.name=Test", "-c", "user.email=test@example.org")
SECONDS = 180.0


@dataclass(frozen=True)
class Clone:
    """A work tree of somebody's, who says his name in the URL."""

    forge: Forge
    root: Path
    repository: str = REPOSITORY

    @classmethod
    def of(cls, forge: Forge, root: Path, user: str, repository: str = REPOSITORY) -> "Clone":
        git(root.parent, "clone", "-q", forge.url(repository, user=user), str(root))
        return cls(forge, root, repository)

    def git(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        return git(self.root, *arguments, check=check)

    def commit(self, path: str, text: str) -> str:
        """Write a file, and commit it with whatever else has changed."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        self.git("add", "--all")
        self.git("commit", "-q", "-m", f"Write {path}")
        return self.git("rev-parse", "HEAD").stdout.strip()

    def push(self, *refs: str, remote: str = "origin") -> str:
        """Push; give what git says, empty where it went well."""
        done = self.git("push", "--porcelain", remote, *(refs or ("main",)), check=False)
        return done.stdout + done.stderr if done.returncode else ""

    def speak_as(self, user: str) -> None:
        """Say another's name from now on."""
        self.git("remote", "set-url", "origin", self.forge.url(self.repository, user=user))


def git(folder: Path, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run git where nobody can be asked for a password."""
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C", "NO_PROXY": "*"}
    command = ["git", *IDENTITY, *arguments]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=SECONDS
    )
    assert not check or not done.returncode, f"{arguments}\n{done.stdout}{done.stderr}"
    return done


@contextmanager
def serving(folder: Path) -> Iterator[Forge]:
    """Serve a repository to somebody who writes, to somebody who reads, and to the collector."""
    children = Children(folder / "logs")
    try:
        forge = Forge.serve(children, folder / "forge", port=free_ports(1)[0])
        forge.create(REPOSITORY)
        forge.user(DEV, PASSWORD, may_write=True)
        forge.user(READER, PASSWORD, may_write=False)
        forge.user(COLLECTOR, PASSWORD, may_write=True)
        yield forge
    finally:
        children.end_all()


def head(forge: Forge, branch: str = "main") -> str:
    return forge.git(REPOSITORY, "rev-parse", f"refs/heads/{branch}")
