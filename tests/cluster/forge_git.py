"""What the git server of the tests does with git: bare repositories, their hooks, and `git http-backend`.

No http and no faults: who may ask, and what goes wrong, is decided before it comes here.
"""

import os
import re
import subprocess
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

REPOSITORIES = "repositories"
RIVAL = "rival"
RIVALS_FILE = "docs/rival.md"
"""Watched by no controller, and no path that a check or a rule looks at."""
RIVALS_MESSAGE = "Be faster"
RIVAL_TRIES = 5
COMMAND = re.compile(rb"[0-9a-f]{40} [0-9a-f]{40} (?P<ref>[^\0\n]+)")
LENGTH = 4
"""Digits before each line of git's protocol, which count themselves, too."""
SETTINGS = {
    "http.receivepack": "true",
    "receive.autogc": "false",  # it would go on behind the answer
    "uploadpack.allowAnySHA1InWant": "true",  # as GitHub does: Argo CD fetches commits, not branches
    "uploadpack.allowFilter": "true",
}
TELLS = '#!/bin/sh\n[ -z "${FORGE_UPDATES:-}" ] || cat >"$FORGE_UPDATES"\n'
"""After a push: only git itself knows which refs it moved."""
REFUSES = '#!/bin/sh\ncat >/dev/null\nprintf "%s\\n" "$FORGE_SAYS" >&2\nexit 1\n'


@dataclass(frozen=True, slots=True)
class Update:
    """A ref that was moved."""

    ref: str
    before: str
    after: str


def create(bare: Path, branch: str) -> None:
    """Make a bare repository that says what a push has moved."""
    subprocess.run(["git", "init", "-q", "--bare", "--template=", "-b", branch, str(bare)], check=True)
    for key, value in SETTINGS.items():
        subprocess.run(["git", "--git-dir", str(bare), "config", key, value], check=True)
    install(bare / "hooks/post-receive", TELLS)


def install(hook: Path, text: str) -> None:
    """Put a hook in force; a push that is under way keeps the one it began with."""
    hook.parent.mkdir(parents=True, exist_ok=True)
    beside = hook.with_name(f".{hook.name}.{uuid.uuid4()}")
    beside.write_text(text)
    beside.chmod(0o755)
    beside.replace(hook)


def default_branch(bare: Path) -> str:
    """Give the ref that a clone checks out."""
    return _git(bare, "symbolic-ref", "HEAD").stdout.decode().strip()


def is_branch(bare: Path, ref: str) -> bool:
    return ref.startswith("refs/heads/") and not _git(bare, "rev-parse", "--verify", ref).returncode


def overtake(bare: Path, ref: str) -> Update:
    """Put a commit of somebody else's onto a branch."""
    for _ in range(RIVAL_TRIES):
        before = _git(bare, "rev-parse", "--verify", ref).stdout.decode().strip()
        text = f"the rival was faster: {time.time_ns()}\n"
        feed = (
            f"commit {ref}\nmark :1\ncommitter Rival <rival@example.org> {int(time.time())} +0000\n"
            f"data {len(RIVALS_MESSAGE)}\n{RIVALS_MESSAGE}\nfrom {before}\n"
            f"M 100644 inline {RIVALS_FILE}\ndata {len(text)}\n{text}\nget-mark :1\n"
        )
        done = _git(bare, "fast-import", "--quiet", given=feed.encode())
        if not done.returncode:  # else a push got onto the branch between the two
            return Update(ref, before, done.stdout.decode().strip())
    raise RuntimeError(f"the rival cannot get onto {ref} of {bare}")


def wanted(body: IO[bytes]) -> tuple[str, ...]:
    """Give the refs that a push wants to move; none where it is only a trial before much is sent."""
    refs = []
    body.seek(0)
    while (size := int(body.read(LENGTH) or b"0", 16)) > LENGTH:
        result = COMMAND.match(body.read(size - LENGTH))
        if result:  # else a line about a shallow clone
            refs.append(result["ref"].decode())
    return tuple(refs)


def backend(
    body: IO[bytes], output: IO[bytes], environment: Mapping[str, str], updates: Path
) -> list[Update]:
    """Let git answer a request, as a web server does; give the refs that it moved."""
    bare = {
        "PATH": os.environ["PATH"],
        "HOME": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_HTTP_EXPORT_ALL": "1",
        "CONTENT_LENGTH": str(body.seek(0, os.SEEK_END)),
        "FORGE_UPDATES": str(updates),
    }
    body.seek(0)
    command = ["git", "http-backend"]
    subprocess.run(command, stdin=body, stdout=output, env={**bare, **environment}, cwd="/", check=False)
    lines = updates.read_text().splitlines() if updates.is_file() else []
    updates.unlink(missing_ok=True)
    moved = [line.split(" ", 2) for line in lines]
    return [Update(ref, before, after) for before, after, ref in moved]


def refusal(hooks: Path, says: str) -> dict[str, str]:
    """Give the environment in which a push is refused by another hook than the repository's."""
    install(hooks / "pre-receive", REFUSES)
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.hooksPath",
        "GIT_CONFIG_VALUE_0": str(hooks),
        "FORGE_SAYS": says,
    }


def _git(bare: Path, *arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = ["git", "--git-dir", str(bare), *arguments]
    return subprocess.run(command, input=given, capture_output=True, check=False)
