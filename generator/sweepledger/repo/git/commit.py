"""Commits created from values on top of another commit, signed if git is configured to sign.

They are built with a private index, so that neither the work tree nor its changes matter.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sweepledger.errors import RepositoryError
from sweepledger.repo.git.repository import FILE_MODE, TRUSTED_CLONE, Entry, Repository
from sweepledger.storage import scratch_folder
from sweepledger.structs.names import IDENTITY_EMAIL, IDENTITY_NAME

NO_OBJECT = "0" * 40
LITERAL_KEYS = ("key::", "ssh-")
"""Begin a public key in git's configuration, whose private key an agent has."""
TRUE_VALUES = frozenset({"true", "yes", "on", "1"})
"""How git's configuration spells true."""


@dataclass(frozen=True, slots=True)
class Change:
    """The changes of a commit: files written with new content, files moved unchanged, files removed."""

    message: str
    writes: Mapping[str, bytes] = field(default_factory=dict)
    moves: Mapping[str, str] = field(default_factory=dict)
    """Old path → new path; mode and content are kept."""
    removes: frozenset[str] = frozenset()
    """May contain paths that do not exist."""
    entries: Mapping[str, Entry] = field(default_factory=dict)
    """Files whose blobs git has already: a user's own, which keep their modes and pass git's filters."""


SIGNING_SETTINGS = ("commit.gpgsign", "gpg.format", "user.signingkey")
SETTINGS = ("user.name", "user.email", *SIGNING_SETTINGS)


def create_commit(repository: Repository, base: str, change: Change) -> str | None:
    """Create a commit object on top of `base` and return its id; None if it would change nothing.

    It is signed if git is configured to sign, with an SSH key. Raises RepositoryError.
    """
    entries = repository.files(base, *change.moves) if change.moves else {}
    with scratch_folder() as scratch:
        settings = _settings(repository)
        environment = {"GIT_INDEX_FILE": str(scratch / "index"), **_identity(settings)}
        repository.run("read-tree", base, env=environment)
        lines = []
        for source, target in sorted(change.moves.items()):
            lines.append(f"0 {NO_OBJECT}\t{source}")
            lines.append(f"{entries[source].mode} {entries[source].id}\t{target}")
        lines += [f"0 {NO_OBJECT}\t{path}" for path in sorted(change.removes)]
        lines += [f"{entry.mode} {entry.id}\t{path}" for path, entry in sorted(change.entries.items())]
        blobs = repository.write_objects(change.writes.values())
        lines += [f"{FILE_MODE} {blob}\t{path}" for path, blob in zip(change.writes, blobs, strict=True)]
        content = "".join(f"{line}\0" for line in lines).encode()
        repository.run("update-index", "-z", "--add", "--index-info", env=environment, content=content)
        # A partial clone lacks blobs that the base commit has: git would fetch each to see that it exists.
        missing = ("--missing-ok",) if repository.promisor else ()
        tree = repository.run("write-tree", *missing, env=environment).strip()
        if tree == repository.root_tree(base):
            return None
        key = _signing_key(repository, settings)
        signed = [f"-S{key}"] if key else []
        return repository.run(
            "commit-tree", *signed, tree, "-p", base, env=environment, content=change.message.encode()
        ).strip()


def create_repository(folder: Path, branch: str, message: str) -> str:
    """Make a folder a repository with one commit of all its files; return the commit."""
    repository = Repository(folder)
    repository.run("init", "--quiet", f"--initial-branch={branch}", "--template=")
    # No attributes of this machine decide what the files are in git.
    repository.run("-c", "core.autocrlf=false", "-c", "core.attributesFile=/dev/null", "add", "--all")
    tree = repository.run("write-tree").strip()
    commit = repository.run(
        "commit-tree", tree, env=_identity(_settings(repository)), content=message.encode()
    ).strip()
    repository.run("update-ref", f"refs/heads/{branch}", commit)
    return commit


def committer(repository: Repository) -> str | None:
    """Return the name and address for git's commits; None if git has none.

    Raises RepositoryError if git is configured to sign commits, and this program cannot.
    """
    settings = _settings(repository)
    name = os.environ.get("GIT_COMMITTER_NAME") or settings.get("user.name")
    email = os.environ.get("GIT_COMMITTER_EMAIL") or os.environ.get("EMAIL") or settings.get("user.email")
    _signing_key(repository, settings)
    return f"{name} <{email}>" if name and email else None


def _settings(repository: Repository) -> Mapping[str, str]:
    return dict(repository.settings(f"^({'|'.join(map(re.escape, SETTINGS))})$"))


def _identity(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the environment that names author and committer: those of git's settings, else sweepledger."""
    environment = {}
    for key, fallback in (("name", IDENTITY_NAME), ("email", IDENTITY_EMAIL)):
        author, committer = (f"GIT_{role}_{key.upper()}" for role in ("AUTHOR", "COMMITTER"))
        value = os.environ.get(author) or settings.get(f"user.{key}") or fallback
        environment[author] = value
        environment[committer] = os.environ.get(committer) or value
    return environment


def _signing_key(repository: Repository, settings: Mapping[str, str]) -> str | None:
    """Return the signing key, or its file; None if git is not configured to sign.

    Raises RepositoryError if it cannot be used, except in the collector's clone: its Secret may be empty at first, and
    unsigned results are better than none.
    """
    signs, signature_format, name = (settings.get(name, "") for name in SIGNING_SETTINGS)
    if signs.lower() not in TRUE_VALUES:
        return None
    if signature_format == "ssh" and name.startswith(LITERAL_KEYS):
        return name
    key = repository.folder / Path(name).expanduser()
    if signature_format == "ssh" and name and key.is_file():
        return str(key)
    if os.environ.get(TRUSTED_CLONE) == str(repository.folder):
        return None
    lacking = (
        f"there is no file {name!r} (user.signingKey)"
        if signature_format == "ssh"
        else f"sweepledger signs with SSH keys only, not with {signature_format or 'openpgp'} (gpg.format)"
    )
    raise RepositoryError(
        f"git is configured to sign commits (commit.gpgSign), but {lacking}",
        hint="`git config gpg.format ssh` and `git config user.signingKey ~/.ssh/id_ed25519`; or, if nobody requires "
        "signed commits, `git config commit.gpgSign false`",
    )
