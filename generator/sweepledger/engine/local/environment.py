"""The environment of a pod's container, translated for a process on this machine. Pure.

It contains what the batch declares and what a node adds, and nothing of the engine's own environment.
Paths of the container are replaced with folders in variables and in the command.
"""

import os
import posixpath
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from sweepledger.engine.local.local_batch import TEMPORARY
from sweepledger.structs.kubernetes import CODE_PATH

POD_UID_VARIABLE = "SWEEP_POD_UID"


class PodIdentity(Struct, frozen=True):
    """Values of a pod that its environment contains."""

    uid: str
    node: str
    failures: int


class HostVariables(Struct, frozen=True):
    """Variables that the machine adds to a pod's environment."""

    scratch: Path
    """HOME and TMPDIR, unless the batch sets them."""
    termination_log: Path
    interpreter: Path
    """The first folder on PATH."""
    variables: Mapping[str, str]
    """Visible devices, and flags for the record."""
    python_path: tuple[Path, ...] = ()
    """Folders before those of PYTHONPATH that the batch declares."""


class PathTranslation:
    """A mapping from container paths to folders."""

    def __init__(self, folders: Mapping[str, Path]) -> None:
        # The longest path first, because a mount hides the folder below it.
        self._folders = sorted(folders.items(), key=lambda pair: -len(pair[0]))

    def __call__(self, text: str) -> str:
        """Return a text with the path of the container that it is, or begins with, translated; others unchanged."""
        for path, folder in self._folders:
            if text == path or text.startswith(f"{path}/"):
                return str(folder) + text[len(path) :]
        return text


def program_path(word: str) -> str:
    """Return the path in the container of the program that a command starts: a relative one is in the code."""
    return posixpath.join(CODE_PATH, word) if "/" in word else word


def process_environment(
    variables: Mapping[str, str], identity: PodIdentity, translate: PathTranslation, extras: HostVariables
) -> dict[str, str]:
    """Return the environment of a process: the declared variables, translated, and those of every pod."""
    environment = {
        "HOME": str(extras.scratch),
        "PATH": os.pathsep.join((str(extras.interpreter), os.defpath)),
        "PYTHONDONTWRITEBYTECODE": "1",  # the code tree stays unchanged
        "TMPDIR": translate(TEMPORARY) if translate(TEMPORARY) != TEMPORARY else str(extras.scratch),
    }
    environment.update((name, translate(value)) for name, value in variables.items())
    environment.update(extras.variables)
    if extras.python_path:
        declared = filter(None, [environment.get("PYTHONPATH")])
        environment["PYTHONPATH"] = os.pathsep.join((*map(str, extras.python_path), *declared))
    return environment | {
        POD_UID_VARIABLE: identity.uid,
        "SWEEP_FAILURES": str(identity.failures),
        "SWEEP_NODE": identity.node,
        "SWEEP_RAN": "process",
        "SWEEP_TERMINATION_LOG": str(extras.termination_log),
    }
