"""The environment of a pod's container, translated for a process on this machine. Pure.

It contains the variables of the batch and those that a node adds, but none of the engine's own environment.
Paths of the container are replaced with folders in variables and in the command.
"""

import os
import posixpath
from collections.abc import Mapping, Sequence
from pathlib import Path

from sweepledger.engine.local import python_environment
from sweepledger.engine.local.local_batch import TEMPORARY
from sweepledger.structs.kubernetes import CODE_PATH

POD_UID_VARIABLE = "SWEEP_POD_UID"


class PathTranslation:
    """A mapping from container paths to folders."""

    def __init__(self, folders: Mapping[str, Path]) -> None:
        # The longest path first, because a mount hides the folder below it.
        self._folders = sorted(folders.items(), key=lambda pair: -len(pair[0]))

    def __call__(self, text: str) -> str:
        """Translate the container path that a text is, or begins with; return other texts unchanged."""
        for path, folder in self._folders:
            if text == path or text.startswith(f"{path}/"):
                return str(folder) + text[len(path) :]
        return text


def program_path(word: str) -> str:
    """Return the container path of the program that a command starts; a relative path is in the code."""
    return posixpath.join(CODE_PATH, word) if "/" in word else word


def process_environment(
    declared: Mapping[str, str],
    translate: PathTranslation,
    *,
    own: Path,
    added: Mapping[str, str],
    python_path: Sequence[Path] = (),
) -> dict[str, str]:
    """Return the environment of a process: the declared variables, translated, and those that the node adds.

    HOME and TMPDIR are the pod's `own` folder, unless the batch sets them.
    """
    environment = {
        "HOME": str(own),
        "PATH": python_environment.program_path(),
        "PYTHONDONTWRITEBYTECODE": "1",  # the code tree stays unchanged
        "TMPDIR": translate(TEMPORARY) if translate(TEMPORARY) != TEMPORARY else str(own),
    }
    environment.update((name, translate(value)) for name, value in declared.items())
    if python_path:
        declared_path = filter(None, [environment.get("PYTHONPATH")])
        environment["PYTHONPATH"] = os.pathsep.join((*map(str, python_path), *declared_path))
    return {**environment, **added}
