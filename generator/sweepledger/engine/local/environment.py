"""The environment of a pod's container, translated for a process on this machine. Pure.

It contains what the manifest declares and what a node adds, and nothing of the engine's own environment.
Paths of the container are replaced with folders in variables and in the command.
"""

import os
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sweepledger.engine.local.job_spec import FieldVariable, JobSpec, LiteralVariable, Mount
from sweepledger.structs.kubernetes import (
    COMPLETION_INDEX_ANNOTATION,
    COMPLETION_INDEX_VARIABLE,
    INDEX_DISRUPTION_ANNOTATION,
    INDEX_FAILURE_ANNOTATION,
)

REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_.-][A-Za-z0-9_.-]*)\)")
KEYED = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")
POD_UID_VARIABLE = "SWEEP_POD_UID"
TEMPORARY = "/tmp"  # noqa: S108 - a path in the container


@dataclass(frozen=True, slots=True)
class PodIdentity:
    """Values of a pod that its environment can refer to."""

    uid: str
    node: str
    index: int
    failures: int
    disruptions: int = 0


@dataclass(frozen=True, slots=True)
class HostVariables:
    """Variables that the machine adds to a pod's environment."""

    scratch: Path
    """HOME and TMPDIR, unless the manifest sets them."""
    termination_log: Path
    interpreter: Path
    """The first folder on PATH."""
    variables: Mapping[str, str]
    """Visible devices, and flags for the record."""
    python_path: tuple[Path, ...] = ()
    """Folders before those of PYTHONPATH that the manifest declares."""


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


def declared_variables(job: JobSpec, identity: PodIdentity) -> dict[str, str]:
    """Return the variables that the manifest declares, as the container would see them."""
    number = str(job.completion_index(identity.index))
    variables = {COMPLETION_INDEX_VARIABLE: number}
    for variable in job.pod.environment:
        match variable:
            case LiteralVariable():
                variables[variable.name] = expand(variable.value, variables)
            case FieldVariable():
                variables[variable.name] = _field(variable.field, job, identity)
    return variables


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace `$(NAME)` as Kubernetes does: unknown names are kept, and `$$` is a dollar sign."""

    def value(match: re.Match[str]) -> str:
        return "$" if match[0] == "$$" else variables.get(match[1], match[0])

    return REFERENCE.sub(value, text)


def _field(field: str, job: JobSpec, identity: PodIdentity) -> str:
    plain = {
        "metadata.uid": identity.uid,
        "metadata.name": f"{job.name}-{identity.index}-{identity.uid[:8]}",
        "metadata.namespace": job.namespace,
        "spec.nodeName": identity.node,
    }
    if match := KEYED.fullmatch(field):
        known = job.pod.labels if match[1] == "labels" else job.pod.annotations
        own = {
            COMPLETION_INDEX_ANNOTATION: str(job.completion_index(identity.index)),
            INDEX_FAILURE_ANNOTATION: str(identity.failures),
            INDEX_DISRUPTION_ANNOTATION: str(identity.disruptions),
        }
        return {**known, **own}.get(match[2], "")
    return plain[field]


def program_path(word: str, code: str) -> str:
    """Return the path in the container of the program that a command starts: a relative one is in the code."""
    return posixpath.join(code, word) if "/" in word else word


def sub_path(mount: Mount, variables: Mapping[str, str]) -> str:
    """Return the path in the volume that a mount shows."""
    return expand(mount.sub_path, variables) if mount.expanded else mount.sub_path


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
