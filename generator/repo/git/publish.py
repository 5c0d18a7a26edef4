"""One commit on top of a branch, made from values, pushed or given up: never merged, rebased or forced.

It works on objects and a private index, so no work tree is touched and a dirty one does no harm.
"""

import os
import random
import re
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from generator.errors import ContentionError, RepositoryError
from generator.repo.files import storage
from generator.repo.git.door import Repository

FALLBACK_IDENTITY = ("sweepledger", "sweepledger@localhost")
LOST_RACE = re.compile(
    r"^!\t[^\t]*\t\[(?:rejected\]|remote rejected\] \((?:cannot lock|failed to update|incorrect old))",
    re.MULTILINE,
)
"""In git's own line about the ref, never in what a server prints: it can print anything."""
LEFT_LOCK = re.compile(r"refs/\S+\.lock': File exists")
PUSH_BUDGET_SECONDS = 600.0
LONGEST_PAUSE_SECONDS = 5.0
ABSENT = "0" * 40
TRUE = frozenset({"true", "yes", "on", "1"})
"""As git's configuration says it."""


@dataclass(frozen=True, slots=True)
class Change:
    """What a commit changes: files written with new content, files moved unchanged, files removed."""

    message: str
    writes: Mapping[str, bytes] = field(default_factory=dict)
    moves: Mapping[str, str] = field(default_factory=dict)
    """From path to path, with mode and content as they are."""
    removes: frozenset[str] = frozenset()
    """What is not there need not be removed."""


SIGNING = ("commit.gpgsign", "gpg.format", "user.signingkey")


def commit(repository: Repository, base: str, change: Change) -> str | None:
    """Make the commit object on top of `base`; None if it would change nothing.

    It is signed where git is told to sign, by SSH, with a key in a file that is there.
    Raises RepositoryError.
    """
    entries = repository.files(base, *change.moves) if change.moves else {}
    scratch_place = Path(tempfile.gettempdir())
    with storage(scratch_place), tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        environment = {"GIT_INDEX_FILE": str(Path(scratch) / "index"), **_identity(repository)}
        repository.run("read-tree", base, env=environment)
        lines = []
        for source, target in sorted(change.moves.items()):
            lines.append(f"0 {ABSENT}\t{source}")
            lines.append(f"{entries[source].mode} {entries[source].id}\t{target}")
        lines += [f"0 {ABSENT}\t{path}" for path in sorted(change.removes)]
        for path, content in sorted(change.writes.items()):
            blob = repository.run("hash-object", "-w", "--stdin", content=content).strip()
            lines.append(f"100644 {blob}\t{path}")
        repository.run(
            "update-index",
            "-z",
            "--add",
            "--index-info",
            env=environment,
            content="".join(f"{line}\0" for line in lines).encode(),
        )
        tree = repository.run("write-tree", env=environment).strip()
        if tree == repository.run("rev-parse", f"{base}^{{tree}}").strip():
            return None
        key = _signing_key(repository)
        signed = [f"-S{key}"] if key else []
        return repository.run(
            "commit-tree", *signed, tree, "-p", base, env=environment, content=change.message.encode()
        ).strip()


def publish(
    repository: Repository,
    remote: str,
    branch: str,
    make: Callable[[str], Change | None],
    *,
    budget: float = PUSH_BUDGET_SECONDS,
) -> str | None:
    """Fetch, make the change for what stands there now, push; again from the start when another was faster.

    Gives the new commit, or None when there was nothing to change. Raises ContentionError when the budget
    ends, RepositoryError when the server refuses.
    """
    deadline = time.monotonic() + budget
    attempt = 0
    while True:
        base = fetch(repository, remote, branch)
        change = make(base)
        made = commit(repository, base, change) if change else None
        if made is None:
            return None
        try:
            repository.run("push", "--porcelain", remote, f"{made}:refs/heads/{branch}")
        except RepositoryError as error:
            if LOST_RACE.search(error.output) is None:
                if _has_arrived(repository, remote, branch, made):
                    return made
                raise
            if time.monotonic() >= deadline:
                raise ContentionError(
                    f"others kept winning {branch} for {budget:.0f} s; nothing was lost", hint="run it again"
                ) from error
            attempt += 1
            pause = min(LONGEST_PAUSE_SECONDS, 0.05 * 2**attempt)
            time.sleep(random.uniform(0, pause))  # noqa: S311 - spreads writers, protects nothing
        else:
            return made


