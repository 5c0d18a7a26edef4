"""What a trial runs with: a lock file, or the distributions that its interpreter can import."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from typing import Any, Iterator, Mapping, NamedTuple

from launch_files import LARGEST_FILE, Refused, sha256
from launch_folders import code_folder

OLD_CHANGE = 10**10  # nanoseconds after which a folder that did not change has the time of its last change
METADATA = re.compile(r"\.(?:dist|egg)-info\Z")


class Environment(NamedTuple):
    """What identifies the software that a trial ran with."""

    kind: str
    content: bytes

    @property
    def member(self) -> dict[str, str]:
        """The member of the record."""
        return {"kind": self.kind, "digest": f"sha256:{sha256(self.content)}"}


def read_environment(launch: Mapping[str, Any]) -> Environment:
    """Return the lock file that launch.json names, else the distributions that the command can import."""
    if "environment" not in launch:
        return Environment("distributions", list_distributions(launch["interpreter"]))
    path = os.path.join(code_folder(), launch["environment"]["lock"])
    try:
        with open(path, "rb") as file:
            return Environment("lock", file.read())
    except OSError as error:
        raise Refused(f"the lock file of the environment cannot be read: {error}") from error


def list_distributions(interpreter: str) -> bytes:
    """List `name==version` of the distributions that an interpreter can import, by their folders."""
    versions: dict[str, str] = {}
    for folder in import_folders(interpreter):
        for name, version in installed_in(folder).distributions:
            versions.setdefault(name, version)  # of several the first is imported
    return "".join(f"{name}=={version}\n" for name, version in sorted(versions.items())).encode()


class Installed(NamedTuple):
    """What a folder of installed packages has."""

    distributions: list[tuple[str, str]]  # name and version
    path_files: list[str]


INSTALLED: dict[str, tuple[list[int], Installed]] = {}  # by folder, with its inode and times


def installed_in(folder: str) -> Installed:
    """Return what a folder has; a process that runs several rows lists it again only after a change."""
    try:
        found = os.stat(folder)
        state = [found.st_ino, found.st_ctime_ns, found.st_mtime_ns]
        noted, installed = INSTALLED.get(folder, ([], Installed([], [])))
        if noted == state:
            return installed
        entries = sorted(os.listdir(folder))
    except OSError:
        return Installed([], [])
    metadata = list(filter(METADATA.search, entries))
    pairs = (distribution_of(folder, entry) for entry in metadata)
    installed = Installed(
        [pair for pair in pairs if pair[0]], [entry for entry in entries if entry.endswith(".pth")]
    )
    # Other changes of the same moment would go unnoticed, as do those of files in an .egg-info.
    if time.time_ns() - found.st_ctime_ns > OLD_CHANGE and not any(
        entry.endswith(".egg-info") for entry in metadata
    ):
        INSTALLED[folder] = state, installed
    return installed


def distribution_of(folder: str, entry: str) -> tuple[str, str]:
    """Return the normalized name and the version of a metadata folder."""
    stem, _, suffix = entry.rpartition(".")
    name, _, rest = stem.partition("-")
    version = rest if suffix == "dist-info" else rest.partition("-py")[0]
    if not version:  # an egg that is being developed
        with contextlib.suppress(OSError), open(os.path.join(folder, entry, "PKG-INFO"), "rb") as file:
            found = re.search(rb"^Version: *(\S+)", file.read(LARGEST_FILE), re.MULTILINE)
            version = found[1].decode("utf-8", "replace") if found else ""
    return re.sub(r"[-_.]+", "-", name).lower(), version


def import_folders(interpreter: str) -> list[str]:
    """List the folders from which an interpreter imports distributions, without running any code in them."""
    own, path = sys.executable or "", which(interpreter)
    sites = None
    # To follow all links takes longer.
    beside = os.path.dirname(path) == os.path.dirname(own) and os.path.exists(own)
    is_own = (beside and os.path.samefile(path, own)) or os.path.realpath(path) == os.path.realpath(own)
    if path and not is_own:
        sites = ask_for_sites(path, venv_of(path)[0])
        path = path if sites else own
    venv, sees_base = venv_of(path or own)
    of_venv, of_user, of_base = sites or own_sites(venv)
    folders = os.environ.get("PYTHONPATH", "").split(os.pathsep) + of_venv
    if sees_base:
        folders += of_base if os.environ.get("PYTHONNOUSERSITE") else of_user + of_base
    return list(dict.fromkeys(each for folder in folders if folder for each in (folder, *linked(folder))))


def venv_of(path: str) -> tuple[str, bool]:
    """Return the virtual environment of an interpreter, or nothing, and whether it sees other packages."""
    venv = os.path.dirname(os.path.dirname(os.path.abspath(path)))
    try:
        with open(os.path.join(venv, "pyvenv.cfg"), encoding="utf-8") as file:
            pairs = [line.lower().partition("=") for line in file]
    except (OSError, ValueError):
        return "", True
    return venv, ("include-system-site-packages", "true") in [
        (key.strip(), value.strip()) for key, _, value in pairs
    ]


def which(program: str) -> str:
    """Return the path of a program as a shell would find it; nothing if there is none."""
    if os.path.dirname(program):
        if not os.path.isabs(program):
            program = os.path.join(code_folder(), program)
        return program if os.access(program, os.X_OK) else ""
    paths = (
        os.path.join(folder, program) for folder in os.environ.get("PATH", "").split(os.pathsep) if folder
    )
    return next((path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)), "")


# `site` is only asked for names here: importing it under -S runs nothing.
SITES = """
import site, sys
base = [sys.base_prefix, sys.base_exec_prefix]
print("\\t".join(site.getsitepackages([venv] if venv else [])))
print(site.getusersitepackages())
print("\\t".join(site.getsitepackages(base)))
"""


def ask_for_sites(path: str, venv: str) -> list[list[str]] | None:
    """Return what another interpreter says of its folders; None if it cannot be run."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        answer = subprocess.run(
            [path, "-I", "-S", "-c", f"venv = {venv!r}{SITES}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=10,
            check=True,
        )
        lines = answer.stdout.decode("utf-8", "surrogateescape").split("\n")
        if len(lines) == 4:
            return [line.split("\t") for line in lines[:3]]
    return None


def own_sites(venv: str) -> list[list[str]]:
    """Return what `ask_for_sites` would say of this interpreter."""
    import site

    base = [sys.base_prefix, sys.base_exec_prefix]
    of_venv = site.getsitepackages([venv]) if venv else []
    return [of_venv, [site.getusersitepackages()], site.getsitepackages(base)]


def linked(folder: str) -> Iterator[str]:
    """Yield the folders that the .pth files of a folder add, as editable installations have them."""
    with contextlib.suppress(OSError, ValueError):
        for entry in installed_in(folder).path_files:
            with open(os.path.join(folder, entry), encoding="utf-8") as file:
                for line in file.read(LARGEST_FILE).splitlines():
                    path = os.path.join(folder, line.strip())
                    if line.strip() and not line.startswith(("#", "import ")) and os.path.isdir(path):
                        yield path
