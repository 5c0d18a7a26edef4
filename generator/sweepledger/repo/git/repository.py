"""A git repository, read through plumbing commands. No hook runs, and no revision is parsed as an option."""

import os
import re
import shlex
import tempfile
import time
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit

from sweepledger.errors import RepositoryError, ToolError
from sweepledger.process import redact
from sweepledger.storage import scratch_folder, storage_errors

SILENCE_SECONDS = 300
SAFE_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.pushUpdateRejected=false",
    "protocol.ext.allow=never",
    "gpg.ssh.program=ssh-keygen",
    # A server that sends nothing for this time is taken for dead.
    *("http.lowSpeedLimit=1", f"http.lowSpeedTime={SILENCE_SECONDS}"),
    # After years of history, git would otherwise keep 100 MiB more in memory, which saves no time here.
    *("core.packedGitLimit=64m", "core.packedGitWindowSize=2m", "core.deltaBaseCacheLimit=24m"),
)
"""Nothing in a repository may be executed, because it is untrusted, and memory is limited."""

ENVIRONMENT = {
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
    "GIT_ADVICE": "0",
    # Commits are read as others see them, not as replace refs and grafts of this clone show them.
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": "/dev/null/none",
    # Of new repositories: ids in locks and results are SHA-1, which is not the default of every git.
    "GIT_DEFAULT_HASH": "sha1",
}

LITERAL_PATHS = {"GIT_LITERAL_PATHSPECS": "1"}
"""An environment in which `:(glob)**` is the name of a file: paths come from specs and lock files."""

REDIRECTIONS = frozenset(
    {
        *("GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_CONFIG", "GIT_CONFIG_COUNT"),
        *("GIT_CONFIG_PARAMETERS", "GIT_DIR", "GIT_GRAFT_FILE", "GIT_IMPLICIT_WORK_TREE", "GIT_INDEX_FILE"),
        *("GIT_INTERNAL_SUPER_PREFIX", "GIT_NAMESPACE", "GIT_NO_REPLACE_OBJECTS", "GIT_OBJECT_DIRECTORY"),
        *("GIT_PREFIX", "GIT_REPLACE_REF_BASE", "GIT_SHALLOW_FILE", "GIT_WORK_TREE"),
    }
)
"""The output of `git rev-parse --local-env-vars`. Git sets these variables in hooks, where they would redirect
every command to the repository that the hook runs in."""


TRUSTED_CLONE = "SWEEP_TRUSTED_CLONE"
"""Variable that names a clone whose configuration may name commands: that of the collector, whose pod made it."""


TRUSTED_ADDRESS = "sweepledger.trust"
"""Key of the user's own configuration of git: addresses of repositories that may get the user's credentials."""


def forget_redirections() -> None:
    """Remove git's redirecting variables from this process, because GitPython passes on its environment."""
    for name in REDIRECTIONS & os.environ.keys():
        del os.environ[name]


def import_gitpython() -> ModuleType:
    """Import GitPython late: the import takes a tenth of the time of a command that runs no git."""
    # Without this the import fails on a machine without git, before an error can be shown.
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
    import git  # noqa: PLC0415

    return git


def _find_plain_work_tree(start: Path) -> Path | None:
    """Return the nearest folder with an ordinary `.git` folder; None if GitPython must search."""
    if not start.is_absolute() or ".." in start.parts or not start.exists():
        return None
    for folder in (start, *start.parents):
        if os.path.lexists(folder / "HEAD"):  # may be a bare repository
            return None
        git_folder = folder / ".git"
        if os.path.lexists(git_folder):
            return folder if _is_plain(git_folder) else None
    return None


