"""Tells others of a push in the words of GitHub and with its signature; what nobody hears is lost."""

import hashlib
import hmac
import json
import queue
import sys
import threading
import urllib.request
import uuid
from dataclasses import dataclass
from pathlib import Path
from subprocess import SubprocessError, run
from typing import Any

from tests.cluster.forge_faults import kept
from tests.cluster.forge_git import Update

WEBHOOKS = "webhooks.json"
PATIENCE_SECONDS = 30
"""Three times GitHub's: who listens on a machine full of tests may be slow, and nobody tells again."""
NOTHING = "0" * 40
STATES = {"A": "added", "D": "removed"}
"""Everything else was modified."""

Payload = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Push:
    """One ref that a push moved, and whose push."""

    repository: str
    update: Update
    pusher: str


class Courier:
    """Delivers in the order of the pushes, behind the back of whoever pushed."""

    def __init__(self, folder: Path, *, home: str) -> None:
        self._folder = folder
        self._home = home
        self._pushes: queue.SimpleQueue[tuple[Path, Push]] = queue.SimpleQueue()
        threading.Thread(target=self._run, daemon=True).start()

    def announce(self, bare: Path, push: Push) -> None:
        """Let everybody know of a push who asked for it, some time soon."""
        self._pushes.put((bare, push))

    def _run(self) -> None:
        while True:
            bare, push = self._pushes.get()
            hooks = kept(self._folder / WEBHOOKS).get("hooks", [])
            try:
                body = json.dumps(payload(bare, push, home=self._home)).encode() if hooks else b""
            except (OSError, ValueError, SubprocessError) as error:
                sys.stderr.write(f"no payload for {push}: {error}\n")
                continue
            for hook in hooks:
                _deliver(hook["url"], hook["secret"], body)


def _deliver(url: str, secret: str, body: bytes) -> None:
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "GitHub-Hookshot/forge",
        "X-GitHub-Event": "push",
        "X-GitHub-Delivery": str(uuid.uuid4()),
    }
    if secret:
        for header, digest in (("X-Hub-Signature", "sha1"), ("X-Hub-Signature-256", "sha256")):
            seal = hmac.new(secret.encode(), body, getattr(hashlib, digest)).hexdigest()
            headers[header] = f"{digest}={seal}"
    request = urllib.request.Request(url, data=body, headers=headers)  # noqa: S310 - a test names the URL
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=PATIENCE_SECONDS) as answer:
            answer.read()
    except (OSError, ValueError) as error:
        sys.stderr.write(f"webhook {url}: {error}\n")


def payload(bare: Path, push: Push, *, home: str) -> Payload:
    """Write what GitHub says of a push, as far as controllers read it."""
    commits = _commits(bare, push, home)
    name = push.repository.rpartition("/")[2]
    owner = push.repository.rpartition("/")[0] or push.pusher
    page = f"{home}/{push.repository}"
    return {
        "ref": push.update.ref,
        "before": push.update.before,
        "after": push.update.after,
        "created": push.update.before == NOTHING,
        "deleted": push.update.after == NOTHING,
        "forced": _is_forced(bare, push),
        "compare": f"{page}/compare/{push.update.before[:12]}...{push.update.after[:12]}",
        "commits": commits,
        "head_commit": next((commit for commit in commits if commit["id"] == push.update.after), None),
        "repository": {
            "name": name,
            "full_name": push.repository,
            "owner": {"login": owner, "name": owner},
            "html_url": page,
            "url": page,
            "clone_url": f"{page}.git",
            "default_branch": _git(bare, "symbolic-ref", "--short", "HEAD").strip(),
            "private": True,
        },
        "pusher": {"name": push.pusher, "email": f"{push.pusher}@example.org"},
        "sender": {"login": push.pusher, "type": "User"},
    }


def _is_forced(bare: Path, push: Push) -> bool:
    if NOTHING in (push.update.before, push.update.after):
        return False
    return bool(_git(bare, "rev-list", "--max-count=1", push.update.before, f"^{push.update.after}").strip())


def _commits(bare: Path, push: Push, home: str) -> list[Payload]:
    """Give the commits of a push, the oldest first; of a new ref those that no other has."""
    if push.update.after == NOTHING:
        return []
    known = (
        [f"^{push.update.before}"]
        if push.update.before != NOTHING
        else ["--not", f"--exclude={push.update.ref}", "--glob=refs/*"]
    )
    options = ["-z", "--name-status", "--no-renames", "--diff-merges=first-parent", "--reverse"]
    shape = "--format=%x01%H%x02%T%x02%aI%x02%an%x02%ae%x02%B%x03"
    listed = _git(bare, "log", *options, shape, push.update.after, *known, "--")
    return [_commit(part, f"{home}/{push.repository}") for part in listed.split("\x01")[1:]]


def _commit(listed: str, page: str) -> Payload:
    head, _, rest = listed.partition("\x03")
    identity, tree, when, author, address, message = head.split("\x02")
    files: dict[str, list[str]] = {"added": [], "removed": [], "modified": []}
    words = [word for word in rest.strip("\n\0").split("\0") if word]
    for state, path in zip(words[::2], words[1::2], strict=True):
        files[STATES.get(state, "modified")].append(path)
    person = {"name": author, "email": address, "username": author}
    return {
        "id": identity,
        "tree_id": tree,
        "distinct": True,
        "message": message.strip(),
        "timestamp": when,
        "url": f"{page}/commit/{identity}",
        "author": person,
        "committer": person,
        **files,
    }


def _git(bare: Path, *arguments: str) -> str:
    done = run(["git", "--git-dir", str(bare), *arguments], capture_output=True, check=True)
    return done.stdout.decode(errors="replace")