def _has_arrived(repository: Repository, remote: str, branch: str, made: str) -> bool:
    """Tell whether a push was taken after all: a connection can end after the deed and before the word."""
    try:
        return repository.holds(fetch(repository, remote, branch), made)
    except RepositoryError:
        return False


def followed(branch: str) -> str:
    """Name the ref under which a branch of a remote is kept as it was looked at last."""
    return f"refs/sweepledger/{branch}"


def fetch(repository: Repository, remote: str, branch: str) -> str:
    """Bring a branch of a remote here and give its commit. Raises RepositoryError."""
    target = followed(branch)
    try:
        _fetch(repository, remote, branch, target)
    except RepositoryError as error:
        if LEFT_LOCK.search(str(error)):
            return _fetch_aside(repository, remote, branch)
        missing = "couldn't find remote ref" in str(error)
        way_out = (
            f"push it first: `git push -u {remote} {branch}`"
            if missing
            else "is the remote up, and readable?"
        )
        raise RepositoryError(str(error), hint=way_out) from error
    found = repository.commit(target)
    if found is None:
        raise RepositoryError(f"branch {branch} of {remote} has no commit")
    return found


def _fetch(repository: Repository, remote: str, branch: str, target: str, *options: str) -> None:
    refspec = f"+refs/heads/{branch}:{target}"
    repository.run("fetch", "--quiet", "--no-tags", *options, "--end-of-options", remote, refspec)


def _fetch_aside(repository: Repository, remote: str, branch: str) -> str:
    """Fetch past the lock that a killed git left of a ref: what is to be done needs no such ref."""
    target = f"refs/sweepledger/aside/{uuid.uuid4().hex}"
    _fetch(repository, remote, branch, target, "--refmap=", "--no-write-fetch-head")
    found = repository.run("rev-parse", "--verify", f"{target}^{{commit}}").strip()
    repository.run("update-ref", "-d", target)
    return found


def create(folder: Path, branch: str, message: str) -> str:
    """Make a repository of a folder, and a first commit of all that lies in it; give the commit."""
    repository = Repository(folder)
    repository.run("init", "--quiet", f"--initial-branch={branch}", "--template=")
    repository.run("add", "--all")
    tree = repository.run("write-tree").strip()
    made = repository.run("commit-tree", tree, env=_identity(repository), content=message.encode()).strip()
    repository.run("update-ref", f"refs/heads/{branch}", made)
    return made


def _identity(repository: Repository) -> dict[str, str]:
    """Commit as the person or robot that git knows, else under the tool's own name."""
    name, address = FALLBACK_IDENTITY
    wanted = {}
    for key, fallback in (("name", name), ("email", address)):
        known = os.environ.get(f"GIT_AUTHOR_{key.upper()}") or _config(repository, f"user.{key}") or fallback
        wanted[f"GIT_AUTHOR_{key.upper()}"] = known
        wanted[f"GIT_COMMITTER_{key.upper()}"] = os.environ.get(f"GIT_COMMITTER_{key.upper()}") or known
    return wanted


def _signing_key(repository: Repository) -> Path | None:
    """Give the file of the key to sign with; None where git is told of none, or of one that is not there.

    A collector's Secret may hold none yet: its results are worth more than their signature.
    """
    try:
        listed = repository.run("config", "-z", "--get-regexp", f"^({'|'.join(map(re.escape, SIGNING))})$")
    except RepositoryError:
        return None
    told = dict(line.partition("\n")[::2] for line in listed.split("\0") if line)
    signs, form, named = (told.get(name, "") for name in SIGNING)
    if signs.lower() not in TRUE or form != "ssh" or not named:
        return None
    key = repository.folder / Path(named).expanduser()
    return key if key.is_file() else None


def _config(repository: Repository, key: str) -> str:
    try:
        return repository.run("config", "--get", key).strip()
    except RepositoryError:
        return ""