def _find_work_tree(start: Path) -> Path:
    git = import_gitpython()
    try:
        repository = git.Repo(start, search_parent_directories=True)
    except (git.InvalidGitRepositoryError, git.NoSuchPathError) as error:
        raise RepositoryError(
            f"{start} is not inside a git repository", hint="run `git init`, or change into a repository"
        ) from error
    except git.GitCommandNotFound as error:
        raise ToolError("git not found", hint="install git 2.30 or newer") from error
    if repository.working_tree_dir is None:
        raise RepositoryError(f"{start} is a bare repository without a work tree")
    return Path(repository.working_tree_dir)


def _is_plain(git_folder: Path) -> bool:
    """Return whether a `.git` folder is complete and its settings cannot make it bare."""
    if git_folder.is_symlink() or os.path.lexists(git_folder / "commondir"):
        return False
    try:
        head = (git_folder / "HEAD").read_bytes()
        settings = (git_folder / "config").read_bytes().lower()
    except OSError:
        return False
    has_folders = (git_folder / "objects").is_dir() and (git_folder / "refs").is_dir()
    may_be_bare = b"include" in settings or _BARE.search(settings) is not None
    return has_folders and _HEAD.match(head) is not None and not may_be_bare


def _runs_a_command(setting: str, value: str) -> bool:
    """Return whether a setting names a command for fetching; installed credential helpers do not count."""
    if setting.endswith(".helper"):
        return value.startswith(("!", "/"))
    return setting.endswith((".uploadpack", ".sshcommand", ".gitproxy", ".askpass"))


REPOSITORY_SCOPES = frozenset({"local", "worktree"})
"""Scopes of settings that a repository brings; others belong to the user and the machine."""
ALL_SCOPES = REPOSITORY_SCOPES | {"system", "global"}
_FETCHING = (
    r"^(extensions\.partialclone|remote\..*\.(promisor|partialclonefilter|uploadpack)"
    r"|core\.(sshcommand|gitproxy|askpass)|credential\..*)$"
)
"""Settings that make a clone partial, or with which git fetches."""
_OTHER_SETTINGS = (b"include", b"worktreeconfig")
"""Words of a configuration that makes git read others of the repository."""
_HEAD = re.compile(rb"ref: refs/|[0-9a-f]{40}")
_BRANCH_OF_HEAD = re.compile(rb"ref: (refs/heads/(?!\.invalid\n)[^\n]+)\n")
"""Git 2.45 writes `.invalid` where it keeps refs in tables."""
_REF = re.compile(r"refs/(?:heads|remotes|sweepledger)/[A-Za-z0-9_][A-Za-z0-9_./-]*", re.ASCII)
_LOOSE = re.compile(rb"[0-9a-f]{40}\n")
_BARE = re.compile(rb"\bbare\b(?!\s*=\s*false\b)")


LOCK_MESSAGE = re.compile(r"nable to create '(?P<path>[^'\n]+\.lock)': File exists")
FILE_MODE = "100644"
TREE_MODE = "040000"
NO_MODE = "000000"
UNMERGED = "U"
LINK_MODE = "120000"
SUBMODULE_MODE = "160000"
EXECUTABLE_MODE = "100755"
FILE_MODES = frozenset({FILE_MODE, EXECUTABLE_MODE})
PROMISOR = r"^remote\..*\.promisor$"
_COMMIT_ID = re.compile(r"[0-9a-f]{40}")

UNSHALLOW = "run `git fetch --unshallow`"

MAX_LISTED = 20_000
"""Files in the listings that a repository keeps; commands list the same folders of the same commit many times."""
SMALL_INDEX = 512 * 1024
"""Bytes of the index of about five thousand files: listing all of them takes as long as starting git twice."""
MAX_KEPT_BLOB, MAX_KEPT_BLOBS = 32 * 1024, 500
"""Bytes and number of the blobs that a repository keeps: specs, settings and locks, at most 16 MB in all."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file in a commit."""

    mode: str
    id: str

    @property
    def is_link(self) -> bool:
        """Return whether it is a symbolic link, whose blob is the target."""
        return self.mode == LINK_MODE


