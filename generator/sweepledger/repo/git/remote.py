"""A branch of a remote: fetch it, and publish one commit on top of it.

If another writer pushes first, the change is made again from the new commit: nothing is merged, rebased or forced.
A push is accepted only on top of the branch's commit, so the first attempt starts from the commit that this process
fetched or pushed last: the git host is asked again only if that is no longer the branch's, or leaves nothing to change,
or cannot be changed.
"""

import random
import re
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from enum import Enum, auto

from sweepledger.errors import ContentionError, GeneratorError, RepositoryError, UsageError
from sweepledger.repo.git.commit import Change, create_commit
from sweepledger.repo.git.repository import Repository

LOST_RACE = re.compile(
    r"^!\t[^\t]*\t\[(?:rejected\]|remote rejected\] \((?:cannot lock|failed to update|incorrect old))",
    re.MULTILINE,
)
"""Matches git's own line about the ref, never the server's output, which is untrusted."""
ALREADY_THERE = re.compile(r"^=\t", re.MULTILINE)
LEFT_LOCK = re.compile(r"refs/\S+\.lock': File exists")
PUSH_BUDGET_SECONDS = 600.0
LONGEST_PAUSE_SECONDS = 5.0


def publish(
    repository: Repository,
    remote: str,
    branch: str,
    make: Callable[[str], Change | None],
    *,
    budget: float = PUSH_BUDGET_SECONDS,
) -> str | None:
    """Make a change to a branch and push it; start again if another writer pushed first.

    Return the new commit; None if there is nothing to change. Raises ContentionError after `budget` seconds,
    RepositoryError if the server refuses, and the errors of `make` for the newest commit.
    """
    deadline = time.monotonic() + budget
    attempt = 0
    known = repository.remote_tips.pop(tracking_ref(remote, branch), None)
    base, is_fresh = known or fetch(repository, remote, branch), known is None
    while True:
        commit = error = None
        try:
            change = make(base)
            commit = create_commit(repository, base, change) if change else None
        except GeneratorError as caught:
            error = caught
        if commit is None:
            latest = base if is_fresh else fetch(repository, remote, branch)
            if latest == base and error is not None:
                raise error
            if latest == base:
                return None
            base, is_fresh = latest, True
            continue
        match _push(repository, remote, branch, base, commit):
            case _Push.ACCEPTED:
                return commit
            case _Push.KNOWN:
                base, is_fresh = commit, True
            case _Push.LATE:
                if time.monotonic() >= deadline:
                    raise ContentionError(
                        f"other writers pushed to {branch} first for {budget:.0f} s; nothing was lost",
                        hint="run it again",
                    )
                attempt += 1
                pause = min(LONGEST_PAUSE_SECONDS, 0.05 * 2**attempt)
                time.sleep(random.uniform(0, pause))  # noqa: S311 - spreads writers, protects nothing
                base, is_fresh = fetch(repository, remote, branch), True


class _Push(Enum):
    """The outcome of a push."""

    ACCEPTED = auto()
    KNOWN = auto()
    """Another writer had pushed the same commit: made on the same one, and within the same second."""
    LATE = auto()
    """The branch is no longer where the commit begins."""


def _push(repository: Repository, remote: str, branch: str, base: str, commit: str) -> _Push:
    ref = f"refs/heads/{branch}"
    try:
        # The lease refuses a branch that was set back: a push would bring back what was taken from it.
        lease = f"--force-with-lease={ref}:{base}"
        pushed = repository.run("push", "--porcelain", "--no-follow-tags", lease, remote, f"{commit}:{ref}")
    except RepositoryError as error:
        if LOST_RACE.search(error.output) is not None:
            return _Push.LATE
        with suppress(RepositoryError):  # a connection can end after the push and before the reply
            if repository.contains(fetch(repository, remote, branch), commit):
                return _Push.ACCEPTED
        raise
    repository.remote_tips[tracking_ref(remote, branch)] = commit
    return _Push.ACCEPTED if ALREADY_THERE.search(pushed) is None else _Push.KNOWN


def tracking_ref(remote: str, branch: str) -> str:
    """Return the name of the ref for a branch of a remote as it was last fetched."""
    return f"refs/sweepledger/remotes/{remote}/{branch}"


