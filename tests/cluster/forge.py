"""A small git server over http for the tests, as they see it: repositories, users, rules, faults, webhooks.

It runs as a process of its own (`forge_server.py`), and is told everything by files of its folder.
"""

import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from tests.cluster import forge_faults, forge_git, forge_requests, forge_webhooks
from tests.cluster.children import Children
from tests.cluster.forge_faults import Fault
from tests.cluster.forge_requests import Request
from tests.cluster.machine import Machine

ROOT = Path(__file__).parents[2]
NAME = "forge"
PORT = 3000
READY_SECONDS = 180.0
"""Seconds where nothing else runs; a machine full of other tests takes its time."""
RULE = "hooks/pre-receive"


@dataclass(frozen=True, slots=True)
class Forge:
    """A git server, and what a test may do to it."""

    folder: Path
    address: str
    port: int
    children: Children

    @classmethod
    def serve(
        cls, children: Children, folder: Path, *, address: str = "127.0.0.1", port: int = PORT
    ) -> "Forge":
        """Start a server with nothing in it, and wait until it answers."""
        forge = cls(folder, address, port, children)
        folder.mkdir(parents=True)
        forge.resume()
        return forge

    def resume(self) -> None:
        """Start it again with all that it had. Raises AssertionError with its log where it does not come."""
        where = ["--folder", str(self.folder), "--address", self.address, "--port", str(self.port)]
        argv = [sys.executable, "-m", "tests.cluster.forge_server", *where]
        self.children.start(NAME, argv, cwd=ROOT)
        deadline = time.monotonic() + READY_SECONDS
        while not self._listens():
            is_late = time.monotonic() > deadline or not self.children.is_alive(NAME)
            assert not is_late, f"the git server does not get ready:\n{self.children.tail(NAME)}"
            time.sleep(0.05)

    def stop(self) -> None:
        """End its process: connections are refused until it is resumed."""
        self.children.end(NAME)

    def _listens(self) -> bool:
        try:
            socket.create_connection((self.address, self.port), timeout=1).close()
        except OSError:
            return False
        return self.children.is_alive(NAME)  # else a stranger has the port

    # Repositories

    def create(self, repository: str, *, branch: str = "main") -> str:
        """Make an empty repository, such as `team/sweeps`, and give its URL."""
        forge_git.create(self.bare(repository), branch)
        return self.url(repository)

    def url(self, repository: str, *, user: str | None = None) -> str:
        """Give a repository's URL; with a user, his name and password stand in it."""
        who = ""
        if user is not None:
            password = forge_faults.kept(self.folder / forge_requests.USERS)[user]["password"]
            who = f"{quote(user, safe='')}:{quote(password, safe='')}@"
        return f"http://{who}{self.address}:{self.port}/{repository}.git"

    def bare(self, repository: str) -> Path:
        """Give the folder of a repository, past all rules."""
        return self.folder / forge_git.REPOSITORIES / f"{repository}.git"

    def git(self, repository: str, *arguments: str) -> str:
        command = ["git", "--git-dir", str(self.bare(repository)), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    def install_rule(self, repository: str, text: str) -> None:
        """Put a pre-receive hook in force; it knows who pushes by REMOTE_USER, and finds `sweep`."""
        programs = Path(sys.executable).parent
        text = text.replace("set -eu\n", f"set -eu\nexport PATH='{programs}':\"$PATH\"\n", 1)
        forge_git.install(self.bare(repository) / RULE, text)

    def remove_rule(self, repository: str) -> None:
        """Take the pre-receive hook away: the positive control of what it denied."""
        (self.bare(repository) / RULE).unlink()

    # Users

    def user(self, name: str, password: str, *, may_write: bool) -> None:
        """Let a user in from now on; a known one gets this password and this role.

        One without name and password is everybody who says no name.
        """
        self._change_users({name: {"password": password, "may_write": may_write}})

    def revoke(self, name: str) -> None:
        """Let a user in no more, also in the middle of a push."""
        self._change_users({name: None})

    def _change_users(self, changed: Mapping[str, object]) -> None:
        path = self.folder / forge_requests.USERS
        known = {**forge_faults.kept(path), **changed}
        forge_faults.keep(path, {name: role for name, role in known.items() if role is not None})

    # Faults and webhooks

    def faults(self, *faults: Fault) -> None:
        """Let these faults stand from the next request on, and no others; without any, all is well."""
        forge_faults.put(self.folder, faults)

    def fault_counts(self) -> dict[str, int]:
        """Say how often each kind of trouble has really happened since the folder was made."""
        counts = forge_faults.kept(self.folder / forge_faults.COUNTS)
        return {kind: counts.get(kind, 0) for kind in forge_faults.KINDS}

    def webhooks(self, *urls: str, secret: str = "") -> None:
        hooks = [{"url": url, "secret": secret} for url in urls]
        forge_faults.keep(self.folder / forge_webhooks.WEBHOOKS, {"hooks": hooks})

    def requests(self) -> tuple[Request, ...]:
        """Give all requests so far, the oldest first."""
        return forge_requests.read(self.folder)

    def updates(self, user: str) -> tuple[str, ...]:
        """Give the commits that a user's pushes have put onto refs, the oldest first."""
        pushes = [request for request in self.requests() if request.user == user]
        return tuple(update.after for push in pushes for update in push.updates)


def start(machine: Machine, *, port: int = PORT) -> Forge:
    """Start a git server in the box, where everything in it reaches it."""
    return Forge.serve(machine.children, machine.folder / NAME, address=machine.address, port=port)
