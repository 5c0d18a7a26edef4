"""A git repository, read through plumbing commands. No hook runs, no revision becomes an option."""

import os
import re
import tempfile
import time
from collections.abc import Iterable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

# Else the import itself fails on a machine without git, before anybody can say so.
os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")

import git
from git.exc import (
    GitCommandError,
    GitCommandNotFound,
    InvalidGitRepositoryError,
    NoSuchPathError,
)

from generator.errors import RepositoryError, ToolError
from generator.repo.files import storage
from generator.repo.git.redact import redact

SILENCE_SECONDS = 300
SAFE = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "gc.auto=0",
    "advice.pushUpdateRejected=false",
    "protocol.ext.allow=never",
    "gpg.ssh.program=ssh-keygen",
    # A server that says nothing for so long says nothing any more.
    *("http.lowSpeedLimit=1", f"http.lowSpeedTime={SILENCE_SECONDS}"),
)
"""Nothing that a repository carries may run: it can come from anyone."""

ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
    "GIT_ADVICE": "0",
    # What others see of a commit is what counts, not what a clone was told to show in its place.
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": "/dev/null/none",
}

REDIRECTIONS = frozenset(
    {
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_COMMON_DIR",
        "GIT_CONFIG",
        "GIT_CONFIG_COUNT",
        "GIT_CONFIG_PARAMETERS",
        "GIT_DIR",
        "GIT_GRAFT_FILE",
        "GIT_IMPLICIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_INTERNAL_SUPER_PREFIX",
        "GIT_NAMESPACE",
        "GIT_NO_REPLACE_OBJECTS",
        "GIT_OBJECT_DIRECTORY",
        "GIT_PREFIX",
        "GIT_REPLACE_REF_BASE",
        "GIT_SHALLOW_FILE",
        "GIT_WORK_TREE",
    }
)
"""What `git rev-parse --local-env-vars` lists. Git sets them in hooks: they would turn every command on
a repository of ours into one on the repository that the hook runs in."""


def forget_redirections() -> None:
    """Take those variables out of this process: GitPython hands its environment on as it is."""
    for name in REDIRECTIONS & os.environ.keys():
        del os.environ[name]


LOCK = re.compile(r"nable to create '(?P<path>[^'\n]+\.lock)': File exists")
TREE_MODE = "040000"


@dataclass(frozen=True, slots=True)
class Entry:
    """A file in a commit."""

    mode: str
    id: str


