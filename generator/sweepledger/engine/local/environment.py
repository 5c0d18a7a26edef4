"""What a pod's container would see, as what a process on this machine sees. Pure.

The environment is what the manifest declares and what a node must add, nothing of the engine's own.
Paths of the container are translated to folders, in variables and in the command.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from generator.engine.local.leftovers import MARK
from generator.engine.local.workload import FieldRef, JobSpec, Literal, Mount

REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_.-][A-Za-z0-9_.-]*)\)")
KEYED = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")
TEMPORARY = "/tmp"  # noqa: S108 - a path in the container

INDEX = "batch.kubernetes.io/job-completion-index"
FAILURES = "batch.kubernetes.io/job-index-failure-count"


@dataclass(frozen=True, slots=True)
class Identity:
    """What a pod can ask to be told about itself."""

    uid: str
    node: str
    index: int
    failures: int


@dataclass(frozen=True, slots=True)
class Extras:
    """What the machine adds to a pod's environment."""

    scratch: Path
    """HOME and TMPDIR, where the manifest says nothing of them."""
    termination_log: Path
    interpreter: Path
    """The folder that comes first on PATH."""
    variables: Mapping[str, str]
    """Devices, and how the trial is run."""


class Translation:
    """Container paths and the folders that stand for them."""

    def __init__(self, folders: Mapping[str, Path]) -> None:
        # The longest first: a mount inside another hides what is below it.
        self._folders = sorted(folders.items(), key=lambda pair: -len(pair[0]))

    def __call__(self, text: str) -> str:
        """Translate a text that is a path in the container, or begins with one; leave others alone."""
        for inside, folder in self._folders:
            if text == inside or text.startswith(f"{inside}/"):
                return str(folder) + text[len(inside) :]
        return text


def declared(job: JobSpec, identity: Identity) -> dict[str, str]:
    """Resolve the variables that the manifest declares, as the container would see them."""
    found = {"JOB_COMPLETION_INDEX": str(identity.index)} if job.indexed else {}
    for variable in job.pod.environment:
        match variable:
            case Literal():
                found[variable.name] = expand(variable.value, found)
            case FieldRef():
                found[variable.name] = _field(variable.field, job, identity)
    return found


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Put variables for `$(NAME)`; unknown ones stay, and `$$` is a dollar sign, as in Kubernetes."""

    def value(found: re.Match[str]) -> str:
        return "$" if found[0] == "$$" else variables.get(found[1], found[0])

    return REFERENCE.sub(value, text)


def _field(field: str, job: JobSpec, identity: Identity) -> str:
    plain = {
        "metadata.uid": identity.uid,
        "metadata.name": f"{job.name}-{identity.index}-{identity.uid[:8]}",
        "metadata.namespace": job.namespace,
        "spec.nodeName": identity.node,
    }
    if found := KEYED.fullmatch(field):
        known = job.pod.labels if found[1] == "labels" else job.pod.annotations
        added = {INDEX: str(identity.index), FAILURES: str(identity.failures)} if job.indexed else {}
        return {**known, **added}.get(found[2], "")
    return plain[field]


def sub_path(mount: Mount, variables: Mapping[str, str]) -> str:
    """Give the folder of a volume that a mount shows."""
    return expand(mount.sub_path, variables) if mount.expanded else mount.sub_path


def complete(
    variables: Mapping[str, str], identity: Identity, translate: Translation, extras: Extras
) -> dict[str, str]:
    """Make the environment of a process: translated, and with what every pod has here."""
    made = {
        "HOME": str(extras.scratch),
        "PATH": os.pathsep.join((str(extras.interpreter), os.defpath)),
        "PYTHONDONTWRITEBYTECODE": "1",  # the locked code stays as git has it
        "TMPDIR": translate(TEMPORARY) if translate(TEMPORARY) != TEMPORARY else str(extras.scratch),
    }
    made.update((name, translate(value)) for name, value in variables.items())
    made.update(extras.variables)
    return made | {
        MARK: identity.uid,
        "SWEEP_FAILURES": str(identity.failures),
        "SWEEP_NODE": identity.node,
        "SWEEP_RAN": "process",
        "SWEEP_TERMINATION_LOG": str(extras.termination_log),
    }
