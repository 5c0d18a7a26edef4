"""`sweep check --hook`: which commits a push would give to the branch, as work trees, on the git server.

A bare repository has no files, and a server keeps pushed objects apart until its hook has accepted them. So a commit
is checked out into a temporary work tree that reads the objects of both places.
"""

import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sweepledger.commands.repository import at_commit
from sweepledger.commands.repository.workspace import Workspace
from sweepledger.errors import UsageError
from sweepledger.render.platform import COLLECTOR_ACCOUNT
from sweepledger.repo.git import Repository
from sweepledger.storage import storage_errors

LINE = re.compile(
    r"(?P<old>[0-9a-f]{40,64}) (?P<new>[0-9a-f]{40,64}) (?P<name>refs/[^\x00-\x20\x7f]+)", re.ASCII
)
BRANCHES = "refs/heads/"
PUSHERS = ("GL_USERNAME", "GITEA_PUSHER_NAME", "GITHUB_USER_LOGIN", "REMOTE_USER")
"""Variables in which GitLab, Gitea and Forgejo, GitHub Enterprise, and git's http-backend name the user who pushes."""


@dataclass(frozen=True)
class PushedRef:
    """A ref that a push would change."""

    name: str
    old: str | None
    """None: the ref would be created."""
    new: str | None
    """None: the ref would be deleted."""


def read_refs(text: str) -> tuple[PushedRef, ...]:
    """Return the refs that git gives to a pre-receive hook. Raises UsageError for any other text."""
    refs = []
    for line in text.splitlines():
        found = LINE.fullmatch(line)
        if found is None:
            raise UsageError(
                f"standard input must have lines of old commit, new commit and ref, got {line[:80]!r}",
                hint="--hook is for a pre-receive hook: git gives it the refs",
            )
        old, new = (None if not commit.strip("0") else commit for commit in (found["old"], found["new"]))
        refs.append(PushedRef(found["name"], old, new))
    return tuple(refs)


def is_collector(environment: Mapping[str, str]) -> bool:
    """Return whether the collector pushes, by the first name that a server gives."""
    return next((environment[name] for name in PUSHERS if environment.get(name)), "") == COLLECTOR_ACCOUNT


@contextmanager
def checked_out(server: Path, environment: Mapping[str, str], ref: PushedRef) -> Iterator[Workspace | None]:
    """Check out what a push would give to the branch of the settings; None for any other ref, and for a deletion.

    `environment` is that of the hook, whose variables name the pushed objects. Raises RepositoryError, SpecError.
    """
    if ref.new is None or not ref.name.startswith(BRANCHES):
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="sweep-check-") as scratch:
        folder = Path(scratch) / "change"
        folder.mkdir()
        repository = Repository(folder)
        repository.run("init", "--quiet", "--template=")
        with storage_errors(folder):
            (folder / ".git/objects/info").mkdir(exist_ok=True)
            listed = "".join(f"{path}\n" for path in _object_folders(server, environment))
            (folder / ".git/objects/info/alternates").write_text(
                listed, encoding="utf-8", errors="surrogateescape"
            )
        merged = at_commit.settings_or_defaults(repository, ref.old or ref.new)
        if ref.name != f"{BRANCHES}{merged.git.branch}":
            yield None
            return
        repository.run("update-ref", "--no-deref", "HEAD", ref.new)
        repository.run("reset", "--quiet", "--hard", ref.new)
        yield Workspace.find(folder)


def _object_folders(server: Path, environment: Mapping[str, str]) -> Iterator[Path]:
    others = environment.get("GIT_ALTERNATE_OBJECT_DIRECTORIES", "").split(os.pathsep)
    for name in (environment.get("GIT_OBJECT_DIRECTORY", ""), *others):
        if name:
            yield (server / name.strip('"')).resolve()
    yield (server / "objects").resolve()
