"""Buildah, and the store in which it keeps what takes long: Debian, installed libraries, layers of builds.

Knows no image by name. Each call has a mount namespace of its own, so that none leaves a mount behind.
"""

import os
import shutil
import subprocess
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from tests.cluster import base_system, oci
from tests.cluster.base_system import Base
from tests.cluster.building import say

BUILD = ("build", "--quiet", "--isolation=chroot", "--layers", "--timestamp=0")
ZSTD = ("--compression-format=zstd", "--compression-level=1")
"""A third of the bytes, in no more time than it takes to write the rest."""
NAMES = "--format={{.Name}}:{{.Tag}}"
SHOWN_LINES = 40


@dataclass(frozen=True, slots=True)
class Store:
    """A store, for one who has it for himself."""

    folder: Path
    scratch: Path
    """For what no later build needs; an absolute path, as the store's."""

    def run(self, *arguments: str) -> str:
        own = ("--root", str(self.folder), "--runroot", str(self.scratch / "run"))
        done = subprocess.run(
            [*base_system.ENDS_WITH_US, "buildah", *own, "--storage-driver=overlay", *arguments],
            env={**os.environ, "TMPDIR": str(self.scratch)},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise AssertionError(f"buildah {' '.join(arguments)}\n{end_of(done.stdout + done.stderr)}")
        return done.stdout

    def has(self, name: str) -> bool:
        return name in self._names()

    def keep(self, base: Base) -> str:
        """Give the name of a Debian, which is made unless it is there. Raises NoClusterToolsError."""
        name = base_name(base)
        if self.has(name):
            return name
        say(f"==> making a Debian for the {base.name} (once; about {base.takes})")
        layer, layout, archive = (self.scratch / part for part in ("base-layer", "base", "base.tar"))
        base_system.debian(base, layer)
        oci.lay_out(layer, layout)
        oci.pack(layout, archive, name)
        shutil.rmtree(layout)
        self.run("pull", "--quiet", f"oci-archive:{archive}")
        archive.unlink()
        return name

    def save(self, name: str, layout: Path) -> None:
        self.run("push", "--quiet", *ZSTD, name, f"oci:{layout}:image")

    def forget_all_but(self, names: Collection[str]) -> None:
        """Remove other images, and the layers that only they needed."""
        for name in self._names() - set(names):
            self.run("rmi", "--force", name)  # with a container that a killed test left
        self.run("rmi", "--prune")

    def _names(self) -> set[str]:
        return {name for name in self.run("images", NAMES).split() if "<none>" not in name}


def stored_name(name: str, key: str) -> str:
    """Name what is kept after its content."""
    return f"localhost/sweepledger-{name}:{key}"


def base_name(base: Base) -> str:
    return stored_name(f"base-{base.name}", base.key)


def end_of(text: str) -> str:
    """Cut what a program says to its last lines."""
    return "\n".join(text.splitlines()[-SHOWN_LINES:])