def staged_entries(listed: str) -> dict[str, Entry]:
    """Return the entries of an index that `git ls-files --stage -z` has listed."""
    entries = {}
    for line in filter(None, listed.split("\0")):
        meta, _, name = line.partition("\t")
        mode, identity, _ = meta.split(" ")
        entries[name] = Entry(mode, identity)
    return entries


@dataclass(frozen=True, slots=True)
class _Listing:
    files: dict[str, Entry]
    folders: dict[str, str]
    submodules: dict[str, Entry]


class Repository:
    """A repository on this machine, with a work tree or bare."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        """The root of the work tree, or the bare repository."""
        self._commits: set[str] = set()
        """Full ids of commits that exist."""
        self._listings: dict[tuple[str, tuple[str, ...]], _Listing] = {}
        """Files of commits, which never change; the oldest listing is dropped first."""
        self._blobs: dict[str, bytes] = {}
        """Small blobs, which never change either."""
        self._sizes: dict[str, int] = {}
        self._local: set[str] = set()
        """Objects that a partial clone is known to have."""
        self.remote_tips: dict[str, str] = {}
        """Commits of branches of remotes, as this object fetched or pushed them last, by their tracking refs."""
        self._git_paths: dict[str, Path] = {}
        """Paths in git's own folder by their names; they stay where they are."""
        forget_redirections()

    @classmethod
    def find(cls, start: Path) -> "Repository":
        """Return the repository that contains a folder. Raises RepositoryError if there is none."""
        forget_redirections()
        found = cls(_find_plain_work_tree(start) or _find_work_tree(start))
        found._refuse_fetching_commands()
        found._refuse_other_hash()
        return found

    def _refuse_fetching_commands(self) -> None:
        """Raise RepositoryError if reading an object could run a command of the clone's own configuration.

        Git fetches an object that a partial clone lacks, by the command that the configuration names.
        """
        if os.environ.get(TRUSTED_CLONE) == str(self.folder):
            return
        if not self.may_configure(b"promisor", b"partial"):
            return
        pairs = self.settings(_FETCHING, REPOSITORY_SCOPES)
        commands = [name for name, value in pairs if _runs_a_command(name, value)]
        if commands and any(
            name.endswith((".promisor", ".partialclone", ".partialclonefilter")) for name, _ in pairs
        ):
            raise RepositoryError(
                f"{self.folder} is a partial clone whose own configuration names a command: {commands[0]}",
                hint="reading it could run the command: remove the setting, or move it to your own configuration "
                "with `git config --global`",
            )

    def require_trusted(self, address: str) -> None:
        """Raise RepositoryError unless the user trusts an address to which the repository would send a credential.

        Otherwise, a person who can write the settings could send the credential to their own server.
        """
        if os.environ.get(TRUSTED_CLONE) == str(self.folder):
            return
        parts = urlsplit(address)
        # The query of an address of a database may name another host.
        origin = address if parts.query else f"{parts.scheme}://{parts.netloc}"
        with suppress(RepositoryError):  # git's exit code if there is none
            if origin in self.run("config", "--global", "-z", "--get-all", TRUSTED_ADDRESS).split("\0"):
                return
        raise RepositoryError(
            f"{origin} is named by the repository, and would get a credential of yours",
            hint=f"if you trust it: git config --global --add {TRUSTED_ADDRESS} {shlex.quote(origin)}",
        )

    def _refuse_other_hash(self) -> None:
        """Raise RepositoryError unless object ids are SHA-1, as in locks, records and tables."""
        if not self.may_configure(b"objectformat"):
            return
        name = self.run("rev-parse", "--show-object-format").strip()
        if name != "sha1":
            raise RepositoryError(
                f"{self.folder} has object format {name}, and sweepledger needs SHA-1",
                hint="copy its history into a new one: "
                f"`git init --object-format=sha1 --initial-branch={self.branch() or 'main'} NEW`, and here "
                "`git fast-export --all | git -C NEW fast-import`; then `git -C NEW reset --hard`",
            )

    def may_configure(self, *words: bytes) -> bool:
        """Return whether the clone's configuration may have settings with one of some words, given in lower case."""
        try:
            settings = (self.folder / ".git" / "config").read_bytes().lower()
        except OSError:
            return True  # a linked work tree, or bare
        return any(word in settings for word in (*words, *_OTHER_SETTINGS))

    def settings(self, names: str, scopes: Container[str] | None = None) -> list[tuple[str, str]]:
        """Return the settings of git whose names match an expression, with their values; or those of some scopes."""
        listed = self.attempt("config", "--show-scope", "-z", "--get-regexp", names)
        fields = (listed or "").split("\0")  # git fails if there is none of them
        pairs = zip(fields[::2], fields[1::2], strict=False)
        found = (text.partition("\n") for scope, text in pairs if scopes is None or scope in scopes)
        return [(name, value) for name, _, value in found]

    def run(self, *arguments: str, **options: Any) -> str:
        """Run a git command and return its output as text. Raises RepositoryError with git's message."""
        return self.run_bytes(*arguments, **options).decode("utf-8", "surrogateescape")

    def attempt(self, *arguments: str) -> str | None:
        """Return the output of a git command; None if it fails, which is git's answer to some questions."""
        try:
            return self.run(*arguments)
        except RepositoryError:
            return None

    def run_bytes(self, *arguments: str, env: Mapping[str, str] | None = None, content: bytes = b"") -> bytes:
        """Run a git command with `content` as its input, and return its output as bytes. Raises RepositoryError."""
        git = import_gitpython()
        settings = [word for setting in SAFE_SETTINGS for word in ("-c", setting)]
        try:
            with (
                storage_errors(Path(tempfile.gettempdir())),
                tempfile.TemporaryFile() if content else nullcontext() as stdin,
            ):
                if stdin is not None:
                    stdin.write(content)
                    stdin.seek(0)
                output = git.Git(self.folder).execute(
                    ["git", *settings, *arguments],
                    istream=stdin,
                    env={**ENVIRONMENT, **(env or {})},
                    stdout_as_string=False,
                    strip_newline_in_stdout=False,
                )
        except git.GitCommandNotFound as error:
            raise ToolError("git not found", hint="install git 2.30 or newer") from error
        except git.GitCommandError as error:
            message = redact(str(error.stderr).removeprefix("\n  stderr: '").removesuffix("'").strip())
            lock, folder = LOCK_MESSAGE.search(message), "" if "/" in message else f" in {self.folder}"
            failure = RepositoryError(
                f"git {arguments[0]} failed{folder}: {message or f'exit code {error.status}'}",
                hint=self.lock_hint(Path(lock["path"])) if lock else None,
            )
            failure.output = str(error.stdout).removeprefix("\n  stdout: '").removesuffix("'")
            raise failure from error
        assert isinstance(output, bytes)
        return output

    def git_path(self, name: str) -> Path:
        """Return the path of one of git's own files, such as `index`, which linked work trees have elsewhere."""
        if name not in self._git_paths:
            if _is_plain(self.folder / ".git"):
                self._git_paths[name] = self.folder / ".git" / name
            else:
                path = self.run("rev-parse", "--git-path", name).removesuffix("\n")
                self._git_paths[name] = self.folder / path
        return self._git_paths[name]

    def lock_hint(self, lock: Path) -> str:
        """Return a hint about a lock of git; such a lock is never removed automatically."""
        with suppress(OSError):
            age = time.time() - (self.folder / lock).stat().st_mtime
            return f"{self.folder / lock} is {age:.0f} s old: remove it if no other git is running here"
        return "run it again"

    def commit(self, revision: str) -> str | None:
        """Resolve a revision that may come from a user; None if it names no commit."""
        if revision in self._commits:
            return revision
        commit = self._commit_of_loose_ref(revision)
        if commit is None:
            options = ("--verify", "--quiet", "--end-of-options")
            commit = (self.attempt("rev-parse", *options, f"{revision}^{{commit}}") or "").strip()
        if commit:
            self._commits.add(commit)
        return commit or None

    def existing(self, revisions: Iterable[str | None]) -> list[str]:
        """Return the commits of the existing revisions, each once."""
        return list(dict.fromkeys(filter(None, map(self.commit, filter(None, revisions)))))

    def branch(self) -> str | None:
        """Return the branch that is checked out; None if HEAD is detached."""
        ref = self.head_ref()
        return None if ref is None else ref.removeprefix("refs/heads/")

    def head_ref(self) -> str | None:
        """Return the full ref of the branch that is checked out; None if HEAD is detached."""
        head = _BRANCH_OF_HEAD.fullmatch(self._plain_file("HEAD"))
        if head is not None:
            return os.fsdecode(head[1])
        ref = self.attempt("symbolic-ref", "--quiet", "HEAD")
        return None if ref is None else ref.removesuffix("\n")

    def _commit_of_loose_ref(self, ref: str) -> str | None:
        """Return the commit of HEAD or of a full ref, without a process; None if git has to look it up."""
        if ref == "HEAD":
            head = _BRANCH_OF_HEAD.fullmatch(self._plain_file("HEAD"))
            ref = "" if head is None else os.fsdecode(head[1])
        if _REF.fullmatch(ref) is None or ".." in ref:
            return None
        content = self._plain_file(ref)
        return content[:-1].decode() if _LOOSE.fullmatch(content) else None

    def _plain_file(self, name: str) -> bytes:
        """Return a file of an ordinary `.git` folder; empty if there is none."""
        folder = self.folder / ".git"
        try:
            return (folder / name).read_bytes() if _is_plain(folder) else b""
        except OSError:
            return b""

    def remote_url(self, name: str) -> str | None:
        """Return the URL of a remote; None if the remote does not exist."""
        url = self.attempt("remote", "get-url", "--end-of-options", name)
        return None if url is None else url.strip()

    def root_tree(self, commit: str) -> str:
        """Return the id of the root folder of a commit."""
        return self.run("rev-parse", f"{commit}^{{tree}}").strip()

    def tree_id(self, commit: str, path: str) -> str | None:
        """Return the id of the folder at a path in a commit; None if there is none."""
        if path.rstrip("/") == ".":
            return self.root_tree(commit)
        if self._is_listed_whole(commit):
            return self._listing(commit, ()).folders.get(path.rstrip("/"))
        listed = self.run("ls-tree", "-z", commit, "--", path.rstrip("/"))
        for line in listed.split("\0"):
            meta, _, name = line.partition("\t")
            if name == path.rstrip("/") and meta.startswith(TREE_MODE):
                return meta.split(" ")[2]
        return None

    def files(self, commit: str | None, *below: str) -> dict[str, Entry]:
        """Return the files of a commit, all or those below some paths, without submodules."""
        if commit is None:
            return {}
        if _COMMIT_ID.fullmatch(commit) is None:
            return self._list(commit, below).files
        if below and self._is_listed_whole(commit):
            files, places = self._listing(commit, ()).files, [path.rstrip("/") for path in below]
            folders = tuple(f"{place}/" for place in places)
            return {path: each for path, each in files.items() if path in places or path.startswith(folders)}
        return dict(self._listing(commit, below).files)

    def folders(self, commit: str | None, place: str) -> tuple[str, ...]:
        """Return the paths of the folders directly in a folder of a commit, without listing their files."""
        if commit is None:
            return ()
        if self._is_listed_whole(commit):
            found = self._listing(commit, ()).folders
            return tuple(path for path in found if path.rpartition("/")[0] == place)
        listed = self.run("ls-tree", "-d", "-z", "--name-only", "--full-tree", commit, "--", f"{place}/")
        return tuple(filter(None, listed.split("\0")))

    def _is_listed_whole(self, commit: str) -> bool:
        """Return whether all files of a commit are listed at once because there are few."""
        if _COMMIT_ID.fullmatch(commit) is None:
            return False
        try:
            return (self.folder / ".git" / "index").stat().st_size <= SMALL_INDEX
        except OSError:  # a bare repository, or a linked work tree
            return False

    def _listing(self, commit: str, below: tuple[str, ...]) -> _Listing:
        """Return a listing of a commit by its full id, from memory if possible."""
        if (commit, below) not in self._listings:
            self._listings[commit, below] = self._list(commit, below)
            while (
                len(self._listings) > 1
                and sum(len(one.files) for one in self._listings.values()) > MAX_LISTED
            ):
                del self._listings[next(iter(self._listings))]
        return self._listings[commit, below]

    def _list(self, commit: str, below: tuple[str, ...]) -> _Listing:
        listed = self.run("ls-tree", "-r", "-t", "-z", "--full-tree", commit, "--", *below)
        listing = _Listing({}, {}, {})
        for line in filter(None, listed.split("\0")):
            meta, _, name = line.partition("\t")
            mode, kind, identity = meta.split(" ")
            if kind == "tree":
                listing.folders[name] = identity
            else:
                (listing.files if kind == "blob" else listing.submodules)[name] = Entry(mode, identity)
        return listing

    def index(self, commit: str | None = None) -> dict[str, Entry]:
        """Return the entries of the index, including submodules and links.

        With the full id of a `commit` that is similar to it, only the differences are read.
        """
        if commit is None:
            return staged_entries(self.run("ls-files", "--stage", "-z"))
        options = ("--cached", "--raw", "-z", "--no-renames", "--abbrev=64", "--ignore-submodules=none")
        words = self.run("diff-index", *options, commit, "--").split("\0")
        listing = self._listing(commit, ())
        entries = {**listing.files, **listing.submodules}
        for meta, path in zip(words[::2], words[1::2], strict=False):
            _, mode, _, identity, state = meta.split(" ")
            if state == UNMERGED:
                return self.index()
            if mode == NO_MODE:
                del entries[path]
            else:
                entries[path] = Entry(mode, identity)
        return entries

    def contains(self, commit: str, ancestor: str) -> bool:
        """Return whether the history of a commit contains another commit."""
        # Not `merge-base --is-ancestor`: its exit code 1 may also mean that git failed.
        return self.run("rev-list", "--max-count=1", ancestor, f"^{commit}", "--").strip() == ""

    def merge_bases(self, one: str, other: str) -> tuple[str, ...]:
        """Return the best common ancestors of two commits; none if they are unrelated."""
        return tuple((self.attempt("merge-base", "--all", one, other) or "").split())

    def ids(self, names: Iterable[str]) -> dict[str, str]:
        """Return the ids of existing objects that are named `<commit>:<path>`."""
        return {name: line for name, line in self._facts(names, "objectname") if " " not in line}

    def _facts(self, names: Iterable[str], fact: str) -> Iterator[tuple[str, str]]:
        """Yield names of objects with git's information about each, with one process."""
        wanted = list(names)
        if wanted:
            request = "".join(f"{name}\n" for name in wanted).encode()
            listed = self.run("cat-file", f"--batch-check=%({fact})", content=request).splitlines()
            yield from zip(wanted, listed, strict=True)

    def sizes(self, identities: Iterable[str]) -> dict[str, int]:
        """Return the sizes of blobs in bytes, without reading them; a partial clone fetches missing blobs."""
        wanted = set(identities)
        missing = sorted(wanted - self._sizes.keys())
        if missing:
            self._fetch(missing)
            sizes = self._facts(missing, "objectsize")
            # Of a blob that is missing, git says so, and reading it fails.
            self._sizes.update((identity, int(size)) for identity, size in sizes if size.isdecimal())
        return {identity: self._sizes[identity] for identity in wanted if identity in self._sizes}

    def blobs(self, identities: Iterable[str]) -> dict[str, bytes]:
        """Read many blobs with one process. Raises RepositoryError if one is missing."""
        wanted = set(identities)
        contents = {identity: self._blobs[identity] for identity in wanted if identity in self._blobs}
        missing = sorted(wanted - contents.keys())
        if not missing:
            return contents
        self._fetch(missing)
        request = "".join(f"{identity}\n" for identity in missing).encode()
        output = self.run_bytes("cat-file", "--batch", content=request)
        at = 0
        for identity in missing:
            end = output.index(b"\n", at)
            *_, kind, length = output[at:end].split(b" ")
            if kind == identity.encode():  # `<id> missing`
                if self.is_shallow:
                    raise RepositoryError(
                        f"{self.folder} is a shallow clone, and git has no object {identity} of its history",
                        hint=UNSHALLOW,
                    )
                raise RepositoryError(
                    f"{self.folder}: git has no object {identity}, which a commit or the index names",
                    hint="`git fetch --refetch` brings missing objects; `git fsck` names damaged ones",
                )
            size = int(length)
            contents[identity] = output[end + 1 : end + 1 + size]
            at = end + 1 + size + 1
        small = {name: contents[name] for name in missing if len(contents[name]) <= MAX_KEPT_BLOB}
        if len(small) <= MAX_KEPT_BLOBS:
            self._blobs.update(small)
        while len(self._blobs) > MAX_KEPT_BLOBS:
            del self._blobs[next(iter(self._blobs))]
        return contents

    def write_objects(self, contents: Iterable[bytes], kind: str = "blob") -> list[str]:
        """Write objects unchanged, with one process, and return their ids. Raises RepositoryError, StorageError."""
        with scratch_folder() as scratch:
            listed = b""
            for number, content in enumerate(contents):
                file = scratch / str(number)
                file.write_bytes(content)
                listed += os.fsencode(file) + b"\n"
            options = ("-t", kind, "-w", "--no-filters", "--stdin-paths")
            return self.run("hash-object", *options, content=listed).split() if listed else []

    @property
    def is_shallow(self) -> bool:
        """Whether a clone lacks the beginning of its history."""
        return self.run("rev-parse", "--is-shallow-repository").strip() != "false"

    @cached_property
    def promisor(self) -> str | None:
        """The remote from which a partial clone fetches missing objects; None for a complete clone."""
        if not self.may_configure(b"promisor"):
            return None
        names = (name for name, _ in self.settings(PROMISOR))
        return next((name.removeprefix("remote.").removesuffix(".promisor") for name in names), None)

    def _fetch(self, identities: Iterable[str]) -> None:
        """Fetch missing blobs of a partial clone all at once: git itself fetches them one by one."""
        if self.promisor is None or self._local.issuperset(identities):
            return
        listed = self.run("cat-file", "--batch-all-objects", "--unordered", "--batch-check=%(objectname)")
        self._local = set(listed.split())
        missing = sorted(set(identities) - self._local)
        if missing:
            self.run(
                *("-c", "fetch.negotiationAlgorithm=noop", "fetch", "--quiet", "--no-tags"),
                *("--no-write-fetch-head", "--recurse-submodules=no", "--filter=blob:none", "--stdin"),
                *("--end-of-options", self.promisor),
                content="".join(f"{identity}\n" for identity in missing).encode(),
            )
            self._local.update(missing)

    def read(self, commit: str | None, *below: str) -> dict[str, bytes]:
        """Read the files of a commit below some paths."""
        entries = self.files(commit, *below)
        contents = self.blobs(entry.id for entry in entries.values())
        return {path: contents[entry.id] for path, entry in entries.items()}