def followed_remote(repository: Repository, branch: str) -> str:
    """Return the remote with the branch into which a clone's sweeps are merged.

    This is the remote in git's configuration, else the only remote, else the remote whose branch contains those of all
    others: a fork is often older than its origin. Raises UsageError if several remotes could be meant.
    """
    settings = dict(repository.settings(_REMOTES))
    names = sorted(
        key.removeprefix("remote.").removesuffix(".url") for key in settings if key.endswith(".url")
    )
    chosen = settings.get(REMOTE_SETTING)
    if chosen is not None:
        if chosen not in names:
            raise UsageError(
                f"git's setting {REMOTE_SETTING} names {chosen!r}, which is no remote",
                hint=f"remotes: {', '.join(names) or 'none'}; `git config {REMOTE_SETTING} NAME`",
            )
        return chosen
    if settings.get(_CHECKOUT_SETTING) in names:
        return settings[_CHECKOUT_SETTING]
    tips = (
        {name: repository.commit(f"refs/remotes/{name}/{branch}") for name in names} if len(names) > 1 else {}
    )
    commits = {name: commit for name, commit in tips.items() if commit is not None}
    if not commits:
        return names[0] if len(names) == 1 else DEFAULT_REMOTE
    newest = [
        name
        for name, commit in commits.items()
        if all(repository.contains(commit, other) for other in {*commits.values()} - {commit})
    ]
    if not newest:
        ways = " or ".join(f"`git config {REMOTE_SETTING} {name}`" for name in commits)
        raise UsageError(
            f"several remotes have a branch {branch}, and none has all commits of the others: {', '.join(commits)}",
            hint=f"say which one the sweeps of this clone are merged into: {ways}",
        )
    return DEFAULT_REMOTE if DEFAULT_REMOTE in newest else newest[0]


def base_commit(repository: Repository, branch: str, base: str | None = None) -> str | None:
    """Resolve the base commit: `base`, else the remote's branch, else HEAD.

    None if the repository has no commit. Raises UsageError for a revision that does not exist.
    """
    if base is None:
        followed = f"refs/remotes/{followed_remote(repository, branch)}/{branch}"
        return repository.commit(followed) or repository.commit("HEAD")
    commit = repository.commit(base)
    if commit is None:
        raise UsageError(f"--base {base} is not a commit", hint="try a branch, a tag or HEAD~1")
    return commit


DEFAULT_REMOTE = "origin"
REMOTE_SETTING = "sweepledger.remote"
_CHECKOUT_SETTING = "checkout.defaultremote"
_REMOTES = r"^(sweepledger\.remote|checkout\.defaultremote|remote\..*\.url)$"


def fetch(repository: Repository, remote: str, branch: str) -> str:
    """Fetch a branch of a remote and return its commit. Raises RepositoryError."""
    target = tracking_ref(remote, branch)
    try:
        _fetch_ref(repository, remote, branch, target)
    except RepositoryError as error:
        if LEFT_LOCK.search(str(error)):
            # A killed git process has left a lock on the usual ref.
            aside = f"refs/sweepledger/aside/{uuid.uuid4().hex}"
            _fetch_ref(repository, remote, branch, aside, "--refmap=", "--no-write-fetch-head")
            fetched = repository.run("rev-parse", "--verify", f"{aside}^{{commit}}").strip()
            repository.run("update-ref", "-d", aside)
            return fetched
        missing = "couldn't find remote ref" in str(error)
        hint = (
            f"push it first: `git push -u {remote} {branch}`"
            if missing
            else "check that the remote is reachable and that you may read it"
        )
        raise RepositoryError(str(error), hint=hint) from error
    commit = repository.commit(target)
    if commit is None:
        raise RepositoryError(f"branch {branch} of {remote} has no commit")
    repository.remote_tips[target] = commit
    return commit


def last_update(repository: Repository, remote: str, branch: str) -> int | None:
    """Return when this clone last updated a branch of a remote, in seconds since 1970; None if never.

    This is the last fetch of the clone, or the last change of its ref for the branch, for example by a push.
    """
    target = f"refs/remotes/{remote}/{branch}"
    if repository.commit(target) is None:
        return None
    times = []
    with suppress(OSError):
        times.append(int(repository.git_path("FETCH_HEAD").stat().st_mtime))
    options = ("--walk-reflogs", "--max-count=1", "--format=%gd", "--date=unix")
    shown = repository.attempt("log", *options, target, "--") or ""  # a clone may keep no reflog
    times += [int(time) for time in _REFLOG_TIME.findall(shown)]
    return max(times, default=None)


_REFLOG_TIME = re.compile(r"@\{([0-9]+)\}$", re.MULTILINE)


def _fetch_ref(repository: Repository, remote: str, branch: str, target: str, *options: str) -> None:
    refspec = f"+refs/heads/{branch}:{target}"
    repository.run("fetch", "--quiet", "--no-tags", *options, "--end-of-options", remote, refspec)
