"""The cluster's Debian packages: which of the list are missing, and how they are installed."""

import os
import shutil
import subprocess
from pathlib import Path

LIST = Path(__file__).with_name("packages.txt")
INSTALL = (
    *("apt-get", "install", "--yes", "--quiet", "--no-install-recommends"),
    *("-o", "DPkg::Lock::Timeout=300"),  # another apt may be at work
    "--no-remove",  # what a person has here stays
)


class PackagesError(Exception):
    """Packages cannot be installed; the message says why."""


def wanted() -> tuple[str, ...]:
    lines = (line.partition("#")[0].strip() for line in LIST.read_text().splitlines())
    return tuple(line for line in lines if line)


def missing() -> tuple[str, ...]:
    """Name those that dpkg does not know as installed: all of them where there is no dpkg."""
    if shutil.which("dpkg-query") is None:
        return wanted()
    shown = ("--showformat", "${Package} ${db:Status-Status}\n")
    done = subprocess.run(
        ["dpkg-query", "--show", *shown, *wanted()], capture_output=True, text=True, check=False
    )
    installed = {line.split()[0] for line in done.stdout.splitlines() if line.endswith(" installed")}
    return tuple(name for name in wanted() if name not in installed)


def install(names: tuple[str, ...]) -> None:
    """Install packages, as root. Raises PackagesError.

    It heeds no deadline: a dpkg that is cut off leaves the machine in need of repair.
    """
    if _apt(*INSTALL, *names).returncode == 0:
        return
    # The lists of what there is are absent, or too old to be true.
    done = _apt("apt-get", "update", "--quiet")
    done = done if done.returncode else _apt(*INSTALL, *names)
    if done.returncode:
        output = "\n".join(f"    {line}" for line in done.stdout.splitlines()[-20:])
        raise PackagesError(f"apt-get cannot install {' '.join(names)}:\n{output}")


def _apt(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv,
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