class Repository:
    """A repository on this machine, with a work tree or bare."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        """The work tree's root, or the bare repository."""
        forget_redirections()
        self._git = git.Git(folder)

    @classmethod
    def find(cls, start: Path) -> "Repository":
        """Open the repository around a folder. Raises RepositoryError if there is none."""
        forget_redirections()
        try:
            found = git.Repo(start, search_parent_directories=True)
        except (InvalidGitRepositoryError, NoSuchPathError) as error:
            raise RepositoryError(
                f"{start} is not inside a git repository", hint="run `git init` or change into one"
            ) from error
        except GitCommandNotFound as error:
            raise ToolError("git not found", hint="install git 2.30 or newer") from error
        if found.working_tree_dir is None:
            raise RepositoryError(f"{start} is a bare repository: there is no work tree to write to")
        return cls(Path(found.working_tree_dir))

    def run(self, *arguments: str, **options: Any) -> str:
        """Run a git command and give its whole output as text. Raises RepositoryError in git's words."""
        return self.run_bytes(*arguments, **options).decode("utf-8", "surrogateescape")

    def run_bytes(self, *arguments: str, env: Mapping[str, str] | None = None, content: bytes = b"") -> bytes:
        """Run a git command, feeding it bytes, and give its output as bytes. Raises RepositoryError."""
        settings = [word for setting in SAFE for word in ("-c", setting)]
        try:
            with storage(Path(tempfile.gettempdir())):
                return self._execute(["git", *settings, *arguments], env, content)
        except GitCommandNotFound as error:
            raise ToolError("git not found", hint="install git 2.30 or newer") from error
        except GitCommandError as error:
            said = redact(str(error.stderr).removeprefix("\n  stderr: '").removesuffix("'").strip())
            lock, place = LOCK.search(said), "" if "/" in said else f" in {self.folder}"
            told = RepositoryError(
                f"git {arguments[0]} failed{place}: {said or f'exit code {error.status}'}",
                hint=self.lock_hint(Path(lock["path"])) if lock else None,
            )
            told.output = str(error.stdout).removeprefix("\n  stdout: '").removesuffix("'")
            raise told from error

    def _execute(self, argv: list[str], env: Mapping[str, str] | None, content: bytes) -> bytes:
        with tempfile.TemporaryFile() if content else nullcontext() as stdin:
            if stdin is not None:
                stdin.write(content)
                stdin.seek(0)
            output = self._git.execute(
                argv,
                istream=cast("Any", stdin),
                env={**os.environ, **ENVIRONMENT, **(env or {})},
                stdout_as_string=False,
                strip_newline_in_stdout=False,
            )
        assert isinstance(output, bytes)
        return output

    def lock_hint(self, lock: Path) -> str:
        """Say what a person may do about a lock of git's; it is never removed here."""
        with suppress(OSError):
            age = time.time() - (self.folder / lock).stat().st_mtime
            return f"{self.folder / lock} is {age:.0f} s old: remove it if no git runs here any more"
        return "run it again"

    # What stands where

    def commit(self, revision: str) -> str | None:
        """Resolve a revision that may come from a user; None if it names no commit."""
        try:
            return self.run(
                "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"
            ).strip()
        except RepositoryError:
            return None

    def branch(self) -> str | None:
        """Name the branch that is checked out; None when HEAD is detached."""
        try:
            return self.run("symbolic-ref", "--quiet", "--short", "HEAD").strip()
        except RepositoryError:
            return None

    def remote_url(self, name: str) -> str | None:
        """Give a remote's URL; None if there is no such remote."""
        try:
            return self.run("remote", "get-url", "--end-of-options", name).strip()
        except RepositoryError:
            return None

    def tree_id(self, commit: str, path: str) -> str | None:
        """Give the id of the folder at a path in a commit; None if there is none."""
        if path.rstrip("/") == ".":
            return self.run("rev-parse", f"{commit}^{{tree}}").strip()
        listed = self.run("ls-tree", "-z", commit, "--", path.rstrip("/"))
        for line in listed.split("\0"):
            meta, _, name = line.partition("\t")
            if name == path.rstrip("/") and meta.startswith(TREE_MODE):
                return meta.split(" ")[2]
        return None

    def files(self, commit: str | None, *below: str) -> dict[str, Entry]:
        """List the files of a commit, all or those below some paths; submodules are none."""
        if commit is None:
            return {}
        listed = self.run("ls-tree", "-r", "-z", "--full-tree", commit, "--", *below)
        entries = {}
        for line in filter(None, listed.split("\0")):
            meta, _, name = line.partition("\t")
            mode, kind, identity = meta.split(" ")
            if kind == "blob":
                entries[name] = Entry(mode, identity)
        return entries

    def index(self) -> dict[str, Entry]:
        """List what the next commit would hold, submodules and links included, each by its mode."""
        entries = {}
        for line in filter(None, self.run("ls-files", "--stage", "-z").split("\0")):
            meta, _, name = line.partition("\t")
            mode, identity, _ = meta.split(" ")
            entries[name] = Entry(mode, identity)
        return entries

    def holds(self, commit: str, ancestor: str) -> bool:
        """Tell whether a commit is in the history of another."""
        # `--is-ancestor` answers by its exit code, which is also how git fails.
        return self.run("rev-list", "--max-count=1", ancestor, f"^{commit}", "--").strip() == ""

    def merge_bases(self, one: str, other: str) -> tuple[str, ...]:
        """Give the best common ancestors of two commits; none where they have no history in common."""
        try:
            return tuple(self.run("merge-base", "--all", one, other).split())
        except RepositoryError:
            return ()

    def sizes(self, identities: Iterable[str]) -> dict[str, int]:
        """Ask how many bytes blobs have, without reading them."""
        wanted = sorted(set(identities))
        if not wanted:
            return {}
        asked = "".join(f"{one}\n" for one in wanted).encode()
        told = self.run("cat-file", "--batch-check=%(objectsize)", content=asked).splitlines()
        return {
            identity: int(size)
            for identity, size in zip(wanted, told, strict=True)
            if size.isdecimal()  # else it is missing, and reading it says so
        }

    def blobs(self, identities: Iterable[str]) -> dict[str, bytes]:
        """Read many blobs with one process."""
        wanted = sorted(set(identities))
        if not wanted:
            return {}
        stream = self.run_bytes("cat-file", "--batch", content="".join(f"{one}\n" for one in wanted).encode())
        found: dict[str, bytes] = {}
        at = 0
        for identity in wanted:
            end = stream.index(b"\n", at)
            size = int(stream[at:end].split(b" ")[2])
            found[identity] = stream[end + 1 : end + 1 + size]
            at = end + 1 + size + 1
        return found

    def read(self, commit: str | None, *below: str) -> dict[str, bytes]:
        """Read the files of a commit below some paths."""
        entries = self.files(commit, *below)
        contents = self.blobs(entry.id for entry in entries.values())
        return {path: contents[entry.id] for path, entry in entries.items()}
