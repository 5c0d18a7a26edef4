"""Hooks of the git server that wait for a test: a push stands still where the test wants it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.cluster import forge_git
from tests.cluster.forge import Forge
from tests.e2e.team import COLLECTOR, REPOSITORY

WAITS = """[ "${{REMOTE_USER:-}}" = '{user}' ] && : >'{folder}/came.'$$ && for _ in $(seq 1200); do
  [ -e '{folder}/open' ] && break
  sleep 0.1
done
"""
"""In front of a hook's own text; two minutes are for a test that has failed."""


@dataclass(frozen=True)
class Gate:
    """Where the pushes of the collector wait."""

    folder: Path

    @property
    def waiting(self) -> int:
        return len(list(self.folder.glob("came.*")))

    def open(self) -> None:
        """Let all of them go on, and those that are still to come."""
        (self.folder / "open").touch()


@contextmanager
def gate(forge: Forge, hook: Literal["pre-receive", "post-receive"]) -> Iterator[Gate]:
    """Let a hook wait before it does what it does; afterwards it is as it was, and nobody waits."""
    folder = forge.folder / f"gate-{os.urandom(4).hex()}"
    folder.mkdir()
    path = forge.bare(REPOSITORY) / "hooks" / hook
    text = path.read_text()
    shebang, _, rest = text.partition("\n")
    made = Gate(folder)
    forge_git.install(path, f"{shebang}\n{WAITS.format(user=COLLECTOR, folder=folder)}{rest}")
    try:
        yield made
    finally:
        made.open()
        forge_git.install(path, text)
